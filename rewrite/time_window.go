package rewrite

import (
	"slices"
	"strconv"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// PostgreSQL converts a column of type timestamp when it compares the column with a time with time zone, as in `created
// >= now() - interval '7 days'`. It uses no index for the converted column, and row security delays the comparison.
// Casting the other side would mean something else when daylight saving time begins or ends. So the rewriter adds a
// condition for which PostgreSQL can use an index, wide enough for every time zone:
//
//	created >= (now() - interval '7 days')::timestamp - '2 days'::interval AND created >= now() - interval '7 days'
//
// The offsets of a time zone from UTC differ by less than two days. So the added condition is true whenever the other
// one is.

// timeWindow is a condition that the rewriter adds before another one. It is true whenever the other one is.
type timeWindow struct {
	at        int32  // the byte at which the other condition begins
	sql       string // the text of the added condition
	node      *sqltext.Node
	condition *sqltext.Node // the other condition
}

// noteTimeWindow notes the condition to add for a comparison of an indexed column with a time near the current date.
func (w *walker) noteTimeWindow(condition *sqltext.Node, column *sqltext.ColumnRef, operator string, bounds ...*sqltext.Node) {
	relation, stored := w.storedColumn(column)
	if stored == nil || stored.TypeOID != 1114 || !slices.ContainsFunc(relation.BTrees,
		func(i catalog.BTree) bool { return slices.Contains(i.Columns, stored.Name) }) {
		return
	}
	name := ""
	for _, part := range column.Fields {
		if name != "" {
			name += "."
		}
		name += catalog.QuoteIdent(part.GetString_().GetSval())
	}
	var conditions string
	add := func(operator, shift string, bound *sqltext.Node) {
		sql, kind, ok := w.nearZoned(bound, maxShifts)
		if !ok || kind != "timestamptz" {
			return
		}
		if conditions != "" {
			conditions += " AND "
		}
		conditions += name + " OPERATOR(pg_catalog." + operator + ") ((" + sql + ")::pg_catalog.timestamp OPERATOR(pg_catalog." +
			shift + ") '2 days'::pg_catalog.interval)"
	}
	switch operator {
	case ">", ">=":
		add(">=", "-", bounds[0])
	case "<", "<=":
		add("<=", "+", bounds[0])
	default: // the operator is = or BETWEEN
		add(">=", "-", bounds[0])
		add("<=", "+", bounds[len(bounds)-1])
	}
	tokenIndex := w.source.TokenAt(column.Location)
	node := parseExpression(conditions)
	if conditions == "" || node == nil || tokenIndex < 0 {
		return
	}
	w.timeWindows = append(w.timeWindows, timeWindow{at: w.source.Tokens[tokenIndex].Start, sql: conditions, node: node,
		condition: condition})
}

// addTimeWindows writes the noted conditions into the text, each before the condition that implies it.
func (w *walker) addTimeWindows() {
	for _, window := range w.timeWindows {
		w.replace(window.at, window.at, window.sql+" AND ", func() {
			window.condition.Node = &sqltext.Node_BoolExpr{BoolExpr: &sqltext.BoolExpr{Boolop: sqltext.AND_EXPR,
				Args: []*sqltext.Node{window.node, {Node: window.condition.Node}}}}
		})
	}
}

// maxShifts bounds how many additions, subtractions and function calls may be nested in one time.
const maxShifts = 4

// truncateUnits are the units of date_trunc that are allowed in such a time.
var truncateUnits = []string{"second", "minute", "hour", "day", "week", "month", "quarter", "year"}

// nearZoned returns the SQL of a time near the current date, written with PostgreSQL's own functions, and its type:
// "date", "timestamp" or "timestamptz". The expression names no column, cannot fail, and has one value during a
// statement.
func (w *walker) nearZoned(n *sqltext.Node, depth int) (sql, kind string, ok bool) {
	if depth == 0 {
		return "", "", false
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_SQLValueFunction:
		switch x.SqlvalueFunction.Op {
		case sqltext.SVFOP_CURRENT_DATE:
			return "CURRENT_DATE", "date", true
		case sqltext.SVFOP_CURRENT_TIMESTAMP:
			return "CURRENT_TIMESTAMP", "timestamptz", true
		}
	case *sqltext.Node_A_Expr:
		return w.shiftedTime(x.AExpr, depth)
	case *sqltext.Node_TypeCast:
		for _, kind := range []string{"date", "timestamp", "timestamptz"} {
			if text, isOfKind := w.castConstant(n, kind); isOfKind {
				isNear := datePattern.MatchString(text) || kind != "date" && timestampPattern.MatchString(text)
				return catalog.QuoteLiteral(text) + "::pg_catalog." + kind, kind, isNear
			}
		}
		if inner, _, ok := w.nearZoned(x.TypeCast.Arg, depth-1); ok && w.isCatalogType(x.TypeCast.TypeName, "date") {
			return "(" + inner + ")::pg_catalog.date", "date", true
		}
	case *sqltext.Node_FuncCall:
		return w.nearCall(x.FuncCall, depth)
	}
	return "", "", false
}

// shiftedTime is nearZoned for expressions of the form time + x or time - x, where x is days or an interval.
func (w *walker) shiftedTime(x *sqltext.A_Expr, depth int) (sql, kind string, ok bool) {
	operator := lastNamePart(x.Name)
	if x.Kind != sqltext.AEXPR_OP || len(x.Name) != 1 || operator != "+" && operator != "-" || x.Lexpr == nil {
		return "", "", false
	}
	inner, kind, ok := w.nearZoned(x.Lexpr, depth-1)
	if !ok {
		return "", "", false
	}
	sql = "(" + inner + ") OPERATOR(pg_catalog." + operator + ") "
	if days := x.Rexpr.GetAConst().GetIval(); days != nil {
		return sql + strconv.Itoa(int(days.Ival)), kind, kind == "date" && 0 <= days.Ival && days.Ival <= maxDays
	}
	length, isOfKind := w.castConstant(x.Rexpr, "interval")
	if !isOfKind || !intervalPattern.MatchString(length) {
		return "", "", false
	}
	if kind == "date" {
		kind = "timestamp"
	}
	return sql + catalog.QuoteLiteral(length) + "::pg_catalog.interval", kind, true
}

// nearCall is nearZoned for calls of now() and similar functions, and of date_trunc.
func (w *walker) nearCall(f *sqltext.FuncCall, depth int) (sql, kind string, ok bool) {
	schema, name, ok := qualifiedName(f.Funcname)
	if !ok || schema != "pg_catalog" && (schema != "" || len(w.snap.FunctionsNamed("", name)) > 0) || f.Over != nil ||
		f.FuncVariadic || f.AggStar {
		return "", "", false
	}
	switch {
	case len(f.Args) == 0 && slices.Contains([]string{"now", "transaction_timestamp", "statement_timestamp"}, name):
		return "pg_catalog." + name + "()", "timestamptz", true
	case name == "date_trunc" && len(f.Args) == 2:
		unit, constant := constantString(f.Args[0])
		inner, kind, ok := w.nearZoned(f.Args[1], depth-1)
		if !ok || !constant || !slices.Contains(truncateUnits, unit) {
			return "", "", false
		}
		if kind == "date" { // PostgreSQL chooses the function for timestamptz
			inner, kind = "("+inner+")::pg_catalog.timestamptz", "timestamptz"
		}
		return "pg_catalog.date_trunc(" + catalog.QuoteLiteral(unit) + ", " + inner + ")", kind, true
	}
	return "", "", false
}
