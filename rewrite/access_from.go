package rewrite

import (
	"slices"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

func intText(n int) string { return strconv.Itoa(n) }

// visitFrom visits the items of FROM and adds them to the scope own.
func (r *usageAnalysis) visitFrom(list []*sqltext.Node, own *usageScope, with *cteLevel) {
	for _, n := range list {
		own.items = append(own.items, r.visitItem(n, own, with)...)
	}
}

// visitItem visits one item of FROM. With LATERAL, the item sees the items that own has so far.
func (r *usageAnalysis) visitItem(n *sqltext.Node, own *usageScope, with *cteLevel) []*rangeItem {
	switch kind := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		return []*rangeItem{r.tableItem(kind.RangeVar, with)}
	case *sqltext.Node_RangeSubselect:
		s := kind.RangeSubselect
		parent := own.parent
		if s.Lateral { // the sub-select sees the items so far: own has more items when its columns are followed later
			parent = &usageScope{items: slices.Clone(own.items), parent: own.parent}
		}
		q := r.renameColumns(r.visitQuery(s.GetSubquery(), parent, with), s.GetAlias().GetColnames())
		return []*rangeItem{subqueryItem(s.GetAlias().GetAliasname(), q)}
	case *sqltext.Node_RangeFunction:
		return []*rangeItem{r.functionItem(kind.RangeFunction, own, with)}
	case *sqltext.Node_RangeTableFunc:
		f := kind.RangeTableFunc
		own := &usageScope{items: slices.Clone(own.items), parent: own.parent}
		r.withCTEs(own, with, func() {
			r.visitExpr(f.Docexpr, own, usageOutput)
			r.visitExpr(f.Rowexpr, own, usageOutput)
			for _, n := range f.Namespaces {
				r.visitExpr(n.GetResTarget().GetVal(), own, usageOutput)
			}
			for _, n := range f.Columns {
				r.visitExpr(n.GetRangeTableFuncCol().GetColexpr(), own, usageOutput)
				r.visitExpr(n.GetRangeTableFuncCol().GetColdefexpr(), own, usageOutput)
			}
		})
		return []*rangeItem{subqueryItem(f.GetAlias().GetAliasname(),
			&resultColumns{unknown: &outputColumn{expr: f.Docexpr, scope: own}})}
	case *sqltext.Node_JoinExpr:
		return r.visitJoin(kind.JoinExpr, own, with)
	}
	r.incomplete = true
	return nil
}

func subqueryItem(name string, q *resultColumns) *rangeItem {
	row := &outputColumn{sources: append([]*outputColumn{}, q.outputs...)}
	if q.unknown != nil {
		row.sources = append(row.sources, q.unknown)
	}
	return &rangeItem{name: name, resultColumns: *q, wholeRow: row}
}

// functionItem returns a function in FROM as an item. Its columns come from its arguments.
func (r *usageAnalysis) functionItem(f *sqltext.RangeFunction, own *usageScope, with *cteLevel) *rangeItem {
	q := &resultColumns{unknown: &outputColumn{}}
	name := f.GetAlias().GetAliasname()
	scope := &usageScope{items: slices.Clone(own.items), parent: own.parent}
	r.withCTEs(scope, with, func() {
		for i, n := range f.Functions {
			parts := n.GetList().GetItems()
			if len(parts) == 0 {
				continue
			}
			r.visitExpr(parts[0], scope, usageOutput)
			r.addSource(q.unknown, &outputColumn{expr: parts[0], scope: scope})
			if called := parts[0].GetFuncCall().GetFuncname(); i == 0 && name == "" && len(called) > 0 {
				name = called[len(called)-1].GetString_().GetSval()
			}
		}
	})
	var columns []*sqltext.Node
	columns = append(columns, f.GetAlias().GetColnames()...)
	for _, n := range columns {
		q.outputs = append(q.outputs, &outputColumn{name: n.GetString_().GetSval(), sources: []*outputColumn{q.unknown}})
	}
	for _, n := range f.Coldeflist {
		q.outputs = append(q.outputs, &outputColumn{name: n.GetColumnDef().GetColname(), sources: []*outputColumn{q.unknown}})
	}
	return subqueryItem(name, q)
}

