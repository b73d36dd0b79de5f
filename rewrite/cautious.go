package rewrite

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/sqltext"
	"github.com/pgconsent/pgconsent/verdict"
)

// What a comparison compares a column with may raise an error, or draw a random number, and say nothing of the row: a sub-select, `$1 / $2`,
// a column of a query outside. Row security lets it be worked out when a row that is hidden has got so far, and not when none has: the second
// of two bitmaps is not begun where nothing is in the first. So a statement that may hold such a thing is planned with care (decision 73).
// What names a column of a table of its own query is put off by row security itself until the row shows.
//
// The walk below looks for a reason why a statement may hold one. It knows expressions that cannot raise an error by
// name, and takes all else for one that can: a mistake on that side costs speed.

// cautious says of each statement of a text why it is planned with care; "" where it is not.
type cautious struct {
	*walker
	of     map[*sqltext.RangeVar]*reference
	reason string

	outputs  bool // a query in FROM computes what may raise an error, of columns of its own
	sublinks bool // a sub-select stands where it may ask for that

	params map[int32]*paramUse
	casts  bool // it casts parameters, which say their types by that
}

// paramUse is how often a parameter stands in a statement, and how often of that under a cast.
type paramUse struct {
	stands, cast int
	to           string // the type; all casts are to that
}

// level is what the columns of one SELECT may be of.
type level struct {
	parent *level
	tables map[string]*catalog.Relation // tables in FROM, by the name that they go by there
	scalar map[string]map[string]bool   // columns of sub-selects in FROM of which it is certain that they can be compared
	merged bool                         // USING or NATURAL: a column without qualification may be another's
}

// stand is where an expression stands.
type stand struct {
	*level
	output bool // it is computed of rows that are shown, and nowhere else
	feeds  bool // it is what a query in FROM, or a WITH query, gives the one around it
	strict bool // in a sub-select that is run when something outside asks for it: columns of its own do not put it off
}

// care says when a statement is planned, and why that is to be with care, if it is; declared tells that it is as well where types are declared
// for its parameters.
func (w *walker) care(raw *sqltext.RawStmt, of map[*sqltext.RangeVar]*reference) (when verdict.Caution, reason string, declared bool) {
	c := &cautious{walker: w, of: of, params: map[int32]*paramUse{}}
	c.count(raw.GetStmt())
	when = c.statement(raw.GetStmt())
	if c.outputs && c.sublinks {
		c.because("a sub-select may ask for what a query in FROM computes")
	}
	for _, n := range raw.GetStmt().GetPrepareStmt().GetArgtypes() {
		switch name := lastName(n.GetTypeName().GetNames()); {
		case c.casts:
			c.because("it casts a parameter that is declared")
		case !slices.Contains(plainNames, name) || len(n.GetTypeName().GetArrayBounds()) > 0:
			c.because("it declares a parameter that may have to be converted")
		}
	}
	if len(w.casts) > 0 {
		c.because("it brings a cast that is not PostgreSQL's own")
	}
	return when, c.reason, c.casts
}

// count looks at how parameters are used.
func (c *cautious) count(n *sqltext.Node) {
	use := func(p *sqltext.ParamRef) *paramUse {
		if c.params[p.Number] == nil {
			c.params[p.Number] = &paramUse{}
		}
		return c.params[p.Number]
	}
	c.inside(n, func(n *sqltext.Node) bool {
		if p := n.GetParamRef(); p != nil {
			use(p).stands++
		}
		if t := n.GetTypeCast(); t.GetArg().GetParamRef() != nil {
			u, to := use(t.Arg.GetParamRef()), castType(t.TypeName)
			if u.cast == 0 || u.to == to {
				u.cast, u.to = u.cast+1, to
			}
		}
		return true
	})
}

func castType(t *sqltext.TypeName) string {
	_, name, _ := qualifiedName(t.GetNames())
	return name + strings.Repeat("[]", len(t.GetArrayBounds()))
}

// says tells whether a cast says what type its parameter has, so that it casts nothing unless another was declared.
func (c *cautious) says(t *sqltext.TypeCast) bool {
	p := t.GetArg().GetParamRef()
	if p == nil || len(t.GetTypeName().GetTypmods()) > 0 {
		return false
	}
	u := c.params[p.Number]
	if u == nil || u.stands != u.cast || !slices.Contains(plainNames, lastName(t.GetTypeName().GetNames())) {
		return false
	}
	c.casts = true
	return true
}

