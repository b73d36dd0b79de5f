package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// sqlExpression converts a parsed SQL expression to an expression of package predicate. It accepts a fixed list of
// nodes, operators and functions, and refuses everything else. Nothing on the list can fail for some row, change
// anything, read another table, or depend on the settings of a session.
type sqlExpression struct {
	names                  *resolver
	row                    *catalog.Relation
	placeOf                func(location int32) place
	namesColumnOrAttribute bool // the expression names a column or an attribute
}

// operand is an expression with the kind of its value.
type operand struct {
	predicate.Expr
	kind predicate.Kind // "": a string or NULL, which takes the kind of the other operand
	at   int32
}

func (x *sqlExpression) fail(location int32, suggestion, format string, args ...any) (operand, bool) {
	x.names.fail(x.placeOf(location), suggestion, format, args...)
	return operand{}, false
}

// compileCondition compiles a boolean expression.
func (x *sqlExpression) compileCondition(n *sqltext.Node) (predicate.Expr, bool) {
	o, ok := x.compile(n)
	if !ok {
		return nil, false
	}
	if o, ok = x.convert(o, predicate.Bool); !ok {
		return nil, false
	}
	return o.Expr, true
}

func (x *sqlExpression) compileConditions(nodes []*sqltext.Node) ([]predicate.Expr, bool) {
	out := make([]predicate.Expr, 0, len(nodes))
	isComplete := true
	for _, n := range nodes {
		c, ok := x.compileCondition(n)
		isComplete = isComplete && ok
		out = append(out, c)
	}
	return out, isComplete
}

// compile compiles an SQL expression.
func (x *sqlExpression) compile(n *sqltext.Node) (operand, bool) {
	switch n := n.Node.(type) {
	case *sqltext.Node_ColumnRef:
		return x.compileColumn(n.ColumnRef)
	case *sqltext.Node_A_Const:
		return x.compileConstant(n.AConst)
	case *sqltext.Node_A_Expr:
		return x.compileOperator(n.AExpr)
	case *sqltext.Node_BoolExpr:
		return x.compileLogic(n.BoolExpr)
	case *sqltext.Node_NullTest:
		return x.compileNullTest(n.NullTest)
	case *sqltext.Node_BooleanTest:
		return x.compileBooleanTest(n.BooleanTest)
	case *sqltext.Node_FuncCall:
		return x.compileCall(n.FuncCall)
	case *sqltext.Node_TypeCast:
		return x.compileCast(n.TypeCast)
	case *sqltext.Node_CoalesceExpr:
		return x.compileCoalesce(n.CoalesceExpr)
	case *sqltext.Node_CaseExpr:
		return x.compileCase(n.CaseExpr)
	case *sqltext.Node_SQLValueFunction:
		return x.compileValueFunction(n.SqlvalueFunction)
	case *sqltext.Node_SubLink:
		return x.fail(n.SubLink.Location, "consent and visible read other tables", "sql has no sub-selects")
	case *sqltext.Node_ParamRef:
		return x.fail(n.ParamRef.Location, "write attribute('name')", "sql has no parameters")
	default:
		return x.fail(0, "docs/reference/policy.md lists what sql may say", "%s is not part of sql expressions", constructName(n))
	}
}

// constructName returns the SQL name of a construct that expressions may not contain.
func constructName(n any) string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", n), "*pg_query.Node_")
	if mask, ok := map[string]string{
		"AIndirection": "a subscript or field", "AArrayExpr": "ARRAY[…]", "RowExpr": "a row",
		"MinMaxExpr": "greatest or least", "CollateClause": "COLLATE", "AStar": "*",
	}[kind]; ok {
		return mask
	}
	return kind
}

func (x *sqlExpression) compileColumn(n *sqltext.ColumnRef) (operand, bool) {
	column, ok := x.findColumn(n)
	if !ok {
		return operand{}, false
	}
	out, ok := x.names.expressionColumn(column)
	if !ok {
		suggestion := "docs/reference/policy.md lists the types"
		if x.names.isScalar(column) {
			suggestion += "; IS NULL may be asked of this one"
		}
		return x.fail(n.Location, suggestion, "%s.%s is %s, which sql does not compare", x.row.Name, column.Name,
			withArticle(column.Type))
	}
	x.namesColumnOrAttribute = true
	return operand{out, out.Kind, n.Location}, true
}

