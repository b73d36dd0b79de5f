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

// aggregation is a SELECT that aggregates over a table with rows that agents see only as part of group results.
type aggregation struct {
	query *sqltext.SelectStmt
	ref   *reference // the first mention of the table in the SELECT
	item  *fromItem  // the FROM item of that table, if the query's FROM has no other item; else nil
}

// noteSingleRowRead notes that a statement reads a table with rows that agents see only in group results. With an alias
// that begins with visible_, the agent asks for the rows that it may see one by one, if there are any.
func (w *walker) noteSingleRowRead(ref *reference) {
	if _, a := w.groupedTable(ref); a != nil && (a.NoSingleRows || !meansVisibleRows(ref)) {
		w.singleRowReads = append(w.singleRowReads, ref)
	}
}

// visibleAlias begins the aliases by which an agent asks only for the rows of a table that it may see one by one.
const visibleAlias = "visible_"

func meansVisibleRows(ref *reference) bool {
	return strings.HasPrefix(ref.rangeVar.GetAlias().GetAliasname(), visibleAlias)
}

// groupedTable returns the table that a reference reads, with its aggregate rule, if agents see some of its rows only
// in group results. The reference may name the table itself, a partition or child of it, or a view over it.
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

// noteAggregation notes a SELECT that aggregates over a table with rows that agents see only in group results. It may
// read the table directly or through sub-selects and WITH queries; singleRowReads are these reads. Otherwise an agent
// could take an aggregate over the visible rows for one over the whole table.
func (w *walker) noteAggregation(s *sqltext.SelectStmt, ownScope *scope, singleRowReads []*reference) {
	if len(singleRowReads) == 0 || !w.isGrouped(s) {
		return
	}
	aggregation := aggregation{query: s, ref: singleRowReads[0]}
	if len(ownScope.items) == 1 && ownScope.items[0].ref == aggregation.ref {
		aggregation.item = ownScope.items[0]
	}
	w.aggregations = append(w.aggregations, aggregation)
}

// isGrouped tells whether a SELECT has groups or aggregates. If it calls an aggregate that this function does not
// recognize, it reads only the visible rows.
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

// callsAggregate tells whether a tree calls an aggregate outside of sub-selects.
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

// catalogAggregates are the aggregate and ranking functions of pg_catalog.
var catalogAggregates = setOf(`any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp
	cume_dist dense_rank every json_agg json_agg_strict json_object_agg json_object_agg_strict json_object_agg_unique
	json_object_agg_unique_strict jsonb_agg jsonb_agg_strict jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique
	jsonb_object_agg_unique_strict max min mode percent_rank percentile_cont percentile_disc range_agg range_intersect_agg rank
	regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp
	string_agg sum var_pop var_samp variance xmlagg`)

// cellFunctions are the functions that an aggregate statement may apply to dimensions and to the results of its
// aggregates. None of them is volatile: a volatile function could choose single rows.
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

