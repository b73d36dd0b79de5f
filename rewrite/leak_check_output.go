package rewrite

import (
	"maps"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// PostgreSQL computes the outputs of the outermost SELECT last, only for rows that have passed its joins, its
// conditions and the rule (apply_scanjoin_target_to_paths of planner.c). So only visible rows decide whether such an
// expression fails or raises a notice, and outputs may contain expressions that are not on the leak-safe list.
//
// Sort keys and group keys may not. Below a join, PostgreSQL may sort by an expression over one table
// (generate_useful_gather_paths of allpaths.c). It may sort one partition in the order of another partition's index.
// The arguments of min and similar aggregates must be leak-safe, too, because the planner adds "IS NOT NULL" to the
// conditions (planagg.c). All these must be leak-safe, or computed from groups, which PostgreSQL makes after all joins.

// maxOutputExprs bounds how many expressions of a text the leak checker may check by their parts, because it may check
// each part again for each expression around it.
const maxOutputExprs = 500

// plainFunctionGroups are the groups in functions.txt whose functions compute a value from their operands alone, except
// for notPlainFunctions.
var plainFunctionGroups = []string{groupAggregates, "text and binary", "numbers and chance", "dates and times", "JSON",
	"arrays and sets", "text search", "ranges", "networks"}

const groupAggregates = "aggregates and windows"

// notPlainFunctions are functions of plainFunctionGroups that have side effects, depend on more than their operands, or
// return sets. They include aggregates whose last digits depend on the order of rows, which differs from that under row
// security.
var notPlainFunctions = []string{
	"corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2", "regr_slope",
	"regr_sxx", "regr_sxy", "regr_syy",
	"array_sample", "array_shuffle", "clock_timestamp", "gen_random_uuid", "pg_column_compression", "pg_column_size",
	"random", "random_normal", "setseed", "timeofday", "ts_rewrite", "uuidv4", "uuidv7",
	"generate_series", "generate_subscripts", "json_array_elements", "json_array_elements_text", "json_each",
	"json_each_text", "json_object_keys", "json_populate_record", "json_populate_recordset",
	"json_to_record", "json_to_recordset", "jsonb_array_elements", "jsonb_array_elements_text", "jsonb_each",
	"jsonb_each_text", "jsonb_object_keys", "jsonb_path_query", "jsonb_path_query_tz",
	"jsonb_populate_record", "jsonb_populate_record_valid", "jsonb_populate_recordset", "jsonb_to_record",
	"jsonb_to_recordset", "pg_timezone_abbrevs_abbrevs", "pg_timezone_abbrevs_zone", "regexp_matches",
	"regexp_split_to_table", "string_to_table", "ts_debug", "ts_parse",
	"ts_stat", "ts_token_type", "unnest",
}

// indexedAggregates are the aggregates that PostgreSQL may compute with an index (aggsortop of pg_aggregate).
var indexedAggregates = []string{"min", "max", "bool_and", "bool_or", "every"}

// Without an ORDER BY, the results of these functions depend on the order of rows, and so on the plan. The plan may
// differ from that under row security, and may depend on how many rows are hidden. The last digits of the
// deviationAggregates of floating-point numbers depend on the order of rows, too.
var (
	orderDependentAggregates = []string{"array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg",
		"jsonb_object_agg", "xmlagg"}
	orderDependentWindows = []string{"row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"}
	deviationAggregates   = []string{"stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp"}
)

// outputTypes are the OIDs of types to which a text on the signed path may cast an output. Arrays of them are allowed,
// too.
var outputTypes = []uint32{16, 17, 20, 21, 23, 25, 114, 700, 701, 1042, 1043, 1082, 1083, 1114, 1184, 1186, 1266,
	1700, 2950, 3802}

// leakCheckState is the part of the leak checker's state that the checker restores after an expression has failed its
// check.
type leakCheckState struct {
	sumMayOverflow, leaky, indexSearch bool
	typeCount, starCount               int
	paramKinds                         map[int32]kind
	paramForms                         map[int32]verdict.ValueForm
	paramCasts                         map[int32]uint32
	paramNeighbours                    map[int32][]uint32
}

func (v *leakChecker) saveState() leakCheckState {
	return leakCheckState{v.sumMayOverflow, v.leaky, v.indexSearch, len(v.typesToQualify), v.starColumnCount,
		maps.Clone(v.paramKinds),
		maps.Clone(v.paramForms), maps.Clone(v.paramCasts), maps.Clone(v.paramNeighbours)}
}

func (v *leakChecker) restoreState(m leakCheckState) {
	v.reason, v.sumMayOverflow, v.leaky, v.indexSearch, v.typesToQualify, v.starColumnCount = "", m.sumMayOverflow,
		m.leaky, m.indexSearch,
		v.typesToQualify[:m.typeCount], m.starCount
	v.paramKinds, v.paramForms, v.paramCasts, v.paramNeighbours = m.paramKinds, m.paramForms, m.paramCasts,
		m.paramNeighbours
}

// checkOutput checks an expression that the outermost SELECT returns.
func (v *leakChecker) checkOutput(n *sqltext.Node, context checkContext) value {
	if v.reason != "" || !context.isOutput {
		return v.checkExpr(n, context)
	}
	stateBefore := v.saveState()
	e := v.checkExpr(n, context)
	// an index does not speed up the computation of an output
	v.leaky, v.indexSearch = stateBefore.leaky, stateBefore.indexSearch
	if v.reason == "" {
		return e
	}
	reason := v.reason
	v.restoreState(stateBefore)
	switch v.outputCount++; {
	case v.outputCount > maxOutputExprs:
		v.reject("what it returns is very long")
	case len(v.foreignCasts) > 0:
		v.reject("it brings a cast that is not PostgreSQL's own")
	// PostgreSQL may evaluate the expression when it plans, or only when it returns a row. That depends on whether it
	// plans with the values of the parameters.
	case mayBeOfParamsOnly(n):
		v.reject("%s", reason)
	}
	if v.checkExprByParts(n, context, reason); v.reason != "" {
		return value{}
	}
	return value{kind: kindOpaque, notOnList: true}
}

// checkExprByParts checks the parts of an output expression that is not on the leak-safe list. Expressions of other
// kinds are rejected with the given reason.
func (v *leakChecker) checkExprByParts(n *sqltext.Node, context checkContext, reason string) {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_FuncCall:
		v.checkCallByParts(x.FuncCall, context, reason)
	case *sqltext.Node_A_Expr:
		_, name, ok := qualifiedName(x.AExpr.Name)
		if !ok || len(x.AExpr.Name) > 1 || slices.ContainsFunc(v.snap.OperatorsNamed("", name),
			func(o *catalog.Operator) bool { return !isKnownExtension(o.Extension) }) {
			v.reject("%s", reason)
			return
		}
		if left, right := x.AExpr.Lexpr, x.AExpr.Rexpr; context.aboveFence && left.GetParamRef() == nil &&
			right.GetParamRef() != nil && slices.Contains([]string{"=", "<>", "<", "<=", ">", ">="}, name) {
			// when the client binds the parameter, PostgreSQL has given it the type of the left operand
			v.useParam(right.GetParamRef().Number, kindUndeclared)
			v.checkOperands(context, reason, left)
			return
		}
		v.checkOperands(context, reason, x.AExpr.Lexpr, x.AExpr.Rexpr)
	case *sqltext.Node_TypeCast:
		if !v.isOutputType(x.TypeCast.TypeName) {
			v.reject("%s", reason)
			return
		}
		v.checkOperands(context, reason, x.TypeCast.Arg)
	case *sqltext.Node_BoolExpr:
		v.checkOperands(context, reason, x.BoolExpr.Args...)
	case *sqltext.Node_NullTest:
		v.checkOperands(context, reason, x.NullTest.Arg)
	case *sqltext.Node_BooleanTest:
		v.checkOperands(context, reason, x.BooleanTest.Arg)
	case *sqltext.Node_CoalesceExpr:
		v.checkOperands(context, reason, x.CoalesceExpr.Args...)
	case *sqltext.Node_MinMaxExpr:
		v.checkOperands(context, reason, x.MinMaxExpr.Args...)
	case *sqltext.Node_A_ArrayExpr:
		v.checkOperands(context, reason, x.AArrayExpr.Elements...)
	case *sqltext.Node_CaseExpr:
		v.checkOperands(context, reason, x.CaseExpr.Arg, x.CaseExpr.Defresult)
		for _, whenClause := range x.CaseExpr.Args {
			v.checkOperands(context, reason, whenClause.GetCaseWhen().GetExpr(), whenClause.GetCaseWhen().GetResult())
		}
	case *sqltext.Node_A_Indirection:
		v.checkOperands(context, reason, x.AIndirection.Arg)
		for _, n := range x.AIndirection.Indirection {
			if n.GetAIndices() == nil { // the expression takes a field of a row
				v.reject("%s", reason)
				return
			}
			v.checkOperands(context, reason, n.GetAIndices().Lidx, n.GetAIndices().Uidx)
		}
	default:
		v.reject("%s", reason)
	}
}

