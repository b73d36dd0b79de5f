package rewrite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// vetter decides whether a text that the walk has allowed may take the signed path, where the planner may run its
// expressions on hidden rows. It keeps the first thing that speaks against it. Its default arms say no: that costs
// speed and nothing else.
type vetter struct {
	*walker
	reason         string
	references     map[*sqltext.RangeVar]*reference
	ctes           []map[string]vetQuery
	overflows      bool                // a sum may overflow that is sure to be made
	types          []*sqltext.TypeName // to be qualified
	params         map[int32]kind      // what they must be declared as, if at all
	forms          map[int32]verdict.Form
	formed         bool               // it might take the door with them, if that paid
	exact          map[int32]uint32   // the types that they are cast to, which they must be declared as
	sized          map[int32][]uint32 // beside what they stand that gives them a type, by OID; 0: it is not plain to see
	outputs        int                // expressions that were looked at as such
	orderedWindows map[string]bool    // windows that are named and say how their rows are sorted
	searches       bool               // such an operator is none of an enum, of which an index finds many rows for each word
	// a condition has an operator, a function or a cast of a column that is not leak-proof for the server: row security
	// puts it off until the row shows, and reaches no index by it
	leaky  bool
	passed bool   // it may take the door, whether or not that pays
	found  []bool // of each condition of the SELECT, whether rows are found by it: see leak_check_search.go
}

type vetColumn struct {
	name     string
	kind     kind
	computed bool   // read, it is an expression of the owner's or a mask, which may fail on a hidden row
	bounded  bool   // numbers in it have few digits: no sum of them overflows
	late     bool   // computed of groups or windows of the outermost SELECT
	oid      uint32 // the type of a table's column
}

// vetItem is an item of FROM.
type vetItem struct {
	name    string
	columns []vetColumn
	table   *catalog.Relation // whose columns they are; nil: those of a query
	merged  map[string]bool   // by USING: without qualification the other item's is meant
}

// nameless tells whether a column has a name that is not plain to see.
func (i *vetItem) nameless() bool {
	return slices.ContainsFunc(i.columns, func(c vetColumn) bool { return c.name == "" })
}

// vetQuery is a WITH query.
type vetQuery struct {
	columns   []vetColumn
	overflows bool // a sum in it may overflow
}

type vetScope struct {
	items  []*vetItem
	parent *vetScope
}

// where an expression stands.
type place struct {
	scope     *vetScope
	aggregate bool // aggregates may stand here
	output    bool // it is computed of rows that have passed everything: see leak_check_output.go
	above     bool // so is what is sorted and grouped by: see leak_check_search.go
	// not in what is sure to run to its end: hidden rows outside or beside it may choose whether it runs, or for which
	// rows
	elsewhere bool
}

// leastVisits is how many rows a statement must look at for the signed path to pay: below it row policies, which need no
// signature and look up one row at a time, are faster.
const leastVisits = 2000

// mostRules is how many tables whose rules look into others a statement may join on the signed path. Each brings joins of
// its own, and of so many the planner expects next to no rows: it has looked through all that one rule finds for each
// row of the rest. Row security makes a set for each rule once.
const mostRules = 2

// no notes the first reason.
func (v *vetter) no(format string, args ...any) bool {
	if v.reason == "" {
		v.reason = fmt.Sprintf(format, args...)
	}
	return false
}

func (w *walker) vetter() *vetter {
	return &vetter{walker: w, references: map[*sqltext.RangeVar]*reference{}, params: map[int32]kind{},
		forms: map[int32]verdict.Form{}, exact: map[int32]uint32{}, sized: map[int32][]uint32{},
		orderedWindows: map[string]bool{}}
}