// tableItem returns a relation, or a WITH query, in FROM as an item.
func (r *usageAnalysis) tableItem(rv *sqltext.RangeVar, with *cteLevel) *rangeItem {
	r.visited[rv] = true
	alias := rv.GetAlias().GetAliasname()
	if alias == "" {
		alias = rv.GetRelname()
	}
	if rv.GetSchemaname() == "" {
		for frame := with; frame != nil; frame = frame.parent {
			if q, ok := frame.queries[rv.GetRelname()]; ok {
				return subqueryItem(alias, r.renameColumns(q, rv.GetAlias().GetColnames()))
			}
		}
	}
	name, found := r.snap.ResolveRelation(rv.GetSchemaname(), rv.GetRelname())
	if !found {
		r.incomplete = true
		return &rangeItem{name: alias, wholeRow: &outputColumn{}}
	}
	relation, _ := r.snap.Relation(name)
	if f := r.fragments[name]; f != nil {
		relation = f.visible
	}
	if fetched := r.keyLookups[rv]; fetched != nil {
		relation = fetched.function.visible
	}
	one := r.addRelation(name, alias, relation)
	it := &rangeItem{name: alias, usage: one, wholeRow: &outputColumn{relation: one}}
	if rv.GetAlias() == nil {
		it.relation = name
	}
	if relation == nil {
		it.unknown = &outputColumn{relation: one}
		return it
	}
	var viewOutputs *resultColumns
	if relation.Kind == catalog.View && name.Schema != "pg_catalog" && name.Schema != "information_schema" {
		viewOutputs = r.viewColumns(relation)
	}
	for i, c := range relation.Columns {
		o := &outputColumn{name: c.Name, relation: one, column: c.Name}
		if viewOutputs != nil && i < len(viewOutputs.outputs) {
			o.sources = []*outputColumn{viewOutputs.outputs[i]}
		}
		it.outputs = append(it.outputs, o)
		if viewOutputs != nil {
			it.wholeRow.sources = append(it.wholeRow.sources, o)
		}
	}
	if len(rv.GetAlias().GetColnames()) > 0 {
		it.resultColumns = *r.renameColumns(&it.resultColumns, rv.GetAlias().GetColnames())
	}
	return it
}

// viewColumns returns the columns of a view, followed into the view's query. A view that it cannot follow counts as
// read in every way.
func (r *usageAnalysis) viewColumns(view *catalog.Relation) *resultColumns {
	outer, outerWith, outerAsked := r.viewName, r.ctes, r.conditionUsage
	defer func() { r.viewName, r.ctes, r.conditionUsage = outer, outerWith, outerAsked }()
	if r.viewName == "" {
		r.viewName = view.Name.String()
	}
	r.ctes = nil
	before := len(r.uses)
	if r.viewCount++; r.viewCount <= maxViews {
		if tree, refused := sqltext.Parse(view.Definition); refused == nil && len(tree.Stmts) == 1 &&
			tree.Stmts[0].GetStmt().GetSelectStmt() != nil {
			q := r.visitSelect(tree.Stmts[0].GetStmt().GetSelectStmt(), nil, nil)
			if q.unknown == nil && len(q.outputs) == len(view.Columns) {
				return q
			}
		}
	}
	for _, one := range r.uses[before:] {
		one.markUsed("", usageOutput|usageSimilarity)
	}
	return nil // nil means that the columns are not known; analyzeAccesses adds the tables that the view reads
}

// maxViews bounds how many mentions of views are followed in one statement.
const maxViews = 200

