package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// aggregation is a SELECT that aggregates over a table some of whose rows count in groups only.
type aggregation struct {
	query *sqltext.SelectStmt
	ref   *reference // the first mention of the table in it
	item  *fromItem  // the table, if the query's FROM has it and nothing else; else nil
}

// noteSingleRowRead notes a read of a table some of whose rows count in groups only. An alias that begins with visible_
// says that the reader means the rows that show one by one, if some can.
func (w *walker) noteSingleRowRead(ref *reference) {
	if _, a := w.groupedTable(ref); a != nil && (a.NoSingleRows || !meansVisibleRows(ref)) {
		w.singleRowReads = append(w.singleRowReads, ref)
	}
}

// visibleAlias begins an alias of a table of which only the rows that show are meant.
const visibleAlias = "visible_"

func meansVisibleRows(ref *reference) bool {
	return strings.HasPrefix(ref.rangeVar.GetAlias().GetAliasname(), visibleAlias)
}

// groupedTable returns the table some of whose rows count in groups only, if a reference reads rows of one: the table
// itself, a part of it, or a view over it.
func (w *walker) groupedTable(ref *reference) (catalog.Name, *policy.Aggregate) {
	switch {
	case ref.fragment == nil:
		return catalog.Name{}, nil
	case ref.fragment.aggregate != nil:
		return ref.name, ref.fragment.aggregate
	}
	for _, tables := range [][]catalog.Name{ref.fragment.partOf, ref.fragment.viewTables} {
		for _, name := range tables {
			if f := w.fragments[name]; f != nil && f.aggregate != nil {
				return name, f.aggregate
			}
		}
	}
	return catalog.Name{}, nil
}

// noteAggregation notes a SELECT that aggregates over such a table, itself or through sub-selects and WITH queries.
// singleRowReads are the reads in it. An aggregate over the rows that show would look like one over the table.
func (w *walker) noteAggregation(s *sqltext.SelectStmt, own *scope, singleRowReads []*reference) {
	if len(singleRowReads) == 0 || !w.isGrouped(s) {
		return
	}
	noted := aggregation{query: s, ref: singleRowReads[0]}
	if len(own.items) == 1 && own.items[0].ref == noted.ref {
		noted.item = own.items[0]
	}
	w.aggregations = append(w.aggregations, noted)
}

// isGrouped tells whether a SELECT has groups or aggregates. A SELECT that it does not recognise reads the visible
// rows.
func (w *walker) isGrouped(s *sqltext.SelectStmt) bool {
	if len(s.GroupClause) > 0 || s.HavingClause != nil {
		return true
	}
	for _, list := range [][]*sqltext.Node{s.TargetList, s.SortClause, s.DistinctClause} {
		for _, n := range list {
			if w.callsAggregate(n) {
				return true
			}
		}
	}
	return false
}

// callsAggregate looks for the call of an aggregate outside of sub-selects.
func (w *walker) callsAggregate(tree proto.Message) (found bool) {
	sqltext.Walk(tree, func(m proto.Message) bool {
		switch n := m.(type) {
		case *sqltext.SelectStmt:
			return false
		case *sqltext.JsonObjectAgg, *sqltext.JsonArrayAgg:
			found = true
		case *sqltext.FuncCall:
			found = found || n.Over == nil && w.isAggregate(n)
		}
		return !found
	})
	return found
}

func (w *walker) isAggregate(f *sqltext.FuncCall) bool {
	schema, name, ok := qualifiedName(f.Funcname)
	if !ok {
		return false
	}
	if schema != "pg_catalog" && slices.ContainsFunc(w.snap.FunctionsNamed(schema, name),
		func(f *catalog.Function) bool { return f.Kind == 'a' }) {
		return true
	}
	return f.AggStar || f.AggDistinct || f.AggFilter != nil || f.AggWithinGroup || len(f.AggOrder) > 0 ||
		catalogAggregates[name]
}