// withArticle returns the name of a type with an indefinite article.
func withArticle(sqlType string) string {
	if strings.ContainsAny(sqlType[:min(1, len(sqlType))], "aeio") {
		return "an " + sqlType
	}
	return "a " + sqlType
}

// findColumn finds the column of the row that an expression names.
func (x *sqlExpression) findColumn(n *sqltext.ColumnRef) (*catalog.Column, bool) {
	fail := func(suggestion, format string, args ...any) (*catalog.Column, bool) {
		x.fail(n.Location, suggestion, format, args...)
		return nil, false
	}
	names := stringsOf(n.Fields)
	if x.row == nil {
		return fail("write attribute('"+strings.Join(names, ".")+"') for an attribute, '…' for a text",
			"this expression speaks of attributes only, not of columns")
	}
	if len(names) != len(n.Fields) || len(names) > 2 || len(names) == 2 && names[0] != x.row.Name.Name {
		return fail("columns of this table are named alone", "an expression speaks of columns of %s only", x.row.Name)
	}
	name := names[len(names)-1]
	column := x.row.Column(name)
	if column == nil {
		columns := make([]string, 0, len(x.row.Columns))
		for _, c := range x.row.Columns {
			columns = append(columns, c.Name)
		}
		suggestion := closest(name, columns)
		switch {
		case suggestPlainCharacter(name) != "":
			suggestion = suggestPlainCharacter(name)
		case suggestion != "":
		case len(columns) == 0:
			suggestion = "write attribute('" + name + "')"
		default:
			suggestion = "a text stands in single quotes: '" + name + "'"
		}
		return fail(suggestion, "%s has no column %q", x.row.Name, name)
	}
	if column.Virtual {
		return fail("make it STORED, or write what it is computed from",
			"%s.%s is computed as it is read: it could raise an error on some row, and say what the row holds", x.row.Name, name)
	}
	return column, true
}

func (x *sqlExpression) compileConstant(n *sqltext.A_Const) (operand, bool) {
	if n.Isnull {
		return operand{predicate.Null{}, "", n.Location}, true
	}
	switch v := n.Val.(type) {
	case *sqltext.A_Const_Ival:
		return x.compileNumber(strconv.FormatInt(int64(v.Ival.Ival), 10), n.Location)
	case *sqltext.A_Const_Fval:
		return x.compileNumber(v.Fval.Fval, n.Location)
	case *sqltext.A_Const_Boolval:
		return operand{predicate.Constant{Value: strconv.FormatBool(v.Boolval.Boolval), Kind: predicate.Bool,
			Type: "pg_catalog.bool"}, predicate.Bool, n.Location}, true
	case *sqltext.A_Const_Sval:
		return operand{predicate.Constant{Value: v.Sval.Sval}, "", n.Location}, true
	default:
		return x.fail(n.Location, "", "bit strings are not part of sql expressions")
	}
}

// compileNumber compiles a number.
func (x *sqlExpression) compileNumber(text string, location int32) (operand, bool) {
	c, ok := numberConst(text)
	if !ok {
		return x.fail(location, "write at most 30 digits, without an exponent",
			"the number %s is not part of sql expressions", text)
	}
	return operand{c, predicate.Number, location}, true
}

// compileLogic compiles AND, OR and NOT.
func (x *sqlExpression) compileLogic(n *sqltext.BoolExpr) (operand, bool) {
	parts, ok := x.compileConditions(n.Args)
	if !ok {
		return operand{}, false
	}
	var out predicate.Expr
	switch n.Boolop {
	case sqltext.AND_EXPR:
		out = predicate.And(parts)
	case sqltext.OR_EXPR:
		out = predicate.Or(parts)
	case sqltext.NOT_EXPR:
		out = predicate.Negation{Expr: parts[0]}
	default:
		return x.fail(n.Location, "", "unknown logic")
	}
	return operand{out, predicate.Bool, n.Location}, true
}