// vet returns a vetter whose reason is empty if the text may take the signed path. by vets its SELECT.
func (w *walker) vet(tree *sqltext.ParseResult, by func(*vetter, *sqltext.SelectStmt)) *vetter {
	v := w.vetter()
	switch {
	case len(tree.Stmts) != 1:
		v.no("it is not exactly one statement")
	case tree.Stmts[0].GetStmt().GetSelectStmt() == nil:
		v.no("only SELECT takes the gate door")
	case !signable(w.source):
		v.no("it has a backslash outside E'' strings, or is not the whole message")
	default:
		v.relations()
	}
	if v.reason == "" {
		by(v, tree.Stmts[0].GetStmt().GetSelectStmt())
		v.narrower()
	}
	v.formed = v.reason == "" && len(v.forms) > 0
	v.passed = v.reason == ""
	return v
}

// narrower wants parameters that are cast to a type for which others may be too large to be of no such other: one for
// which nothing is declared has the type of what PostgreSQL sees first beside it, and is converted for each row.
func (v *vetter) narrower() {
	for number, oid := range v.exact {
		fit := map[uint32][]uint32{21: {21}, 23: {21, 23}, 700: {700}}[oid]
		if fit != nil && slices.ContainsFunc(v.sized[number], func(beside uint32) bool { return !slices.Contains(fit, beside) }) {
			v.no("parameter $%d is cast to a type that it may be too large for", number)
		}
	}
}

// whole vets every expression of a SELECT.
func (v *vetter) whole(s *sqltext.SelectStmt) {
	v.query(s, place{elsewhere: v.view}, true) // a view may stand anywhere
}

// pays sends to row security what is as fast there. Nothing but speed depends on it: the text stays as it is but for
// the names of tables. Of a text whose conditions go elsewhere PostgreSQL sees another operand of a parameter first,
// and another mistake; so of such a one the sizes of tables, hidden rows counted, decide nothing.
func (v *vetter) pays(tree *sqltext.ParseResult) {
	switch {
	case v.reason != "" || v.mode == AlwaysSigned:
	case v.found == nil && v.visits(tree, v.leaky) < leastVisits:
		v.no("it reads few rows, which row security does as fast")
	case !v.searches && v.rules() > mostRules: // a search needs its index
		v.no("it reads many tables whose rules look into others")
	case !v.leaky && !slices.ContainsFunc(v.walker.references,
		func(ref *reference) bool { return ref.fragment.door && !ref.fragment.kept }):
		v.no("its answers are kept, and row security compares these without looking at anybody")
	}
}

// rules is how many of the tables have a rule that looks into others, of which row security makes sets.
func (v *vetter) rules() int {
	n := 0
	for _, ref := range v.walker.references {
		if len(ref.fragment.sets) > 0 {
			n++
		}
	}
	return n
}

// relations wants every table to have a signed view or to be open, and at least one of the first.
func (v *vetter) relations() {
	doors := 0
	for _, ref := range v.walker.references {
		_, listed := v.pol.Table(ref.name)
		switch {
		case ref.fragment == nil || !listed && !ref.fragment.door: // a catalog, a view that has none, a partition
			v.no("it reads %s", ref.name.Name)
		case ref.fetch != nil:
			v.no("%s has columns by key", ref.name.Name)
		case ref.kept != mayInject:
			v.no("%s: %s", ref.name.Name, ref.kept)
		case ref.fragment.door:
			doors++
		case v.walker.meetsWaiting(ref): // a signed view would have none of these columns
			v.no("%s has columns that wait for pgconsent migrate", ref.name.Name)
		case !ref.fragment.open:
			v.no("%s has no door view", ref.name.Name)
		}
		v.references[ref.rangeVar] = ref
	}
	if doors == 0 {
		v.no("it reads no table that rows are hidden in")
	}
}