// catalogAggregates are the aggregates of pg_catalog.
var catalogAggregates = setOf(`any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp
	cume_dist dense_rank every json_agg json_agg_strict json_object_agg json_object_agg_strict json_object_agg_unique
	json_object_agg_unique_strict jsonb_agg jsonb_agg_strict jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique
	jsonb_object_agg_unique_strict max min mode percent_rank percentile_cont percentile_disc range_agg range_intersect_agg rank
	regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp
	string_agg sum var_pop var_samp variance xmlagg`)

// cellFunctions are the functions that such a statement may apply to dimensions and to what its aggregates return. None
// is volatile: a volatile one could choose single rows.
var cellFunctions = setOf(`abs btrim ceil ceiling concat concat_ws date_part date_trunc div
	extract floor format initcap left length lower lpad
	ltrim mod now power replace right round rpad rtrim sign split_part sqrt statement_timestamp strpos substr substring to_char timezone
	transaction_timestamp trunc upper`)

func setOf(words string) map[string]bool {
	out := map[string]bool{}
	for _, word := range strings.Fields(words) {
		out[word] = true
	}
	return out
}

// aggregateStatement sends the text to the group view if that can answer its aggregate, and refuses any other aggregate
// over the table. It returns false if there is none, or if it refuses.
func (w *walker) aggregateStatement(tree *sqltext.ParseResult, signable bool) bool {
	if w.refused != nil {
		return false
	}
	if len(w.aggregations) == 0 {
		w.refuseSingleRows()
		return false
	}
	first := w.aggregations[0]
	table, counted := w.groupedTable(first.ref)
	j := &aggregateCheck{walker: w, ref: first.ref, table: table, policy: counted,
		at: -1, fixedDimensions: map[string]bool{}}
	if first.item != nil {
		j.name = first.item.name
	}
	switch s := tree.Stmts[0].GetStmt().GetSelectStmt(); {
	case w.isView:
		w.refuse(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
			"a view cannot aggregate over %q, which the policy lets count in groups", table.String()).
			WithHint("Such an answer is signed for one statement, and a view is read by many. Leave the view out " +
				"of the policy, and let agents send its query themselves."))
		return false
	case counted.NoSingleRows && meansVisibleRows(first.ref):
		j.reject(j.ref.start, "no row of it shows one by one")
	case first.ref.fragment.aggregate == nil:
		j.reject(j.ref.start, "%s has only the rows that show one by one", j.ref.name.SQL())
	case len(tree.Stmts) != 1:
		j.reject(-1, "it is one of several statements of a message")
	case s != first.query || len(w.aggregations) != 1:
		j.reject(-1, "it is a part of another statement")
	case len(w.references) != 1:
		j.reject(-1, "it reads something besides")
	case first.item == nil || j.ref.node == nil:
		j.reject(j.ref.start, "a sub-select or WITH query has only the rows that show one by one")
	case !strings.EqualFold(w.source.String(w.source.Tokens[0]), "select"):
		j.reject(-1, "it does not begin with SELECT")
	case j.ref.notInjectedBecause != mayInject:
		j.reject(j.ref.start, "the table stands with %s", j.ref.notInjectedBecause)
	case w.mode == RLS:
		w.refuse(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
			"aggregates over %q cannot be answered at this moment", j.ref.name.String()).
			WithHint("Their texts must be signed, and this session cannot have signatures now. Try again. If it " +
				"stays so, pgconsent doctor says why."))
		return false
	case !signable:
		j.reject(-1, `it has a backslash outside E'' strings`)
	case w.valuesRunUserCode(): // they would see a signed text
		j.reject(j.ref.start, "functions of others compare or convert its values")
	default:
		j.query(s)
	}
	if j.reason != "" {
		w.refuseAt(j.refusal(), j.at)
		return false
	}
	j.rewrite(first.query)
	return w.refused == nil
}

