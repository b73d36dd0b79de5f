package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// The functions below decide which expressions certainly cannot raise an error. All other expressions count as
// expressions that may.

var comparisonOperators = []string{"=", "<>", "!=", "<", "<=", ">", ">="}

// cannotFail tells whether the operation of an expression cannot raise an error. Its operands are visited separately.
func (c *hardenedAnalysis) cannotFail(n *sqltext.Node, context exprContext) bool {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_A_Expr:
		return c.operatorCannotFail(x.AExpr, context)
	case *sqltext.Node_TypeCast:
		if isConstantCast(x.TypeCast) || c.declaresParamType(x.TypeCast) {
			return true
		}
		if context.inSubquery || !c.isPlainArray(x.TypeCast.Arg, context) ||
			slices.ContainsFunc(x.TypeCast.Arg.GetAArrayExpr().Elements,
				func(n *sqltext.Node) bool { return n.GetAConst() == nil && !c.hasLocalColumn(n, context) }) {
			return false
		}
		c.fromOutputMayFail = c.fromOutputMayFail || context.subqueryOutput
		return true
	// a field may be a function in attribute notation; checkFalseLeakproof checks subscripts
	case *sqltext.Node_A_Indirection:
		return !slices.ContainsFunc(x.AIndirection.Indirection, func(n *sqltext.Node) bool { return n.GetAIndices() == nil })
	case *sqltext.Node_FuncCall:
		return c.callCannotFail(x.FuncCall, context)
	case *sqltext.Node_CoalesceExpr:
		return c.haveOneType(x.CoalesceExpr.Args, context)
	case *sqltext.Node_CaseExpr:
		results := []*sqltext.Node{x.CaseExpr.Defresult}
		for _, whenClause := range x.CaseExpr.Args {
			results = append(results, whenClause.GetCaseWhen().GetResult())
		}
		return x.CaseExpr.Arg == nil && c.haveOneType(results, context)
	case *sqltext.Node_A_ArrayExpr:
		return c.haveOneType(x.AArrayExpr.Elements, context)
	}
	return false
}

// haveOneType tells whether PostgreSQL can give values one type without a conversion that may fail. Elements of an
// array must not be arrays themselves, because PostgreSQL requires them to be equally long. Parameters are accepted,
// but castsParams is set, because the client may declare any type for them.
func (c *hardenedAnalysis) haveOneType(values []*sqltext.Node, context exprContext) bool {
	var of uint32
	for _, n := range values {
		switch {
		case n.GetNode() == nil, n.GetAConst() != nil:
			continue
		case n.GetParamRef() != nil:
			c.castsParams = c.castsParams || len(values) > 1
			continue
		}
		t := c.typeOf(n, context.queryLevel)
		if len(values) > 1 && (t == 0 || slices.Contains(comparableArrayTypes, t)) || t == 0 && context.inSubquery ||
			of != 0 && t != of && (conversionTargets[t] > 0 || conversionTargets[of] > 0) {
			return false
		}
		of = t
	}
	return true
}

// comparableArrayTypes are array types whose values PostgreSQL can always compare.
var comparableArrayTypes = []uint32{1005, 1007, 1009, 1016, 2951}

func (c *hardenedAnalysis) operatorCannotFail(x *sqltext.A_Expr, context exprContext) bool {
	schema, name, ok := qualifiedName(x.Name)
	if !ok || schema != "" && schema != "pg_catalog" {
		return false
	}
	if x.Kind == sqltext.AEXPR_OP && slices.Contains([]string{"+", "-", "*"}, name) && isIntegerConstant(x.Lexpr) &&
		isIntegerConstant(x.Rexpr) {
		return true // PostgreSQL computes the expression at planning, before it reads rows
	}
	if x.Kind == sqltext.AEXPR_OP && (name == "+" || name == "-") && isCurrentTime(x.Lexpr) {
		if v := x.Lexpr.GetSqlvalueFunction(); v != nil && v.Op == sqltext.SVFOP_CURRENT_DATE && isIntegerConstant(x.Rexpr) {
			days := x.Rexpr.GetAConst().GetIval().GetIval()
			return -1_000_000 < days && days < 1_000_000
		}
		length := x.Rexpr.GetTypeCast().GetArg().GetAConst().GetSval()
		return length != nil && lastNamePart(x.Rexpr.GetTypeCast().GetTypeName().GetNames()) == "interval" &&
			intervalPattern.MatchString(length.GetSval())
	}
	switch x.Kind {
	case sqltext.AEXPR_OP, sqltext.AEXPR_OP_ANY, sqltext.AEXPR_IN, sqltext.AEXPR_DISTINCT, sqltext.AEXPR_NOT_DISTINCT,
		sqltext.AEXPR_NULLIF:
		if !slices.Contains(comparisonOperators, name) {
			return false
		}
	case sqltext.AEXPR_BETWEEN, sqltext.AEXPR_NOT_BETWEEN:
	default:
		return false
	}
	return c.isComparableOperand(x.Lexpr, context) && c.isComparableOperand(x.Rexpr, context) &&
		c.comparesSafely(x, context)
}