// visitJoin visits a join.
func (r *usageAnalysis) visitJoin(j *sqltext.JoinExpr, own *usageScope, with *cteLevel) []*rangeItem {
	outside := own.items
	left := r.visitItem(j.Larg, own, with)
	own.items = append(append([]*rangeItem{}, outside...), left...)
	right := r.visitItem(j.Rarg, own, with)
	own.items = outside
	both := append(append([]*rangeItem{}, left...), right...)
	var shared []string
	if j.IsNatural {
		shared = commonColumns(left, right)
	}
	for _, n := range j.UsingClause {
		shared = append(shared, n.GetString_().GetSval())
	}
	for _, name := range shared {
		l, m := columnsNamed(left, name), columnsNamed(right, name)
		for _, o := range append(append([]*outputColumn{}, l...), m...) {
			r.markUsed(o, r.conditionUsage)
		}
		if len(l) == 1 && len(m) == 1 {
			r.noteEqual(l[0], m[0])
		}
	}
	if j.IsNatural && (hasUnknownColumns(left) || hasUnknownColumns(right)) {
		for _, it := range both {
			r.markUsed(it.wholeRow, usageOutput|usageSimilarity)
			r.markUsed(it.unknown, usageOutput|usageSimilarity)
		}
	}
	on := &usageScope{items: both, parent: own.parent}
	restricted := map[*relationUse]bool{}
	add := func(items []*rangeItem) {
		for _, it := range items {
			it.forEachUse(func(one *relationUse) { restricted[one] = true })
		}
	}
	switch j.Jointype {
	case sqltext.JOIN_INNER:
		add(both)
	case sqltext.JOIN_LEFT:
		add(right)
	case sqltext.JOIN_RIGHT:
		add(left)
	}
	r.withCTEs(on, with, func() { r.visitWhere(j.Quals, on, func(one *relationUse) bool { return restricted[one] }) })
	if j.Alias == nil {
		if j.JoinUsingAlias != nil {
			q := &resultColumns{}
			for _, name := range shared {
				q.outputs = append(q.outputs,
					&outputColumn{name: name, sources: append(columnsNamed(left, name), columnsNamed(right, name)...)})
			}
			both = append(both, subqueryItem(j.JoinUsingAlias.GetAliasname(), q))
		}
		return both
	}
	// the columns of USING come first, each once
	q := &resultColumns{}
	merged := map[string]bool{}
	for _, name := range shared {
		merged[name] = true
		q.outputs = append(q.outputs,
			&outputColumn{name: name, sources: append(columnsNamed(left, name), columnsNamed(right, name)...)})
	}
	for _, it := range both {
		for _, o := range it.outputs {
			if !merged[o.name] {
				q.outputs = append(q.outputs, &outputColumn{name: o.name, sources: []*outputColumn{o}})
			}
		}
		if it.unknown != nil {
			if q.unknown == nil {
				q.unknown = &outputColumn{}
			}
			r.addSource(q.unknown, it.unknown)
		}
	}
	q = r.renameColumns(q, j.Alias.GetColnames())
	out := subqueryItem(j.Alias.GetAliasname(), q)
	for _, it := range both {
		it.forEachUse(func(one *relationUse) { out.joinedRelations = append(out.joinedRelations, one) })
	}
	return []*rangeItem{out}
}

// forEachUse calls f for the table that an item is, or for each table of a join.
func (it *rangeItem) forEachUse(f func(*relationUse)) {
	if it.usage != nil {
		f(it.usage)
	}
	for _, one := range it.joinedRelations {
		f(one)
	}
}

// hasUnknownColumns tells whether some column of an item is not known.
func hasUnknownColumns(items []*rangeItem) bool {
	for _, it := range items {
		if it.unknown != nil {
			return true
		}
	}
	return false
}

// commonColumns returns the names of columns that both sides of a NATURAL JOIN have.
func commonColumns(left, right []*rangeItem) []string {
	var out []string
	seen := map[string]bool{}
	for _, it := range left {
		for _, o := range it.outputs {
			if !seen[o.name] && len(columnsNamed(right, o.name)) > 0 {
				out = append(out, o.name)
			}
			seen[o.name] = true
		}
	}
	return out
}

// columnsNamed returns the columns of some items that have the given name.
func columnsNamed(items []*rangeItem, name string) []*outputColumn {
	var out []*outputColumn
	for _, it := range items {
		for _, o := range it.outputs {
			if o.name == name {
				out = append(out, o)
			}
		}
	}
	return out
}

