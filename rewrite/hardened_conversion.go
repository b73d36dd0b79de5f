package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/builtin"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// PostgreSQL may have to convert a value before it compares the value, for example a number to floating point. The
// conversion may raise an error.

// isConstantCast tells whether a cast converts a constant, and PostgreSQL does so before it reads any row. PostgreSQL
// casts string literals when it parses, and values of plain types by IMMUTABLE functions when it plans.
func isConstantCast(t *sqltext.TypeCast) bool {
	c := t.GetArg().GetAConst()
	return c != nil && (c.Isnull || c.GetSval() != nil ||
		slices.Contains([]string{"int2", "int4", "int8", "numeric", "float4", "float8", "bool", "text", "varchar"},
			lastNamePart(t.GetTypeName().GetNames())))
}

// conversionTargets are types to which PostgreSQL may convert other operands before it compares them, by a conversion
// that may fail. It converts numbers to floating point, big integers to OIDs, and in lists dates and times to each
// other. The value 2 means that PostgreSQL may convert a parameter to the type, whatever type the client declares.
var conversionTargets = map[uint32]int{700: 1, 701: 1, 1114: 1, 1184: 1, 26: 2, 24: 2, 2202: 2, 2203: 2, 2204: 2,
	2205: 2,
	2206: 2, 3734: 2, 3769: 2, 4089: 2, 4096: 2, 4191: 2}

// plainTypeNames are the types that a client may declare for a parameter, because converting their values cannot fail.
var plainTypeNames = []string{"bool", "int2", "int4", "int8", "text", "varchar", "bpchar", "uuid", "timestamptz",
	"jsonb", "json", "bytea"}

// IsPlainParameterType tells whether a client may declare this type for a parameter, because converting its values
// cannot fail. The type must be plain, or an array of a plain type.
func IsPlainParameterType(oid uint32) bool {
	return slices.Contains([]uint32{16, 17, 20, 21, 23, 25, 114, 1042, 1043, 1184, 2950, 3802, 1000, 1005, 1007,
		1009, 1014, 1015, 1016, 2951}, oid)
}

// comparesSafely tells whether an operator needs no conversion that may fail. Conversions of the query's own columns do
// not count, because row security delays them. Only the operands of comparisons are checked, since PostgreSQL considers
// no other operator leak-proof.
func (c *hardenedAnalysis) comparesSafely(x *sqltext.A_Expr, context exprContext) bool {
	compares := x.Kind != sqltext.AEXPR_OP && x.Kind != sqltext.AEXPR_LIKE && x.Kind != sqltext.AEXPR_ILIKE &&
		x.Kind != sqltext.AEXPR_SIMILAR || slices.Contains(comparisonOperators, lastNamePart(x.Name))
	switch items := x.Rexpr.GetList().GetItems(); {
	// PostgreSQL makes an array of the values that name no column of the query; its type depends on the left operand
	case x.Kind == sqltext.AEXPR_IN:
		var others []*sqltext.Node
		for _, n := range items {
			if !c.namesLocalColumn(n, context) {
				others = append(others, n)
			} else if !c.operandsCompareSafely([]*sqltext.Node{x.Lexpr, n}, compares, context) {
				return false
			}
		}
		if len(others) > 1 && x.Lexpr.GetRowExpr() == nil {
			return c.becomeOneType(append(others, x.Lexpr), context)
		}
		return c.operandsCompareSafely(append([]*sqltext.Node{x.Lexpr}, others...), compares, context)
	case x.Kind == sqltext.AEXPR_OP_ANY, x.Kind == sqltext.AEXPR_OP_ALL:
		return c.arrayComparesSafely(x, context)
	case items != nil: // the operator is BETWEEN
		return !slices.ContainsFunc(items, func(n *sqltext.Node) bool {
			return !c.operandsCompareSafely([]*sqltext.Node{x.Lexpr, n}, compares, context)
		})
	}
	return c.operandsCompareSafely([]*sqltext.Node{x.Lexpr, x.Rexpr}, compares, context)
}

// operandsCompareSafely tells whether PostgreSQL can compare the operands without a conversion that may fail. compares
// tells whether the operator is, or may be, a comparison.
func (c *hardenedAnalysis) operandsCompareSafely(operands []*sqltext.Node, compares bool, context exprContext) bool {
	if rows := operands[0].GetRowExpr(); rows != nil { // PostgreSQL compares rows column by column
		for i := range rows.Args {
			var column []*sqltext.Node
			for _, n := range operands {
				if row := n.GetRowExpr(); row == nil || len(row.Args) != len(rows.Args) {
					return false
				} else {
					column = append(column, row.Args[i])
				}
			}
			if !c.operandsCompareSafely(column, compares, context) {
				return false
			}
		}
		return true
	}
	conversion := 0
	var of uint32
	for _, n := range operands {
		if t := c.typeOf(n, context.queryLevel); conversionTargets[t] > conversion && !isCurrentTime(n) {
			conversion, of = conversionTargets[t], t
		}
	}
	if conversion == 0 {
		return !compares || c.unknownsCompareSafely(operands, context)
	}
	for _, n := range operands {
		switch {
		case n.GetAConst() != nil, n.GetTypeCast() != nil &&
			isConstantCast(n.GetTypeCast()), isCurrentTime(n), n.GetAExpr() != nil && isCurrentTime(n.GetAExpr().Lexpr) &&
			c.cannotFail(n, context), conversion == 1 && n.GetParamRef() != nil:
		case n.GetFuncCall() != nil && lastNamePart(n.GetFuncCall().Funcname) == "date_trunc" && c.cannotFail(n, context):
		case c.typeOf(n, context.queryLevel) == of:
		case !context.inSubquery && c.hasLocalColumn(n, context):
			c.fromOutputMayFail = c.fromOutputMayFail || context.subqueryOutput
		default:
			return false
		}
	}
	return true
}