// aggregateCheck checks an aggregate that the group view answers, of cells only: of how many rows each cell has, and of
// the sums of its measures. So dimensions may stand anywhere, and other columns only inside certain aggregates.
type aggregateCheck struct {
	*walker
	ref    *reference
	table  catalog.Name // the table, which ref is, or has rows of
	name   string       // the name by which columns of the table are qualified
	policy *policy.Aggregate

	reason          string // the first reason against it
	at              int32
	fixedDimensions map[string]bool // the dimensions that the query groups by, or compares with a constant
	hasGroupingSets bool            // it has grouping sets
	subjectsAt      int32           // where it counts subjects, if it does
	countsSubjects  bool
	utcCalls        []*sqltext.FuncCall // calls of date_trunc that need the time zone UTC
}

func (j *aggregateCheck) reject(at int32, format string, args ...any) {
	if j.reason == "" {
		j.reason, j.at = fmt.Sprintf(format, args...), at
	}
}

func (j *aggregateCheck) refusal() *sqlstate.Error {
	hint := groupsHint(j.policy)
	if !j.policy.NoSingleRows {
		hint += " To aggregate the rows that you see one by one, give the table an alias that says so: FROM " +
			catalog.QuoteIdent(j.ref.name.Name) + " AS " + catalog.QuoteIdent(visibleAlias+j.ref.name.Name) + "."
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonConstruct,
		"this aggregate over %q is not available to agents: %s", j.table.String(), j.reason).WithHint("%s", hint)
}

// groupsHint says what aggregates over a table are answered.
func groupsHint(a *policy.Aggregate) string {
	var dimensions, measures []string
	for _, d := range a.Dimensions {
		name := catalog.QuoteIdent(d.Column)
		if d.Unit != "" {
			name = "date_trunc('" + d.Unit + "', " + name + ")"
		}
		dimensions = append(dimensions, name)
	}
	for _, m := range a.Measures {
		measures = append(measures, catalog.QuoteIdent(m.Column))
	}
	which := "Some rows"
	if a.NoSingleRows {
		which = "The rows"
	}
	hint := which + " of this table count in groups only, of at least " + fmt.Sprint(a.MinSubjects) +
		" subjects. An aggregate over it is a statement of its own: count(*)"
	if len(measures) > 0 {
		hint += ", and count, sum and avg of " + strings.Join(measures, ", ")
	}
	if len(dimensions) > 0 {
		hint += "; grouped by, and under conditions on, " + strings.Join(dimensions, ", ")
	}
	return hint + "."
}

// refuseSingleRows refuses to read single rows of a table of which none shows.
func (w *walker) refuseSingleRows() {
	for _, ref := range w.singleRowReads {
		table, a := w.groupedTable(ref)
		switch {
		case !a.NoSingleRows:
		case w.isView:
			w.refuse(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
				"a view cannot read %q, whose rows count in groups only", table.String()).
				WithHint("Leave the view out of the policy: agents would see it empty."))
		default:
			w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonConstruct,
				"single rows of %q are not available to agents", table.String()).
				WithHint("%s", groupsHint(a)), ref.start)
		}
	}
}