// query vets a SELECT and returns its columns. Inside it the expressions see at.scope around their own.
func (v *vetter) query(s *sqltext.SelectStmt, at place, top bool) []vetColumn {
	if v.reason != "" || s == nil {
		v.no("a SELECT of another kind")
		return nil
	}
	depth := len(v.ctes)
	defer func() { v.ctes = v.ctes[:depth] }()
	v.with(s.WithClause, at)
	switch {
	case s.IntoClause != nil, len(s.LockingClause) > 0, len(s.WindowClause) > 0 && !top, len(s.ValuesLists) > 0:
		v.no("INTO, a locking clause, WINDOW or VALUES")
	case s.LimitOption != sqltext.LIMIT_OPTION_DEFAULT && s.LimitOption != sqltext.LIMIT_OPTION_COUNT:
		v.no("WITH TIES")
	}
	v.limit(s.LimitCount, top)
	v.limit(s.LimitOffset, top)
	if v.reason != "" {
		return nil
	}
	if s.Op != sqltext.SETOP_NONE {
		return v.setOperation(s, at)
	}
	own := place{scope: &vetScope{parent: at.scope}, elsewhere: at.elsewhere}
	in := at
	in.elsewhere = at.elsewhere || len(s.FromClause) > 1 || hasSubLink(s) || s.LimitCount != nil // which may leave some unmade
	for _, n := range s.FromClause {
		own.scope.items = append(own.scope.items, v.from(n, in)...)
	}
	v.condition(s.WhereClause, own)
	grouped := own
	grouped.aggregate = true
	// a plain DISTINCT sorts by all of it
	grouped.output = top && !v.view && (len(s.DistinctClause) == 0 || s.DistinctClause[0].GetNode() != nil)
	return v.results(s, own, grouped)
}

// results vets what a SELECT makes of the rows that meet its conditions, and returns its columns. own is where keys
// stand, grouped where aggregates may.
func (v *vetter) results(s *sqltext.SelectStmt, own, grouped place) []vetColumn {
	for _, n := range s.WindowClause {
		w := n.GetWindowDef()
		v.window(w, grouped, "WINDOW")
		v.orderedWindows[w.GetName()] = v.ordered(w)
	}
	columns := v.targets(s.TargetList, grouped)
	v.having(s.HavingClause, grouped)
	for _, n := range s.GroupClause {
		v.key(n, own, columns, s.TargetList)
	}
	for _, n := range s.SortClause {
		key := n.GetSortBy()
		if key == nil || len(key.UseOp) > 0 {
			v.no("ORDER BY ... USING")
			return nil
		}
		v.key(key.Node, grouped, columns, s.TargetList)
	}
	for i, n := range s.DistinctClause {
		if i == 0 && (n == nil || n.Node == nil) { // a plain DISTINCT
			if !own.above {
				v.sortableColumns(columns, "DISTINCT")
			}
			continue
		}
		v.key(n, own, columns, s.TargetList)
	}
	if v.reason != "" {
		return nil
	}
	return columns
}

func (v *vetter) sortableColumns(columns []vetColumn, what string) {
	for _, c := range columns {
		if !sortable(c.kind) {
			v.no("%s over column %q, of a type that is not vetted", what, c.name)
		}
	}
}

func (v *vetter) with(c *sqltext.WithClause, at place) {
	if c == nil || v.reason != "" {
		return
	}
	if c.Recursive {
		v.no("WITH RECURSIVE")
		return
	}
	frame := map[string]vetQuery{}
	v.ctes = append(v.ctes, frame)
	for _, n := range c.Ctes {
		cte := n.GetCommonTableExpr()
		if cte.GetSearchClause() != nil || cte.GetCycleClause() != nil {
			v.no("SEARCH or CYCLE")
			return
		}
		before := v.overflows
		v.overflows = false
		// where it is named decides whether it runs
		columns := v.query(cte.GetCtequery().GetSelectStmt(), place{scope: at.scope}, false)
		frame[cte.GetCtename()] = vetQuery{v.renamed(columns, cte.GetAliascolnames()), v.overflows}
		v.overflows = before
	}
}

// renamed gives columns the names of an alias.
func (v *vetter) renamed(columns []vetColumn, names []*sqltext.Node) []vetColumn {
	if len(names) > len(columns) {
		v.no("an alias with more names than columns")
		return nil
	}
	out := slices.Clone(columns)
	for i, n := range names {
		out[i].name = n.GetString_().GetSval()
	}
	return out
}

