package rewrite

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/predicate"
	"github.com/pgconsent/pgconsent/sqltext"
	"github.com/pgconsent/pgconsent/verdict"
)

// vetter decides whether a text that the walk has allowed may take the gate door, where the planner may run its
// expressions on hidden rows. It keeps the first thing that speaks against it. Its default arms say no: that costs speed
// and nothing else.
type vetter struct {
	*walker
	reason     string
	references map[*sqltext.RangeVar]*reference
	ctes       []map[string][]vetColumn
	types      []*sqltext.TypeName // to be qualified
	params     map[int32]kind      // what they must be declared as, if at all
}

type vetColumn struct {
	name string
	kind kind
}

// vetItem is an item of FROM.
type vetItem struct {
	name    string
	columns []vetColumn
	merged  map[string]bool // by USING: without qualification the other item's is meant
}

type vetScope struct {
	items  []*vetItem
	parent *vetScope
}

// where an expression stands.
type place struct {
	scope     *vetScope
	aggregate bool // aggregates may stand here
	sublink   bool // inside a sub-select of an expression: hidden rows outside may choose what it computes
}

// leastVisits is how many rows a statement must look at for the gate door to pay: below it row policies, which need no
// signature and look up one row at a time, are faster.
const leastVisits = 2000

// no notes the first reason.
func (v *vetter) no(format string, args ...any) bool {
	if v.reason == "" {
		v.reason = fmt.Sprintf(format, args...)
	}
	return false
}

// vet returns a vetter whose reason is empty if the text may take the gate door.
func (w *walker) vet(tree *sqltext.ParseResult) *vetter {
	v := &vetter{walker: w, references: map[*sqltext.RangeVar]*reference{}, params: map[int32]kind{}}
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
		v.query(tree.Stmts[0].GetStmt().GetSelectStmt(), place{}, true)
	}
	if v.reason == "" && w.mode != Gate && w.visits(tree) < leastVisits {
		v.no("it reads few rows, which row security does as fast")
	}
	return v
}