func (j *aggregateCheck) query(s *sqltext.SelectStmt) {
	switch {
	case s.WithClause != nil, s.Op != sqltext.SETOP_NONE, len(s.ValuesLists) > 0, s.IntoClause != nil:
		j.reject(-1, "it has a WITH query, or is a set operation")
	case len(s.LockingClause) > 0:
		j.reject(-1, "it locks rows")
	case len(s.WindowClause) > 0:
		j.reject(-1, "it has windows")
	}
	outputs := map[string]bool{}
	for _, n := range s.TargetList {
		t := n.GetResTarget()
		if isStar(t.GetVal()) {
			j.reject(t.GetVal().GetColumnRef().GetLocation(), "* asks for single rows")
			return
		}
		j.expr(t.GetVal())
		outputs[outputName(t)] = true
	}
	j.expr(s.WhereClause)
	j.noteFixedBy(s.WhereClause)
	for _, n := range s.GroupClause {
		j.groupKey(n, s.TargetList, outputs)
	}
	j.expr(s.HavingClause)
	for _, n := range s.SortClause {
		if len(n.GetSortBy().GetUseOp()) > 0 {
			j.reject(n.GetSortBy().GetLocation(), "ORDER BY ... USING")
		}
		j.sortKey(n.GetSortBy().GetNode(), outputs)
	}
	for i, n := range s.DistinctClause {
		if i > 0 || n != nil && n.Node != nil { // else a plain DISTINCT
			j.sortKey(n, outputs)
		}
	}
	if s.LimitCount != nil && s.LimitCount.Node != nil {
		j.expr(s.LimitCount)
	}
	if s.LimitOffset != nil && s.LimitOffset.Node != nil {
		j.expr(s.LimitOffset)
	}
	if j.countsSubjects {
		for _, d := range j.policy.Dimensions {
			if j.hasGroupingSets || !j.fixedDimensions[d.Column] {
				j.reject(j.subjectsAt,
					"subjects can be counted where each group is one value of every dimension, and %s is none of "+
						"the keys", catalog.QuoteIdent(d.Column))
			}
		}
	}
}

// sortKey checks a sort key: the name of an output column, or an expression.
func (j *aggregateCheck) sortKey(n *sqltext.Node, outputs map[string]bool) {
	if fields := n.GetColumnRef().GetFields(); len(fields) == 1 && outputs[fields[0].GetString_().GetSval()] {
		return
	}
	j.expr(n)
}

// groupKey checks a key of GROUP BY.
func (j *aggregateCheck) groupKey(n *sqltext.Node, targets []*sqltext.Node, outputs map[string]bool) {
	if set := n.GetGroupingSet(); set != nil {
		j.hasGroupingSets = true
		for _, part := range set.Content {
			j.groupKey(part, targets, outputs)
		}
		return
	}
	if row := n.GetRowExpr(); row != nil {
		for _, part := range row.Args {
			j.groupKey(part, targets, outputs)
		}
		return
	}
	if i := int(n.GetAConst().GetIval().GetIval()); i >= 1 && i <= len(targets) {
		j.noteFixed(targets[i-1].GetResTarget().GetVal())
		return
	}
	if fields := n.GetColumnRef().GetFields(); len(fields) == 1 {
		name := fields[0].GetString_().GetSval()
		if j.policy.Dimension(name) == nil && j.policy.Measure(name) == nil && name != j.policy.Subject && outputs[name] {
			for _, t := range targets {
				if outputName(t.GetResTarget()) == name {
					j.noteFixed(t.GetResTarget().GetVal())
				}
			}
			return
		}
	}
	j.expr(n)
	j.noteFixed(n)
}

// noteFixed notes that a group has one value of a dimension, if the expression is one.
func (j *aggregateCheck) noteFixed(n *sqltext.Node) {
	if d := j.dimension(n); d != nil {
		j.fixedDimensions[d.Column] = true
	}
}

// dimension returns the dimension that an expression is, at its finest; nil if it is none.
func (j *aggregateCheck) dimension(n *sqltext.Node) *policy.Dimension {
	if f := n.GetFuncCall(); f != nil && len(f.Args) == 2 {
		if _, name, _ := qualifiedName(f.Funcname); name != "date_trunc" {
			return nil
		}
		name, ok := j.column(f.Args[1].GetColumnRef())
		d := j.policy.Dimension(name)
		if unit, constant := constantString(f.Args[0]); ok && constant && d != nil && d.Unit == unit {
			return d
		}
		return nil
	}
	if name, ok := j.column(n.GetColumnRef()); ok {
		if d := j.policy.Dimension(name); d != nil && d.Unit == "" {
			return d
		}
	}
	return nil
}