// limit vets LIMIT and OFFSET. They fail for negative numbers when they are reached, which may depend on hidden rows
// but at the top; so elsewhere the value of a parameter is looked at.
func (v *vetter) limit(n *sqltext.Node, top bool) {
	if n == nil || v.reason != "" {
		return
	}
	p := n.GetParamRef()
	if c := n.GetTypeCast(); c != nil && c.Arg.GetParamRef() != nil { // $1::integer
		if p = c.Arg.GetParamRef(); v.cast(c, place{}).kind != kindInt {
			v.no("LIMIT or OFFSET of an expression")
		}
	} else if p != nil {
		v.param(p.Number, kindInt)
	}
	if p != nil {
		if !top {
			v.forms[p.Number] |= verdict.NonNegative
		}
		return
	}
	c := n.GetAConst()
	if c == nil || !c.Isnull && (c.GetIval() == nil || c.GetIval().GetIval() < 0) {
		v.no("LIMIT or OFFSET of an expression")
	}
}

func (v *vetter) setOperation(s *sqltext.SelectStmt, at place) []vetColumn {
	at.elsewhere = at.elsewhere || s.Op != sqltext.SETOP_UNION || s.LimitCount != nil // one half may have nothing to intersect
	left, right := v.query(s.Larg, at, false), v.query(s.Rarg, at, false)
	if v.reason != "" {
		return nil
	}
	if len(left) != len(right) {
		v.no("a set operation of different columns")
		return nil
	}
	for i := range left {
		if left[i].kind != right[i].kind || !sortable(left[i].kind) {
			v.no("a set operation over columns of different types, or of types that are not vetted")
			return nil
		}
		left[i].bounded = left[i].bounded && right[i].bounded
	}
	for _, n := range s.SortClause {
		v.key(n.GetSortBy().GetNode(), place{scope: &vetScope{}}, left, nil)
	}
	return left
}

// from vets an item of FROM. What is outside a SELECT in FROM is not seen by it.
func (v *vetter) from(n *sqltext.Node, at place) []*vetItem {
	if v.reason != "" {
		return nil
	}
	at.elsewhere = at.elsewhere || n.GetJoinExpr() != nil
	switch n := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		return v.table(n.RangeVar, at)
	case *sqltext.Node_RangeSubselect:
		if n.RangeSubselect.Lateral || n.RangeSubselect.Alias == nil {
			v.no("LATERAL, or a sub-select without alias")
			return nil
		}
		columns := v.query(n.RangeSubselect.GetSubquery().GetSelectStmt(), at, false)
		return []*vetItem{{name: n.RangeSubselect.Alias.Aliasname, columns: v.renamed(columns, n.RangeSubselect.Alias.Colnames)}}
	case *sqltext.Node_JoinExpr:
		return v.join(n.JoinExpr, at)
	case *sqltext.Node_RangeFunction:
		return v.search(n.RangeFunction, at)
	default:
		v.no("FROM with VALUES")
		return nil
	}
}

// search vets a function in FROM: one that reads a text search, which gives one row of one column, named as the item
// is.
func (v *vetter) search(f *sqltext.RangeFunction, at place) []*vetItem {
	var call *sqltext.FuncCall
	if len(f.Functions) == 1 {
		call = f.Functions[0].GetList().GetItems()[0].GetFuncCall()
	}
	if call == nil || f.IsRowsfrom || f.Lateral || f.Ordinality || len(f.Coldeflist) > 0 ||
		len(f.GetAlias().GetColnames()) > 1 {
		v.no("FROM with a function")
		return nil
	}
	found := v.call(call, place{elsewhere: at.elsewhere})
	if v.reason == "" && found.kind != kindTSQuery {
		v.no("FROM with a function that reads no text search")
	}
	name := lastName(call.Funcname)
	if a := f.GetAlias(); a != nil {
		name = a.Aliasname
	}
	return []*vetItem{{name: name, columns: v.renamed([]vetColumn{{name: name, kind: kindTSQuery}},
		f.GetAlias().GetColnames())}}
}