func (c *cautious) because(reason string) {
	if c.reason == "" {
		c.reason = reason
	}
}

// statement returns when a statement is planned.
func (c *cautious) statement(n *sqltext.Node) verdict.Caution {
	switch s := n.GetNode().(type) {
	case *sqltext.Node_SelectStmt:
		c.query(s.SelectStmt, nil, true, false)
	case *sqltext.Node_CopyStmt:
		switch query := s.CopyStmt.GetQuery(); {
		case s.CopyStmt.IsFrom:
			c.because("it writes")
		case query != nil:
			c.statement(query)
		}
		return verdict.PlannedAsItRuns
	case *sqltext.Node_DeclareCursorStmt:
		c.statement(s.DeclareCursorStmt.GetQuery())
		return verdict.PlannedAsItRuns
	case *sqltext.Node_PrepareStmt: // for those who run it
		c.statement(s.PrepareStmt.GetQuery())
	case *sqltext.Node_TransactionStmt, *sqltext.Node_VariableSetStmt, *sqltext.Node_VariableShowStmt, *sqltext.Node_DeallocateStmt, *sqltext.Node_FetchStmt,
		*sqltext.Node_ClosePortalStmt, *sqltext.Node_DiscardStmt, *sqltext.Node_UnlistenStmt, *sqltext.Node_ExecuteStmt: // of the last, what it runs tells
	case *sqltext.Node_ExplainStmt:
		c.because("it explains another")
		return verdict.PlannedAsItRuns
	default: // what writes has triggers, defaults and checks
		c.because("it writes")
	}
	return verdict.PlannedAsItIsBound
}

// query visits a SELECT. shown tells that its rows are the client's, or those of an expression that is computed of such.
func (c *cautious) query(s *sqltext.SelectStmt, parent *level, shown, strict bool) {
	if s == nil {
		c.because("it has a query of another kind")
		return
	}
	for _, n := range s.GetWithClause().GetCtes() {
		body := n.GetCommonTableExpr().GetCtequery()
		if body.GetSelectStmt() == nil {
			c.because("it writes")
			return
		}
		c.query(body.GetSelectStmt(), parent, false, strict)
	}
	own := &level{parent: parent, tables: map[string]*catalog.Relation{}}
	condition, output := stand{level: own, strict: strict}, stand{level: own, output: shown, feeds: !shown, strict: strict}
	if s.Op != sqltext.SETOP_NONE {
		c.query(s.Larg, parent, shown, strict)
		c.query(s.Rarg, parent, shown, strict)
	}
	for _, n := range s.FromClause {
		c.names(n, own)
	}
	for _, n := range s.FromClause {
		c.from(n, condition)
	}
	c.expr(s.WhereClause, condition)
	c.expr(s.HavingClause, condition)
	for _, list := range [][]*sqltext.Node{s.TargetList, s.GroupClause, s.SortClause, s.DistinctClause, s.WindowClause, s.ValuesLists, {s.LimitCount, s.LimitOffset}} {
		for _, n := range list {
			c.expr(n, output)
		}
	}
}

// names collects the tables of FROM whose columns are columns and nothing else.
func (c *cautious) names(n *sqltext.Node, own *level) {
	switch n := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		ref := c.of[n.RangeVar]
		name := n.RangeVar.Relname
		if a := n.RangeVar.GetAlias(); a != nil {
			name = a.Aliasname
		}
		own.unknown(name)
		if ref == nil || ref.fragment == nil || ref.fragment.stands() || ref.relation.Kind != catalog.Table && ref.relation.Kind != catalog.PartitionedTable || len(n.RangeVar.GetAlias().GetColnames()) > 0 {
			return
		}
		own.tables[name] = ref.relation
	case *sqltext.Node_RangeSubselect:
		own.unknown(n.RangeSubselect.GetAlias().GetAliasname())
		alias, query := n.RangeSubselect.GetAlias(), n.RangeSubselect.GetSubquery().GetSelectStmt()
		if alias == nil || len(alias.Colnames) > 0 || query == nil || query.Op != sqltext.SETOP_NONE {
			return
		}
		inside := &level{tables: map[string]*catalog.Relation{}}
		for _, n := range query.FromClause {
			c.names(n, inside)
		}
		columns := map[string]bool{}
		for _, n := range query.TargetList {
			if t := n.GetResTarget(); !isStar(t.GetVal()) {
				name := outputName(t)
				_, twice := columns[name]
				columns[name] = !twice && c.isScalar(t.GetVal(), inside)
			}
		}
		own.scalar[alias.Aliasname] = columns
	case *sqltext.Node_JoinExpr:
		own.unknown(n.JoinExpr.GetAlias().GetAliasname())
		if n.JoinExpr.Alias != nil { // it hides the names inside, which then are those of a query outside
			return
		}
		own.merged = own.merged || n.JoinExpr.IsNatural || len(n.JoinExpr.UsingClause) > 0
		c.names(n.JoinExpr.Larg, own)
		c.names(n.JoinExpr.Rarg, own)
	case *sqltext.Node_RangeFunction:
		own.unknown(n.RangeFunction.GetAlias().GetAliasname())
	case *sqltext.Node_RangeTableFunc:
		own.unknown(n.RangeTableFunc.GetAlias().GetAliasname())
	}
}

