package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/builtin"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// What is compared may have to be converted first, as numbers are to floating point, and what converts it may raise an
// error.

// constant tells whether a cast is of a constant, and made no later than the plan: of text as it is read, and between
// plain types by functions that are IMMUTABLE.
func isConstantCast(t *sqltext.TypeCast) bool {
	c := t.GetArg().GetAConst()
	return c != nil && (c.Isnull || c.GetSval() != nil ||
		slices.Contains([]string{"int2", "int4", "int8", "numeric", "float4", "float8", "bool", "text", "varchar"},
			lastName(t.GetTypeName().GetNames())))
}

// converted are types with which PostgreSQL compares others by converting these, which may raise an error: numbers to
// floating point, big integers to OIDs, dates and times to each other in lists. 2: a parameter may be one of these
// however it is declared.
var conversionTargets = map[uint32]int{700: 1, 701: 1, 1114: 1, 1184: 1, 26: 2, 24: 2, 2202: 2, 2203: 2, 2204: 2, 2205: 2,
	2206: 2, 3734: 2, 3769: 2, 4089: 2, 4096: 2, 4191: 2}

// plainNames are types that a declared parameter can have without being converted to another by a function that may fail.
var plainTypeNames = []string{"bool", "int2", "int4", "int8", "text", "varchar", "bpchar", "uuid", "timestamptz",
	"jsonb", "json", "bytea"}

// PlainParameter tells the same of an OID: of these types and arrays of them.
func PlainParameter(oid uint32) bool {
	return slices.Contains([]uint32{16, 17, 20, 21, 23, 25, 114, 1042, 1043, 1184, 2950, 3802, 1000, 1005, 1007,
		1009, 1014, 1015, 1016, 2951}, oid)
}

// alike tells whether what is compared needs no conversion that may fail, but of columns of this very query, which are
// put off until the row shows. Operands of other operators than comparisons are not asked about: those are not
// leak-proof.
func (c *hardenedAnalysis) comparesSafely(x *sqltext.A_Expr, at exprContext) bool {
	compares := x.Kind != sqltext.AEXPR_OP && x.Kind != sqltext.AEXPR_LIKE && x.Kind != sqltext.AEXPR_ILIKE &&
		x.Kind != sqltext.AEXPR_SIMILAR || slices.Contains(comparisonOperators, lastName(x.Name))
	switch items := x.Rexpr.GetList().GetItems(); {
	case x.Kind == sqltext.AEXPR_IN: // what names no column of the query becomes an array, the left operand's type considered
		var others []*sqltext.Node
		for _, n := range items {
			if !c.namesLocalColumn(n, at) {
				others = append(others, n)
			} else if !c.operandsCompareSafely([]*sqltext.Node{x.Lexpr, n}, compares, at) {
				return false
			}
		}
		if len(others) > 1 && x.Lexpr.GetRowExpr() == nil {
			return c.becomeOneType(append(others, x.Lexpr), at)
		}
		return c.operandsCompareSafely(append([]*sqltext.Node{x.Lexpr}, others...), compares, at)
	case x.Kind == sqltext.AEXPR_OP_ANY, x.Kind == sqltext.AEXPR_OP_ALL:
		return c.arrayComparesSafely(x, at)
	case items != nil: // BETWEEN
		return !slices.ContainsFunc(items, func(n *sqltext.Node) bool {
			return !c.operandsCompareSafely([]*sqltext.Node{x.Lexpr, n}, compares, at)
		})
	}
	return c.operandsCompareSafely([]*sqltext.Node{x.Lexpr, x.Rexpr}, compares, at)
}

// alikeAll tells the same of operands. compares: of an operator that is, or may be, one of comparison.
func (c *hardenedAnalysis) operandsCompareSafely(operands []*sqltext.Node, compares bool, at exprContext) bool {
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
			if !c.operandsCompareSafely(column, compares, at) {
				return false
			}
		}
		return true
	}
	kind := 0
	var of uint32
	for _, n := range operands {
		if t := c.typeOf(n, at.queryLevel); conversionTargets[t] > kind && !isNow(n) {
			kind, of = conversionTargets[t], t
		}
	}
	if kind == 0 {
		return !compares || c.unknownsCompareSafely(operands, at)
	}
	for _, n := range operands {
		switch {
		case n.GetAConst() != nil, n.GetTypeCast() != nil &&
			isConstantCast(n.GetTypeCast()), isNow(n), n.GetAExpr() != nil && isNow(n.GetAExpr().Lexpr) &&
			c.cannotFail(n, at), kind == 1 && n.GetParamRef() != nil:
		case n.GetFuncCall() != nil && lastName(n.GetFuncCall().Funcname) == "date_trunc" && c.cannotFail(n, at):
		case c.typeOf(n, at.queryLevel) == of:
		case !at.inSubquery && c.hasLocalColumn(n, at):
			c.fromOutputMayFail = c.fromOutputMayFail || at.subqueryOutput
		default:
			return false
		}
	}
	return true
}

