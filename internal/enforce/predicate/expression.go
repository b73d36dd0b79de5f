package predicate

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// SQL shows a row for which an expression over its own columns is true. The expression can raise no error and have no
// side effects, whatever values the row has. The caller must make sure that the types in it fit.
type SQL struct{ Expr Expr }

func (SQL) node() {}

// Expr is an expression. Only the types of this package implement it.
type Expr interface{ expr() }

// Kind is a group of types whose values can be compared with one another.
type Kind string

// The kinds. The kind of a list is text, uuid or number with "[]" behind it.
const (
	Bool        Kind = "boolean"
	Text        Kind = "text"
	Number      Kind = "number"
	Float       Kind = "float" // separate from Number, since a numeric may not fit into a float
	UUID        Kind = "uuid"
	Date        Kind = "date"
	Timestamp   Kind = "timestamp"
	TimestampTZ Kind = "timestamptz"
	JSONB       Kind = "jsonb"
	Opaque      Kind = "value" // any other type that is not composite; such values can only be tested for NULL
)

// List returns the kind of lists whose elements have the kind k. Element returns the kind of the elements of a list of
// kind k.
func (k Kind) List() Kind    { return k + "[]" }
func (k Kind) Element() Kind { return Kind(strings.TrimSuffix(string(k), "[]")) }

type (
	// Column is a column of the row. Cast, if set, is the qualified type to which the SQL casts the column. Such a cast
	// never fails: an enum to text, or integer[] to bigint[].
	Column struct {
		Name string
		Kind Kind
		Cast string
	}

	// Attribute is an attribute of the session.
	Attribute struct {
		Name     string
		Kind     Kind
		Type     string // the qualified name of the type
		Optional bool   // the session may have no value of the attribute
	}

	// Constant is a constant. Its Value is a text that the type's input function accepts.
	Constant struct {
		Value string
		Kind  Kind
		Type  string // the qualified name of the type
	}

	// Null is the constant NULL.
	Null struct{}

	// ClockTime is the time at which the statement began, plus a constant interval. As a Date or Timestamp it is in UTC,
	// since the agent can set the session's time zone.
	ClockTime struct {
		Kind     Kind
		Interval Interval
	}

	// Comparison compares two values of one kind by one of = <> < <= > >=. ByBytes compares texts of different columns
	// byte by byte, since their collations could conflict.
	Comparison struct {
		Op          string
		Left, Right Expr
		ByBytes     bool
	}

	// AnyOf is true if Left equals an element of List.
	AnyOf struct {
		Left, List Expr
		ByBytes    bool
	}

	// Array is a list of values.
	Array []Expr

	// Overlap compares two lists by one of the operators && @> <@.
	Overlap struct {
		Op          string
		Left, Right Expr
		ByBytes     bool
	}

	// Like is true if Left matches a constant LIKE pattern that does not end in a backslash.
	Like struct {
		Left    Expr
		Pattern string
	}

	// And, Or and Negation are the operators of three-valued logic.
	And      []Expr
	Or       []Expr
	Negation struct{ Expr }

	// IsTest is one of the tests IS NULL, IS TRUE and IS FALSE.
	IsTest struct {
		Operand Expr
		Keyword string // the word after IS: NULL, TRUE or FALSE
	}

	// Case is a CASE with conditions. ByBytes gives a text that may come from several columns the collation "C".
	Case struct {
		Branches  []CaseBranch
		ElseValue Expr // the value if no condition holds; nil: NULL
		ByBytes   bool
	}

	// CaseBranch is one WHEN … THEN … of a Case.
	CaseBranch struct{ Condition, Result Expr }

	// Call is a call of a function or an operator in [Functions].
	Call struct {
		Name string
		Args []Expr
	}
)

// Interval is a length of time. Its three units cannot be converted into one another.
type Interval struct{ Months, Days, Seconds int }

func (Column) expr()     {}
func (Attribute) expr()  {}
func (Constant) expr()   {}
func (Null) expr()       {}
func (ClockTime) expr()  {}
func (Comparison) expr() {}
func (AnyOf) expr()      {}
func (Array) expr()      {}
func (Overlap) expr()    {}
func (Like) expr()       {}
func (And) expr()        {}
func (Or) expr()         {}
func (Negation) expr()   {}
func (IsTest) expr()     {}
func (Case) expr()       {}
func (Call) expr()       {}

// withCCollation returns the SQL of a text with the collation "C" if bytes is true.
func withCCollation(text string, bytes bool) string {
	if bytes {
		return "(" + text + ` COLLATE pg_catalog."C")`
	}
	return text
}