// unknown notes a name of which no column is certain yet.
func (l *level) unknown(name string) {
	if l.scalar == nil {
		l.scalar = map[string]map[string]bool{}
	}
	l.scalar[name] = nil
}

func (c *cautious) from(n *sqltext.Node, at stand) {
	switch n := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		switch ref := c.of[n.RangeVar]; {
		case ref == nil: // a WITH query
			if at.strict {
				c.because("a sub-select reads a WITH query")
			}
		case ref.fragment == nil || ref.relation == nil:
			c.because("it reads a catalog")
		case ref.relation.Kind != catalog.Table && ref.relation.Kind != catalog.PartitionedTable:
			c.because("it reads a view")
		}
	case *sqltext.Node_RangeSubselect:
		if query := n.RangeSubselect.GetSubquery().GetSelectStmt(); n.RangeSubselect.Lateral {
			if len(query.GetFromClause()) > 0 || query.GetOp() != sqltext.SETOP_NONE || query.GetWithClause() != nil || query.GetWhereClause() != nil {
				c.because("LATERAL")
				return
			}
			// It reads nothing: what it computes is of the columns beside it.
			at.feeds = true
			for _, list := range [][]*sqltext.Node{query.GetTargetList(), query.GetValuesLists(), query.GetGroupClause(), query.GetSortClause(), {query.GetHavingClause(), query.GetLimitCount(), query.GetLimitOffset()}} {
				for _, n := range list {
					c.expr(n, at)
				}
			}
			return
		}
		c.query(n.RangeSubselect.GetSubquery().GetSelectStmt(), at.parent, false, at.strict)
	case *sqltext.Node_JoinExpr:
		c.from(n.JoinExpr.Larg, at)
		c.from(n.JoinExpr.Rarg, at)
		if (n.JoinExpr.IsNatural || len(n.JoinExpr.UsingClause) > 0) && !(c.isTable(n.JoinExpr.Larg) && c.isTable(n.JoinExpr.Rarg)) {
			c.because("USING or NATURAL over what is not a table")
		}
		// A join's condition sees the two sides, and what is beside them is of a query outside.
		sides := &level{parent: at.parent, tables: map[string]*catalog.Relation{}, merged: n.JoinExpr.IsNatural || len(n.JoinExpr.UsingClause) > 0}
		c.names(n.JoinExpr.Larg, sides)
		c.names(n.JoinExpr.Rarg, sides)
		at.level = sides
		c.expr(n.JoinExpr.Quals, at)
	default:
		c.because("it has a function in FROM")
	}
}

// isScalar tells whether what a sub-select returns is certain to be of a plain type.
func (c *cautious) isScalar(n *sqltext.Node, inside *level) bool {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_ColumnRef:
		column := inside.column(x.ColumnRef)
		return column != nil && sortable(kindOf(column, c.snap)) && !c.touchy(column) && column.TypeOID != numericOID || inside.derived(x.ColumnRef)
	case *sqltext.Node_TypeCast:
		_, name, _ := qualifiedName(x.TypeCast.GetTypeName().GetNames())
		found := c.snap.TypesNamed("pg_catalog", name)
		return len(found) == 1 && len(x.TypeCast.TypeName.ArrayBounds) == 0 && sortable(kindOfOID(found[0].OID)) && converted[found[0].OID] == 0 && found[0].OID != numericOID
	case *sqltext.Node_FuncCall:
		return c.plain(x.FuncCall) && lastName(x.FuncCall.Funcname) == "count"
	}
	return false
}