func (v *vetter) table(rv *sqltext.RangeVar, at place) []*vetItem {
	name := rv.GetRelname()
	if a := rv.GetAlias(); a != nil {
		name = a.Aliasname
	}
	if ref := v.references[rv]; ref != nil {
		item := &vetItem{name: name, table: ref.relation}
		for i := range ref.relation.Columns {
			c := &ref.relation.Columns[i]
			item.columns = append(item.columns,
				vetColumn{c.Name, kindOf(c, v.snap), c.Virtual ||
					ref.fragment.plain != nil &&
						!ref.fragment.plain(c.Name), strings.HasPrefix(c.Type, "numeric("), false, v.snap.BaseType(c.TypeOID)})
		}
		return []*vetItem{item}
	}
	for i := len(v.ctes) - 1; i >= 0; i-- {
		if query, ok := v.ctes[i][rv.GetRelname()]; ok && rv.GetSchemaname() == "" {
			if query.overflows {
				v.sums(rv.GetRelname(), at)
			}
			return []*vetItem{{name: name, columns: v.renamed(query.columns, rv.GetAlias().GetColnames())}}
		}
	}
	v.no("an item of FROM that is not plain to see")
	return nil
}

func (v *vetter) join(j *sqltext.JoinExpr, at place) []*vetItem {
	if j.IsNatural || j.Alias != nil || j.JoinUsingAlias != nil {
		v.no("NATURAL JOIN, or the alias of a join")
		return nil
	}
	left, right := v.from(j.Larg, at), v.from(j.Rarg, at)
	items := append(slices.Clone(left), right...)
	for _, n := range j.UsingClause {
		name := n.GetString_().GetSval()
		a, b := v.column(&vetScope{items: left}, name), v.column(&vetScope{items: right}, name)
		v.matches("operator", "=", []value{{kind: a.kind}, {kind: b.kind}})
		if a.kind != b.kind {
			v.no("USING over different types")
		}
		for _, item := range right {
			if item.merged == nil {
				item.merged = map[string]bool{}
			}
			item.merged[name] = true
		}
	}
	v.condition(j.Quals, place{scope: &vetScope{items: items, parent: at.scope}, elsewhere: at.elsewhere})
	return items
}

// targets vets what a SELECT returns.
func (v *vetter) targets(list []*sqltext.Node, at place) []vetColumn {
	var out []vetColumn
	for _, n := range list {
		if v.reason != "" {
			return nil
		}
		t := n.GetResTarget()
		if isStar(t.GetVal()) {
			out = append(out, v.star(t.GetVal().GetColumnRef().GetFields(), at.scope)...)
			continue
		}
		e := v.output(t.GetVal(), at)
		out = append(out, vetColumn{name: columnName(t), kind: v.result(e), bounded: v.bounded(t.GetVal(), at.scope),
			late: e.free && late(t.GetVal())})
	}
	return out
}

// result is the kind of an output column.
func (v *vetter) result(e value) kind {
	switch {
	case e.kind == kindString:
		return kindText
	case e.kind == kindParam:
		v.param(e.param, kindText)
		return kindText
	case e.kind == kindSpan:
		return kindOpaque
	}
	return e.kind.settled()
}

// maxStars bounds what the stars of one statement may copy: WITH queries over WITH queries double it.
const maxStars = 10_000