// relations wants every table to have a door view or to be open, and at least one of the first.
func (v *vetter) relations() {
	doors := 0
	for _, ref := range v.walker.references {
		switch {
		case ref.fragment == nil:
			v.no("it reads %s", ref.name.Name)
		case ref.kept != "":
			v.no("%s: %s", ref.name.Name, ref.kept)
		case ref.fragment.door:
			doors++
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
	case s.IntoClause != nil, len(s.LockingClause) > 0, len(s.WindowClause) > 0, len(s.ValuesLists) > 0:
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
	own := place{scope: &vetScope{parent: at.scope}, sublink: at.sublink}
	for _, n := range s.FromClause {
		own.scope.items = append(own.scope.items, v.from(n, at)...)
	}
	v.condition(s.WhereClause, own)
	grouped := own
	grouped.aggregate = true
	columns := v.targets(s.TargetList, grouped)
	v.condition(s.HavingClause, grouped)
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
			v.sortableColumns(columns, "DISTINCT")
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
	frame := map[string][]vetColumn{}
	v.ctes = append(v.ctes, frame)
	for _, n := range c.Ctes {
		cte := n.GetCommonTableExpr()
		if cte.GetSearchClause() != nil || cte.GetCycleClause() != nil {
			v.no("SEARCH or CYCLE")
			return
		}
		columns := v.query(cte.GetCtequery().GetSelectStmt(), at, false)
		frame[cte.GetCtename()] = v.renamed(columns, cte.GetAliascolnames())
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

// limit vets LIMIT and OFFSET. They fail for negative numbers when they are reached, which may depend on hidden rows but at
// the top.
func (v *vetter) limit(n *sqltext.Node, top bool) {
	if n == nil || v.reason != "" {
		return
	}
	if p := n.GetParamRef(); p != nil && top {
		v.param(p.Number, kindInt)
		return
	}
	c := n.GetAConst()
	if c == nil || !c.Isnull && (c.GetIval() == nil || c.GetIval().GetIval() < 0) {
		v.no("LIMIT or OFFSET of an expression")
	}
}

func (v *vetter) setOperation(s *sqltext.SelectStmt, at place) []vetColumn {
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
	switch n := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		return v.table(n.RangeVar)
	case *sqltext.Node_RangeSubselect:
		if n.RangeSubselect.Lateral || n.RangeSubselect.Alias == nil {
			v.no("LATERAL, or a sub-select without alias")
			return nil
		}
		columns := v.query(n.RangeSubselect.GetSubquery().GetSelectStmt(), at, false)
		return []*vetItem{{name: n.RangeSubselect.Alias.Aliasname, columns: v.renamed(columns, n.RangeSubselect.Alias.Colnames)}}
	case *sqltext.Node_JoinExpr:
		return v.join(n.JoinExpr, at)
	default:
		v.no("FROM with a function or VALUES")
		return nil
	}
}

func (v *vetter) table(rv *sqltext.RangeVar) []*vetItem {
	name := rv.GetRelname()
	if a := rv.GetAlias(); a != nil {
		name = a.Aliasname
	}
	if ref := v.references[rv]; ref != nil {
		item := &vetItem{name: name}
		for i := range ref.relation.Columns {
			c := &ref.relation.Columns[i]
			item.columns = append(item.columns, vetColumn{c.Name, kindOf(c, v.snap)})
		}
		return []*vetItem{item}
	}
	for i := len(v.ctes) - 1; i >= 0; i-- {
		if columns, ok := v.ctes[i][rv.GetRelname()]; ok && rv.GetSchemaname() == "" {
			return []*vetItem{{name: name, columns: v.renamed(columns, rv.GetAlias().GetColnames())}}
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
		v.matches("operator", "=", []value{{kind: a}, {kind: b}})
		for _, item := range right {
			if item.merged == nil {
				item.merged = map[string]bool{}
			}
			item.merged[name] = true
		}
	}
	v.condition(j.Quals, place{scope: &vetScope{items: items, parent: at.scope}, sublink: at.sublink})
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
		out = append(out, vetColumn{outputName(t), v.result(v.expr(t.GetVal(), at))})
	}
	return out
}

// result is the kind of an output column.
func (v *vetter) result(e value) kind {
	switch {
	case e.kind == kindString:
		return kindText
	case e.kind == kindNow:
		return "timestamptz"
	case e.kind == kindParam:
		v.param(e.param, kindText)
		return kindText
	case e.kind == kindSpan:
		return kindOpaque
	}
	return e.kind
}

func (v *vetter) star(fields []*sqltext.Node, scope *vetScope) []vetColumn {
	var out []vetColumn
	for _, item := range scope.items {
		if len(item.merged) > 0 || len(fields) > 2 {
			v.no("* over a join with USING")
			return nil
		}
		if len(fields) == 1 || item.name == fields[0].GetString_().GetSval() {
			out = append(out, item.columns...)
		}
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
		if c.GetIval() == nil || i < 1 || i > len(columns) || !sortable(columns[i-1].kind) {
			v.no("a key that is not a column of the result")
		}
		return
	}
	// The name may be that of a result column, of a table's, or of both: each that there is must do.
	if fields := n.GetColumnRef().GetFields(); len(fields) == 1 {
		name, found := fields[0].GetString_().GetSval(), false
		for _, c := range columns {
			if c.name == name {
				found = true
				v.sortableColumns([]vetColumn{c}, "a key")
			}
		}
		if found && (len(targets) == 0 || !v.has(at.scope, name)) {
			return
		}
	}
	if e := v.expr(n, at); v.reason == "" && !sortable(v.result(e)) {
		v.no("a key of a type that is not vetted")
	}
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

// column finds an unqualified column.
func (v *vetter) column(s *vetScope, name string) kind {
	for ; s != nil; s = s.parent {
		found, n := kindOpaque, 0
		for _, item := range s.items {
			for _, c := range item.columns {
				if c.name == name && !item.merged[name] {
					found, n = c.kind, n+1
				}
			}
		}
		if n > 1 {
			v.no("column %q is ambiguous", name)
		}
		if n > 0 {
			return found
		}
	}
	v.no("%q is not plainly a column", name)
	return kindOpaque
}

// columnOf finds item.column.
func (v *vetter) columnOf(s *vetScope, item, name string) kind {
	for ; s != nil; s = s.parent {
		var found []kind
		named := 0
		for _, i := range s.items {
			if i.name != item {
				continue
			}
			named++
			for _, c := range i.columns {
				if c.name == name {
					found = append(found, c.kind)
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
	return kindOpaque
}

func (v *vetter) condition(n *sqltext.Node, at place) {
	if n == nil || v.reason != "" {
		return
	}
	v.boolean(v.expr(n, at))
}

func (v *vetter) boolean(e value) value {
	switch {
	case v.reason != "" || e.kind == kindBool:
	case e.kind == kindParam:
		v.param(e.param, kindBool)
	case e.kind != kindString:
		v.no("a condition that is not plainly boolean")
	}
	return value{kind: kindBool}
}

// param notes what a parameter is used as: it may be declared as that, or not at all.
func (v *vetter) param(number int32, k kind) {
	if known, ok := v.params[number]; ok && known != k {
		v.no("parameter $%d is used with two types", number)
	}
	v.params[number] = k
}

// expr vets an expression.
func (v *vetter) expr(n *sqltext.Node, at place) value {
	if v.reason != "" || n == nil {
		v.no("an expression that is missing")
		return value{}
	}
	switch n := n.GetNode().(type) {
	case *sqltext.Node_ColumnRef:
		return v.columnRef(n.ColumnRef, at)
	case *sqltext.Node_ParamRef:
		return value{kind: kindParam, param: n.ParamRef.Number}
	case *sqltext.Node_A_Const:
		return v.constant(n.AConst)
	case *sqltext.Node_TypeCast:
		return v.cast(n.TypeCast, at)
	case *sqltext.Node_A_Expr:
		return v.operation(n.AExpr, at)
	case *sqltext.Node_BoolExpr:
		for _, arg := range n.BoolExpr.Args {
			v.condition(arg, at)
		}
		return value{kind: kindBool}
	case *sqltext.Node_NullTest:
		v.expr(n.NullTest.Arg, at)
		return value{kind: kindBool}
	case *sqltext.Node_BooleanTest:
		v.condition(n.BooleanTest.Arg, at)
		return value{kind: kindBool}
	case *sqltext.Node_FuncCall:
		return v.call(n.FuncCall, at)
	case *sqltext.Node_CoalesceExpr:
		return v.alike("COALESCE", n.CoalesceExpr.Args, at)
	case *sqltext.Node_CaseExpr:
		return v.caseExpr(n.CaseExpr, at)
	case *sqltext.Node_SubLink:
		return v.subLink(n.SubLink, at)
	case *sqltext.Node_SQLValueFunction:
		switch n.SqlvalueFunction.Op {
		case sqltext.SVFOP_CURRENT_TIMESTAMP:
			return value{kind: kindNow}
		case sqltext.SVFOP_CURRENT_DATE:
			return value{kind: "date"}
		}
		v.no("CURRENT_USER and its like")
	default:
		v.no("%s is not vetted", sqltext.Kind(&sqltext.Node{Node: n}))
	}
	return value{}
}

func (v *vetter) columnRef(c *sqltext.ColumnRef, at place) value {
	switch len(c.Fields) {
	case 1:
		if s := c.Fields[0].GetString_(); s != nil {
			return value{kind: v.column(at.scope, s.GetSval())}
		}
	case 2:
		item, column := c.Fields[0].GetString_(), c.Fields[1].GetString_()
		if item != nil && column != nil {
			return value{kind: v.columnOf(at.scope, item.GetSval(), column.GetSval())}
		}
	}
	v.no("a row as a value")
	return value{}
}

func (v *vetter) constant(c *sqltext.A_Const) value {
	switch {
	case c.Isnull:
		return value{kind: kindString, constant: true, null: true}
	case c.GetSval() != nil:
		return value{kind: kindString, constant: true, text: c.GetSval().GetSval()}
	case c.GetIval() != nil:
		return value{kind: kindInt, constant: true, number: c.GetIval().GetIval()}
	case c.GetFval() != nil:
		return value{kind: kindNumeric, constant: true}
	case c.GetBoolval() != nil:
		return value{kind: kindBool, constant: true}
	}
	v.no("a constant that is not vetted")
	return value{}
}

// span is an interval that, from now, does not leave the calendar.
var span = regexp.MustCompile(`^[0-9]{1,3} (second|minute|hour|day|week|month|year)s?$`)

// cast vets x::type. A string becomes the type while the statement is parsed, and so fails whatever the rows are.
func (v *vetter) cast(c *sqltext.TypeCast, at place) value {
	arg := v.expr(c.Arg, at)
	t := c.TypeName
	schema, name, ok := qualifiedName(t.GetNames())
	if v.reason != "" || !ok || len(t.Typmods) > 0 || t.Setof || t.PctType || len(t.ArrayBounds) > 1 || schema != "" && schema != "pg_catalog" {
		v.no("a type that is not vetted")
		return value{}
	}
	found := v.snap.TypesNamed("pg_catalog", name)
	if len(found) != 1 {
		v.no("type %s is not vetted", name)
		return value{}
	}
	if schema == "" {
		if i := v.source.At(t.Location); i < 0 || !v.source.Tokens[i].IsName() || v.source.Kind(i+1) == sqltext.Dot {
			v.no("a type whose name is not plain to see")
			return value{}
		}
		v.types = append(v.types, t)
	}
	to := kindOfOID(found[0].OID)
	if len(t.ArrayBounds) == 1 {
		if to = to + "[]"; to != "text[]" && to != "uuid[]" {
			to = kindOpaque
		}
	}
	switch {
	case arg.kind == kindString && found[0].Name.Name == "interval" && span.MatchString(arg.text):
		return value{kind: kindSpan}
	case to == kindOpaque:
		v.no("type %s is not vetted", name)
	case arg.kind == kindString:
		return value{kind: to}
	case arg.kind == kindParam:
		v.param(arg.param, to)
		return value{kind: to}
	case len(t.ArrayBounds) > 0:
		v.no("a cast to an array")
	default:
		target := map[uint32]string{20: "bigint", 25: "text", 1043: "text", 1082: "date", 1700: "numeric"}[found[0].OID]
		if result, ok := v.matches("cast", target, []value{arg}); ok {
			return value{kind: result}
		}
		v.no("a cast to %s", name)
	}
	return value{}
}

// matches looks operands up in the list.
func (v *vetter) matches(what, name string, operands []value) (kind, bool) {
	if v.reason != "" {
		return kindOpaque, false
	}
	if what == "operator" && len(operands) == 2 && operands[0].untyped() && operands[1].untyped() { // PostgreSQL takes them for texts
		operands = []value{v.asText(operands[0]), v.asText(operands[1])}
	}
	for _, e := range vettedList[what+" "+name] {
		for _, wanted := range e.operands {
			if len(wanted) != len(operands) {
				continue
			}
			fit := true
			for i := range wanted {
				fit = fit && operands[i].fits(wanted[i])
			}
			if !fit {
				continue
			}
			for i := range wanted {
				if operands[i].kind == kindParam {
					v.param(operands[i].param, wanted[i])
				}
			}
			if e.result != "same" {
				return e.result, true
			}
			return v.result(operands[0]), true
		}
	}
	v.no("%s %s is not on the vetted list for these operands", what, name)
	return kindOpaque, false
}

func (v *vetter) asText(e value) value {
	if e.kind == kindParam {
		v.param(e.param, kindText)
		return value{kind: kindText}
	}
	return e
}

func (v *vetter) operation(x *sqltext.A_Expr, at place) value {
	schema, name, ok := qualifiedName(x.Name)
	if !ok || schema != "" && schema != "pg_catalog" {
		v.no("an operator of another schema")
		return value{}
	}
	if others := v.snap.OperatorsNamed("", name); schema == "" && slices.ContainsFunc(others, func(o *catalog.Operator) bool { return !knownExtension(o.Extension) }) {
		v.no("operator %s has overloads of others", name)
		return value{}
	}
	if x.Lexpr == nil || x.Rexpr == nil {
		v.no("operator %s in front of its operand", name)
		return value{}
	}
	left := v.expr(x.Lexpr, at)
	compare := func(operator string, right value) { v.matches("operator", operator, []value{left, right}) }
	switch x.Kind {
	case sqltext.AEXPR_OP, sqltext.AEXPR_LIKE, sqltext.AEXPR_ILIKE:
		result, _ := v.matches("operator", name, []value{left, v.expr(x.Rexpr, at)})
		return value{kind: result}
	case sqltext.AEXPR_DISTINCT, sqltext.AEXPR_NOT_DISTINCT:
		compare("=", v.expr(x.Rexpr, at))
	case sqltext.AEXPR_NULLIF:
		compare("=", v.expr(x.Rexpr, at))
		return value{kind: v.result(left)}
	case sqltext.AEXPR_IN:
		if x.Rexpr.GetList() == nil {
			v.no("IN")
		}
		for _, item := range x.Rexpr.GetList().GetItems() {
			compare(name, v.expr(item, at))
		}
	case sqltext.AEXPR_BETWEEN, sqltext.AEXPR_NOT_BETWEEN:
		bounds := x.Rexpr.GetList().GetItems()
		if len(bounds) != 2 {
			v.no("BETWEEN")
			return value{}
		}
		compare(">=", v.expr(bounds[0], at))
		compare("<=", v.expr(bounds[1], at))
	case sqltext.AEXPR_OP_ANY:
		v.anyOf(name, left, x.Rexpr, at)
	default:
		v.no("this form of operator %s", name)
	}
	return value{kind: kindBool}
}

// anyOf vets x = ANY (array).
func (v *vetter) anyOf(name string, left value, n *sqltext.Node, at place) {
	if elements := n.GetAArrayExpr(); elements != nil {
		for _, e := range elements.Elements {
			v.matches("operator", name, []value{left, v.expr(e, at)})
		}
		return
	}
	switch array := v.expr(n, at); {
	case v.reason != "":
	case (array.kind == "text[]" || array.kind == "uuid[]") && name == "=":
		v.matches("operator", name, []value{left, {kind: array.kind[:4]}})
	case array.kind == kindParam && name == "=" && (left.kind == kindInt || left.kind == kindText || left.kind == "uuid"):
		v.param(array.param, left.kind+"[]")
	case array.kind == kindString && name == "=" && sortable(left.kind) && !left.untyped():
	default:
		v.no("ANY over what is not plainly an array of texts")
	}
}

// alike vets expressions that must all be of one kind.
func (v *vetter) alike(what string, nodes []*sqltext.Node, at place) value {
	var result kind
	for _, n := range nodes {
		e := v.expr(n, at)
		switch {
		case v.reason != "" || e.kind == kindString:
		case !sortable(e.kind), e.kind == kindParam, result != "" && result != v.result(e):
			v.no("%s over different types, or over one that is not vetted", what)
		default:
			result = v.result(e)
		}
	}
	if result == "" {
		result = kindText
	}
	return value{kind: result}
}

func (v *vetter) caseExpr(c *sqltext.CaseExpr, at place) value {
	var results []*sqltext.Node
	for _, n := range c.Args {
		when := n.GetCaseWhen()
		if c.Arg != nil {
			v.matches("operator", "=", []value{v.expr(c.Arg, at), v.expr(when.GetExpr(), at)})
		} else {
			v.condition(when.GetExpr(), at)
		}
		results = append(results, when.GetResult())
	}
	if c.Defresult != nil {
		results = append(results, c.Defresult)
	}
	return v.alike("CASE", results, at)
}

func (v *vetter) call(f *sqltext.FuncCall, at place) value {
	schema, name, ok := qualifiedName(f.Funcname)
	switch {
	case !ok || schema != "" && schema != "pg_catalog":
		v.no("function %s is not vetted", name)
		return value{}
	case schema == "" && len(v.snap.FunctionsNamed("", name)) > 0:
		v.no("function %s has overloads outside pg_catalog", name)
		return value{}
	case f.Over != nil, f.AggWithinGroup, f.FuncVariadic, len(f.AggOrder) > 0:
		v.no("%s with OVER, WITHIN GROUP, VARIADIC or ORDER BY", name)
		return value{}
	}
	if _, ok := vettedList["aggregate "+name]; ok {
		return v.aggregateCall(name, f, at)
	}
	if f.AggStar || f.AggDistinct || f.AggFilter != nil {
		v.no("function %s is not vetted", name)
		return value{}
	}
	var args []value
	for _, n := range f.Args {
		args = append(args, v.expr(n, at))
	}
	if name == "extract" && f.Funcformat != sqltext.COERCE_SQL_SYNTAX {
		v.no("function extract is not vetted")
	}
	result, _ := v.matches("function", name, args)
	return value{kind: result}
}

func (v *vetter) aggregateCall(name string, f *sqltext.FuncCall, at place) value {
	// Without the scopes outside: PostgreSQL takes an aggregate over outer columns alone for one of the query outside.
	inner := place{scope: &vetScope{items: at.scope.items}, sublink: at.sublink}
	switch {
	case !at.aggregate:
		v.no("aggregate %s here", name)
		return value{}
	case at.sublink && (name == "sum" || name == "avg"):
		v.no("aggregate %s inside a sub-select of an expression", name)
		return value{}
	}
	if f.AggFilter != nil {
		v.condition(f.AggFilter, inner)
	}
	if f.AggStar {
		if name != "count" || len(f.Args) > 0 {
			v.no("aggregate %s(*)", name)
		}
		return value{kind: kindInt}
	}
	var args []value
	for _, n := range f.Args {
		e := v.expr(n, inner)
		if f.AggDistinct && !sortable(v.result(e)) {
			v.no("%s(DISTINCT ...) over a type that is not vetted", name)
		}
		args = append(args, e)
	}
	if len(args) != 1 {
		v.no("aggregate %s with %d arguments", name, len(args))
		return value{}
	}
	if args[0].untyped() {
		args[0] = value{kind: v.result(args[0])}
	}
	result, _ := v.matches("aggregate", name, args)
	return value{kind: result}
}

// subLink vets EXISTS, IN (SELECT ...), and a SELECT as a value that has one row whatever there is.
func (v *vetter) subLink(s *sqltext.SubLink, at place) value {
	query := s.GetSubselect().GetSelectStmt()
	inner := place{scope: at.scope, sublink: true}
	switch s.SubLinkType {
	case sqltext.EXISTS_SUBLINK:
		v.query(query, inner, false)
		return value{kind: kindBool}
	case sqltext.ANY_SUBLINK:
		left := v.expr(s.Testexpr, at)
		columns := v.query(query, inner, false)
		if v.reason == "" && (len(columns) != 1 || len(s.OperName) > 0) {
			v.no("ANY (SELECT ...) in this form")
			return value{}
		}
		if v.reason == "" {
			v.matches("operator", "=", []value{left, {kind: columns[0].kind}})
		}
		return value{kind: kindBool}
	case sqltext.EXPR_SUBLINK:
		columns := v.query(query, inner, false)
		if v.reason != "" {
			return value{}
		}
		if len(columns) != 1 || !oneRow(query) {
			v.no("a SELECT as a value, which may have several rows")
			return value{}
		}
		return value{kind: columns[0].kind}
	}
	v.no("this form of sub-select")
	return value{}
}

// oneRow tells whether a SELECT has exactly one row because it aggregates without groups.
func oneRow(s *sqltext.SelectStmt) bool {
	if s.Op != sqltext.SETOP_NONE || len(s.GroupClause) > 0 || s.HavingClause != nil || len(s.TargetList) != 1 || len(s.DistinctClause) > 0 {
		return false
	}
	_, name, _ := qualifiedName(s.TargetList[0].GetResTarget().GetVal().GetFuncCall().GetFuncname())
	return vettedList["aggregate "+name] != nil
}

// takeDoor makes the edits of a vetted text: every protected table becomes its door view, and types are qualified.
func (v *vetter) takeDoor() {
	for _, ref := range v.walker.references {
		if ref.fragment.open {
			rv, name := ref.rangeVar, ref.name
			v.replace(ref.start, ref.end, name.SQL(), func() { rv.Schemaname, rv.Relname = name.Schema, name.Name })
			continue
		}
		v.substitute(ref, predicate.DoorView(ref.name))
	}
	for _, t := range v.types {
		token, name := v.source.Tokens[v.source.At(t.Location)], t.Names[0].GetString_().GetSval()
		v.replace(token.Start, token.End, catalog.Name{Schema: "pg_catalog", Name: name}.SQL(), func() {
			t.Names = []*sqltext.Node{stringNode("pg_catalog"), stringNode(name)}
		})
	}
}

// onlyDoors tells whether a tree names no relation but door views, open tables and its own WITH queries.
func (w *walker) onlyDoors(tree *sqltext.ParseResult) bool {
	allowed := map[catalog.Name]bool{}
	for _, t := range w.pol.Tables() {
		if f := w.protected[t.Relation.Name]; f.open {
			allowed[t.Relation.Name] = true
		} else if f.door {
			allowed[predicate.DoorView(t.Relation.Name)] = true
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

// door sends the text through the gate door if it may take it.
func (w *walker) door(tree *sqltext.ParseResult, result *Result) bool {
	if !w.mode.Doors() {
		return false
	}
	v := w.vet(tree)
	if result.DoorReason = v.reason; v.reason != "" {
		return false
	}
	v.takeDoor()
	w.signed = true
	result.Door, result.params = verdict.DoorGate, v.params
	return true
}

// MayDeclare tells whether the parameters of a text of the gate door may be declared as these types, by OID; 0 leaves one to
// the server. A parameter of another type than was taken for granted would be converted, which can fail.
func (r *Result) MayDeclare(types []uint32) bool {
	for i, oid := range types {
		if k, used := r.params[int32(i+1)]; oid != 0 && used && kindOfOID(oid) != k {
			return false
		}
	}
	return true
}