// derived tells whether a column, named with the sub-select that it is of, can be compared for certain.
func (l *level) derived(ref *sqltext.ColumnRef) bool {
	return len(ref.Fields) == 2 && l.scalar[ref.Fields[0].GetString_().GetSval()][ref.Fields[1].GetString_().GetSval()]
}

// inside calls f for a node and, where it wants them, for those inside.
func (c *cautious) inside(n *sqltext.Node, f func(*sqltext.Node) bool) {
	if n == nil || !f(n) {
		return
	}
	children(n, func(child *sqltext.Node) { c.inside(child, f) })
}

// children calls f for each Node directly inside another.
func children(n *sqltext.Node, f func(*sqltext.Node)) {
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			switch {
			case field.Message() == nil || field.IsMap():
			case field.IsList():
				for i := range v.List().Len() {
					eachNode(v.List().Get(i).Message(), f, visit)
				}
			default:
				eachNode(v.Message(), f, visit)
			}
			return true
		})
	}
	visit(n.ProtoReflect())
}

func eachNode(m protoreflect.Message, f func(*sqltext.Node), visit func(protoreflect.Message)) {
	if n, ok := m.Interface().(*sqltext.Node); ok {
		f(n)
		return
	}
	visit(m)
}

// column is the column of a table of this very query that is meant for certain, or nil.
func (l *level) column(ref *sqltext.ColumnRef) *catalog.Column {
	switch len(ref.Fields) {
	case 1:
		if l.merged {
			return nil
		}
		name := ref.Fields[0].GetString_().GetSval()
		for _, r := range l.tables {
			if column := r.Column(name); column != nil && !column.Virtual {
				return column
			}
		}
	case 2:
		if r := l.tables[ref.Fields[0].GetString_().GetSval()]; r != nil {
			if column := r.Column(ref.Fields[1].GetString_().GetSval()); column != nil && !column.Virtual {
				return column
			}
		}
	}
	return nil
}

// quiet kinds of nodes raise nothing themselves.
var quiet = []string{
	"A_ArrayExpr", "A_Const", "A_Star", "Boolean", "BoolExpr", "BooleanTest", "CaseWhen", "CoalesceExpr", "ColumnRef", "Float", "Integer", "List", "NamedArgExpr", "NullTest",
	"ParamRef", "ResTarget", "RowExpr", "SQLValueFunction", "SortBy", "String", "GroupingSet", "GroupingFunc", "WindowDef",
}

// expr visits an expression, and tells whether it names a column of a table of its own query, sub-selects left out.
func (c *cautious) expr(n *sqltext.Node, at stand) (own bool) {
	if n.GetNode() == nil || c.reason != "" {
		return false
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_SubLink:
		c.operators(x.SubLink.OperName)
		if column, _ := at.resolved(x.SubLink.Testexpr); column != nil && c.touchy(column) && !at.output {
			c.because("it compares with what may have to be converted first")
		}
		c.expr(x.SubLink.Testexpr, at)
		c.sublink(x.SubLink, at)
		return false
	case *sqltext.Node_ColumnRef:
		own = at.column(x.ColumnRef) != nil
	case *sqltext.Node_FuncCall:
		if !c.plain(x.FuncCall) {
			c.because("it calls a function that is not PostgreSQL's own")
			return false
		}
	case *sqltext.Node_A_Expr:
		c.operators(x.AExpr.Name)
		if !at.output && !c.alike(x.AExpr, at) {
			c.because("it compares with what may have to be converted first")
		}
	case *sqltext.Node_SortBy:
		c.operators(x.SortBy.UseOp)
	case *sqltext.Node_TypeCast:
		if schema, name, ok := qualifiedName(x.TypeCast.GetTypeName().GetNames()); !ok || schema != "" && schema != "pg_catalog" || len(c.snap.TypesNamed("pg_catalog", name)) != 1 {
			c.because("it casts to a type that is not PostgreSQL's own")
			return false
		}
	}
	children(n, func(child *sqltext.Node) { own = c.expr(child, at) || own })
	kind := sqltext.Kind(n)
	if x := n.GetCaseExpr(); x != nil && x.Arg == nil {
		kind = "CaseWhen" // without a comparison of its own
	}
	if !slices.Contains(quiet, kind) && !c.harmless(n, at) {
		switch {
		case at.strict:
			c.because("a sub-select computes what may fail: " + kind)
		case at.output:
		case !own:
			c.because("what may fail names no column of a table beside it: " + kind)
		default:
			c.outputs = c.outputs || at.feeds
		}
	}
	return own
}