// noteFixedBy notes the dimensions that must equal a constant by a condition.
func (j *aggregateCheck) noteFixedBy(n *sqltext.Node) {
	if b := n.GetBoolExpr(); b != nil && b.Boolop == sqltext.AND_EXPR {
		for _, part := range b.Args {
			j.noteFixedBy(part)
		}
		return
	}
	x := n.GetAExpr()
	if x == nil || x.Kind != sqltext.AEXPR_OP {
		return
	}
	if _, name, _ := qualifiedName(x.Name); name == "=" && x.Rexpr.GetAConst() != nil {
		j.noteFixed(x.Lexpr)
	}
}

// column returns the name of the table's column that a reference means.
func (j *aggregateCheck) column(c *sqltext.ColumnRef) (string, bool) {
	switch fields := c.GetFields(); len(fields) {
	case 1:
		return fields[0].GetString_().GetSval(), fields[0].GetString_() != nil
	case 2:
		if fields[0].GetString_().GetSval() == j.name && fields[1].GetString_() != nil {
			return fields[1].GetString_().GetSval(), true
		}
	}
	return "", false
}

func (j *aggregateCheck) exprs(nodes []*sqltext.Node) {
	for _, n := range nodes {
		j.expr(n)
	}
}

// expr checks an expression. Its default arm rejects.
func (j *aggregateCheck) expr(n *sqltext.Node) {
	if n == nil || j.reason != "" {
		return
	}
	switch n := n.Node.(type) {
	case *sqltext.Node_ColumnRef:
		j.reference(n.ColumnRef)
	case *sqltext.Node_ParamRef, *sqltext.Node_A_Const:
	case *sqltext.Node_SQLValueFunction:
		switch n.SqlvalueFunction.Op {
		case sqltext.SVFOP_CURRENT_DATE, sqltext.SVFOP_CURRENT_TIMESTAMP, sqltext.SVFOP_LOCALTIMESTAMP:
		default:
			j.reject(-1, "CURRENT_USER and its like")
		}
	case *sqltext.Node_TypeCast:
		j.expr(n.TypeCast.Arg)
	case *sqltext.Node_A_Expr:
		j.expr(n.AExpr.Lexpr)
		j.expr(n.AExpr.Rexpr)
	case *sqltext.Node_List:
		j.exprs(n.List.Items)
	case *sqltext.Node_A_ArrayExpr:
		j.exprs(n.AArrayExpr.Elements)
	case *sqltext.Node_BoolExpr:
		j.exprs(n.BoolExpr.Args)
	case *sqltext.Node_NullTest:
		j.expr(n.NullTest.Arg)
	case *sqltext.Node_BooleanTest:
		j.expr(n.BooleanTest.Arg)
	case *sqltext.Node_CaseExpr:
		j.expr(n.CaseExpr.Arg)
		j.exprs(n.CaseExpr.Args)
		j.expr(n.CaseExpr.Defresult)
	case *sqltext.Node_CaseWhen:
		j.expr(n.CaseWhen.Expr)
		j.expr(n.CaseWhen.Result)
	case *sqltext.Node_CoalesceExpr:
		j.exprs(n.CoalesceExpr.Args)
	case *sqltext.Node_MinMaxExpr:
		j.exprs(n.MinMaxExpr.Args)
	case *sqltext.Node_GroupingFunc:
		j.exprs(n.GroupingFunc.Args)
	case *sqltext.Node_FuncCall:
		j.call(n.FuncCall)
	case *sqltext.Node_SubLink:
		j.reject(n.SubLink.Location, "it has a sub-select")
	default:
		j.reject(-1, "%s is not for aggregates", sqltext.Kind(&sqltext.Node{Node: n}))
	}
}

