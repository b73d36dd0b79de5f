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
func constant(t *sqltext.TypeCast) bool {
	c := t.GetArg().GetAConst()
	return c != nil && (c.Isnull || c.GetSval() != nil ||
		slices.Contains([]string{"int2", "int4", "int8", "numeric", "float4", "float8", "bool", "text", "varchar"},
			lastName(t.GetTypeName().GetNames())))
}

// converted are types with which PostgreSQL compares others by converting these, which may raise an error: numbers to
// floating point, big integers to OIDs, dates and times to each other in lists. 2: a parameter may be one of these
// however it is declared.
var converted = map[uint32]int{700: 1, 701: 1, 1114: 1, 1184: 1, 26: 2, 24: 2, 2202: 2, 2203: 2, 2204: 2, 2205: 2,
	2206: 2, 3734: 2, 3769: 2, 4089: 2, 4096: 2, 4191: 2}

// plainNames are types that a declared parameter can have without being converted to another by a function that may fail.
var plainNames = []string{"bool", "int2", "int4", "int8", "text", "varchar", "bpchar", "uuid", "timestamptz",
	"jsonb", "json", "bytea"}

// PlainParameter tells the same of an OID: of these types and arrays of them.
func PlainParameter(oid uint32) bool {
	return slices.Contains([]uint32{16, 17, 20, 21, 23, 25, 114, 1042, 1043, 1184, 2950, 3802, 1000, 1005, 1007,
		1009, 1014, 1015, 1016, 2951}, oid)
}

// alike tells whether what is compared needs no conversion that may fail, but of columns of this very query, which are
// put off until the row shows. Operands of other operators than comparisons are not asked about: those are not
// leak-proof.
func (c *cautious) alike(x *sqltext.A_Expr, at stand) bool {
	compares := x.Kind != sqltext.AEXPR_OP && x.Kind != sqltext.AEXPR_LIKE && x.Kind != sqltext.AEXPR_ILIKE &&
		x.Kind != sqltext.AEXPR_SIMILAR || slices.Contains(comparisons, lastName(x.Name))
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
		return !slices.ContainsFunc(items, func(n *sqltext.Node) bool {
			return !c.alikeAll([]*sqltext.Node{x.Lexpr, n}, compares, at)
		})
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
		case n.GetAConst() != nil, n.GetTypeCast() != nil &&
			constant(n.GetTypeCast()), isNow(n), n.GetAExpr() != nil && isNow(n.GetAExpr().Lexpr) &&
			c.harmless(n, at), kind == 1 && n.GetParamRef() != nil:
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

// alikeUnknown tells the same of operands of which none is certain to be of a type that others are converted to, though
// one may be.
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

// putsOff tells whether row security puts off whatever an operand is compared with, since its function is not
// leak-proof and has a column that stays.
func (c *cautious) putsOff(n *sqltext.Node, at stand) bool {
	if at.strict {
		return false
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_FuncCall:
		name := lastName(x.FuncCall.Funcname)
		// a cast, which may be none at all (func_get_detail of parse_func.c)
		if len(c.snap.TypesNamed("", name)) > 0 || len(c.snap.TypesNamed("pg_catalog", name)) > 0 {
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
		case i < len(columns) && columns[i].oid != 0 &&
			(columns[i].oid == t || t != 0 && converted[t] == 0 && converted[columns[i].oid] == 0):
		case !at.strict && converted[t] == 0 && c.hasOwn(n, at) &&
			(c.certainOf(n, at) != 0 || c.putsOff(n, at) || i < len(columns) && slices.Contains(unfailing, columns[i].oid)):
			c.outputs = c.outputs || at.feeds
		default:
			return false
		}
	}
	return true
}

// hasOwn tells whether an operand names a column of a table of this query where it stays when constants are folded,
// sub-selects left out.
func (c *cautious) hasOwn(n *sqltext.Node, at stand) (found bool) {
	c.inside(n, func(n *sqltext.Node) bool {
		found = found || n.GetColumnRef() != nil && c.column(n.GetColumnRef(), at.level).own
		found = found || c.hasFirm(n, at)
		return !found && c.strict(n, at.level)
	})
	return found
}