// checkOperands checks the operands of an expression that is not on the leak-safe list. None of them may be a
// parameter, because the parameter's declared type is not known.
func (v *leakChecker) checkOperands(context checkContext, reason string, nodes ...*sqltext.Node) {
	for _, n := range nodes {
		switch {
		case v.reason != "":
			return
		case n == nil || n.Node == nil:
		case n.GetList() != nil:
			v.checkOperands(context, reason, n.GetList().Items...)
		case n.GetParamRef() != nil:
			v.reject("%s", reason)
		default:
			v.checkOutput(n, context)
		}
	}
}

func (v *leakChecker) checkCallByParts(f *sqltext.FuncCall, context checkContext, reason string) {
	schema, name, ok := qualifiedName(f.Funcname)
	aggregate := isAggregate(f)
	switch {
	case !ok || schema != "" && schema != "pg_catalog" || schema == "" && !v.isCatalogFunction(name),
		!isPlainFunction(name), slices.Contains(orderDependentAggregates, name) &&
			len(f.AggOrder) == 0, slices.Contains(orderDependentWindows, name) && !v.hasOrderBy(f.Over), aggregate &&
			!context.aggregateAllowed, slices.ContainsFunc(f.Args,
			func(n *sqltext.Node) bool { return n.GetNamedArgExpr() != nil }):
		v.reject("%s", reason)
		return
	}
	inner := context
	if aggregate {
		inner = checkContext{scope: &leakScope{items: context.scope.items}, mayNotRun: context.mayNotRun, isOutput: true,
			aboveFence:       context.aboveFence,
			aggregateAllowed: f.Over != nil}
	}
	for _, n := range f.AggOrder {
		v.checkSortKey(n, inner)
	}
	if f.AggFilter != nil {
		v.checkOperands(inner, reason, f.AggFilter)
	}
	for _, n := range f.Args {
		if (f.AggDistinct || isIndexedAggregate(name)) && !context.aboveFence {
			switch e := v.checkExpr(n, inner); {
			case v.reason != "":
			case e.isUntyped():
				v.reject("%s", reason)
			case !isSortable(e.kind.columnKind()):
				v.reject("%s over a type that is not leak-safe", name)
			}
			continue
		}
		if slices.Contains(deviationAggregates, name) {
			if e := v.checkExpr(n, inner); v.reason == "" && e.kind != kindInt && e.kind != kindNumeric {
				v.reject("%s", reason)
			}
			continue
		}
		v.checkOperands(inner, reason, n)
	}
	v.checkWindow(f.Over, inner, reason)
}