// expressionSQL returns the SQL of an expression. Every name in it is qualified, so that it means the same with any
// search path. For an unknown expression it returns NULL.
func expressionSQL(e Expr, row string) string {
	write := func(e Expr) string { return expressionSQL(e, row) }
	switch e := e.(type) {
	case Column:
		if e.Cast != "" {
			return columnSQL(row, e.Name) + "::" + e.Cast
		}
		return columnSQL(row, e.Name)
	case Attribute:
		if isListType(e.Type) {
			return "(SELECT " + attrText(e.Name) + "::" + e.Type + ")"
		}
		return attrSQL(e.Name) + "::" + e.Type
	case Constant:
		return catalog.QuoteLiteral(e.Value) + "::" + e.Type
	case ClockTime:
		return e.timeSQL()
	case Comparison:
		return "(" + withCCollation(write(e.Left), e.ByBytes) + " OPERATOR(pg_catalog." + e.Op + ") " + write(e.Right) + ")"
	case AnyOf:
		return "(" + withCCollation(write(e.Left), e.ByBytes) + " OPERATOR(pg_catalog.=) ANY (" + listSQL(e.List, row) + "))"
	case Array:
		parts := make([]string, len(e))
		for i, part := range e {
			parts[i] = write(part)
		}
		return "ARRAY[" + strings.Join(parts, ", ") + "]"
	case Overlap:
		return "(" + withCCollation(write(e.Left), e.ByBytes) + " OPERATOR(pg_catalog." + e.Op + ") " + write(e.Right) + ")"
	case Like:
		return "(" + withCCollation(write(e.Left), true) + " OPERATOR(pg_catalog.~~) " + catalog.QuoteLiteral(e.Pattern) +
			"::pg_catalog.text)"
	case And:
		return logicSQL(e, " AND ", row)
	case Or:
		return logicSQL(e, " OR ", row)
	case Negation:
		return "(NOT " + write(e.Expr) + ")"
	case IsTest:
		return "(" + write(e.Operand) + " IS " + e.Keyword + ")"
	case Case:
		var b strings.Builder
		b.WriteString("(CASE")
		for _, arm := range e.Branches {
			b.WriteString(" WHEN " + write(arm.Condition) + " THEN " + write(arm.Result))
		}
		if e.ElseValue != nil {
			b.WriteString(" ELSE " + write(e.ElseValue))
		}
		b.WriteString(" END)")
		return withCCollation(b.String(), e.ByBytes)
	case Call:
		args := make([]string, len(e.Args))
		for i, arg := range e.Args {
			args[i] = write(arg)
		}
		switch f := Functions[e.Name]; {
		case f.Operator && len(args) == 2:
			return "(" + args[0] + " OPERATOR(pg_catalog." + e.Name + ") " + args[1] + ")"
		case f.ByBytes && len(args) > 0:
			args[0] = withCCollation(args[0], true)
			fallthrough
		default:
			return "pg_catalog." + catalog.QuoteIdent(e.Name) + "(" + strings.Join(args, ", ") + ")"
		}
	default:
		return "NULL"
	}
}

// listSQL returns the SQL of a list. An attribute is a sub-select, which ANY would read as a set of rows; the cast
// around it prevents this.
func listSQL(e Expr, row string) string {
	if a, ok := e.(Attribute); ok {
		return expressionSQL(e, row) + "::" + a.Type
	}
	return expressionSQL(e, row)
}

func logicSQL(parts []Expr, operator, row string) string {
	out := make([]string, len(parts))
	for i, part := range parts {
		out[i] = expressionSQL(part, row)
	}
	if len(out) == 0 {
		return "NULL"
	}
	return "(" + strings.Join(out, operator) + ")"
}

// timeSQL returns the SQL of the statement's time plus the interval. It adds in UTC: otherwise the session's time zone
// would decide how long a day or a month is.
func (c ClockTime) timeSQL() string {
	if c.Kind == TimestampTZ && c.Interval == (Interval{}) {
		return "pg_catalog.statement_timestamp()"
	}
	now := "pg_catalog.timezone('UTC'::pg_catalog.text, pg_catalog.statement_timestamp())"
	if c.Interval != (Interval{}) {
		now = fmt.Sprintf("(%s OPERATOR(pg_catalog.+) pg_catalog.make_interval(0, %d, 0, %d, 0, 0, %d))", now,
			c.Interval.Months, c.Interval.Days, c.Interval.Seconds)
	}
	switch c.Kind {
	case Date:
		return now + "::pg_catalog.date"
	case Timestamp:
		return now
	default:
		return "pg_catalog.timezone('UTC'::pg_catalog.text, " + now + ")"
	}
}

// walkExpr calls visit for an expression and for all expressions in it.
func walkExpr(e Expr, visit func(Expr)) {
	if e == nil {
		return
	}
	visit(e)
	for _, part := range operandsOf(e) {
		walkExpr(part, visit)
	}
}

func operandsOf(e Expr) []Expr {
	switch e := e.(type) {
	case Comparison:
		return []Expr{e.Left, e.Right}
	case AnyOf:
		return []Expr{e.Left, e.List}
	case Array:
		return e
	case Overlap:
		return []Expr{e.Left, e.Right}
	case Like:
		return []Expr{e.Left}
	case And:
		return e
	case Or:
		return e
	case Negation:
		return []Expr{e.Expr}
	case IsTest:
		return []Expr{e.Operand}
	case Case:
		var out []Expr
		for _, arm := range e.Branches {
			out = append(out, arm.Condition, arm.Result)
		}
		return append(out, e.ElseValue)
	case Call:
		return e.Args
	default:
		return nil
	}
}

// ColumnsOf returns the names of the columns that an expression reads, sorted.
func ColumnsOf(e Expr) []string {
	found := map[string]bool{}
	walkExpr(e, func(e Expr) {
		if c, ok := e.(Column); ok {
			found[c.Name] = true
		}
	})
	return sortedKeys(found)
}

func (n SQL) attributes() []Attribute {
	var out []Attribute
	walkExpr(n.Expr, func(e Expr) {
		if a, ok := e.(Attribute); ok {
			out = append(out, a)
		}
	})
	return out
}
