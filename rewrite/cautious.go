package rewrite

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pgconsent/pgconsent/builtin"
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

	fed      bool // something in FROM has a sub-select, or a virtual column, among its columns
	lost     bool // a column of which it is not known what it is stands where it may ask for that
	outputs  bool // a query in FROM computes what may raise an error, of columns of its own
	sublinks bool // a sub-select or LATERAL may ask for that

	params map[int32]*paramUse
	casts  bool // it casts parameters, which say their types by that

	vetted []*sqltext.Node // conditions that cannot raise an error, whatever they are asked of

	frame  *frame // WITH queries in sight
	levels map[*sqltext.SelectStmt]*level
	given  map[*sqltext.SelectStmt][]typed
	views  map[catalog.Name]*sqltext.SelectStmt // that it reads; nil where what one reads is not certain
	opened int                                  // mentions of views

	starred int // columns that stars have copied
	visits  int // of inside
}

// maxVisits bounds the nodes that one statement has looked at again, after the walk: some seconds' work.
const maxVisits = 3_000_000

// paramUse is how often a parameter stands in a statement, and how often of that under a cast.
type paramUse struct {
	stands, cast int
	to           string // the type; all casts are to that
}

// stand is where an expression stands.
type stand struct {
	*level
	output bool // it is computed of rows that are shown, and nowhere else
	feeds  bool // it is what a query in FROM, or a WITH query, gives the one around it
	strict bool // in a sub-select that is run when something outside asks for it: columns of its own do not put it off
}