// operators wants operators of a name to be PostgreSQL's own, or of extensions that are known. Behind words stand those of comparisons.
func (c *cautious) operators(name []*sqltext.Node) {
	names := []string{lastName(name)}
	if len(name) > 0 && strings.Trim(names[0], "ABCDEFGHIJKLMNOPQRSTUVWXYZ ") == "" {
		names = comparisons
	}
	for _, n := range names {
		if slices.ContainsFunc(c.snap.OperatorsNamed("", n), func(o *catalog.Operator) bool { return !knownExtension(o.Extension) }) {
			c.because("it uses an operator that is not PostgreSQL's own")
		}
	}
}

func lastName(names []*sqltext.Node) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1].GetString_().GetSval()
}

// plain tells whether a call is of a function that only pg_catalog has by its name, or only for types of extensions.
func (c *cautious) plain(f *sqltext.FuncCall) bool {
	schema, name, ok := qualifiedName(f.Funcname)
	if !ok || schema != "" && schema != "pg_catalog" {
		return false
	}
	return schema != "" || !slices.ContainsFunc(c.snap.FunctionsNamed("", name), func(f *catalog.Function) bool { return !knownExtension(f.Extension) })
}

// sublink visits a sub-select of an expression. In what is shown it runs for rows that are; elsewhere whenever something asks.
func (c *cautious) sublink(s *sqltext.SubLink, at stand) {
	query := s.GetSubselect().GetSelectStmt()
	if at.output && !at.strict {
		c.sublinks = true // its own conditions may ask for what a query in FROM computes
		c.query(query, at.level, true, false)
		return
	}
	c.sublinks = true
	if s.SubLinkType == sqltext.EXPR_SUBLINK && !(query != nil && oneRow(query)) {
		c.because("a sub-select that is compared with may have several rows")
		return
	}
	if query != nil && (query.LimitCount.GetNode() != nil || query.LimitOffset.GetNode() != nil) && (query.LimitCount.GetNode() != nil && query.LimitCount.GetAConst() == nil || query.LimitOffset.GetNode() != nil && query.LimitOffset.GetAConst() == nil) {
		c.because("a sub-select computes its LIMIT")
		return
	}
	c.query(query, at.level, false, true)
}

// constant tells whether a cast is of a constant, and made no later than the plan: of text as it is read, and between plain types by functions
// that are IMMUTABLE.
func constant(t *sqltext.TypeCast) bool {
	c := t.GetArg().GetAConst()
	return c != nil && (c.Isnull || c.GetSval() != nil || slices.Contains([]string{"int2", "int4", "int8", "numeric", "float4", "float8", "bool", "text", "varchar"}, lastName(t.GetTypeName().GetNames())))
}

// isTable tells whether an item of FROM is made of tables alone.
func (c *cautious) isTable(n *sqltext.Node) bool {
	if j := n.GetJoinExpr(); j != nil {
		return c.isTable(j.Larg) && c.isTable(j.Rarg)
	}
	own := &level{tables: map[string]*catalog.Relation{}}
	c.names(n, own)
	return len(own.tables) == 1
}

const numericOID = 1700

// converted are types with which PostgreSQL compares others by converting these, which may raise an error: numbers to floating point, big
// integers to OIDs, dates and times to each other in lists. 2: a parameter may be one of these however it is declared.
var converted = map[uint32]int{700: 1, 701: 1, 1114: 1, 1184: 1, 26: 2, 24: 2, 2202: 2, 2203: 2, 2204: 2, 2205: 2, 2206: 2, 3734: 2, 3769: 2, 4089: 2, 4096: 2, 4191: 2}

// plainNames are types that a declared parameter can have without being converted to another by a function that may fail.
var plainNames = []string{"bool", "int2", "int4", "int8", "text", "varchar", "bpchar", "uuid", "timestamptz", "jsonb", "json", "bytea"}

// PlainParameter tells the same of an OID: of these types and arrays of them.
func PlainParameter(oid uint32) bool {
	return slices.Contains([]uint32{16, 17, 20, 21, 23, 25, 114, 1042, 1043, 1184, 2950, 3802, 1000, 1005, 1007, 1009, 1014, 1015, 1016, 2951}, oid)
}

