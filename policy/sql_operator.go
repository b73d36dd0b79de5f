package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// compileOperator compiles an operator, or a construct that the parser treats as an operator.
func (x *sqlExpression) compileOperator(n *sqltext.A_Expr) (operand, bool) {
	names := stringsOf(n.Name)
	if len(names) == 2 && names[0] == "pg_catalog" {
		names = names[1:]
	}
	if len(names) != 1 {
		return x.fail(n.Location, "operators are those of pg_catalog",
			"the operator %s is not part of sql expressions", strings.Join(names, "."))
	}
	op := names[0]
	switch n.Kind {
	case sqltext.AEXPR_OP:
		return x.compileOperatorText(op, n)
	case sqltext.AEXPR_DISTINCT, sqltext.AEXPR_NOT_DISTINCT:
		return x.compileDistinct(n)
	case sqltext.AEXPR_NULLIF:
		return x.compileNullIf(n)
	case sqltext.AEXPR_IN:
		return x.compileIn(n, op == "<>")
	case sqltext.AEXPR_OP_ANY:
		if op == "=" {
			return x.compileAnyOf(n, false)
		}
	case sqltext.AEXPR_OP_ALL:
		if op == "<>" {
			return x.compileAnyOf(n, true)
		}
	case sqltext.AEXPR_LIKE:
		return x.compileLike(n, op == "!~~")
	case sqltext.AEXPR_BETWEEN, sqltext.AEXPR_NOT_BETWEEN:
		return x.compileBetween(n)
	case sqltext.AEXPR_ILIKE:
		return x.fail(n.Location, "write lower(column) LIKE 'pattern'", "ILIKE is not part of sql expressions")
	}
	return x.fail(n.Location, "docs/reference/policy.md lists the operators",
		"this form of %s is not part of sql expressions", op)
}

var comparisons = []string{"=", "<>", "<", "<=", ">", ">="}

// compileOperatorText compiles an expression with the operator op.
func (x *sqlExpression) compileOperatorText(op string, n *sqltext.A_Expr) (operand, bool) {
	switch {
	case n.Lexpr == nil:
		return x.compileSign(op, n)
	case slices.Contains(comparisons, op):
		return x.compileComparison(op, n.Lexpr, n.Rexpr, n.Location)
	case op == "&&" || op == "@>" || op == "<@":
		return x.compileOverlap(op, n)
	case op == "+" || op == "-":
		return x.compileShift(op, n)
	}
	if f, ok := predicate.Functions[op]; ok && f.Operator {
		return x.compileFunction(op, []*sqltext.Node{n.Lexpr, n.Rexpr}, n.Location)
	}
	suggestion := "docs/reference/policy.md lists the operators"
	if op == "==" {
		suggestion = "write ="
	}
	return x.fail(n.Location, suggestion, "the operator %s is not part of sql expressions", op)
}

// compileSign compiles a number with a plus or minus sign.
func (x *sqlExpression) compileSign(op string, n *sqltext.A_Expr) (operand, bool) {
	o, ok := x.compile(n.Rexpr)
	if !ok {
		return o, false
	}
	if c, isConst := o.Expr.(predicate.Constant); isConst && o.kind == predicate.Number && op == "-" &&
		!strings.HasPrefix(c.Value, "-") {
		return x.compileNumber("-"+c.Value, n.Location)
	}
	return x.fail(n.Location, "it could overflow", "arithmetic is not part of sql expressions")
}

// compilePair compiles two values that must have the same kind.
func (x *sqlExpression) compilePair(left, right *sqltext.Node) (a, b operand, ok bool) {
	a, ok = x.compile(left)
	b, ok2 := x.compile(right)
	if !ok || !ok2 {
		return a, b, false
	}
	for _, o := range []operand{a, b} {
		if _, null := o.Expr.(predicate.Null); null {
			x.names.fail(x.placeOf(o.at), "write IS NULL", "nothing compares with NULL")
			return a, b, false
		}
	}
	kind := b.kind
	_, clock := b.Expr.(predicate.ClockTime)
	_, number := b.Expr.(predicate.Constant)
	if kind == "" || (clock || number) && a.kind != "" {
		kind = a.kind
	}
	if kind == "" {
		kind = predicate.Text
	}
	if a, ok = x.convert(a, kind); !ok {
		return a, b, false
	}
	b, ok = x.convert(b, kind)
	return a, b, ok
}