// useGroupView makes the text read the group view, if the view can answer the text's aggregate. Other aggregates over
// the table are refused. The result is false if the text has no aggregate, or if the aggregate is refused.
func (w *walker) useGroupView(tree *sqltext.ParseResult, signable bool) bool {
	if w.refused != nil {
		return false
	}
	if len(w.aggregations) == 0 {
		w.refuseSingleRows()
		return false
	}
	firstAggregation := w.aggregations[0]
	table, counted := w.groupedTable(firstAggregation.ref)
	j := &aggregateCheck{walker: w, ref: firstAggregation.ref, table: table, policy: counted,
		position: -1, fixedDimensions: map[string]bool{}}
	if firstAggregation.item != nil {
		j.name = firstAggregation.item.name
	}
	switch s := tree.Stmts[0].GetStmt().GetSelectStmt(); {
	case w.isView:
		w.refuse(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
			"a view cannot aggregate over %q, which the policy lets count in groups", table.String()).
			WithHint("Such an answer is signed for one statement, and a view is read by many. Leave the view out " +
				"of the policy, and let agents send its query themselves."))
		return false
	case counted.NoSingleRows && meansVisibleRows(firstAggregation.ref):
		j.rejectAt(j.ref.start, "no row of it shows one by one")
	case firstAggregation.ref.fragment.aggregate == nil:
		j.rejectAt(j.ref.start, "%s has only the rows that show one by one", j.ref.name.SQL())
	case len(tree.Stmts) != 1:
		j.rejectAt(-1, "it is one of several statements of a message")
	case s != firstAggregation.query || len(w.aggregations) != 1:
		j.rejectAt(-1, "it is a part of another statement")
	case len(w.references) != 1:
		j.rejectAt(-1, "it reads something besides")
	case firstAggregation.item == nil || j.ref.node == nil:
		j.rejectAt(j.ref.start, "a sub-select or WITH query has only the rows that show one by one")
	case !strings.EqualFold(w.source.TokenText(w.source.Tokens[0]), "select"):
		j.rejectAt(-1, "it does not begin with SELECT")
	case j.ref.notInjectedBecause != mayInject:
		j.rejectAt(j.ref.start, "the table stands with %s", j.ref.notInjectedBecause)
	case w.mode == RowSecurityMode:
		w.refuse(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
			"aggregates over %q cannot be answered at this moment", j.ref.name.String()).
			WithHint("Their texts must be signed, and this session cannot have signatures now. Try again. If it " +
				"stays so, pgconsent doctor says why."))
		return false
	case !signable:
		j.rejectAt(-1, `it has a backslash outside E'' strings`)
	case w.valuesRunUserCode(): // functions of another role would run inside a signed text
		j.rejectAt(j.ref.start, "functions of others compare or convert its values")
	default:
		j.checkQuery(s)
	}
	if j.reason != "" {
		w.refuseAt(j.refusal(), j.position)
		return false
	}
	j.editAggregate(firstAggregation.query)
	return w.refused == nil
}

// aggregateCheck checks that the group view can answer an aggregate. The view holds no rows of the table, only cells:
// for each combination of dimensions, the number of rows and the sums of the measures. So the query may name dimensions
// anywhere, and other columns only inside certain aggregates.
type aggregateCheck struct {
	*walker
	ref    *reference
	table  catalog.Name // the table whose rows the reference ref reads
	name   string       // the name by which columns of the table are qualified
	policy *policy.Aggregate

	reason          string // the first reason for which the view cannot answer the aggregate
	position        int32
	fixedDimensions map[string]bool // the dimensions that the query groups by, or compares with a constant
	hasGroupingSets bool            // the query has grouping sets
	subjectsAt      int32           // the position at which the query counts subjects
	countsSubjects  bool
	utcCalls        []*sqltext.FuncCall // calls of date_trunc to which the rewriter must add the time zone UTC
}

