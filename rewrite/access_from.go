package rewrite

import (
	"slices"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

func itoa(n int) string { return strconv.Itoa(n) }

// from visits the items of FROM and adds them to own.
func (r *reader) from(list []*sqltext.Node, own *names, with *queriesInSight) {
	for _, n := range list {
		own.items = append(own.items, r.item(n, own, with)...)
	}
}

// item visits one item of FROM. LATERAL sees what own has so far.
func (r *reader) item(n *sqltext.Node, own *names, with *queriesInSight) []*item {
	switch kind := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		return []*item{r.table(kind.RangeVar, with)}
	case *sqltext.Node_RangeSubselect:
		s := kind.RangeSubselect
		parent := own.parent
		if s.Lateral { // what it sees now: own has other items by the time that its columns are followed
			parent = &names{items: slices.Clone(own.items), parent: own.parent}
		}
		q := r.renamed(r.query(s.GetSubquery(), parent, with), s.GetAlias().GetColnames())
		return []*item{queryItem(s.GetAlias().GetAliasname(), q)}
	case *sqltext.Node_RangeFunction:
		return []*item{r.functionItem(kind.RangeFunction, own, with)}
	case *sqltext.Node_RangeTableFunc:
		f := kind.RangeTableFunc
		own := &names{items: slices.Clone(own.items), parent: own.parent}
		r.in(own, with, func() {
			r.expr(f.Docexpr, own, shows)
			r.expr(f.Rowexpr, own, shows)
			for _, n := range f.Namespaces {
				r.expr(n.GetResTarget().GetVal(), own, shows)
			}
			for _, n := range f.Columns {
				r.expr(n.GetRangeTableFuncCol().GetColexpr(), own, shows)
				r.expr(n.GetRangeTableFuncCol().GetColdefexpr(), own, shows)
			}
		})
		return []*item{queryItem(f.GetAlias().GetAliasname(), &rows{rest: &output{expr: f.Docexpr, scope: own}})}
	case *sqltext.Node_JoinExpr:
		return r.join(kind.JoinExpr, own, with)
	}
	r.lost = true
	return nil
}

func queryItem(name string, q *rows) *item {
	row := &output{from: append([]*output{}, q.outputs...)}
	if q.rest != nil {
		row.from = append(row.from, q.rest)
	}
	return &item{name: name, rows: *q, row: row}
}

// functionItem is a function in FROM. What its columns are made of is what it is called with.
func (r *reader) functionItem(f *sqltext.RangeFunction, own *names, with *queriesInSight) *item {
	q := &rows{rest: &output{}}
	name := f.GetAlias().GetAliasname()
	scope := &names{items: slices.Clone(own.items), parent: own.parent}
	r.in(scope, with, func() {
		for i, n := range f.Functions {
			parts := n.GetList().GetItems()
			if len(parts) == 0 {
				continue
			}
			r.expr(parts[0], scope, shows)
			r.pass(q.rest, &output{expr: parts[0], scope: scope})
			if called := parts[0].GetFuncCall().GetFuncname(); i == 0 && name == "" && len(called) > 0 {
				name = called[len(called)-1].GetString_().GetSval()
			}
		}
	})
	var columns []*sqltext.Node
	columns = append(columns, f.GetAlias().GetColnames()...)
	for _, n := range columns {
		q.outputs = append(q.outputs, &output{name: n.GetString_().GetSval(), from: []*output{q.rest}})
	}
	for _, n := range f.Coldeflist {
		q.outputs = append(q.outputs, &output{name: n.GetColumnDef().GetColname(), from: []*output{q.rest}})
	}
	return queryItem(name, q)
}