// isComparableOperand tells whether PostgreSQL can compare an operand without an error, whatever its value is.
func (c *hardenedAnalysis) isComparableOperand(n *sqltext.Node, context exprContext) bool {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_A_Const, *sqltext.Node_ParamRef, *sqltext.Node_SQLValueFunction:
		return true
	case *sqltext.Node_TypeCast:
		return c.cannotFail(n, context)
	case *sqltext.Node_List:
		return !slices.ContainsFunc(x.List.Items, func(n *sqltext.Node) bool { return !c.isComparableOperand(n, context) })
	case *sqltext.Node_A_ArrayExpr:
		return !slices.ContainsFunc(x.AArrayExpr.Elements,
			func(n *sqltext.Node) bool { return !c.isComparableOperand(n, context) })
	case *sqltext.Node_RowExpr:
		return !slices.ContainsFunc(x.RowExpr.Args, func(n *sqltext.Node) bool { return !c.isComparableOperand(n, context) })
	case *sqltext.Node_FuncCall, *sqltext.Node_A_Expr:
		if isCurrentTime(n) || isShallow(n) && c.cannotFail(n, context) {
			return true
		}
	}
	return c.typeOf(n, context.queryLevel) != 0
}

// isShallow tells whether an operand has no further expressions in its own operands or arguments. In a deeply nested
// expression, each level would visit all levels below it again.
func isShallow(n *sqltext.Node) bool {
	if x := n.GetAExpr(); x != nil {
		return x.Lexpr.GetAExpr() == nil && x.Rexpr.GetAExpr() == nil && x.Lexpr.GetList() == nil && x.Rexpr.GetList() == nil
	}
	for _, arg := range n.GetFuncCall().GetArgs() {
		if arg.GetFuncCall() != nil && !isCurrentTime(arg) || arg.GetAExpr() != nil {
			return false
		}
	}
	return true
}

// isFoldedConstant tells whether an argument is a constant, so that PostgreSQL computes IMMUTABLE functions of it at
// planning, before it reads rows.
func isFoldedConstant(n *sqltext.Node) bool {
	return n.GetAConst() != nil || n.GetTypeCast() != nil && isConstantCast(n.GetTypeCast())
}

func isIntegerConstant(n *sqltext.Node) bool { return n.GetAConst().GetIval() != nil }

func isCurrentTime(n *sqltext.Node) bool {
	if v := n.GetSqlvalueFunction(); v != nil {
		return v.Op == sqltext.SVFOP_CURRENT_DATE || v.Op == sqltext.SVFOP_CURRENT_TIMESTAMP ||
			v.Op == sqltext.SVFOP_LOCALTIMESTAMP
	}
	f := n.GetFuncCall()
	return f != nil && len(f.Args) == 0 && lastNamePart(f.Funcname) == "now"
}

func (c *hardenedAnalysis) callCannotFail(f *sqltext.FuncCall, context exprContext) bool {
	// the frame of a window may have a negative bound, which is an error
	if f.AggWithinGroup || f.FuncVariadic || f.AggDistinct || len(f.AggOrder) > 0 || f.Over != nil {
		return false
	}
	switch lastNamePart(f.Funcname) {
	case "now":
		return len(f.Args) == 0
	case "count":
		return f.AggStar || len(f.Args) == 1
	case "min", "max":
		return len(f.Args) == 1 && c.isComparableOperand(f.Args[0], context)
	case "sum", "avg": // the type of the sum is large enough for any number of integers
		return len(f.Args) == 1 && slices.Contains([]uint32{20, 21, 23}, c.typeOf(f.Args[0], context.queryLevel))
	case "to_tsquery", "plainto_tsquery", "phraseto_tsquery", "websearch_to_tsquery", "to_tsvector":
		return len(f.Args) == 2 && isFoldedConstant(f.Args[0]) && isFoldedConstant(f.Args[1])
	case "daterange", "int4range", "int8range", "numrange", "tsrange", "tstzrange":
		// only constants without a cast are accepted, because a cast may convert its operand when the call runs
		return !slices.ContainsFunc(f.Args, func(n *sqltext.Node) bool { return n.GetAConst() == nil })
	case "lower", "upper", "similar_to_escape", "like_escape", "make_date":
		return !slices.ContainsFunc(f.Args, func(n *sqltext.Node) bool { return !isFoldedConstant(n) })
	case "date_trunc":
		return len(f.Args) == 2 && f.Args[0].GetAConst().GetSval() != nil &&
			slices.Contains([]string{"hour", "day", "week", "month", "quarter", "year"},
				f.Args[0].GetAConst().GetSval().GetSval()) && isCurrentTime(f.Args[1])
	}
	return false
}