// care says when a statement is planned, and why that is to be with care, if it is; declared tells that it is as well where types are declared
// for its parameters. Conditions that are vetted are not looked at.
func (w *walker) care(raw *sqltext.RawStmt, of map[*sqltext.RangeVar]*reference, vetted ...*sqltext.Node) (when verdict.Caution, reason string, declared bool) {
	c := &cautious{walker: w, of: of, vetted: vetted, params: map[int32]*paramUse{}, levels: map[*sqltext.SelectStmt]*level{}, given: map[*sqltext.SelectStmt][]typed{}, views: map[catalog.Name]*sqltext.SelectStmt{}}
	c.count(raw.GetStmt())
	when = c.statement(raw.GetStmt())
	if c.fed && c.lost {
		c.because("what is not known may ask for a sub-select of a query in FROM, or for a virtual column")
	}
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
	if w.bringsOthers() {
		c.because("it brings values that functions of others compare or convert")
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
	case *sqltext.Node_UpdateStmt, *sqltext.Node_DeleteStmt:
		c.changes(n)
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
	defer c.with(s, parent, func(query *sqltext.CommonTableExpr) {
		if query.GetCtequery().GetSelectStmt() == nil {
			c.because("it writes")
			return
		}
		c.query(query.Ctequery.GetSelectStmt(), parent, false, strict)
	})()
	own := c.levelOf(s, parent)
	if strict && len(s.LockingClause) > 0 {
		c.because("a sub-select locks rows")
	}
	condition, output := stand{level: own, strict: strict}, stand{level: own, output: shown, feeds: !shown, strict: strict}
	if s.Op != sqltext.SETOP_NONE {
		c.query(s.Larg, parent, shown, strict)
		c.query(s.Rarg, parent, shown, strict)
		if !shown && !strict {
			c.unites(s, parent)
		}
	}
	if strict {
		c.sorts(s, parent, own)
	}
	for _, n := range s.FromClause {
		c.from(n, condition)
	}
	c.expr(s.WhereClause, condition)
	c.expr(s.HavingClause, condition)
	for _, n := range s.TargetList {
		if at := output; !shown && c.collects(n.GetResTarget().GetVal(), own) {
			at.output, at.feeds = true, false
			c.expr(n, at)
		} else if !shown && !strict && c.asks(n, own) { // it is run for rows that show, unless something that names the column asks for it
			c.fed = true
			at.output = true
			c.expr(n, at)
		} else {
			c.expr(n, output)
		}
	}
	for _, list := range [][]*sqltext.Node{s.GroupClause, s.SortClause, s.DistinctClause, s.WindowClause, s.ValuesLists, {s.LimitCount, s.LimitOffset}} {
		for _, n := range list {
			c.expr(n, output)
		}
	}
}

// sorts looks at what a sub-select does with its rows besides: bounds may be negative, and rows whose columns cannot be compared cannot be
// sorted or grouped either, which PostgreSQL notices when it comes to two of them; nor can the halves of a UNION always be converted to each other.
func (c *cautious) sorts(s *sqltext.SelectStmt, parent, own *level) {
	if !bound(s.LimitCount) || !bound(s.LimitOffset) {
		c.because("a sub-select computes its LIMIT")
	}
	columns := c.outputsOf(s, parent, "")
	if together := s.Op != sqltext.SETOP_NONE || len(s.DistinctClause) > 0 || len(s.ValuesLists) > 1; together && (columns == nil || slices.ContainsFunc(columns, func(t typed) bool { return t.oid == 0 })) {
		c.because("a sub-select compares its rows")
	}
	for _, list := range [][]*sqltext.Node{s.SortClause, s.GroupClause, s.DistinctClause} {
		for _, n := range list {
			if by := n.GetSortBy(); by != nil {
				n = by.Node
			}
			if i := n.GetAConst().GetIval(); i != nil && 0 < i.Ival && int(i.Ival) <= len(columns) && columns[i.Ival-1].oid != 0 {
				continue
			}
			if n.GetNode() != nil && (n.GetAConst() != nil || c.typeOf(n, own) == 0) {
				c.because("a sub-select sorts or groups by what may not be compared")
			}
		}
	}
}

// bound tells whether LIMIT or OFFSET cannot be refused as it runs.
func bound(n *sqltext.Node) bool {
	i := n.GetAConst()
	return n.GetNode() == nil || i != nil && (i.Isnull || i.GetIval() != nil && i.GetIval().Ival >= 0)
}

func (c *cautious) from(n *sqltext.Node, at stand) {
	switch n := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		ref := c.of[n.RangeVar]
		c.fed = c.fed || ref != nil && ref.relation != nil && hasVirtual(ref.relation)
		switch {
		case ref == nil: // a WITH query
			if at.strict {
				c.because("a sub-select reads a WITH query")
			}
			if !c.inSight(n.RangeVar.Relname) {
				c.because("it reads a catalog")
			}
		case ref.fragment == nil || ref.relation == nil:
			c.because("it reads a catalog")
		case ref.relation.Kind == catalog.View:
			c.readsView(ref, at)
		case slices.ContainsFunc(ref.relation.Columns, func(column catalog.Column) bool {
			return slices.ContainsFunc(overflowing, func(oid uint32) bool { return c.snap.MadeOf(column.TypeOID, oid) })
		}):
			c.because("it reads a table with circles or segments, of which comparisons fail")
		case c.runs(ref.relation):
			c.because("it reads a table with values that functions of others compare or convert")
		case !asTables[ref.relation.Kind]:
			c.because("it reads a foreign table")
		}
	case *sqltext.Node_RangeSubselect:
		if query := n.RangeSubselect.GetSubquery().GetSelectStmt(); n.RangeSubselect.Lateral {
			if len(query.GetFromClause()) > 0 || query.GetOp() != sqltext.SETOP_NONE || query.GetWithClause() != nil || query.GetWhereClause() != nil {
				c.query(query, at.level, false, at.strict)
				return
			}
			// It reads nothing: what it computes is of the columns beside it.
			at.feeds = true
			for _, list := range [][]*sqltext.Node{query.GetTargetList(), query.GetValuesLists(), query.GetGroupClause(), query.GetSortClause(), query.GetDistinctClause(), query.GetWindowClause(), {query.GetHavingClause(), query.GetLimitCount(), query.GetLimitOffset()}} {
				for _, n := range list {
					c.expr(n, at)
				}
			}
			return
		}
		c.query(n.RangeSubselect.GetSubquery().GetSelectStmt(), at.parent, false, at.strict)
	case *sqltext.Node_JoinExpr:
		if n.JoinExpr.Alias != nil && (hasLateral(n.JoinExpr.Larg) || hasLateral(n.JoinExpr.Rarg)) { // its names are those of what the alias hides
			c.because("LATERAL in a join with an alias")
			return
		}
		c.from(n.JoinExpr.Larg, at)
		c.from(n.JoinExpr.Rarg, at)
		// A join's condition sees the two sides, and what is beside them is of a query outside.
		sides, left, right := &level{parent: at.parent}, &level{parent: at.parent}, &level{parent: at.parent}
		c.names(n.JoinExpr.Larg, sides)
		of := len(sides.items)
		left.merged, sides.merged = sides.merged, false
		c.names(n.JoinExpr.Rarg, sides) // which sees the left one
		right.merged = sides.merged
		for i, item := range sides.items {
			if i < of {
				left.add(item)
			} else {
				right.add(item)
			}
		}
		c.merges(n.JoinExpr, left, right, at.strict)
		sides.merged = left.merged || right.merged || n.JoinExpr.IsNatural || len(n.JoinExpr.UsingClause) > 0
		at.level = sides
		c.expr(n.JoinExpr.Quals, at)
	case *sqltext.Node_RangeFunction:
		c.rows(n.RangeFunction, at)
	default:
		c.because("it has a function in FROM")
	}
}