// table is a relation, or a WITH query, in FROM.
func (r *reader) table(rv *sqltext.RangeVar, with *queriesInSight) *item {
	r.visited[rv] = true
	alias := rv.GetAlias().GetAliasname()
	if alias == "" {
		alias = rv.GetRelname()
	}
	if rv.GetSchemaname() == "" {
		for frame := with; frame != nil; frame = frame.parent {
			if q, ok := frame.names[rv.GetRelname()]; ok {
				return queryItem(alias, r.renamed(q, rv.GetAlias().GetColnames()))
			}
		}
	}
	name, found := r.snap.ResolveRelation(rv.GetSchemaname(), rv.GetRelname())
	if !found {
		r.lost = true
		return &item{name: alias, row: &output{}}
	}
	relation, _ := r.snap.Relation(name)
	if f := r.protected[name]; f != nil {
		relation = f.visible
	}
	if fetched := r.keyedBy[rv]; fetched != nil {
		relation = fetched.keyed.visible
	}
	one := r.mention(name, alias, relation)
	it := &item{name: alias, read: one, row: &output{read: one}}
	if rv.GetAlias() == nil {
		it.relation = name
	}
	if relation == nil {
		it.rest = &output{read: one}
		return it
	}
	var beneath *rows
	if relation.Kind == catalog.View && name.Schema != "pg_catalog" && name.Schema != "information_schema" {
		beneath = r.viewRows(relation)
	}
	for i, c := range relation.Columns {
		o := &output{name: c.Name, read: one, column: c.Name}
		if beneath != nil && i < len(beneath.outputs) {
			o.from = []*output{beneath.outputs[i]}
		}
		it.outputs = append(it.outputs, o)
		if beneath != nil {
			it.row.from = append(it.row.from, o)
		}
	}
	if len(rv.GetAlias().GetColnames()) > 0 {
		it.rows = *r.renamed(&it.rows, rv.GetAlias().GetColnames())
	}
	return it
}

// viewRows follows the columns of a view into its own query. What cannot be followed counts as read in every way.
func (r *reader) viewRows(view *catalog.Relation) *rows {
	outer, outerWith, outerAsked := r.view, r.with_, r.asked
	defer func() { r.view, r.with_, r.asked = outer, outerWith, outerAsked }()
	if r.view == "" {
		r.view = view.Name.String()
	}
	r.with_ = nil
	before := len(r.reads)
	if r.views++; r.views <= maxViews {
		if tree, refused := sqltext.Parse(view.Definition); refused == nil && len(tree.Stmts) == 1 &&
			tree.Stmts[0].GetStmt().GetSelectStmt() != nil {
			q := r.selectStmt(tree.Stmts[0].GetStmt().GetSelectStmt(), nil, nil)
			if q.rest == nil && len(q.outputs) == len(view.Columns) {
				return q
			}
		}
	}
	for _, one := range r.reads[before:] {
		one.mark("", shows|compared)
	}
	return nil // the tables that it reads are added by typed
}

// maxViews bounds the views that one statement opens, each mention counted.
const maxViews = 200