func isNull(e predicate.Expr) predicate.Expr { return predicate.IsTest{Operand: e, Keyword: "NULL"} }

func (x *sqlExpression) compileNullTest(n *sqltext.NullTest) (operand, bool) {
	o, ok := x.compileNullTestOperand(n.Arg)
	if !ok {
		return o, false
	}
	if o.kind == "" {
		return x.fail(n.Location, "", "IS NULL asks for a column")
	}
	out := isNull(o.Expr)
	if n.Nulltesttype != sqltext.IS_NULL {
		out = predicate.Negation{Expr: out}
	}
	return operand{out, predicate.Bool, n.Location}, true
}

// compileNullTestOperand compiles the operand of IS NULL, which may be a column of a type that expressions cannot
// compare.
func (x *sqlExpression) compileNullTestOperand(n *sqltext.Node) (operand, bool) {
	if ref := n.GetColumnRef(); ref != nil && x.row != nil {
		column, ok := x.findColumn(ref)
		if !ok {
			return operand{}, false
		}
		if _, compared := x.names.expressionColumn(column); !compared && x.names.isScalar(column) {
			x.namesColumnOrAttribute = true
			return operand{predicate.Column{Name: column.Name, Kind: predicate.Opaque}, predicate.Opaque, ref.Location}, true
		}
	}
	return x.compile(n)
}

func (x *sqlExpression) compileBooleanTest(n *sqltext.BooleanTest) (operand, bool) {
	c, ok := x.compileCondition(n.Arg)
	if !ok {
		return operand{}, false
	}
	test := func(word string) predicate.Expr { return predicate.IsTest{Operand: c, Keyword: word} }
	var out predicate.Expr
	switch n.Booltesttype {
	case sqltext.IS_TRUE:
		out = test("TRUE")
	case sqltext.IS_NOT_TRUE:
		out = predicate.Negation{Expr: test("TRUE")}
	case sqltext.IS_FALSE:
		out = test("FALSE")
	case sqltext.IS_NOT_FALSE:
		out = predicate.Negation{Expr: test("FALSE")}
	case sqltext.IS_UNKNOWN:
		out = isNull(c)
	case sqltext.IS_NOT_UNKNOWN:
		out = predicate.Negation{Expr: isNull(c)}
	default:
		return x.fail(n.Location, "", "unknown test")
	}
	return operand{out, predicate.Bool, n.Location}, true
}

func (x *sqlExpression) compileValueFunction(n *sqltext.SQLValueFunction) (operand, bool) {
	switch n.Op {
	case sqltext.SVFOP_CURRENT_TIMESTAMP:
		return operand{predicate.ClockTime{Kind: predicate.TimestampTZ}, predicate.TimestampTZ, n.Location}, true
	case sqltext.SVFOP_CURRENT_DATE:
		return operand{predicate.ClockTime{Kind: predicate.Date}, predicate.Date, n.Location}, true
	case sqltext.SVFOP_LOCALTIMESTAMP:
		return operand{predicate.ClockTime{Kind: predicate.Timestamp}, predicate.Timestamp, n.Location}, true
	default:
		return x.fail(n.Location, "write attribute('name') for who is calling, now() for the time",
			"this is not part of sql expressions")
	}
}

func (x *sqlExpression) compileCoalesce(n *sqltext.CoalesceExpr) (operand, bool) {
	parts, kind, ok := x.compileSameKind(n.Args, n.Location)
	if !ok {
		return operand{}, false
	}
	out := predicate.Case{ElseValue: parts[len(parts)-1], ByBytes: mixesTextColumns(kind, parts...)}
	for _, part := range parts[:len(parts)-1] {
		out.Branches = append(out.Branches, predicate.CaseBranch{Condition: predicate.Negation{Expr: isNull(part)},
			Result: part})
	}
	return operand{out, kind, n.Location}, true
}