// compileComparison compiles a comparison.
func (x *sqlExpression) compileComparison(op string, left, right *sqltext.Node, location int32) (operand, bool) {
	a, b, ok := x.compilePair(left, right)
	if !ok {
		return operand{}, false
	}
	if a.kind == predicate.JSONB || a.kind != a.kind.Element() {
		return x.fail(location, "write doc ->> 'key', or value = ANY (list)", "%s values are not compared whole", a.kind)
	}
	return operand{predicate.Comparison{Op: op, Left: a.Expr, Right: b.Expr, ByBytes: mixesTextColumns(a.kind, a.Expr,
		b.Expr)},
		predicate.Bool, location}, true
}

// compileDistinct compiles IS [NOT] DISTINCT FROM to other operators, since its name cannot be schema-qualified.
func (x *sqlExpression) compileDistinct(n *sqltext.A_Expr) (operand, bool) {
	equal, ok := x.compileComparison("=", n.Lexpr, n.Rexpr, n.Location)
	if !ok {
		return operand{}, false
	}
	c := equal.Expr.(predicate.Comparison)
	var out predicate.Expr = predicate.Case{
		Branches: []predicate.CaseBranch{
			{Condition: isNull(c.Left), Result: predicate.Negation{Expr: isNull(c.Right)}},
			{Condition: isNull(c.Right), Result: predicate.Negation{Expr: isNull(c.Left)}},
		},
		ElseValue: predicate.Negation{Expr: c},
	}
	if n.Kind == sqltext.AEXPR_NOT_DISTINCT {
		out = predicate.Negation{Expr: out}
	}
	return operand{out, predicate.Bool, n.Location}, true
}

func (x *sqlExpression) compileNullIf(n *sqltext.A_Expr) (operand, bool) {
	equal, ok := x.compileComparison("=", n.Lexpr, n.Rexpr, n.Location)
	if !ok {
		return operand{}, false
	}
	c := equal.Expr.(predicate.Comparison)
	a, _, _ := x.compilePair(n.Lexpr, n.Rexpr)
	differ := predicate.Negation{Expr: predicate.IsTest{Operand: c, Keyword: "TRUE"}}
	return operand{predicate.Case{Branches: []predicate.CaseBranch{{Condition: differ, Result: c.Left}}}, a.kind,
		n.Location}, true
}

// compileIn compiles IN. If all values are constants, the result is one comparison with a list.
func (x *sqlExpression) compileIn(n *sqltext.A_Expr, negated bool) (operand, bool) {
	items := n.Rexpr.GetList()
	if items == nil {
		return x.fail(n.Location, "", "IN takes a list of values")
	}
	var out predicate.Expr
	var constants predicate.Array
	var comparisons predicate.Or
	for _, item := range items.Items {
		equal, ok := x.compileComparison("=", n.Lexpr, item, n.Location)
		if !ok {
			return operand{}, false
		}
		c := equal.Expr.(predicate.Comparison)
		comparisons = append(comparisons, c)
		if _, isConst := c.Right.(predicate.Constant); isConst {
			constants = append(constants, c.Right)
			out = predicate.AnyOf{Left: c.Left, List: constants}
		}
	}
	if len(constants) < len(items.Items) {
		out = comparisons
	}
	if negated {
		out = predicate.Negation{Expr: out}
	}
	return operand{out, predicate.Bool, n.Location}, true
}

// compileAnyOf compiles value = ANY (list), and value <> ALL (list) as its negation.
func (x *sqlExpression) compileAnyOf(n *sqltext.A_Expr, negated bool) (operand, bool) {
	list, ok := x.compile(n.Rexpr)
	if !ok {
		return operand{}, false
	}
	if list.kind == list.kind.Element() {
		return x.fail(list.at, "write IN (…) for constants", "ANY takes a column or attribute that is a list")
	}
	a, ok := x.compile(n.Lexpr)
	if !ok {
		return operand{}, false
	}
	if a, ok = x.convert(a, list.kind.Element()); !ok {
		return operand{}, false
	}
	var out predicate.Expr = predicate.AnyOf{Left: a.Expr, List: list.Expr, ByBytes: mixesTextColumns(a.kind, a.Expr,
		list.Expr)}
	if negated {
		out = predicate.Negation{Expr: out}
	}
	return operand{out, predicate.Bool, n.Location}, true
}