// reference checks a column outside of aggregates.
func (j *aggregateCheck) reference(c *sqltext.ColumnRef) {
	name, ok := j.column(c)
	quoted := catalog.QuoteIdent(name)
	d := j.policy.Dimension(name)
	switch {
	case !ok:
		j.reject(c.Location, "it names something other than a column of the table")
	case d != nil && d.Unit == "":
	case d != nil:
		j.reject(c.Location, "%s stands as date_trunc('%s', %s) only", quoted, d.Unit, quoted)
	case j.policy.Measure(name) != nil:
		j.reject(c.Location, "%s stands inside count, sum and avg only", quoted)
	case name == j.policy.Subject:
		j.reject(c.Location, "%s stands inside count only", quoted)
	default:
		j.reject(c.Location, "%s is neither a dimension nor a measure", quoted)
	}
}

func (j *aggregateCheck) call(f *sqltext.FuncCall) {
	schema, name, ok := qualifiedName(f.Funcname)
	switch {
	case !ok || schema != "" && schema != "pg_catalog" || schema == "" && !j.meansCatalogFunction(name, f):
		j.reject(f.Location, "function %s is not for aggregates", name)
	case f.Over != nil:
		j.reject(f.Location, "it has windows")
	case f.AggWithinGroup, f.FuncVariadic, len(f.AggOrder) > 0:
		j.reject(f.Location, "WITHIN GROUP, VARIADIC, or an order inside %s", name)
	case name == "count" || name == "sum" || name == "avg":
		j.aggregate(name, f)
	case j.isAggregate(f):
		j.reject(f.Location, "%s is not available, only count, sum and avg are", name)
	case !cellFunctions[name]:
		j.reject(f.Location, "function %s is not for aggregates", name)
	case name == "date_trunc" && j.checkTruncate(f):
	default:
		j.exprs(f.Args)
	}
}

// meansCatalogFunction tells whether a bare name means PostgreSQL's own function. Where extensions and owners have
// others of that name, the types at hand decide: here they are PostgreSQL's own, and sum and avg have functions for
// exactly the types of measures. What the name means is then written out.
func (j *aggregateCheck) meansCatalogFunction(name string, f *sqltext.FuncCall) bool {
	others := slices.DeleteFunc(slices.Clone(j.snap.FunctionsNamed("", name)),
		func(other *catalog.Function) bool { return !takesArguments(other, f) })
	if len(others) == 0 {
		return len(j.snap.FunctionsNamed("", name)) == 0 || j.snap.HasCatalogFunction(name) // the walk wrote it out
	}
	ofMeasure := false
	if (name == "sum" || name == "avg") && len(f.Args) == 1 {
		column, isColumn := j.column(f.Args[0].GetColumnRef())
		ofMeasure = isColumn && j.policy.Measure(column) != nil
	}
	if !ofMeasure && slices.ContainsFunc(others, func(other *catalog.Function) bool { return !j.takesOtherTypes(other) }) ||
		!j.snap.HasCatalogFunction(name) || slices.ContainsFunc(f.Args, j.castsToOtherTypes) {
		return false
	}
	j.qualify(f, catalog.Name{Schema: "pg_catalog", Name: name})
	return true
}

// takesOtherTypes tells whether a function is an extension's, for a type of the extension's own.
func (j *aggregateCheck) takesOtherTypes(f *catalog.Function) bool {
	return extensionFunctions.allows(f.Extension, f.Name.Name) && slices.ContainsFunc(f.ArgTypes, func(name string) bool {
		return j.isOtherType("", name[strings.LastIndexByte(name, '.')+1:])
	})
}

// isOtherType tells whether a name may mean a type that is not of pg_catalog.
func (j *aggregateCheck) isOtherType(schema, name string) bool {
	return schema != "pg_catalog" && slices.ContainsFunc(j.snap.TypesNamed(schema, name),
		func(t *catalog.Type) bool { return t.Name.Schema != "pg_catalog" })
}

// castsToOtherTypes tells whether an expression makes a value of a type that is not PostgreSQL's own.
func (j *aggregateCheck) castsToOtherTypes(n *sqltext.Node) (found bool) {
	sqltext.Walk(n, func(m proto.Message) bool {
		if t, ok := m.(*sqltext.TypeName); ok {
			schema, name, ok := qualifiedName(t.Names)
			found = found || !ok || j.isOtherType(schema, name)
		}
		return !found
	})
	return found
}