// alikeUnknown tells the same of operands of which none is certain to be of a type that others are converted to, though
// one may be.
func (c *hardenedAnalysis) unknownsCompareSafely(operands []*sqltext.Node, at exprContext) bool {
	unknown := func(n *sqltext.Node) bool {
		if c.certainTypeOf(n, at) != 0 || n.GetAConst() != nil || n.GetParamRef() != nil || isNow(n) || isFoldedConstant(n) {
			return false
		}
		return !c.defersComparison(n, at)
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
		case operand.GetAConst() != nil, isNow(operand), isFoldedConstant(operand), slices.Contains(safelyConvertedTypes, c.certainTypeOf(operand, at)):
		case operand.GetParamRef() != nil:
			c.castsParams = true
		case !at.inSubquery && c.hasLocalColumn(operand, at):
			c.fromOutputMayFail = c.fromOutputMayFail || at.subqueryOutput
		default:
			return false
		}
	}
	return true
}

// certainOf is the type of an operand where it is certain, whatever it is; else 0.
func (c *hardenedAnalysis) certainTypeOf(n *sqltext.Node, at exprContext) uint32 {
	if t := c.typeOf(n, at.queryLevel); t != 0 {
		return t
	}
	if raw := c.rawTypeOf(n, at.queryLevel); raw != scalarType {
		return raw
	}
	return 0
}

// unfailing are types of which every value can be converted to whatever PostgreSQL compares it with.
var safelyConvertedTypes = []uint32{16, 21, 23, 25, 700, 701, 1043, 2950, 3802}

// putsOff tells whether row security puts off whatever an operand is compared with, since its function is not
// leak-proof and has a column that stays.
func (c *hardenedAnalysis) defersComparison(n *sqltext.Node, at exprContext) bool {
	if at.inSubquery {
		return false
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_FuncCall:
		name := lastName(x.FuncCall.Funcname)
		// a cast, which may be none at all (func_get_detail of parse_func.c)
		if len(c.snap.TypesNamed("", name)) > 0 || len(c.snap.TypesNamed("pg_catalog", name)) > 0 {
			return false
		}
		return !builtin.MayBeLeakproof(name) && (c.notFoldable(n, at) || !c.isStrict(n, at.queryLevel) && c.hasNotFoldable(n, at))
	case *sqltext.Node_A_Expr:
		return x.AExpr.Kind == sqltext.AEXPR_OP && slices.Contains(leakyOperators, lastName(x.AExpr.Name)) && c.notFoldable(n, at)
	}
	return false
}

// leaky are operators of which none by the name is leak-proof.
var leakyOperators = []string{"+", "-", "*", "/", "%", "||", "->", "->>", "#>", "#>>"}

// alikeTested tells the same of what is compared with the rows of a sub-select.
func (c *hardenedAnalysis) subLinkComparesSafely(s *sqltext.SubLink, at exprContext) bool {
	if s.Testexpr == nil {
		return true
	}
	tested := []*sqltext.Node{s.Testexpr}
	if row := s.Testexpr.GetRowExpr(); row != nil {
		tested = row.Args
	}
	columns := c.outputsOf(s.GetSubselect().GetSelectStmt(), at.queryLevel, "")
	for i, n := range tested {
		t := c.typeOf(n, at.queryLevel)
		switch {
		case i < len(columns) && columns[i].oid != 0 &&
			(columns[i].oid == t || t != 0 && conversionTargets[t] == 0 && conversionTargets[columns[i].oid] == 0):
		case !at.inSubquery && conversionTargets[t] == 0 && c.hasLocalColumn(n, at) &&
			(c.certainTypeOf(n, at) != 0 || c.defersComparison(n, at) || i < len(columns) && slices.Contains(safelyConvertedTypes, columns[i].oid)):
			c.fromOutputMayFail = c.fromOutputMayFail || at.subqueryOutput
		default:
			return false
		}
	}
	return true
}

// hasOwn tells whether an operand names a column of a table of this query where it stays when constants are folded,
// sub-selects left out.
func (c *hardenedAnalysis) hasLocalColumn(n *sqltext.Node, at exprContext) (found bool) {
	c.walkNodes(n, func(n *sqltext.Node) bool {
		found = found || n.GetColumnRef() != nil && c.resolveColumn(n.GetColumnRef(), at.queryLevel).localColumn
		found = found || c.hasNotFoldable(n, at)
		return !found && c.isStrict(n, at.queryLevel)
	})
	return found
}