func (c *cautious) touchy(column *catalog.Column) bool { return converted[c.under(column)] > 0 }

// under is the type of a column, or the one under its domain.
func (c *cautious) under(column *catalog.Column) uint32 {
	oid := column.TypeOID
	for range 64 { // domains over domains
		t := c.snap.TypeByOID(oid)
		if t == nil || t.Kind != 'd' {
			break
		}
		oid = t.Base
	}
	return oid
}

// resolved is the column that an operand is, of a table of this query or of one outside, and whether it is one of this query.
func (l *level) resolved(n *sqltext.Node) (column *catalog.Column, own bool) {
	ref := n.GetColumnRef()
	if ref == nil {
		return nil, false
	}
	for at := l; at != nil; at = at.parent {
		if column := at.column(ref); column != nil {
			return column, at == l
		}
	}
	return nil, false
}

// alike tells whether what is compared needs no conversion that may fail, but of columns of this very query, which are put off until the row
// shows. Operands of other operators than comparisons are not asked about: those are not leak-proof.
func (c *cautious) alike(x *sqltext.A_Expr, at stand) bool {
	operands := []*sqltext.Node{x.Lexpr}
	switch {
	case x.Rexpr.GetList() != nil:
		operands = append(operands, x.Rexpr.GetList().GetItems()...)
	case x.Rexpr.GetAArrayExpr() != nil:
		operands = append(operands, x.Rexpr.GetAArrayExpr().GetElements()...)
	default:
		operands = append(operands, x.Rexpr)
	}
	kind := 0
	var of uint32
	for _, n := range operands {
		if column, _ := at.resolved(n); column != nil {
			if t := c.under(column); converted[t] > kind {
				kind, of = converted[t], t
			}
		}
	}
	if kind == 0 {
		return true
	}
	for _, n := range operands {
		column, own := at.resolved(n)
		switch {
		case n.GetAConst() != nil, n.GetTypeCast() != nil && constant(n.GetTypeCast()), isNow(n), n.GetAExpr() != nil && isNow(n.GetAExpr().Lexpr) && c.harmless(n, at), kind == 1 && n.GetParamRef() != nil:
		case n.GetFuncCall() != nil && lastName(n.GetFuncCall().Funcname) == "date_trunc" && c.harmless(n, at):
		case column != nil && (c.under(column) == of || own && !at.strict):
		case column == nil && !at.strict && c.hasOwn(n, at):
		default:
			return false
		}
	}
	return true
}

// hasOwn tells whether an operand names a column of a table of this query, sub-selects left out.
func (c *cautious) hasOwn(n *sqltext.Node, at stand) (found bool) {
	c.inside(n, func(n *sqltext.Node) bool {
		found = found || n.GetColumnRef() != nil && at.column(n.GetColumnRef()) != nil
		return !found && n.GetSubLink() == nil
	})
	return found
}

var comparisons = []string{"=", "<>", "!=", "<", "<=", ">", ">="}

// harmless tells whether something cannot raise an error, by itself; what is inside is asked for itself.
func (c *cautious) harmless(n *sqltext.Node, at stand) bool {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_A_Expr:
		return c.harmlessOperator(x.AExpr, at)
	case *sqltext.Node_TypeCast:
		return constant(x.TypeCast) || c.says(x.TypeCast)
	case *sqltext.Node_FuncCall:
		return c.harmlessCall(x.FuncCall, at)
	}
	return false
}

func (c *cautious) harmlessOperator(x *sqltext.A_Expr, at stand) bool {
	schema, name, ok := qualifiedName(x.Name)
	if !ok || schema != "" && schema != "pg_catalog" {
		return false
	}
	if x.Kind == sqltext.AEXPR_OP && (name == "+" || name == "-") && isNow(x.Lexpr) {
		length := x.Rexpr.GetTypeCast().GetArg().GetAConst().GetSval()
		return length != nil && lastName(x.Rexpr.GetTypeCast().GetTypeName().GetNames()) == "interval" && span.MatchString(length.GetSval())
	}
	switch x.Kind {
	case sqltext.AEXPR_OP, sqltext.AEXPR_OP_ANY, sqltext.AEXPR_IN, sqltext.AEXPR_DISTINCT, sqltext.AEXPR_NOT_DISTINCT, sqltext.AEXPR_NULLIF:
		if !slices.Contains(comparisons, name) {
			return false
		}
	case sqltext.AEXPR_BETWEEN, sqltext.AEXPR_NOT_BETWEEN:
	default:
		return false
	}
	return c.comparable(x.Lexpr, at) && c.comparable(x.Rexpr, at) && c.alike(x, at)
}