// checkTruncate checks date_trunc('month', dimension). Cells are cut in UTC, so the call must be, too.
func (j *aggregateCheck) checkTruncate(f *sqltext.FuncCall) bool {
	if len(f.Args) != 2 {
		return false
	}
	name, ok := j.column(f.Args[1].GetColumnRef())
	d := j.policy.Dimension(name)
	if !ok || d == nil || d.Unit == "" {
		return false
	}
	unit, constant := constantString(f.Args[0])
	if !constant || !slices.Contains(d.Units(), unit) {
		j.reject(f.Location, "%s can be truncated to %s", catalog.QuoteIdent(name), strings.Join(d.Units(), ", "))
	}
	if strings.HasSuffix(d.Type, "with time zone") {
		j.utcCalls = append(j.utcCalls, f)
	}
	return true
}

func (j *aggregateCheck) aggregate(name string, f *sqltext.FuncCall) {
	j.expr(f.AggFilter)
	switch {
	case f.AggStar:
		if name != "count" || len(f.Args) > 0 {
			j.reject(f.Location, "%s(*)", name)
		}
		return
	case len(f.Args) != 1:
		j.reject(f.Location, "%s takes one argument", name)
		return
	}
	column, isColumn := j.column(f.Args[0].GetColumnRef())
	switch {
	case isColumn && column == j.policy.Subject && name == "count":
		if f.AggDistinct && !j.countsSubjects {
			j.countsSubjects, j.subjectsAt = true, f.Location
		}
	case f.AggDistinct && name != "count":
		j.reject(f.Location, "DISTINCT inside %s", name)
	case isColumn && j.policy.Measure(column) != nil:
		if f.AggDistinct {
			j.reject(f.Location, "how many values %s has is not available", catalog.QuoteIdent(column))
		}
	case name == "count":
		j.expr(f.Args[0])
	default:
		j.reject(f.Location, "%s is of a measure, as it is", name)
	}
}

// rewrite makes the edits: the view in place of the table, the condition that a group is large enough, and UTC.
func (j *aggregateCheck) rewrite(s *sqltext.SelectStmt) {
	source := j.source
	i := source.At(j.ref.start)
	j.substituteView(j.ref, predicate.GroupView(j.ref.name))
	condition := fmt.Sprintf("pg_catalog.count(DISTINCT %s.%s) OPERATOR(pg_catalog.>=) %d",
		catalog.QuoteIdent(j.name), catalog.QuoteIdent(j.policy.Subject), j.policy.MinSubjects)
	tree := parseExpression(condition)
	if tree == nil {
		j.refuse(sqlstate.From(errPolicyExpression))
		return
	}
	switch keyword, end := source.Having(i); {
	case keyword < 0:
		j.replace(end, end, " HAVING "+condition, func() { s.HavingClause = tree })
	default:
		start := source.Tokens[keyword].End
		j.replace(start, start, " "+condition+" AND (", func() {
			theirs := s.HavingClause
			s.HavingClause = &sqltext.Node{Node: &sqltext.Node_BoolExpr{BoolExpr: &sqltext.BoolExpr{
				Boolop: sqltext.AND_EXPR, Args: []*sqltext.Node{tree, theirs},
			}}}
		})
		j.replace(end, end, ")", func() {})
	}
	for _, f := range j.utcCalls {
		open := source.At(f.Location)
		for open >= 0 && open < len(source.Tokens) && source.Kind(open) != sqltext.OpenParen {
			open++
		}
		last := source.Closing(open)
		if last < 0 {
			j.refuse(refusal("FuncCall.location"))
			return
		}
		at := source.Tokens[last].Start
		j.replace(at, at, ", 'UTC'", func() {
			f.Args = append(f.Args, stringConstant("UTC"))
		})
	}
	j.needsSignature = true
}