// unknownsCompareSafely tells whether PostgreSQL can compare the operands without a conversion that may fail. It is
// called if no operand certainly has a type in conversionTargets, though some operand's type is not known and may be
// one.
func (c *hardenedAnalysis) unknownsCompareSafely(operands []*sqltext.Node, context exprContext) bool {
	unknown := func(n *sqltext.Node) bool {
		if c.certainTypeOf(n, context) != 0 || n.GetAConst() != nil || n.GetParamRef() != nil || isCurrentTime(n) ||
			isFoldedConstant(n) {
			return false
		}
		return !c.defersComparison(n, context)
	}
	n := 0
	for _, operand := range operands {
		if unknown(operand) {
			n++
		}
	}
	for _, operand := range operands {
		switch {
		case n == 0, n == 1 && unknown(operand): // PostgreSQL converts no operand to the type of another
		case operand.GetAConst() != nil, isCurrentTime(operand), isFoldedConstant(operand),
			slices.Contains(safelyConvertedTypes, c.certainTypeOf(operand, context)):
		case operand.GetParamRef() != nil:
			c.castsParams = true
		case !context.inSubquery && c.hasLocalColumn(operand, context):
			c.fromOutputMayFail = c.fromOutputMayFail || context.subqueryOutput
		default:
			return false
		}
	}
	return true
}

// certainTypeOf returns the type of an operand, also if its values cannot be compared; 0 if the type is not certain.
func (c *hardenedAnalysis) certainTypeOf(n *sqltext.Node, context exprContext) uint32 {
	if t := c.typeOf(n, context.queryLevel); t != 0 {
		return t
	}
	if raw := c.rawTypeOf(n, context.queryLevel); raw != scalarType {
		return raw
	}
	return 0
}

// safelyConvertedTypes are types whose values PostgreSQL can all convert to any type with which it compares them.
var safelyConvertedTypes = []uint32{16, 21, 23, 25, 700, 701, 1043, 2950, 3802}

// defersComparison tells whether row security delays a comparison because of this operand: the operand's function is
// not leak-proof, and has a column that survives constant folding.
func (c *hardenedAnalysis) defersComparison(n *sqltext.Node, context exprContext) bool {
	if context.inSubquery {
		return false
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_FuncCall:
		name := lastNamePart(x.FuncCall.Funcname)
		// the call may be a cast that converts nothing (func_get_detail of parse_func.c)
		if len(c.snap.TypesNamed("", name)) > 0 || len(c.snap.TypesNamed("pg_catalog", name)) > 0 {
			return false
		}
		return !builtin.MayBeLeakproof(name) &&
			(c.isNotFoldable(n, context) || !c.isStrict(n, context.queryLevel) && c.hasNotFoldableOperand(n, context))
	case *sqltext.Node_A_Expr:
		return x.AExpr.Kind == sqltext.AEXPR_OP && slices.Contains(leakyOperators, lastNamePart(x.AExpr.Name)) &&
			c.isNotFoldable(n, context)
	}
	return false
}

// leakyOperators are operators that are leak-proof for no types of operands.
var leakyOperators = []string{"+", "-", "*", "/", "%", "||", "->", "->>", "#>", "#>>"}

// subLinkComparesSafely tells whether PostgreSQL can compare with the rows of a sub-select without a conversion that
// may fail.
func (c *hardenedAnalysis) subLinkComparesSafely(s *sqltext.SubLink, context exprContext) bool {
	if s.Testexpr == nil {
		return true
	}
	tested := []*sqltext.Node{s.Testexpr}
	if row := s.Testexpr.GetRowExpr(); row != nil {
		tested = row.Args
	}
	columns := c.outputsOf(s.GetSubselect().GetSelectStmt(), context.queryLevel, "")
	for i, n := range tested {
		t := c.typeOf(n, context.queryLevel)
		switch {
		case i < len(columns) && columns[i].oid != 0 &&
			(columns[i].oid == t || t != 0 && conversionTargets[t] == 0 && conversionTargets[columns[i].oid] == 0):
		case !context.inSubquery && conversionTargets[t] == 0 && c.hasLocalColumn(n, context) &&
			(c.certainTypeOf(n, context) != 0 || c.defersComparison(n, context) ||
				i < len(columns) && slices.Contains(safelyConvertedTypes, columns[i].oid)):
			c.fromOutputMayFail = c.fromOutputMayFail || context.subqueryOutput
		default:
			return false
		}
	}
	return true
}

// hasLocalColumn tells whether an operand names a column of a table of this query that survives constant folding.
// Columns inside of sub-selects do not count.
func (c *hardenedAnalysis) hasLocalColumn(n *sqltext.Node, context exprContext) (found bool) {
	c.walkNodes(n, func(n *sqltext.Node) bool {
		found = found || n.GetColumnRef() != nil && c.resolveColumn(n.GetColumnRef(), context.queryLevel).localColumn
		found = found || c.hasNotFoldableOperand(n, context)
		return !found && c.isStrict(n, context.queryLevel)
	})
	return found
}