func (v *vetter) star(fields []*sqltext.Node, scope *vetScope) []vetColumn {
	var out []vetColumn
	found := len(fields) == 1
	for _, item := range scope.items {
		if len(item.merged) > 0 || len(fields) > 2 {
			v.no("* over a join with USING")
			return nil
		}
		if len(fields) == 1 || item.name == fields[0].GetString_().GetSval() {
			found = true
			if v.starred += len(item.columns); v.starred > maxStars {
				v.no("its stars stand for very many columns")
				return nil
			}
			for _, c := range item.columns {
				out = append(out, vetColumn{name: c.name, kind: v.read(c), bounded: c.bounded})
			}
		}
	}
	if !found { // of a query outside
		v.no("* of what is not plain to see")
	}
	return out
}

// key vets what is grouped or sorted by: a column of the result, by name or number, or an expression.
func (v *vetter) key(n *sqltext.Node, at place, columns []vetColumn, targets []*sqltext.Node) {
	if v.reason != "" {
		return
	}
	if c := n.GetAConst(); c != nil {
		i := int(c.GetIval().GetIval())
		if c.GetIval() == nil || i < 1 || i > len(columns) || !sortable(columns[i-1].kind) && !columns[i-1].late && !at.above {
			v.no("a key that is not a column of the result")
		}
		return
	}
	// The name may be that of a result column, of a table's, or of both: each that there is must do.
	if fields := n.GetColumnRef().GetFields(); len(fields) == 1 {
		name, found := fields[0].GetString_().GetSval(), false
		for _, c := range columns {
			if c.name == "" && !at.above {
				v.no("a key that may be a column of the result, whose name is not plain to see")
			}
			if c.name == name {
				if found = true; !c.late && !at.above {
					v.sortableColumns([]vetColumn{c}, "a key")
				}
			}
		}
		if found && (len(targets) == 0 || !v.has(at.scope, name)) {
			return
		}
	}
	v.groups(n, at)
}

func (v *vetter) has(s *vetScope, name string) bool {
	for ; s != nil; s = s.parent {
		for _, item := range s.items {
			if slices.ContainsFunc(item.columns, func(c vetColumn) bool { return c.name == name }) {
				return true
			}
		}
	}
	return false
}

// read is the kind of a column whose value is asked for.
func (v *vetter) read(c vetColumn) kind {
	if c.computed {
		v.no("column %q is computed as it is read", c.name)
	}
	return c.kind
}

// column finds an unqualified column.
func (v *vetter) column(s *vetScope, name string) vetColumn {
	for ; s != nil; s = s.parent {
		found, n := vetColumn{kind: kindOpaque}, 0
		for _, item := range s.items {
			for _, c := range item.columns {
				if c.name == name && !item.merged[name] {
					v.read(c)
					found, n = c, n+1
				}
			}
		}
		switch {
		case n > 1:
			v.no("column %q is ambiguous", name)
		case n == 0 && slices.ContainsFunc(s.items, (*vetItem).nameless): // it may be that one, and nothing outside
			v.no("%q may be a column whose name is not plain to see", name)
		}
		if n > 0 {
			if slices.ContainsFunc(s.items, func(i *vetItem) bool { return i.merged[name] }) { // of the type that both become
				found.oid = 0
			}
			return found
		}
	}
	v.no("%q is not plainly a column", name)
	return vetColumn{kind: kindOpaque}
}

// columnOf finds item.column.
func (v *vetter) columnOf(s *vetScope, item, name string) vetColumn {
	for ; s != nil; s = s.parent {
		var found []vetColumn
		named := 0
		for _, i := range s.items {
			if i.name != item {
				continue
			}
			named++
			for _, c := range i.columns {
				if c.name == name {
					v.read(c)
					found = append(found, c)
				}
			}
		}
		if named == 1 && len(found) == 1 {
			return found[0]
		}
		if named > 0 {
			break
		}
	}
	v.no("%q.%q is not plainly a column", item, name)
	return vetColumn{kind: kindOpaque}
}

// takeDoor makes the edits of a leak-safe text: every protected table becomes its signed view, and types are qualified.
func (v *vetter) takeDoor() {
	for _, ref := range v.walker.references {
		if ref.fragment.open {
			rv, name := ref.rangeVar, ref.name
			v.replace(ref.start, ref.end, name.SQL(), func() { rv.Schemaname, rv.Relname = name.Schema, name.Name })
			continue
		}
		v.substitute(ref, predicate.SignedView(ref.name))
	}
	v.qualifyTypes()
}