// rows visits functions in FROM. They run for rows that are shown, and with what is computed of those.
func (c *cautious) rows(f *sqltext.RangeFunction, at stand) {
	for _, n := range f.Functions {
		call := n.GetList().GetItems()[0].GetFuncCall()
		switch {
		case call == nil || !c.plain(call):
			c.because("it has a function in FROM")
		case at.strict && lastName(call.Funcname) != "unnest":
			c.because("a sub-select runs a function in FROM")
		}
		if !at.strict {
			at.output = true
		}
		for _, arg := range call.GetArgs() {
			c.expr(arg, at)
		}
	}
}

// runs tells whether a relation has values that functions of others compare or convert, without being called: by implicit casts, default operator classes, and what ranges are compared by.
func (r *Rewriter) runs(relation *catalog.Relation) bool {
	return slices.ContainsFunc(relation.Columns, func(column catalog.Column) bool { return r.snap.Runs(column.TypeOID) })
}

// bringsOthers tells whether a text makes, or reads, such values. It is asked when all of it has been walked.
func (w *walker) bringsOthers() bool {
	if w.withOthers == nil {
		seen, brings := map[*catalog.Relation]bool{}, false
		for _, ref := range w.references {
			if ref.fragment != nil && ref.relation != nil && !seen[ref.relation] {
				seen[ref.relation] = true
				brings = brings || w.runs(ref.relation)
			}
		}
		for oid := range w.present {
			brings = brings || w.snap.Runs(oid)
		}
		w.withOthers = &brings
	}
	return *w.withOthers
}

// asTables are the kinds of relations that are read as tables are: a view of ours over what is stored is a barrier to what row security puts off. What a foreign server makes
// of a condition is its own.
var asTables = map[catalog.RelKind]bool{catalog.Table: true, catalog.PartitionedTable: true, catalog.MatView: true}

// hasLateral tells whether something in FROM may name what is beside it.
func hasLateral(n *sqltext.Node) bool {
	switch n := n.GetNode().(type) {
	case *sqltext.Node_JoinExpr:
		return hasLateral(n.JoinExpr.Larg) || hasLateral(n.JoinExpr.Rarg)
	case *sqltext.Node_RangeSubselect:
		return n.RangeSubselect.Lateral
	case *sqltext.Node_RangeVar:
		return false
	}
	return true
}

// merges looks at columns that a join compares by their names.
func (c *cautious) merges(j *sqltext.JoinExpr, left, right *level, strict bool) {
	switch {
	case !strict && left.allTables() && right.allTables() && !(j.IsNatural && c.namesArrays(left, right)):
	case j.IsNatural:
		c.because("NATURAL over what is not a table")
	}
	if j.IsNatural && slices.ContainsFunc(slices.Concat(left.items, right.items), (*source).asks) {
		c.because("NATURAL may ask for a virtual column")
	}
	for _, n := range j.UsingClause {
		ref := &sqltext.ColumnRef{Fields: []*sqltext.Node{n}}
		l, r := c.column(ref, left), c.column(ref, right)
		if l.asks || r.asks || c.fed && !(l.known && r.known) {
			c.because("USING asks for a sub-select of a query in FROM, or for a virtual column")
		}
		if c.convertsArrays(l.raw, r.raw) || !(!strict && l.own && r.own || l.oid != 0 && r.oid != 0 && (l.oid == r.oid || converted[l.oid] == 0 && converted[r.oid] == 0)) {
			c.because("USING over what is not a table")
		}
	}
}

// namesArrays tells whether two sides have an array by one name.
func (c *cautious) namesArrays(left, right *level) bool {
	for _, l := range left.items {
		for _, column := range l.table.Columns {
			for _, r := range right.items {
				if other := r.table.Column(column.Name); other != nil && c.convertsArrays(c.under(column.TypeOID), c.under(other.TypeOID)) {
					return true
				}
			}
		}
	}
	return false
}

