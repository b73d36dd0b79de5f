package rewrite

import (
	"maps"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// What the outermost SELECT returns is computed last, of rows that have passed its joins, its conditions and the rule
// (apply_scanjoin_target_to_paths of PostgreSQL's planner.c). Visible rows alone decide there whether an expression
// fails or prints, so that more may stand there than the leak-safe list has.
//
// That is not so of what PostgreSQL sorts or groups by: below a join it may sort by what one table computes
// (generate_useful_gather_paths of allpaths.c), and a child of a partitioned table as its neighbour's index has it. Nor
// of what min and its kin are over: the planner adds "IS NOT NULL" to the conditions (planagg.c). Those take what is
// leak-safe, or what is computed of groups, which are made after all joins.

// maxOutput bounds how many expressions are looked at in parts: each part may be looked at again for each that it
// stands in.
const maxOutput = 500

// plainSubjects are the groups of functions.txt whose functions compute a value of their operands.
var plainSubjects = []string{subjectAggregates, "text and binary", "numbers and chance", "dates and times", "JSON",
	"arrays and sets", "text search", "ranges", "networks"}

const subjectAggregates = "aggregates and windows"

// unplain are functions of those groups that act, go by more than their operands, or return sets; and aggregates whose
// last digits go by the order in which rows come, which is another than row security's.
var unplain = []string{
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

// indexedAggregates are those that an index may answer (aggsortop of pg_aggregate).
var indexedAggregates = []string{"min", "max", "bool_and", "bool_or", "every"}

// What these give goes by the order in which rows come, if nothing is said about that, and this by the plan: which is
// another than row security's, and may go by how many rows are hidden. So do the last digits of deviations of floating
// point.
var (
	collecting = []string{"array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg", "xmlagg"}
	numbering  = []string{"row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"}
	deviations = []string{"stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp"}
)

// plainTypes are the types, by OID, that an output may be converted to, and arrays of them.
var plainTypes = []uint32{16, 17, 20, 21, 23, 25, 114, 700, 701, 1042, 1043, 1082, 1083, 1114, 1184, 1186, 1266,
	1700, 2950, 3802}

// vetMark is what trying an expression may change.
type vetMark struct {
	overflows, leaky, searches bool
	types, starred             int
	params                     map[int32]kind
	forms                      map[int32]verdict.Form
	exact                      map[int32]uint32
	sized                      map[int32][]uint32
}

func (v *vetter) mark() vetMark {
	return vetMark{v.overflows, v.leaky, v.searches, len(v.types), v.starred, maps.Clone(v.params),
		maps.Clone(v.forms), maps.Clone(v.exact), maps.Clone(v.sized)}
}

func (v *vetter) reset(m vetMark) {
	v.reason, v.overflows, v.leaky, v.searches, v.types, v.starred = "", m.overflows, m.leaky, m.searches,
		v.types[:m.types], m.starred
	v.params, v.forms, v.exact, v.sized = m.params, m.forms, m.exact, m.sized
}

// output vets an expression whose value the outermost SELECT returns.
func (v *vetter) output(n *sqltext.Node, at place) value {
	if v.reason != "" || !at.output {
		return v.expr(n, at)
	}
	before := v.mark()
	e := v.expr(n, at)
	v.leaky, v.searches = before.leaky, before.searches // no index is reached by it
	if v.reason == "" {
		return e
	}
	reason := v.reason
	v.reset(before)
	switch v.outputs++; {
	case v.outputs > maxOutput:
		v.no("what it returns is very long")
	case len(v.casts) > 0:
		v.no("it brings a cast that is not PostgreSQL's own")
	case ofParameters(n): // which fails as a plan is made, or as a row is returned, by whether the plan is for its values
		v.no("%s", reason)
	}
	if v.free(n, at, reason); v.reason != "" {
		return value{}
	}
	return value{kind: kindOpaque, free: true}
}

// free vets what is not on the list, by its parts. What is none of these keeps the reason that the list gave.
func (v *vetter) free(n *sqltext.Node, at place, reason string) {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_FuncCall:
		v.freeCall(x.FuncCall, at, reason)
	case *sqltext.Node_A_Expr:
		_, name, ok := qualifiedName(x.AExpr.Name)
		if !ok || len(x.AExpr.Name) > 1 || slices.ContainsFunc(v.snap.OperatorsNamed("", name),
			func(o *catalog.Operator) bool { return !knownExtension(o.Extension) }) {
			v.no("%s", reason)
			return
		}
		if left, right := x.AExpr.Lexpr, x.AExpr.Rexpr; at.above && left.GetParamRef() == nil &&
			right.GetParamRef() != nil && slices.Contains([]string{"=", "<>", "<", "<=", ">", ">="}, name) {
			v.param(right.GetParamRef().Number, kindUndeclared) // it becomes of the left operand's type as it is bound
			v.parts(at, reason, left)
			return
		}
		v.parts(at, reason, x.AExpr.Lexpr, x.AExpr.Rexpr)
	case *sqltext.Node_TypeCast:
		if !v.plainType(x.TypeCast.TypeName) {
			v.no("%s", reason)
			return
		}
		v.parts(at, reason, x.TypeCast.Arg)
	case *sqltext.Node_BoolExpr:
		v.parts(at, reason, x.BoolExpr.Args...)
	case *sqltext.Node_NullTest:
		v.parts(at, reason, x.NullTest.Arg)
	case *sqltext.Node_BooleanTest:
		v.parts(at, reason, x.BooleanTest.Arg)
	case *sqltext.Node_CoalesceExpr:
		v.parts(at, reason, x.CoalesceExpr.Args...)
	case *sqltext.Node_MinMaxExpr:
		v.parts(at, reason, x.MinMaxExpr.Args...)
	case *sqltext.Node_A_ArrayExpr:
		v.parts(at, reason, x.AArrayExpr.Elements...)
	case *sqltext.Node_CaseExpr:
		v.parts(at, reason, x.CaseExpr.Arg, x.CaseExpr.Defresult)
		for _, when := range x.CaseExpr.Args {
			v.parts(at, reason, when.GetCaseWhen().GetExpr(), when.GetCaseWhen().GetResult())
		}
	case *sqltext.Node_A_Indirection:
		v.parts(at, reason, x.AIndirection.Arg)
		for _, n := range x.AIndirection.Indirection {
			if n.GetAIndices() == nil { // a field of a row
				v.no("%s", reason)
				return
			}
			v.parts(at, reason, n.GetAIndices().Lidx, n.GetAIndices().Uidx)
		}
	default:
		v.no("%s", reason)
	}
}

// parts vets operands, of which each may be leak-safe by itself. A parameter may not stand in one that is not: nobody says
// what it is declared as there.
func (v *vetter) parts(at place, reason string, nodes ...*sqltext.Node) {
	for _, n := range nodes {
		switch {
		case v.reason != "":
			return
		case n == nil || n.Node == nil:
		case n.GetList() != nil:
			v.parts(at, reason, n.GetList().Items...)
		case n.GetParamRef() != nil:
			v.no("%s", reason)
		default:
			v.output(n, at)
		}
	}
}

func (v *vetter) freeCall(f *sqltext.FuncCall, at place, reason string) {
	schema, name, ok := qualifiedName(f.Funcname)
	aggregate := isAggregate(f)
	switch {
	case !ok || schema != "" && schema != "pg_catalog" || schema == "" && !v.plainlyCatalogs(name),
		!returnsPlainly(name), slices.Contains(collecting, name) &&
			len(f.AggOrder) == 0, slices.Contains(numbering, name) && !v.ordered(f.Over), aggregate &&
			!at.aggregate, slices.ContainsFunc(f.Args, func(n *sqltext.Node) bool { return n.GetNamedArgExpr() != nil }):
		v.no("%s", reason)
		return
	}
	inner := at
	if aggregate {
		inner = place{scope: &vetScope{items: at.scope.items}, elsewhere: at.elsewhere, output: true, above: at.above,
			aggregate: f.Over != nil}
	}
	for _, n := range f.AggOrder {
		v.orders(n, inner)
	}
	if f.AggFilter != nil {
		v.parts(inner, reason, f.AggFilter)
	}
	for _, n := range f.Args {
		if (f.AggDistinct || isIndexed(name)) && !at.above {
			switch e := v.expr(n, inner); {
			case v.reason != "":
			case e.untyped():
				v.no("%s", reason)
			case !sortable(e.kind.settled()):
				v.no("%s over a type that is not vetted", name)
			}
			continue
		}
		if slices.Contains(deviations, name) {
			if e := v.expr(n, inner); v.reason == "" && e.kind != kindInt && e.kind != kindNumeric {
				v.no("%s", reason)
			}
			continue
		}
		v.parts(inner, reason, n)
	}
	v.window(f.Over, inner, reason)
}

// returnsPlainly tells whether a function of PostgreSQL's computes a value of its operands, and of nothing else.
func returnsPlainly(name string) bool {
	_, shadowed := catalog.ShadowFunction(name)
	f := catalogFunctions[name]
	return f.class == classAllow && !shadowed && slices.Contains(plainSubjects, f.why) && !slices.Contains(unplain, name)
}

// isIndexed tells whether an index may answer an aggregate.
func isIndexed(name string) bool { return slices.Contains(indexedAggregates, name) }

// orders vets what is sorted by.
func (v *vetter) orders(n *sqltext.Node, at place) {
	key := n.GetSortBy()
	if key == nil || len(key.UseOp) > 0 {
		v.no("ORDER BY ... USING")
		return
	}
	v.groups(key.Node, at)
}

// groups vets what is sorted, grouped or divided by. A number is a value here, not the place of a column.
func (v *vetter) groups(n *sqltext.Node, at place) {
	if v.reason == "" && at.output && (late(n) || at.above) {
		v.output(n, at)
		return
	}
	if e := v.expr(n, at); v.reason == "" && !sortable(v.result(e)) {
		v.no("a key of a type that is not vetted")
	}
}

// framed is FRAMEOPTION_NONDEFAULT of parsenodes.h: a window says which rows of the partition count.
const framed = 1

// window vets OVER and WINDOW.
func (v *vetter) window(w *sqltext.WindowDef, at place, reason string) {
	if w == nil {
		return
	}
	if w.FrameOptions&framed != 0 && !v.ordered(w) {
		v.no("a frame of rows in no order")
	}
	for _, n := range w.PartitionClause {
		v.groups(n, at)
	}
	for _, n := range w.OrderClause {
		v.orders(n, at)
	}
	v.parts(at, reason, w.StartOffset, w.EndOffset)
}

// ordered tells whether a window says how its rows are sorted.
func (v *vetter) ordered(w *sqltext.WindowDef) bool {
	return w != nil && (len(w.OrderClause) > 0 || v.orderedWindows[w.Name] || v.orderedWindows[w.Refname])
}

// having vets a condition on groups. PostgreSQL makes those that name no aggregate conditions on rows, one by one.
func (v *vetter) having(n *sqltext.Node, at place) {
	switch {
	case n == nil:
	case at.output && n.GetBoolExpr() != nil:
		for _, arg := range n.GetBoolExpr().Args {
			v.having(arg, at)
		}
	case at.output && (late(n) || at.above):
		if e := v.output(n, at); !e.free {
			v.boolean(e)
		}
	default:
		v.condition(n, at)
	}
}

// plainType tells whether a type may stand in a cast of an output, and notes it to be qualified.
func (v *vetter) plainType(t *sqltext.TypeName) bool {
	schema, name, ok := qualifiedName(t.GetNames())
	if !ok || t.Setof || t.PctType || schema != "" && schema != "pg_catalog" {
		return false
	}
	found := v.snap.TypesNamed("pg_catalog", name)
	if len(found) != 1 || !slices.Contains(plainTypes, found[0].OID) {
		return false
	}
	return v.qualifies(t)
}

// isAggregate tells whether a call is that of an aggregate or of a window function.
func isAggregate(f *sqltext.FuncCall) bool {
	return f.Over != nil || f.AggStar || f.AggDistinct || f.AggFilter != nil || f.AggWithinGroup ||
		len(f.AggOrder) > 0 || catalogFunctions[lastName(f.Funcname)].why == subjectAggregates
}

// ofParameters tells whether an expression is one of parameters and constants alone, or may be when constants have been
// folded.
func ofParameters(n *sqltext.Node) bool {
	param, column := false, false
	var visit func(n *sqltext.Node, sure bool)
	visit = func(n *sqltext.Node, sure bool) {
		param, column = param || n.GetParamRef() != nil, column || sure && n.GetColumnRef() != nil
		sure = sure && n.GetCaseExpr() == nil && n.GetCoalesceExpr() == nil && n.GetBoolExpr() == nil && n.GetSubLink() == nil
		sqltext.Children(n, func(n *sqltext.Node) { visit(n, sure) })
	}
	visit(n, true)
	return param && !column
}

// late tells whether an expression is computed when groups or windows have been made: it has a call of an aggregate or
// of a window function in it, and names a column nowhere else. PostgreSQL folds constants first: from CASE WHEN true
// THEN a ELSE count(*) END nothing is left but a column of each row.
func late(n *sqltext.Node) bool {
	found, stray := false, false
	var visit func(*sqltext.Node)
	visit = func(n *sqltext.Node) {
		f := n.GetFuncCall()
		switch {
		case n == nil || stray:
		case f != nil && isAggregate(f):
			found = true
		case n.GetColumnRef() != nil, n.GetSubLink() != nil: // which may name one
			stray = true
		default:
			sqltext.Children(n, visit)
		}
	}
	visit(n)
	return found && !stray
}