func (x *sqlExpression) compileCase(n *sqltext.CaseExpr) (operand, bool) {
	var results []*sqltext.Node
	var out predicate.Case
	for _, arm := range n.Args {
		whenClause := arm.GetCaseWhen()
		var condition operand
		var ok bool
		if n.Arg == nil {
			condition.Expr, ok = x.compileCondition(whenClause.Expr)
		} else {
			condition, ok = x.compileComparison("=", n.Arg, whenClause.Expr, whenClause.Location)
		}
		if !ok {
			return operand{}, false
		}
		out.Branches = append(out.Branches, predicate.CaseBranch{Condition: condition.Expr})
		results = append(results, whenClause.Result)
	}
	if n.Defresult != nil {
		results = append(results, n.Defresult)
	}
	parts, kind, ok := x.compileSameKind(results, n.Location)
	if !ok {
		return operand{}, false
	}
	for i := range out.Branches {
		out.Branches[i].Result = parts[i]
	}
	if n.Defresult != nil {
		out.ElseValue = parts[len(parts)-1]
	}
	out.ByBytes = mixesTextColumns(kind, parts...)
	return operand{out, kind, n.Location}, true
}

// compileSameKind compiles expressions whose values must all have the same kind.
func (x *sqlExpression) compileSameKind(nodes []*sqltext.Node, location int32) ([]predicate.Expr, predicate.Kind,
	bool) {
	var operands []operand
	var kind predicate.Kind
	for _, n := range nodes {
		o, ok := x.compile(n)
		if !ok {
			return nil, "", false
		}
		if kind == "" || kind == predicate.Number && o.kind == predicate.Float {
			kind = o.kind
		}
		operands = append(operands, o)
	}
	if kind == "" {
		kind = predicate.Text
	}
	out := make([]predicate.Expr, len(operands))
	for i, o := range operands {
		adopted, ok := x.convert(o, kind)
		if !ok {
			return nil, "", false
		}
		out[i] = adopted.Expr
	}
	return out, kind, true
}

// mixesTextColumns tells whether an expression compares texts of several columns, whose collations might conflict.
func mixesTextColumns(kind predicate.Kind, parts ...predicate.Expr) bool {
	if kind.Element() != predicate.Text {
		return false
	}
	var columns []string
	for _, part := range parts {
		for _, name := range predicate.ColumnsOf(part) {
			if !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
	}
	return len(columns) > 1
}

// convert gives a kind to an operand. It succeeds if the operand has this kind, or no kind yet.
func (x *sqlExpression) convert(o operand, kind predicate.Kind) (operand, bool) {
	if o.kind == kind {
		return o, true
	}
	c, isConst := o.Expr.(predicate.Constant)
	switch {
	case o.kind == "" && !isConst:
		return operand{o.Expr, kind, o.at}, true // the operand is NULL
	case o.kind == "":
		typed, reason := typedConst(c.Value, kind)
		if reason != "" {
			return x.fail(o.at, reason, "the constant is not a %s", kind)
		}
		return operand{typed, kind, o.at}, true
	case isConst && o.kind == predicate.Number && kind == predicate.Float:
		c.Kind, c.Type = predicate.Float, "pg_catalog.float8"
		return operand{c, kind, o.at}, true
	}
	if clock, ok := o.Expr.(predicate.ClockTime); ok &&
		(kind == predicate.Date || kind == predicate.Timestamp || kind == predicate.TimestampTZ) {
		clock.Kind = kind
		return operand{clock, kind, o.at}, true
	}
	if kind == predicate.Bool {
		return x.fail(o.at, "compare it with something", "a condition is true or false, and this is a %s", o.kind)
	}
	return x.fail(o.at, "both sides must be of one kind; constants may be written as strings",
		"a %s does not compare with a %s", o.kind, kind)
}

func stringsOf(nodes []*sqltext.Node) []string {
	var out []string
	for _, n := range nodes {
		if s := n.GetString_(); s != nil {
			out = append(out, s.Sval)
		}
	}
	return out
}