func (x *sqlExpression) compileOverlap(op string, n *sqltext.A_Expr) (operand, bool) {
	a, b, ok := x.compilePair(n.Lexpr, n.Rexpr)
	if !ok {
		return operand{}, false
	}
	if a.kind == a.kind.Element() {
		return x.fail(n.Location, "", "%s compares lists", op)
	}
	return operand{predicate.Overlap{Op: op, Left: a.Expr, Right: b.Expr, ByBytes: mixesTextColumns(a.kind, a.Expr,
		b.Expr)},
		predicate.Bool, n.Location}, true
}

// maxPatternBytes is the largest length of a LIKE pattern.
const maxPatternBytes = 1000

// compileLike compiles a LIKE.
func (x *sqlExpression) compileLike(n *sqltext.A_Expr, negated bool) (operand, bool) {
	a, ok := x.compile(n.Lexpr)
	if !ok {
		return a, false
	}
	if a, ok = x.convert(a, predicate.Text); !ok {
		return a, false
	}
	pattern, isString := n.Rexpr.GetAConst().GetVal().(*sqltext.A_Const_Sval)
	if !isString {
		return x.fail(n.Location, "write starts_with(column, value) for what begins with a value",
			"LIKE takes a constant pattern here, without ESCAPE")
	}
	text := pattern.Sval.Sval
	backslashes := len(text) - len(strings.TrimRight(text, `\`))
	if backslashes%2 == 1 || len(text) > maxPatternBytes {
		return x.fail(n.Location, "it would raise an error on some row",
			"a LIKE pattern does not end in a backslash, and is not longer than %d bytes", maxPatternBytes)
	}
	var out predicate.Expr = predicate.Like{Left: a.Expr, Pattern: text}
	if negated {
		out = predicate.Negation{Expr: out}
	}
	return operand{out, predicate.Bool, n.Location}, true
}

// compileBetween compiles a BETWEEN.
func (x *sqlExpression) compileBetween(n *sqltext.A_Expr) (operand, bool) {
	bounds := n.Rexpr.GetList()
	if bounds == nil || len(bounds.Items) != 2 {
		return x.fail(n.Location, "", "BETWEEN takes two bounds")
	}
	low, ok := x.compileComparison(">=", n.Lexpr, bounds.Items[0], n.Location)
	high, ok2 := x.compileComparison("<=", n.Lexpr, bounds.Items[1], n.Location)
	if !ok || !ok2 {
		return operand{}, false
	}
	var out predicate.Expr = predicate.And{low.Expr, high.Expr}
	if n.Kind == sqltext.AEXPR_NOT_BETWEEN {
		out = predicate.Negation{Expr: out}
	}
	return operand{out, predicate.Bool, n.Location}, true
}

// compileShift compiles the present time plus or minus a constant interval. It refuses a column plus an interval,
// because the sum could be outside of the type's range.
func (x *sqlExpression) compileShift(op string, n *sqltext.A_Expr) (operand, bool) {
	suggestion := "move the clock instead: column < now() - interval '30 days'"
	o, ok := x.compile(n.Lexpr)
	if !ok {
		return o, false
	}
	clock, isClock := o.Expr.(predicate.ClockTime)
	if !isClock || clock.Kind == predicate.Date || clock.Interval != (predicate.Interval{}) {
		return x.fail(n.Location, suggestion, "arithmetic is not part of sql expressions: it could overflow")
	}
	cast := n.Rexpr.GetTypeCast()
	text, isString := cast.GetArg().GetAConst().GetVal().(*sqltext.A_Const_Sval)
	if cast == nil || !isString || castTypeName(cast.TypeName) != "interval" {
		return x.fail(n.Location, suggestion, "the clock moves by a constant interval")
	}
	clock.Interval, ok = parseInterval(text.Sval.Sval)
	if !ok {
		return x.fail(n.Location, "write '30 days', '6 months 2 weeks', '90 minutes'; at most 1000 years",
			"this interval is not part of sql expressions")
	}
	if op == "-" {
		clock.Interval = predicate.Interval{Months: -clock.Interval.Months, Days: -clock.Interval.Days, Seconds: -clock.Interval.Seconds}
	}
	return operand{clock, o.kind, n.Location}, true
}