// comparable tells whether an operand is of a kind that can be compared whatever its value is.
func (c *cautious) comparable(n *sqltext.Node, at stand) bool {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_A_Const, *sqltext.Node_ParamRef, *sqltext.Node_SQLValueFunction:
		return true
	case *sqltext.Node_ColumnRef:
		for l := at.level; l != nil; l = l.parent {
			if column := l.column(x.ColumnRef); column != nil {
				return sortable(kindOf(column, c.snap))
			}
			if l.derived(x.ColumnRef) {
				return true
			}
			if _, here := l.scalar[x.ColumnRef.Fields[0].GetString_().GetSval()]; here && len(x.ColumnRef.Fields) > 1 {
				return false // of something of that name further in than any other
			}
		}
	case *sqltext.Node_TypeCast:
		return c.harmless(n, at)
	case *sqltext.Node_List:
		return !slices.ContainsFunc(x.List.Items, func(n *sqltext.Node) bool { return !c.comparable(n, at) })
	case *sqltext.Node_A_ArrayExpr:
		return !slices.ContainsFunc(x.AArrayExpr.Elements, func(n *sqltext.Node) bool { return !c.comparable(n, at) })
	case *sqltext.Node_FuncCall, *sqltext.Node_A_Expr:
		return isNow(n) || x != nil && shallow(n) && c.harmless(n, at)
	}
	return false
}

// shallow tells whether an operand is no deeper than what harmless knows by name: deeper ones would be looked through again at each level.
func shallow(n *sqltext.Node) bool {
	if x := n.GetAExpr(); x != nil {
		return x.Lexpr.GetAExpr() == nil && x.Rexpr.GetAExpr() == nil && x.Lexpr.GetList() == nil && x.Rexpr.GetList() == nil
	}
	for _, arg := range n.GetFuncCall().GetArgs() {
		if arg.GetFuncCall() != nil && !isNow(arg) || arg.GetAExpr() != nil {
			return false
		}
	}
	return true
}

func isNow(n *sqltext.Node) bool {
	if v := n.GetSqlvalueFunction(); v != nil {
		return v.Op == sqltext.SVFOP_CURRENT_DATE || v.Op == sqltext.SVFOP_CURRENT_TIMESTAMP || v.Op == sqltext.SVFOP_LOCALTIMESTAMP
	}
	f := n.GetFuncCall()
	return f != nil && len(f.Args) == 0 && lastName(f.Funcname) == "now"
}

func (c *cautious) harmlessCall(f *sqltext.FuncCall, at stand) bool {
	if f.AggWithinGroup || f.FuncVariadic || f.AggDistinct || len(f.AggOrder) > 0 {
		return false
	}
	switch lastName(f.Funcname) {
	case "now":
		return len(f.Args) == 0
	case "count":
		return f.AggStar || len(f.Args) == 1
	case "min", "max":
		return len(f.Args) == 1 && c.comparable(f.Args[0], at)
	case "date_trunc":
		return len(f.Args) == 2 && f.Args[0].GetAConst().GetSval() != nil && slices.Contains([]string{"hour", "day", "week", "month", "quarter", "year"}, f.Args[0].GetAConst().GetSval().GetSval()) && isNow(f.Args[1])
	}
	return false
}

// careful notes which statements of a text are planned with care.
func (w *walker) careful(tree *sqltext.ParseResult, result *Result) {
	of := map[*sqltext.RangeVar]*reference{}
	for _, ref := range w.references {
		of[ref.rangeVar] = ref
	}
	for i, raw := range tree.Stmts {
		when, reason, declared := w.care(raw, of)
		if reason == "" {
			result.CareDeclared = result.CareDeclared || declared
			continue
		}
		if result.Care == "" {
			result.Care = reason
		}
		e := &result.Effects[i]
		if e.Kind == verdict.Prepares {
			e = &e.Body.Effects[0]
		}
		e.Caution = when
	}
}

// careless takes that back.
func (r *Result) careless() {
	for i := range r.Effects {
		r.Effects[i].Caution = verdict.NoCaution
	}
	r.Care, r.CareDeclared = "", false
}