// isPlainFunction tells whether a function of PostgreSQL computes its value from its operands alone, and agents may
// call it.
func isPlainFunction(name string) bool {
	_, shadowed := catalog.ShadowFunction(name)
	f := catalogFunctions[name]
	return f.class == classAllow && !shadowed && slices.Contains(plainFunctionGroups, f.why) &&
		!slices.Contains(notPlainFunctions, name)
}

// isIndexedAggregate tells whether PostgreSQL may compute an aggregate with an index.
func isIndexedAggregate(name string) bool { return slices.Contains(indexedAggregates, name) }

// checkSortKey checks a key of ORDER BY.
func (v *leakChecker) checkSortKey(n *sqltext.Node, context checkContext) {
	key := n.GetSortBy()
	if key == nil || len(key.UseOp) > 0 {
		v.reject("ORDER BY ... USING")
		return
	}
	v.checkGroupingKey(key.Node, context)
}

// checkGroupingKey checks an expression of GROUP BY, ORDER BY or PARTITION BY. A number in the expression is a value
// here, not the position of a column.
func (v *leakChecker) checkGroupingKey(n *sqltext.Node, context checkContext) {
	if v.reason == "" && context.isOutput && (isAfterGrouping(n) || context.aboveFence) {
		v.checkOutput(n, context)
		return
	}
	if e := v.checkExpr(n, context); v.reason == "" && !isSortable(v.resultKind(e)) {
		v.reject("a key of a type that is not leak-safe")
	}
}