// qualifyTypes makes the edits of the types that are to be qualified.
func (v *vetter) qualifyTypes() {
	for _, t := range v.types {
		token, name := v.source.Tokens[v.source.At(t.Location)], catalog.Name{
			Schema: "pg_catalog", Name: t.Names[0].GetString_().GetSval()}
		if enum := v.enum("", name.Name); enum != nil {
			name = enum.Name
		}
		v.replace(token.Start, token.End, name.SQL(), func() {
			t.Names = []*sqltext.Node{stringNode(name.Schema), stringNode(name.Name)}
		})
	}
}

// onlyDoors tells whether a tree names no relation but signed views, open tables and its own WITH queries.
func (w *walker) onlyDoors(tree *sqltext.ParseResult) bool {
	allowed := map[catalog.Name]bool{}
	for _, t := range w.pol.Tables() {
		if f := w.protected[t.Relation.Name]; f.open {
			allowed[t.Relation.Name] = true
		} else if f.door {
			allowed[predicate.SignedView(t.Relation.Name)] = true
		}
	}
	for _, view := range w.pol.Views() {
		if f := w.protected[view.Relation.Name]; f != nil && f.door {
			allowed[predicate.SignedView(view.Relation.Name)] = true
		}
	}
	only, signed := true, false
	relations, queries := sqltext.Relations(tree)
	for _, rv := range relations {
		name := catalog.Name{Schema: rv.GetSchemaname(), Name: rv.GetRelname()}
		switch {
		case name.Schema == "" && queries[name.Name]: // what is a relation goes out qualified
		case !allowed[name]:
			only = false
		default:
			signed = signed || name.Schema == predicate.GateSchema
		}
	}
	return only && signed
}

var errDoors = errors.New("rewrite: a text of the gate door names a relation that it must not")

// door sends the text on the signed path if it may take it. found tells whether the rest may stand above rows that
// are found, or find these by key.
func (w *walker) door(tree *sqltext.ParseResult, result *Result, found bool) bool {
	if !w.mode.UsesSignedPath() {
		return false
	}
	if w.bringsOthers() { // which would see a text that is signed, and values of hidden rows
		result.RowSecurityReason = "values that functions of others compare or convert"
		return false
	}
	v := w.vet(tree, (*vetter).whole)
	reason, whole := v.reason, v.passed
	if !v.passed && found && w.readsOne(tree) {
		if behind := w.vet(tree, (*vetter).behind); behind.passed {
			v, result.AboveReason = behind, reason
		}
	}
	result.ExpectsForms = v.formed
	// whether it pays or not: that goes by sizes
	if found && v.found == nil && len(tree.Stmts) == 1 && !w.unsigned && signable(w.source) {
		w.keySearches(tree, result, whole)
	}
	v.pays(tree)
	if v.reason != "" {
		result.RowSecurityReason, result.AboveReason = v.reason, ""
		return false
	}
	v.takeDoor()
	w.found = v.found
	w.signed = true
	result.Path, result.params, result.exact, result.Forms = verdict.PathSigned, v.params, v.exact, v.forms
	return true
}

// MayDeclare tells whether the parameters of a text of the signed path may be declared as these types, by OID; 0 leaves
// one to the server. A parameter of another type than was taken for granted would be converted, which can fail.
func (r *Result) MayDeclare(types []uint32) bool {
	for i, oid := range types {
		exact, is := r.exact[int32(i+1)]
		if k, used := r.params[int32(i+1)]; oid != 0 && used && kindOfOID(oid) != k && !(is && exact == oid) {
			return false
		}
		if oid != 0 && is && exact != oid && kindOfOID(oid) != kindText {
			return false
		}
	}
	return true
}
