package rewrite

import (
	"slices"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

func intText(n int) string { return strconv.Itoa(n) }

// visitFrom visits the items of FROM and adds them to ownScope.
func (r *usageAnalysis) visitFrom(list []*sqltext.Node, ownScope *usageScope, ctes *cteLevel) {
	for _, n := range list {
		ownScope.items = append(ownScope.items, r.visitItem(n, ownScope, ctes)...)
	}
}

// visitItem visits one item of FROM. A LATERAL item can name the items that ownScope has so far.
func (r *usageAnalysis) visitItem(n *sqltext.Node, ownScope *usageScope, ctes *cteLevel) []*rangeItem {
	switch kind := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		return []*rangeItem{r.tableItem(kind.RangeVar, ctes)}
	case *sqltext.Node_RangeSubselect:
		s := kind.RangeSubselect
		parent := ownScope.parent
		// the sub-select can name the items so far; ownScope may get more items before the columns are followed
		if s.Lateral {
			parent = &usageScope{items: slices.Clone(ownScope.items), parent: ownScope.parent}
		}
		q := r.renameColumns(r.visitQuery(s.GetSubquery(), parent, ctes), s.GetAlias().GetColnames())
		return []*rangeItem{subqueryItem(s.GetAlias().GetAliasname(), q)}
	case *sqltext.Node_RangeFunction:
		return []*rangeItem{r.functionItem(kind.RangeFunction, ownScope, ctes)}
	case *sqltext.Node_RangeTableFunc:
		f := kind.RangeTableFunc
		ownScope := &usageScope{items: slices.Clone(ownScope.items), parent: ownScope.parent}
		r.withCTEs(ownScope, ctes, func() {
			r.visitExpr(f.Docexpr, ownScope, usageOutput)
			r.visitExpr(f.Rowexpr, ownScope, usageOutput)
			for _, n := range f.Namespaces {
				r.visitExpr(n.GetResTarget().GetVal(), ownScope, usageOutput)
			}
			for _, n := range f.Columns {
				r.visitExpr(n.GetRangeTableFuncCol().GetColexpr(), ownScope, usageOutput)
				r.visitExpr(n.GetRangeTableFuncCol().GetColdefexpr(), ownScope, usageOutput)
			}
		})
		return []*rangeItem{subqueryItem(f.GetAlias().GetAliasname(),
			&resultColumns{unknown: &outputColumn{expr: f.Docexpr, scope: ownScope}})}
	case *sqltext.Node_JoinExpr:
		return r.visitJoin(kind.JoinExpr, ownScope, ctes)
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
func (r *usageAnalysis) functionItem(f *sqltext.RangeFunction, ownScope *usageScope, ctes *cteLevel) *rangeItem {
	q := &resultColumns{unknown: &outputColumn{}}
	name := f.GetAlias().GetAliasname()
	scope := &usageScope{items: slices.Clone(ownScope.items), parent: ownScope.parent}
	r.withCTEs(scope, ctes, func() {
		for i, n := range f.Functions {
			parts := n.GetList().GetItems()
			if len(parts) == 0 {
				continue
			}
			r.visitExpr(parts[0], scope, usageOutput)
			r.addSource(q.unknown, &outputColumn{expr: parts[0], scope: scope})
			if functionName := parts[0].GetFuncCall().GetFuncname(); i == 0 && name == "" && len(functionName) > 0 {
				name = functionName[len(functionName)-1].GetString_().GetSval()
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
func (r *usageAnalysis) tableItem(rv *sqltext.RangeVar, ctes *cteLevel) *rangeItem {
	r.visited[rv] = true
	alias := rv.GetAlias().GetAliasname()
	if alias == "" {
		alias = rv.GetRelname()
	}
	if rv.GetSchemaname() == "" {
		for frame := ctes; frame != nil; frame = frame.parent {
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
	use := r.addRelation(name, alias, relation)
	item := &rangeItem{name: alias, usage: use, wholeRow: &outputColumn{relation: use}}
	if rv.GetAlias() == nil {
		item.relation = name
	}
	if relation == nil {
		item.unknown = &outputColumn{relation: use}
		return item
	}
	var viewOutputs *resultColumns
	if relation.Kind == catalog.View && name.Schema != "pg_catalog" && name.Schema != "information_schema" {
		viewOutputs = r.viewColumns(relation)
	}
	for i, c := range relation.Columns {
		o := &outputColumn{name: c.Name, relation: use, column: c.Name}
		if viewOutputs != nil && i < len(viewOutputs.outputs) {
			o.sources = []*outputColumn{viewOutputs.outputs[i]}
		}
		item.outputs = append(item.outputs, o)
		if viewOutputs != nil {
			item.wholeRow.sources = append(item.wholeRow.sources, o)
		}
	}
	if len(rv.GetAlias().GetColnames()) > 0 {
		item.resultColumns = *r.renameColumns(&item.resultColumns, rv.GetAlias().GetColnames())
	}
	return item
}

// viewColumns returns the columns of a view, after visiting the view's query. If that query cannot be followed, the
// tables under the view count as read in every way.
func (r *usageAnalysis) viewColumns(view *catalog.Relation) *resultColumns {
	outer, outerWith, outerAsked := r.viewName, r.ctes, r.conditionUsage
	defer func() { r.viewName, r.ctes, r.conditionUsage = outer, outerWith, outerAsked }()
	if r.viewName == "" {
		r.viewName = view.Name.String()
	}
	r.ctes = nil
	countBefore := len(r.uses)
	if r.viewCount++; r.viewCount <= maxViews {
		if tree, refusal := sqltext.Parse(view.Definition); refusal == nil && len(tree.Stmts) == 1 &&
			tree.Stmts[0].GetStmt().GetSelectStmt() != nil {
			q := r.visitSelect(tree.Stmts[0].GetStmt().GetSelectStmt(), nil, nil)
			if q.unknown == nil && len(q.outputs) == len(view.Columns) {
				return q
			}
		}
	}
	for _, use := range r.uses[countBefore:] {
		use.markUsed("", usageOutput|usageSimilarity)
	}
	return nil // nil means that the columns are not known; analyzeAccesses adds the tables that the view reads
}

// maxViews bounds how many mentions of views the analysis follows in one statement.
const maxViews = 200

// visitJoin visits a join.
func (r *usageAnalysis) visitJoin(j *sqltext.JoinExpr, ownScope *usageScope, ctes *cteLevel) []*rangeItem {
	outside := ownScope.items
	left := r.visitItem(j.Larg, ownScope, ctes)
	ownScope.items = append(append([]*rangeItem{}, outside...), left...)
	right := r.visitItem(j.Rarg, ownScope, ctes)
	ownScope.items = outside
	bothItems := append(append([]*rangeItem{}, left...), right...)
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
		for _, item := range bothItems {
			r.markUsed(item.wholeRow, usageOutput|usageSimilarity)
			r.markUsed(item.unknown, usageOutput|usageSimilarity)
		}
	}
	joinScope := &usageScope{items: bothItems, parent: ownScope.parent}
	restricted := map[*relationUse]bool{}
	add := func(items []*rangeItem) {
		for _, item := range items {
			item.forEachUse(func(use *relationUse) { restricted[use] = true })
		}
	}
	switch j.Jointype {
	case sqltext.JOIN_INNER:
		add(bothItems)
	case sqltext.JOIN_LEFT:
		add(right)
	case sqltext.JOIN_RIGHT:
		add(left)
	}
	r.withCTEs(joinScope, ctes, func() {
		r.visitWhere(j.Quals, joinScope,
			func(use *relationUse) bool { return restricted[use] })
	})
	if j.Alias == nil {
		if j.JoinUsingAlias != nil {
			q := &resultColumns{}
			for _, name := range shared {
				q.outputs = append(q.outputs,
					&outputColumn{name: name, sources: append(columnsNamed(left, name), columnsNamed(right, name)...)})
			}
			bothItems = append(bothItems, subqueryItem(j.JoinUsingAlias.GetAliasname(), q))
		}
		return bothItems
	}
	// in the result of the join, the columns of USING come first, each once
	q := &resultColumns{}
	merged := map[string]bool{}
	for _, name := range shared {
		merged[name] = true
		q.outputs = append(q.outputs,
			&outputColumn{name: name, sources: append(columnsNamed(left, name), columnsNamed(right, name)...)})
	}
	for _, item := range bothItems {
		for _, o := range item.outputs {
			if !merged[o.name] {
				q.outputs = append(q.outputs, &outputColumn{name: o.name, sources: []*outputColumn{o}})
			}
		}
		if item.unknown != nil {
			if q.unknown == nil {
				q.unknown = &outputColumn{}
			}
			r.addSource(q.unknown, item.unknown)
		}
	}
	q = r.renameColumns(q, j.Alias.GetColnames())
	out := subqueryItem(j.Alias.GetAliasname(), q)
	for _, it := range bothItems {
		it.forEachUse(func(use *relationUse) { out.joinedRelations = append(out.joinedRelations, use) })
	}
	return []*rangeItem{out}
}

// forEachUse calls f for the table that an item is, or for each table of a join.
func (item *rangeItem) forEachUse(f func(*relationUse)) {
	if item.usage != nil {
		f(item.usage)
	}
	for _, use := range item.joinedRelations {
		f(use)
	}
}

// hasUnknownColumns tells whether some column of an item is not known.
func hasUnknownColumns(items []*rangeItem) bool {
	for _, item := range items {
		if item.unknown != nil {
			return true
		}
	}
	return false
}

// commonColumns returns the names of columns that both sides of a NATURAL JOIN have.
func commonColumns(left, right []*rangeItem) []string {
	var out []string
	seen := map[string]bool{}
	for _, item := range left {
		for _, o := range item.outputs {
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
	for _, item := range items {
		for _, o := range item.outputs {
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
	for _, k := range relation.UniqueKeys {
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

// acceptsAny is passed to visitWhere if the condition decides which rows of every table are read.
func acceptsAny(*relationUse) bool { return true }

// visitWhere visits a WHERE or ON condition, and notes which columns must equal a constant. allowed tells for which
// tables the condition decides which rows are read.
func (r *usageAnalysis) visitWhere(n *sqltext.Node, ownScope *usageScope, allowed func(*relationUse) bool) {
	if n == nil || n.GetCurrentOfExpr() != nil {
		return
	}
	r.visitExpr(n, ownScope, r.conditionUsage)
	r.noteEqualities(n, ownScope, allowed)
}

func (r *usageAnalysis) noteEqualities(n *sqltext.Node, ownScope *usageScope, allowed func(*relationUse) bool) {
	if b := n.GetBoolExpr(); b != nil && b.Boolop == sqltext.AND_EXPR {
		for _, part := range b.Args {
			r.noteEqualities(part, ownScope, allowed)
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
	a, b := r.singleColumn(left, ownScope), r.singleColumn(right, ownScope)
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
		if base, isDirect := o.baseColumn(); base != nil && isDirect && ownScope.hasUse(base.relation) &&
			allowed(base.relation) {
			base.relation.constantColumns[base.column] = true
		}
	}
}

// hasUse tells whether the scope has a FROM item for this mention of a table.
func (s *usageScope) hasUse(use *relationUse) bool {
	found := false
	for _, item := range s.items {
		item.forEachUse(func(r *relationUse) { found = found || r == use })
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

// singleColumn returns the column that an expression is; nil if the expression is no column name, or may mean several
// columns.
func (r *usageAnalysis) singleColumn(n *sqltext.Node, ownScope *usageScope) *outputColumn {
	c := n.GetColumnRef()
	if c == nil || isStar(n) {
		return nil
	}
	found := r.resolveColumn(c, ownScope)
	if len(found) != 1 {
		return nil
	}
	return found[0]
}