func (j *aggregateCheck) rejectAt(location int32, format string, args ...any) {
	if j.reason == "" {
		j.reason, j.position = fmt.Sprintf(format, args...), location
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

// groupsHint says in words which aggregates over a table the group view can answer.
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
	subject := "Some rows"
	if a.NoSingleRows {
		subject = "The rows"
	}
	hint := subject + " of this table count in groups only, of at least " + fmt.Sprint(a.MinSubjects) +
		" subjects. An aggregate over it is a statement of its own: count(*)"
	if len(measures) > 0 {
		hint += ", and count, sum and avg of " + strings.Join(measures, ", ")
	}
	if len(dimensions) > 0 {
		hint += "; grouped by, and under conditions on, " + strings.Join(dimensions, ", ")
	}
	return hint + "."
}

// refuseSingleRows refuses statements that read single rows of a table whose rows agents see only in group results.
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

// checkQuery checks a SELECT.
func (j *aggregateCheck) checkQuery(s *sqltext.SelectStmt) {
	switch {
	case s.WithClause != nil, s.Op != sqltext.SETOP_NONE, len(s.ValuesLists) > 0, s.IntoClause != nil:
		j.rejectAt(-1, "it has a WITH query, or is a set operation")
	case len(s.LockingClause) > 0:
		j.rejectAt(-1, "it locks rows")
	case len(s.WindowClause) > 0:
		j.rejectAt(-1, "it has windows")
	}
	outputs := map[string]bool{}
	for _, n := range s.TargetList {
		t := n.GetResTarget()
		if isStar(t.GetVal()) {
			j.rejectAt(t.GetVal().GetColumnRef().GetLocation(), "* asks for single rows")
			return
		}
		j.checkExpr(t.GetVal())
		outputs[outputName(t)] = true
	}
	j.checkExpr(s.WhereClause)
	j.noteComparedDimensions(s.WhereClause)
	for _, n := range s.GroupClause {
		j.checkGroupKey(n, s.TargetList, outputs)
	}
	j.checkExpr(s.HavingClause)
	for _, n := range s.SortClause {
		if len(n.GetSortBy().GetUseOp()) > 0 {
			j.rejectAt(n.GetSortBy().GetLocation(), "ORDER BY ... USING")
		}
		j.checkSortKey(n.GetSortBy().GetNode(), outputs)
	}
	for i, n := range s.DistinctClause {
		if i > 0 || n != nil && n.Node != nil { // the list is not that of a plain DISTINCT
			j.checkSortKey(n, outputs)
		}
	}
	if s.LimitCount != nil && s.LimitCount.Node != nil {
		j.checkExpr(s.LimitCount)
	}
	if s.LimitOffset != nil && s.LimitOffset.Node != nil {
		j.checkExpr(s.LimitOffset)
	}
	if j.countsSubjects {
		for _, d := range j.policy.Dimensions {
			if j.hasGroupingSets || !j.fixedDimensions[d.Column] {
				j.rejectAt(j.subjectsAt,
					"subjects can be counted where each group is one value of every dimension, and %s is none of "+
						"the keys", catalog.QuoteIdent(d.Column))
			}
		}
	}
}

// checkSortKey checks a sort key: the name of an output column, or an expression.
func (j *aggregateCheck) checkSortKey(n *sqltext.Node, outputs map[string]bool) {
	if fields := n.GetColumnRef().GetFields(); len(fields) == 1 && outputs[fields[0].GetString_().GetSval()] {
		return
	}
	j.checkExpr(n)
}

// checkGroupKey checks a key of GROUP BY.
func (j *aggregateCheck) checkGroupKey(n *sqltext.Node, targets []*sqltext.Node, outputs map[string]bool) {
	if groupingSet := n.GetGroupingSet(); groupingSet != nil {
		j.hasGroupingSets = true
		for _, part := range groupingSet.Content {
			j.checkGroupKey(part, targets, outputs)
		}
		return
	}
	if row := n.GetRowExpr(); row != nil {
		for _, part := range row.Args {
			j.checkGroupKey(part, targets, outputs)
		}
		return
	}
	if i := int(n.GetAConst().GetIval().GetIval()); i >= 1 && i <= len(targets) {
		j.noteGroupedBy(targets[i-1].GetResTarget().GetVal())
		return
	}
	if fields := n.GetColumnRef().GetFields(); len(fields) == 1 {
		name := fields[0].GetString_().GetSval()
		if j.policy.Dimension(name) == nil && j.policy.Measure(name) == nil && name != j.policy.Subject && outputs[name] {
			for _, t := range targets {
				if outputName(t.GetResTarget()) == name {
					j.noteGroupedBy(t.GetResTarget().GetVal())
				}
			}
			return
		}
	}
	j.checkExpr(n)
	j.noteGroupedBy(n)
}

// noteGroupedBy notes that a GROUP BY key is a dimension, so that all rows of a group have the same value of it.
func (j *aggregateCheck) noteGroupedBy(n *sqltext.Node) {
	if d := j.dimensionOf(n); d != nil {
		j.fixedDimensions[d.Column] = true
	}
}

// dimensionOf returns the dimension that an expression is, cut to its unit if the dimension has one; nil if the
// expression is no dimension.
func (j *aggregateCheck) dimensionOf(n *sqltext.Node) *policy.Dimension {
	if f := n.GetFuncCall(); f != nil && len(f.Args) == 2 {
		if _, name, _ := qualifiedName(f.Funcname); name != "date_trunc" {
			return nil
		}
		name, ok := j.columnNameOf(f.Args[1].GetColumnRef())
		d := j.policy.Dimension(name)
		if unit, constant := constantString(f.Args[0]); ok && constant && d != nil && d.Unit == unit {
			return d
		}
		return nil
	}
	if name, ok := j.columnNameOf(n.GetColumnRef()); ok {
		if d := j.policy.Dimension(name); d != nil && d.Unit == "" {
			return d
		}
	}
	return nil
}

// noteComparedDimensions notes the dimensions that a condition compares with a constant.
func (j *aggregateCheck) noteComparedDimensions(n *sqltext.Node) {
	if b := n.GetBoolExpr(); b != nil && b.Boolop == sqltext.AND_EXPR {
		for _, part := range b.Args {
			j.noteComparedDimensions(part)
		}
		return
	}
	x := n.GetAExpr()
	if x == nil || x.Kind != sqltext.AEXPR_OP {
		return
	}
	if _, name, _ := qualifiedName(x.Name); name == "=" && x.Rexpr.GetAConst() != nil {
		j.noteGroupedBy(x.Lexpr)
	}
}

// columnNameOf returns the name of the table's column that a reference means.
func (j *aggregateCheck) columnNameOf(c *sqltext.ColumnRef) (string, bool) {
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

// checkExprs checks expressions.
func (j *aggregateCheck) checkExprs(nodes []*sqltext.Node) {
	for _, n := range nodes {
		j.checkExpr(n)
	}
}

// checkExpr checks an expression. Kinds of expressions that it does not know are rejected.
func (j *aggregateCheck) checkExpr(n *sqltext.Node) {
	if n == nil || j.reason != "" {
		return
	}
	switch n := n.Node.(type) {
	case *sqltext.Node_ColumnRef:
		j.checkColumn(n.ColumnRef)
	case *sqltext.Node_ParamRef, *sqltext.Node_A_Const:
	case *sqltext.Node_SQLValueFunction:
		switch n.SqlvalueFunction.Op {
		case sqltext.SVFOP_CURRENT_DATE, sqltext.SVFOP_CURRENT_TIMESTAMP, sqltext.SVFOP_LOCALTIMESTAMP:
		default:
			j.rejectAt(-1, "CURRENT_USER and its like")
		}
	case *sqltext.Node_TypeCast:
		j.checkExpr(n.TypeCast.Arg)
	case *sqltext.Node_A_Expr:
		j.checkExpr(n.AExpr.Lexpr)
		j.checkExpr(n.AExpr.Rexpr)
	case *sqltext.Node_List:
		j.checkExprs(n.List.Items)
	case *sqltext.Node_A_ArrayExpr:
		j.checkExprs(n.AArrayExpr.Elements)
	case *sqltext.Node_BoolExpr:
		j.checkExprs(n.BoolExpr.Args)
	case *sqltext.Node_NullTest:
		j.checkExpr(n.NullTest.Arg)
	case *sqltext.Node_BooleanTest:
		j.checkExpr(n.BooleanTest.Arg)
	case *sqltext.Node_CaseExpr:
		j.checkExpr(n.CaseExpr.Arg)
		j.checkExprs(n.CaseExpr.Args)
		j.checkExpr(n.CaseExpr.Defresult)
	case *sqltext.Node_CaseWhen:
		j.checkExpr(n.CaseWhen.Expr)
		j.checkExpr(n.CaseWhen.Result)
	case *sqltext.Node_CoalesceExpr:
		j.checkExprs(n.CoalesceExpr.Args)
	case *sqltext.Node_MinMaxExpr:
		j.checkExprs(n.MinMaxExpr.Args)
	case *sqltext.Node_GroupingFunc:
		j.checkExprs(n.GroupingFunc.Args)
	case *sqltext.Node_FuncCall:
		j.checkCall(n.FuncCall)
	case *sqltext.Node_SubLink:
		j.rejectAt(n.SubLink.Location, "it has a sub-select")
	default:
		j.rejectAt(-1, "%s is not for aggregates", sqltext.NodeKind(&sqltext.Node{Node: n}))
	}
}

// checkColumn checks a column outside of aggregates.
func (j *aggregateCheck) checkColumn(c *sqltext.ColumnRef) {
	name, ok := j.columnNameOf(c)
	quoted := catalog.QuoteIdent(name)
	d := j.policy.Dimension(name)
	switch {
	case !ok:
		j.rejectAt(c.Location, "it names something other than a column of the table")
	case d != nil && d.Unit == "":
	case d != nil:
		j.rejectAt(c.Location, "%s stands as date_trunc('%s', %s) only", quoted, d.Unit, quoted)
	case j.policy.Measure(name) != nil:
		j.rejectAt(c.Location, "%s stands inside count, sum and avg only", quoted)
	case name == j.policy.Subject:
		j.rejectAt(c.Location, "%s stands inside count only", quoted)
	default:
		j.rejectAt(c.Location, "%s is neither a dimension nor a measure", quoted)
	}
}

// checkCall checks a function call.
func (j *aggregateCheck) checkCall(f *sqltext.FuncCall) {
	schema, name, ok := qualifiedName(f.Funcname)
	switch {
	case !ok || schema != "" && schema != "pg_catalog" || schema == "" && !j.meansCatalogFunction(name, f):
		j.rejectAt(f.Location, "function %s is not for aggregates", name)
	case f.Over != nil:
		j.rejectAt(f.Location, "it has windows")
	case f.AggWithinGroup, f.FuncVariadic, len(f.AggOrder) > 0:
		j.rejectAt(f.Location, "WITHIN GROUP, VARIADIC, or an order inside %s", name)
	case name == "count" || name == "sum" || name == "avg":
		j.checkAggregate(name, f)
	case j.isAggregate(f):
		j.rejectAt(f.Location, "%s is not available, only count, sum and avg are", name)
	case !cellFunctions[name]:
		j.rejectAt(f.Location, "function %s is not for aggregates", name)
	case name == "date_trunc" && j.checkTruncate(f):
	default:
		j.checkExprs(f.Args)
	}
}

// meansCatalogFunction tells whether a function name without schema means PostgreSQL's own function. If extensions or
// owners have a function of that name, too, the argument types decide. The arguments here have PostgreSQL's own types,
// and sum and avg exist for exactly the types of measures. The rewriter then writes the function with its schema.
func (j *aggregateCheck) meansCatalogFunction(name string, f *sqltext.FuncCall) bool {
	others := slices.DeleteFunc(slices.Clone(j.snap.FunctionsNamed("", name)),
		func(other *catalog.Function) bool { return !takesArguments(other, f) })
	if len(others) == 0 {
		// the walker has already written the schema before the name
		return len(j.snap.FunctionsNamed("", name)) == 0 || j.snap.HasCatalogFunction(name)
	}
	ofMeasure := false
	if (name == "sum" || name == "avg") && len(f.Args) == 1 {
		column, isColumn := j.columnNameOf(f.Args[0].GetColumnRef())
		ofMeasure = isColumn && j.policy.Measure(column) != nil
	}
	if !ofMeasure && slices.ContainsFunc(others, func(other *catalog.Function) bool { return !j.takesOtherTypes(other) }) ||
		!j.snap.HasCatalogFunction(name) || slices.ContainsFunc(f.Args, j.castsToOtherTypes) {
		return false
	}
	j.qualifyCall(f, catalog.Name{Schema: "pg_catalog", Name: name})
	return true
}

// takesOtherTypes tells whether a function belongs to an extension and takes a type of that extension.
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

// castsToOtherTypes tells whether an expression names a type that is not PostgreSQL's own.
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

// checkTruncate checks date_trunc('month', dimension). The view's cells are cut in UTC, so the call must cut in UTC,
// too.
func (j *aggregateCheck) checkTruncate(f *sqltext.FuncCall) bool {
	if len(f.Args) != 2 {
		return false
	}
	name, ok := j.columnNameOf(f.Args[1].GetColumnRef())
	d := j.policy.Dimension(name)
	if !ok || d == nil || d.Unit == "" {
		return false
	}
	unit, constant := constantString(f.Args[0])
	if !constant || !slices.Contains(d.Units(), unit) {
		j.rejectAt(f.Location, "%s can be truncated to %s", catalog.QuoteIdent(name), strings.Join(d.Units(), ", "))
	}
	if strings.HasSuffix(d.Type, "with time zone") {
		j.utcCalls = append(j.utcCalls, f)
	}
	return true
}

// checkAggregate checks a call of an aggregate function.
func (j *aggregateCheck) checkAggregate(name string, f *sqltext.FuncCall) {
	j.checkExpr(f.AggFilter)
	switch {
	case f.AggStar:
		if name != "count" || len(f.Args) > 0 {
			j.rejectAt(f.Location, "%s(*)", name)
		}
		return
	case len(f.Args) != 1:
		j.rejectAt(f.Location, "%s takes one argument", name)
		return
	}
	column, isColumn := j.columnNameOf(f.Args[0].GetColumnRef())
	switch {
	case isColumn && column == j.policy.Subject && name == "count":
		if f.AggDistinct && !j.countsSubjects {
			j.countsSubjects, j.subjectsAt = true, f.Location
		}
	case f.AggDistinct && name != "count":
		j.rejectAt(f.Location, "DISTINCT inside %s", name)
	case isColumn && j.policy.Measure(column) != nil:
		if f.AggDistinct {
			j.rejectAt(f.Location, "how many values %s has is not available", catalog.QuoteIdent(column))
		}
	case name == "count":
		j.checkExpr(f.Args[0])
	default:
		j.rejectAt(f.Location, "%s is of a measure, as it is", name)
	}
}

// editAggregate makes the edits: it puts the group view in the place of the table, and adds the condition that a group
// is large enough and the time zone UTC.
func (j *aggregateCheck) editAggregate(s *sqltext.SelectStmt) {
	source := j.source
	i := source.TokenAt(j.ref.start)
	j.substituteView(j.ref, predicate.GroupView(j.ref.name))
	condition := fmt.Sprintf("pg_catalog.count(DISTINCT %s.%s) OPERATOR(pg_catalog.>=) %d",
		catalog.QuoteIdent(j.name), catalog.QuoteIdent(j.policy.Subject), j.policy.MinSubjects)
	tree := parseExpression(condition)
	if tree == nil {
		j.refuse(sqlstate.AsError(errPolicyExpression))
		return
	}
	switch keyword, end := source.HavingClause(i); {
	case keyword < 0:
		j.replace(end, end, " HAVING "+condition, func() { s.HavingClause = tree })
	default:
		start := source.Tokens[keyword].End
		j.replace(start, start, " "+condition+" AND (", func() {
			clientHaving := s.HavingClause
			s.HavingClause = &sqltext.Node{Node: &sqltext.Node_BoolExpr{BoolExpr: &sqltext.BoolExpr{
				Boolop: sqltext.AND_EXPR, Args: []*sqltext.Node{tree, clientHaving},
			}}}
		})
		j.replace(end, end, ")", func() {})
	}
	for _, f := range j.utcCalls {
		openParen := source.TokenAt(f.Location)
		for openParen >= 0 && openParen < len(source.Tokens) && source.KindAt(openParen) != sqltext.OpenParen {
			openParen++
		}
		last := source.ClosingParen(openParen)
		if last < 0 {
			j.refuse(refusalOf("FuncCall.location"))
			return
		}
		location := source.Tokens[last].Start
		j.replace(location, location, ", 'UTC'", func() {
			f.Args = append(f.Args, stringConstant("UTC"))
		})
	}
	j.needsSignature = true
}