// inside calls f for a node and, where it wants them, for those inside.
func (c *cautious) inside(n *sqltext.Node, f func(*sqltext.Node) bool) {
	if n == nil || !f(n) {
		return
	}
	if c.visits++; c.visits > maxVisits { // from each part of a long expression
		c.because("it is too long to be followed")
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

// quiet kinds of nodes raise nothing themselves.
var quiet = []string{
	"A_Const", "A_Star", "Boolean", "BoolExpr", "BooleanTest", "CaseWhen", "ColumnRef", "Float", "Integer", "List", "NamedArgExpr", "NullTest",
	"ParamRef", "ResTarget", "RowExpr", "SQLValueFunction", "SortBy", "String", "GroupingSet", "GroupingFunc", "WindowDef",
}

// expr visits an expression, and tells whether it names a column of a table of its own query, sub-selects left out.
func (c *cautious) expr(n *sqltext.Node, at stand) (own bool) {
	if n.GetNode() == nil || c.reason != "" || slices.Contains(c.vetted, n) {
		return false
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_SubLink:
		c.operators(x.SubLink.OperName)
		if !at.output && !c.alikeTested(x.SubLink, at) {
			c.because("it compares with what may have to be converted first")
		}
		c.expr(x.SubLink.Testexpr, at)
		c.sublink(x.SubLink, at)
		return false
	case *sqltext.Node_ColumnRef:
		m := c.column(x.ColumnRef, at.level)
		if own = m.own; m.calls {
			c.because("it calls a function that is not PostgreSQL's own")
		}
		c.lost = c.lost || (!m.known || m.vague) && !at.output
		if m.asks && !at.output {
			c.because("it asks for a sub-select of a query in FROM, or for a virtual column")
		}
		if at.strict && m.computed && m.stored {
			c.because("a sub-select reads a column that is computed as it is read")
		}
		c.outputs = c.outputs || at.feeds && (m.computed && m.stored || isStar(n) && (at.merged || slices.ContainsFunc(at.items, func(i *source) bool { return i.table != nil && c.computesColumns(i) })))
		if !m.known && at.parent != nil || m.outer && m.computed {
			c.sublinks, c.outputs = true, c.outputs || m.stored
		}
	case *sqltext.Node_FuncCall:
		if !c.plain(x.FuncCall) {
			c.because("it calls a function that is not PostgreSQL's own")
			return false
		}
		if name := lastName(x.FuncCall.Funcname); !at.output && len(x.FuncCall.Args) > 1 && name != "starts_with" && builtin.MayBeLeakproof(name) {
			c.because("it calls a function that is leak-proof, the arguments of which may have to be converted first")
		}
	case *sqltext.Node_A_Expr:
		c.operators(x.AExpr.Name)
		if !at.output && !c.alike(x.AExpr, at) {
			c.because("it compares with what may have to be converted first")
		}
	case *sqltext.Node_SortBy:
		c.operators(x.SortBy.UseOp)
	case *sqltext.Node_A_Indices:
		c.subscripts(x.AIndices, at)
	case *sqltext.Node_TypeCast:
		if !c.known(x.TypeCast.GetTypeName()) {
			c.because("it casts to a type that is not PostgreSQL's own")
			return false
		}
	}
	children(n, func(child *sqltext.Node) { own = c.expr(child, at) || own })
	kind := sqltext.Kind(n)
	passes := own && (n.GetColumnRef() != nil || c.strict(n, at.level)) || c.hasFirm(n, at)
	own = own && c.stays(n, at)
	if !at.output {
		c.leaks(n, at)
	}
	if !slices.Contains(quiet, kind) && !c.harmless(n, at) {
		switch {
		case kind == "A_Indices": // see subscripts
		case kind == "A_ArrayExpr" && !at.output: // which PostgreSQL takes for leak-proof, whatever it is made of (contain_leaked_vars)
			c.because("it may make an array of arrays")
		case at.strict:
			c.because("a sub-select computes what may fail: " + kind)
		case at.output:
		case !own:
			c.because("what may fail names no column of a table beside it: " + kind)
		default:
			c.outputs = c.outputs || at.feeds
		}
	}
	return passes
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
		c.query(query, at.level, true, false)
		return
	}
	switch {
	case s.SubLinkType == sqltext.EXPR_SUBLINK && !(query != nil && (oneRow(query) && c.addsUp(query, at.level) || first(query))):
		c.because("a sub-select that is compared with may have several rows")
		return
	case s.SubLinkType == sqltext.ARRAY_SUBLINK: // of arrays, or a large one
		c.because("a sub-select makes an array")
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

// converted are types with which PostgreSQL compares others by converting these, which may raise an error: numbers to floating point, big
// integers to OIDs, dates and times to each other in lists. 2: a parameter may be one of these however it is declared.
var converted = map[uint32]int{700: 1, 701: 1, 1114: 1, 1184: 1, 26: 2, 24: 2, 2202: 2, 2203: 2, 2204: 2, 2205: 2, 2206: 2, 3734: 2, 3769: 2, 4089: 2, 4096: 2, 4191: 2}

// plainNames are types that a declared parameter can have without being converted to another by a function that may fail.
var plainNames = []string{"bool", "int2", "int4", "int8", "text", "varchar", "bpchar", "uuid", "timestamptz", "jsonb", "json", "bytea"}

// PlainParameter tells the same of an OID: of these types and arrays of them.
func PlainParameter(oid uint32) bool {
	return slices.Contains([]uint32{16, 17, 20, 21, 23, 25, 114, 1042, 1043, 1184, 2950, 3802, 1000, 1005, 1007, 1009, 1014, 1015, 1016, 2951}, oid)
}

// alike tells whether what is compared needs no conversion that may fail, but of columns of this very query, which are put off until the row
// shows. Operands of other operators than comparisons are not asked about: those are not leak-proof.
func (c *cautious) alike(x *sqltext.A_Expr, at stand) bool {
	compares := x.Kind != sqltext.AEXPR_OP && x.Kind != sqltext.AEXPR_LIKE && x.Kind != sqltext.AEXPR_ILIKE && x.Kind != sqltext.AEXPR_SIMILAR || slices.Contains(comparisons, lastName(x.Name))
	switch items := x.Rexpr.GetList().GetItems(); {
	case x.Kind == sqltext.AEXPR_IN: // what names no column of the query becomes an array, the left operand's type considered
		var others []*sqltext.Node
		for _, n := range items {
			if !c.namesOwn(n, at) {
				others = append(others, n)
			} else if !c.alikeAll([]*sqltext.Node{x.Lexpr, n}, compares, at) {
				return false
			}
		}
		if len(others) > 1 && x.Lexpr.GetRowExpr() == nil {
			return c.oneType(append(others, x.Lexpr), at)
		}
		return c.alikeAll(append([]*sqltext.Node{x.Lexpr}, others...), compares, at)
	case x.Kind == sqltext.AEXPR_OP_ANY, x.Kind == sqltext.AEXPR_OP_ALL:
		return c.alikeElements(x, at)
	case items != nil: // BETWEEN
		return !slices.ContainsFunc(items, func(n *sqltext.Node) bool { return !c.alikeAll([]*sqltext.Node{x.Lexpr, n}, compares, at) })
	}
	return c.alikeAll([]*sqltext.Node{x.Lexpr, x.Rexpr}, compares, at)
}

// alikeAll tells the same of operands. compares: of an operator that is, or may be, one of comparison.
func (c *cautious) alikeAll(operands []*sqltext.Node, compares bool, at stand) bool {
	if rows := operands[0].GetRowExpr(); rows != nil { // each column by itself
		for i := range rows.Args {
			var column []*sqltext.Node
			for _, n := range operands {
				if row := n.GetRowExpr(); row == nil || len(row.Args) != len(rows.Args) {
					return false
				} else {
					column = append(column, row.Args[i])
				}
			}
			if !c.alikeAll(column, compares, at) {
				return false
			}
		}
		return true
	}
	kind := 0
	var of uint32
	for _, n := range operands {
		if t := c.typeOf(n, at.level); converted[t] > kind && !isNow(n) {
			kind, of = converted[t], t
		}
	}
	if kind == 0 {
		return !compares || c.alikeUnknown(operands, at)
	}
	for _, n := range operands {
		switch {
		case n.GetAConst() != nil, n.GetTypeCast() != nil && constant(n.GetTypeCast()), isNow(n), n.GetAExpr() != nil && isNow(n.GetAExpr().Lexpr) && c.harmless(n, at), kind == 1 && n.GetParamRef() != nil:
		case n.GetFuncCall() != nil && lastName(n.GetFuncCall().Funcname) == "date_trunc" && c.harmless(n, at):
		case c.typeOf(n, at.level) == of:
		case !at.strict && c.hasOwn(n, at):
			c.outputs = c.outputs || at.feeds
		default:
			return false
		}
	}
	return true
}

// alikeUnknown tells the same of operands of which none is certain to be of a type that others are converted to, though one may be.
func (c *cautious) alikeUnknown(operands []*sqltext.Node, at stand) bool {
	unknown := func(n *sqltext.Node) bool {
		if c.certainOf(n, at) != 0 || n.GetAConst() != nil || n.GetParamRef() != nil || isNow(n) || fixed(n) {
			return false
		}
		return !c.putsOff(n, at)
	}
	n := 0
	for _, operand := range operands {
		if unknown(operand) {
			n++
		}
	}
	for _, operand := range operands {
		switch {
		case n == 0, n == 1 && unknown(operand): // nothing is converted to the type of another
		case operand.GetAConst() != nil, isNow(operand), fixed(operand), slices.Contains(unfailing, c.certainOf(operand, at)):
		case operand.GetParamRef() != nil:
			c.casts = true
		case !at.strict && c.hasOwn(operand, at):
			c.outputs = c.outputs || at.feeds
		default:
			return false
		}
	}
	return true
}

// certainOf is the type of an operand where it is certain, whatever it is; else 0.
func (c *cautious) certainOf(n *sqltext.Node, at stand) uint32 {
	if t := c.typeOf(n, at.level); t != 0 {
		return t
	}
	if raw := c.rawOf(n, at.level); raw != scalar {
		return raw
	}
	return 0
}

// unfailing are types of which every value can be converted to whatever PostgreSQL compares it with.
var unfailing = []uint32{16, 21, 23, 25, 700, 701, 1043, 2950, 3802}

// putsOff tells whether row security puts off whatever an operand is compared with, since its function is not leak-proof and has a column that
// stays.
func (c *cautious) putsOff(n *sqltext.Node, at stand) bool {
	if at.strict {
		return false
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_FuncCall:
		name := lastName(x.FuncCall.Funcname)
		if len(c.snap.TypesNamed("", name)) > 0 || len(c.snap.TypesNamed("pg_catalog", name)) > 0 { // a cast, which may be none at all (func_get_detail of parse_func.c)
			return false
		}
		return !builtin.MayBeLeakproof(name) && (c.firm(n, at) || !c.strict(n, at.level) && c.hasFirm(n, at))
	case *sqltext.Node_A_Expr:
		return x.AExpr.Kind == sqltext.AEXPR_OP && slices.Contains(leaky, lastName(x.AExpr.Name)) && c.firm(n, at)
	}
	return false
}

// leaky are operators of which none by the name is leak-proof.
var leaky = []string{"+", "-", "*", "/", "%", "||", "->", "->>", "#>", "#>>"}

// alikeTested tells the same of what is compared with the rows of a sub-select.
func (c *cautious) alikeTested(s *sqltext.SubLink, at stand) bool {
	if s.Testexpr == nil {
		return true
	}
	tested := []*sqltext.Node{s.Testexpr}
	if row := s.Testexpr.GetRowExpr(); row != nil {
		tested = row.Args
	}
	columns := c.outputsOf(s.GetSubselect().GetSelectStmt(), at.level, "")
	for i, n := range tested {
		t := c.typeOf(n, at.level)
		switch {
		case i < len(columns) && columns[i].oid != 0 && (columns[i].oid == t || t != 0 && converted[t] == 0 && converted[columns[i].oid] == 0):
		case !at.strict && converted[t] == 0 && c.hasOwn(n, at) && (c.certainOf(n, at) != 0 || c.putsOff(n, at) || i < len(columns) && slices.Contains(unfailing, columns[i].oid)):
			c.outputs = c.outputs || at.feeds
		default:
			return false
		}
	}
	return true
}

// hasOwn tells whether an operand names a column of a table of this query where it stays when constants are folded, sub-selects left out.
func (c *cautious) hasOwn(n *sqltext.Node, at stand) (found bool) {
	c.inside(n, func(n *sqltext.Node) bool {
		found = found || n.GetColumnRef() != nil && c.column(n.GetColumnRef(), at.level).own
		found = found || c.hasFirm(n, at)
		return !found && c.strict(n, at.level)
	})
	return found
}

// addsUp tells whether the aggregate that a SELECT has is its own: one over columns of a query outside alone is that one's (check_agglevels_and_constraints of
// PostgreSQL's parse_agg.c).
func (c *cautious) addsUp(s *sqltext.SelectStmt, parent *level) bool {
	own, outer := false, false
	f := s.TargetList[0].GetResTarget().GetVal().GetFuncCall()
	for _, arg := range slices.Concat(f.GetArgs(), f.GetAggOrder(), []*sqltext.Node{f.GetAggFilter()}) {
		c.inside(arg, func(n *sqltext.Node) bool {
			if ref := n.GetColumnRef(); ref != nil {
				m := c.column(ref, c.levelOf(s, parent))
				own, outer = own || m.known && !m.outer, outer || !m.known || m.outer
			}
			outer = outer || n.GetSubLink() != nil
			return true
		})
	}
	return own || !outer
}

// first tells whether a SELECT has one row at most because it says so.
func first(s *sqltext.SelectStmt) bool {
	n := s.GetLimitCount().GetAConst().GetIval()
	return n != nil && n.Ival <= 1 && s.LimitOption == sqltext.LIMIT_OPTION_COUNT
}

// known tells whether a type is PostgreSQL's own, or an enum or one of an extension that is known: nothing of the owner's runs when it is cast to.
func (c *cautious) known(t *sqltext.TypeName) bool {
	schema, name, ok := qualifiedName(t.GetNames())
	if !ok {
		return false
	}
	if (schema == "" || schema == "pg_catalog") && len(c.snap.TypesNamed("pg_catalog", name)) == 1 {
		return true
	}
	found := c.snap.TypesNamed(schema, name)
	return len(found) > 0 && !slices.ContainsFunc(found, func(t *catalog.Type) bool {
		return t.Kind != 'e' && !(t.Kind == 'b' && knownExtension(t.Extension))
	})
}

var comparisons = []string{"=", "<>", "!=", "<", "<=", ">", ">="}

// harmless tells whether something cannot raise an error, by itself; what is inside is asked for itself.
func (c *cautious) harmless(n *sqltext.Node, at stand) bool {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_A_Expr:
		return c.harmlessOperator(x.AExpr, at)
	case *sqltext.Node_TypeCast:
		if constant(x.TypeCast) || c.says(x.TypeCast) {
			return true
		}
		if at.strict || !c.simpleElements(x.TypeCast.Arg, at) || slices.ContainsFunc(x.TypeCast.Arg.GetAArrayExpr().Elements, func(n *sqltext.Node) bool { return n.GetAConst() == nil && !c.hasOwn(n, at) }) {
			return false
		}
		c.outputs = c.outputs || at.feeds
		return true
	case *sqltext.Node_A_Indirection: // a field may be a function that is called like one; see leaks for subscripts
		return !slices.ContainsFunc(x.AIndirection.Indirection, func(n *sqltext.Node) bool { return n.GetAIndices() == nil })
	case *sqltext.Node_FuncCall:
		return c.harmlessCall(x.FuncCall, at)
	case *sqltext.Node_CoalesceExpr:
		return c.uniform(x.CoalesceExpr.Args, at)
	case *sqltext.Node_CaseExpr:
		results := []*sqltext.Node{x.CaseExpr.Defresult}
		for _, when := range x.CaseExpr.Args {
			results = append(results, when.GetCaseWhen().GetResult())
		}
		return x.CaseExpr.Arg == nil && c.uniform(results, at)
	case *sqltext.Node_A_ArrayExpr:
		return c.uniform(x.AArrayExpr.Elements, at)
	}
	return false
}

// uniform tells whether values need no conversion to become one type, and, where they become an array, are no arrays themselves, of which
// all must have the same length. A parameter among several may be anything, if a type is declared for it.
func (c *cautious) uniform(values []*sqltext.Node, at stand) bool {
	var of uint32
	for _, n := range values {
		switch {
		case n.GetNode() == nil, n.GetAConst() != nil:
			continue
		case n.GetParamRef() != nil:
			c.casts = c.casts || len(values) > 1
			continue
		}
		t := c.typeOf(n, at.level)
		if len(values) > 1 && (t == 0 || slices.Contains(arrays, t)) || t == 0 && at.strict || of != 0 && t != of && (converted[t] > 0 || converted[of] > 0) {
			return false
		}
		of = t
	}
	return true
}

// arrays are the types of arrays whose values can be compared.
var arrays = []uint32{1005, 1007, 1009, 1016, 2951}

func (c *cautious) harmlessOperator(x *sqltext.A_Expr, at stand) bool {
	schema, name, ok := qualifiedName(x.Name)
	if !ok || schema != "" && schema != "pg_catalog" {
		return false
	}
	if x.Kind == sqltext.AEXPR_OP && slices.Contains([]string{"+", "-", "*"}, name) && number(x.Lexpr) && number(x.Rexpr) {
		return true // as the plan is made
	}
	if x.Kind == sqltext.AEXPR_OP && (name == "+" || name == "-") && isNow(x.Lexpr) {
		if v := x.Lexpr.GetSqlvalueFunction(); v != nil && v.Op == sqltext.SVFOP_CURRENT_DATE && number(x.Rexpr) {
			days := x.Rexpr.GetAConst().GetIval().GetIval()
			return -1_000_000 < days && days < 1_000_000
		}
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
	case *sqltext.Node_TypeCast:
		return c.harmless(n, at)
	case *sqltext.Node_List:
		return !slices.ContainsFunc(x.List.Items, func(n *sqltext.Node) bool { return !c.comparable(n, at) })
	case *sqltext.Node_A_ArrayExpr:
		return !slices.ContainsFunc(x.AArrayExpr.Elements, func(n *sqltext.Node) bool { return !c.comparable(n, at) })
	case *sqltext.Node_RowExpr:
		return !slices.ContainsFunc(x.RowExpr.Args, func(n *sqltext.Node) bool { return !c.comparable(n, at) })
	case *sqltext.Node_FuncCall, *sqltext.Node_A_Expr:
		if isNow(n) || shallow(n) && c.harmless(n, at) {
			return true
		}
	}
	return c.typeOf(n, at.level) != 0
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

// fixed tells whether an argument is a constant, of which functions that are IMMUTABLE are computed as the plan is made.
func fixed(n *sqltext.Node) bool {
	return n.GetAConst() != nil || n.GetTypeCast() != nil && constant(n.GetTypeCast())
}

func number(n *sqltext.Node) bool { return n.GetAConst().GetIval() != nil }

func isNow(n *sqltext.Node) bool {
	if v := n.GetSqlvalueFunction(); v != nil {
		return v.Op == sqltext.SVFOP_CURRENT_DATE || v.Op == sqltext.SVFOP_CURRENT_TIMESTAMP || v.Op == sqltext.SVFOP_LOCALTIMESTAMP
	}
	f := n.GetFuncCall()
	return f != nil && len(f.Args) == 0 && lastName(f.Funcname) == "now"
}

func (c *cautious) harmlessCall(f *sqltext.FuncCall, at stand) bool {
	if f.AggWithinGroup || f.FuncVariadic || f.AggDistinct || len(f.AggOrder) > 0 || f.Over != nil { // the bounds of a frame may be negative
		return false
	}
	switch lastName(f.Funcname) {
	case "now":
		return len(f.Args) == 0
	case "count":
		return f.AggStar || len(f.Args) == 1
	case "min", "max":
		return len(f.Args) == 1 && c.comparable(f.Args[0], at)
	case "sum", "avg": // of integers: what they add up in has room for more rows than there can be
		return len(f.Args) == 1 && slices.Contains([]uint32{20, 21, 23}, c.typeOf(f.Args[0], at.level))
	case "to_tsquery", "plainto_tsquery", "phraseto_tsquery", "websearch_to_tsquery", "to_tsvector":
		return len(f.Args) == 2 && fixed(f.Args[0]) && fixed(f.Args[1])
	case "daterange", "int4range", "int8range", "numrange", "tsrange", "tstzrange": // a cast may be to a type that is converted as the call runs
		return !slices.ContainsFunc(f.Args, func(n *sqltext.Node) bool { return n.GetAConst() == nil })
	case "lower", "upper", "similar_to_escape", "like_escape", "make_date":
		return !slices.ContainsFunc(f.Args, func(n *sqltext.Node) bool { return !fixed(n) })
	case "date_trunc":
		return len(f.Args) == 2 && f.Args[0].GetAConst().GetSval() != nil && slices.Contains([]string{"hour", "day", "week", "month", "quarter", "year"}, f.Args[0].GetAConst().GetSval().GetSval()) && isNow(f.Args[1])
	}
	return false
}

// byMention are the references by where they stand.
func (w *walker) byMention() map[*sqltext.RangeVar]*reference {
	of := map[*sqltext.RangeVar]*reference{}
	for _, ref := range w.references {
		of[ref.rangeVar] = ref
	}
	return of
}

// careful notes which statements of a text are planned with care.
func (w *walker) careful(tree *sqltext.ParseResult, result *Result) {
	of := w.byMention()
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