// noteEqual notes that the statement requires two columns to be equal.
func (r *usageAnalysis) noteEqual(a, b *outputColumn) {
	x, _ := a.baseColumn()
	y, _ := b.baseColumn()
	if x == nil || y == nil || x.relation == y.relation {
		return
	}
	for _, o := range []*outputColumn{x, y} {
		if isKeyColumn(o.relation.relation, o.column) {
			o.relation.joinedByKey = true
		}
	}
}

// isKeyColumn tells whether a column belongs to the primary key, a unique key or a foreign key.
func isKeyColumn(relation *catalog.Relation, column string) bool {
	if relation == nil || column == "" {
		return false
	}
	for _, c := range relation.PrimaryKey {
		if c == column {
			return true
		}
	}
	for _, k := range relation.Unique {
		for _, c := range k.EqualColumns {
			if c == column {
				return true
			}
		}
	}
	for _, k := range relation.ForeignKeys {
		for _, c := range k.Columns {
			if c == column {
				return true
			}
		}
	}
	return false
}

// acceptsAny accepts every table of the scope.
func acceptsAny(*relationUse) bool { return true }

// visitWhere visits a condition, and notes which columns must equal a constant for the row to be read. allowed tells
// for which tables the condition decides which rows are read.
func (r *usageAnalysis) visitWhere(n *sqltext.Node, own *usageScope, allowed func(*relationUse) bool) {
	if n == nil || n.GetCurrentOfExpr() != nil {
		return
	}
	r.visitExpr(n, own, r.conditionUsage)
	r.noteEqualities(n, own, allowed)
}

func (r *usageAnalysis) noteEqualities(n *sqltext.Node, own *usageScope, allowed func(*relationUse) bool) {
	if b := n.GetBoolExpr(); b != nil && b.Boolop == sqltext.AND_EXPR {
		for _, part := range b.Args {
			r.noteEqualities(part, own, allowed)
		}
		return
	}
	x := n.GetAExpr()
	if x == nil {
		return
	}
	schema, name, ok := qualifiedName(x.Name)
	if !ok || name != "=" || schema != "" && schema != "pg_catalog" {
		return
	}
	left, right := x.Lexpr, x.Rexpr
	switch x.Kind {
	case sqltext.AEXPR_OP:
	case sqltext.AEXPR_IN:
		items := x.Rexpr.GetList().GetItems()
		if len(items) != 1 {
			return
		}
		right = items[0]
	default:
		return
	}
	a, b := r.singleColumn(left, own), r.singleColumn(right, own)
	if a != nil && b != nil {
		r.noteEqual(a, b)
	}
	if allowed == nil {
		return
	}
	for _, pair := range [][2]any{{a, right}, {b, left}} {
		o, value := pair[0].(*outputColumn), pair[1].(*sqltext.Node)
		if o == nil || !isConstant(value) {
			continue
		}
		if base, direct := o.baseColumn(); base != nil && direct && own.hasUse(base.relation) && allowed(base.relation) {
			base.relation.constantColumns[base.column] = true
		}
	}
}

// hasUse tells whether a mention of a table is an item of this scope.
func (s *usageScope) hasUse(one *relationUse) bool {
	found := false
	for _, it := range s.items {
		it.forEachUse(func(r *relationUse) { found = found || r == one })
	}
	return found
}

// isConstant tells whether an expression is a constant or a parameter, with or without casts.
func isConstant(n *sqltext.Node) bool {
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	return n.GetAConst() != nil || n.GetParamRef() != nil
}

// singleColumn returns the column that an expression means; nil if it may mean several, or none.
func (r *usageAnalysis) singleColumn(n *sqltext.Node, own *usageScope) *outputColumn {
	c := n.GetColumnRef()
	if c == nil || isStar(n) {
		return nil
	}
	found := r.resolveColumn(c, own)
	if len(found) != 1 {
		return nil
	}
	return found[0]
}