func (r *reader) join(j *sqltext.JoinExpr, own *names, with *queriesInSight) []*item {
	outside := own.items
	left := r.item(j.Larg, own, with)
	own.items = append(append([]*item{}, outside...), left...)
	right := r.item(j.Rarg, own, with)
	own.items = outside
	both := append(append([]*item{}, left...), right...)
	var shared []string
	if j.IsNatural {
		shared = common(left, right)
	}
	for _, n := range j.UsingClause {
		shared = append(shared, n.GetString_().GetSval())
	}
	for _, name := range shared {
		l, m := find(left, name), find(right, name)
		for _, o := range append(append([]*output{}, l...), m...) {
			r.use(o, r.asked)
		}
		if len(l) == 1 && len(m) == 1 {
			r.meet(l[0], m[0])
		}
	}
	if j.IsNatural && (open(left) || open(right)) {
		for _, it := range both {
			r.use(it.row, shows|compared)
			r.use(it.rest, shows|compared)
		}
	}
	on := &names{items: both, parent: own.parent}
	restricted := map[*read]bool{}
	add := func(items []*item) {
		for _, it := range items {
			it.each(func(one *read) { restricted[one] = true })
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
	r.in(on, with, func() { r.where(j.Quals, on, func(one *read) bool { return restricted[one] }) })
	if j.Alias == nil {
		if j.JoinUsingAlias != nil {
			q := &rows{}
			for _, name := range shared {
				q.outputs = append(q.outputs, &output{name: name, from: append(find(left, name), find(right, name)...)})
			}
			both = append(both, queryItem(j.JoinUsingAlias.GetAliasname(), q))
		}
		return both
	}
	// The columns that are joined come first, once.
	q := &rows{}
	merged := map[string]bool{}
	for _, name := range shared {
		merged[name] = true
		q.outputs = append(q.outputs, &output{name: name, from: append(find(left, name), find(right, name)...)})
	}
	for _, it := range both {
		for _, o := range it.outputs {
			if !merged[o.name] {
				q.outputs = append(q.outputs, &output{name: o.name, from: []*output{o}})
			}
		}
		if it.rest != nil {
			if q.rest == nil {
				q.rest = &output{}
			}
			r.pass(q.rest, it.rest)
		}
	}
	q = r.renamed(q, j.Alias.GetColnames())
	out := queryItem(j.Alias.GetAliasname(), q)
	for _, it := range both {
		it.each(func(one *read) { out.inside = append(out.inside, one) })
	}
	return []*item{out}
}

// each visits the tables that an item is, or that are joined in it.
func (it *item) each(f func(*read)) {
	if it.read != nil {
		f(it.read)
	}
	for _, one := range it.inside {
		f(one)
	}
}

// open tells whether columns of an item are not known.
func open(items []*item) bool {
	for _, it := range items {
		if it.rest != nil {
			return true
		}
	}
	return false
}

// common are the names that both sides of a NATURAL JOIN have.
func common(left, right []*item) []string {
	var out []string
	seen := map[string]bool{}
	for _, it := range left {
		for _, o := range it.outputs {
			if !seen[o.name] && len(find(right, o.name)) > 0 {
				out = append(out, o.name)
			}
			seen[o.name] = true
		}
	}
	return out
}

// find returns the columns of that name.
func find(items []*item, name string) []*output {
	var out []*output
	for _, it := range items {
		for _, o := range it.outputs {
			if o.name == name {
				out = append(out, o)
			}
		}
	}
	return out
}

// meet notes that two columns are equal.
func (r *reader) meet(a, b *output) {
	x, _ := a.base()
	y, _ := b.base()
	if x == nil || y == nil || x.read == y.read {
		return
	}
	for _, o := range []*output{x, y} {
		if isKeyColumn(o.read.relation, o.column) {
			o.read.joined = true
		}
	}
}

// isKeyColumn tells whether a column is of the primary key, of a unique key or of a foreign key.
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
		for _, c := range k.Equal {
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

// everyRead allows every table of the level.
func everyRead(*read) bool { return true }

// where visits a condition. Where a column of a row's key must equal a constant for the row to be read, it is noted:
// allowed tells for which tables the condition decides.
func (r *reader) where(n *sqltext.Node, own *names, allowed func(*read) bool) {
	if n == nil || n.GetCurrentOfExpr() != nil {
		return
	}
	r.expr(n, own, r.asked)
	r.equalities(n, own, allowed)
}

func (r *reader) equalities(n *sqltext.Node, own *names, allowed func(*read) bool) {
	if b := n.GetBoolExpr(); b != nil && b.Boolop == sqltext.AND_EXPR {
		for _, part := range b.Args {
			r.equalities(part, own, allowed)
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
	a, b := r.only(left, own), r.only(right, own)
	if a != nil && b != nil {
		r.meet(a, b)
	}
	if allowed == nil {
		return
	}
	for _, pair := range [][2]any{{a, right}, {b, left}} {
		o, value := pair[0].(*output), pair[1].(*sqltext.Node)
		if o == nil || !isConstant(value) {
			continue
		}
		if base, direct := o.base(); base != nil && direct && own.holds(base.read) && allowed(base.read) {
			base.read.keyed[base.column] = true
		}
	}
}

// holds tells whether a table is an item of this level.
func (s *names) holds(one *read) bool {
	found := false
	for _, it := range s.items {
		it.each(func(r *read) { found = found || r == one })
	}
	return found
}

// isConstant tells whether an expression is a constant or a parameter, cast or not.
func isConstant(n *sqltext.Node) bool {
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	return n.GetAConst() != nil || n.GetParamRef() != nil
}

// only returns the column that an expression is, where no other can be meant; else nil.
func (r *reader) only(n *sqltext.Node, own *names) *output {
	c := n.GetColumnRef()
	if c == nil || isStar(n) {
		return nil
	}
	found := r.column(c, own)
	if len(found) != 1 {
		return nil
	}
	return found[0]
}