// frameNonDefault is the bit FRAMEOPTION_NONDEFAULT of PostgreSQL's parsenodes.h. It is set if a window has a ROWS,
// RANGE or GROUPS clause.
const frameNonDefault = 1

// checkWindow checks the window of an OVER or WINDOW clause.
func (v *leakChecker) checkWindow(w *sqltext.WindowDef, context checkContext, reason string) {
	if w == nil {
		return
	}
	if w.FrameOptions&frameNonDefault != 0 && !v.hasOrderBy(w) {
		v.reject("a frame of rows in no order")
	}
	for _, n := range w.PartitionClause {
		v.checkGroupingKey(n, context)
	}
	for _, n := range w.OrderClause {
		v.checkSortKey(n, context)
	}
	v.checkOperands(context, reason, w.StartOffset, w.EndOffset)
}

// hasOrderBy tells whether a window has ORDER BY.
func (v *leakChecker) hasOrderBy(w *sqltext.WindowDef) bool {
	return w != nil && (len(w.OrderClause) > 0 || v.orderedWindows[w.Name] || v.orderedWindows[w.Refname])
}

// checkHaving checks a HAVING condition. PostgreSQL evaluates parts without an aggregate like conditions of WHERE, for
// single rows.
func (v *leakChecker) checkHaving(n *sqltext.Node, context checkContext) {
	switch {
	case n == nil:
	case context.isOutput && n.GetBoolExpr() != nil:
		for _, arg := range n.GetBoolExpr().Args {
			v.checkHaving(arg, context)
		}
	case context.isOutput && (isAfterGrouping(n) || context.aboveFence):
		if e := v.checkOutput(n, context); !e.notOnList {
			v.requireBoolean(e)
		}
	default:
		v.checkCondition(n, context)
	}
}

// isOutputType tells whether the signed path may cast an output to a type. If it may, the method notes that the
// rewriter must write the type's schema.
func (v *leakChecker) isOutputType(t *sqltext.TypeName) bool {
	schema, name, ok := qualifiedName(t.GetNames())
	if !ok || t.Setof || t.PctType || schema != "" && schema != "pg_catalog" {
		return false
	}
	types := v.snap.TypesNamed("pg_catalog", name)
	if len(types) != 1 || !slices.Contains(outputTypes, types[0].OID) {
		return false
	}
	return v.qualifyType(t)
}

// isAggregate tells whether a call calls an aggregate or a window function.
func isAggregate(f *sqltext.FuncCall) bool {
	return f.Over != nil || f.AggStar || f.AggDistinct || f.AggFilter != nil || f.AggWithinGroup ||
		len(f.AggOrder) > 0 || catalogFunctions[lastNamePart(f.Funcname)].why == groupAggregates
}

// mayBeOfParamsOnly tells whether an expression has parameters and no columns, or may have no columns after constant
// folding.
func mayBeOfParamsOnly(n *sqltext.Node) bool {
	param, column := false, false
	var visit func(n *sqltext.Node, sure bool)
	visit = func(n *sqltext.Node, sure bool) {
		param, column = param || n.GetParamRef() != nil, column || sure && n.GetColumnRef() != nil
		sure = sure && n.GetCaseExpr() == nil && n.GetCoalesceExpr() == nil && n.GetBoolExpr() == nil && n.GetSubLink() == nil
		sqltext.EachChild(n, func(n *sqltext.Node) { visit(n, sure) })
	}
	visit(n, true)
	return param && !column
}

// isAfterGrouping tells whether PostgreSQL computes an expression after groups or windows. Such an expression calls an
// aggregate or a window function, and names columns only inside such calls. PostgreSQL folds constants first: CASE WHEN
// true THEN a ELSE count(*) END becomes the column a.
func isAfterGrouping(n *sqltext.Node) bool {
	found, stray := false, false
	var visit func(*sqltext.Node)
	visit = func(n *sqltext.Node) {
		f := n.GetFuncCall()
		switch {
		case n == nil || stray:
		case f != nil && isAggregate(f):
			found = true
		case n.GetColumnRef() != nil, n.GetSubLink() != nil: // a sub-select may name a column of the query
			stray = true
		default:
			sqltext.EachChild(n, visit)
		}
	}
	visit(n)
	return found && !stray
}
