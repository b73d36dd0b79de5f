package predicate

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// SQL shows a row for which an expression over its own columns is true. Nothing in its tree can raise an error or have
// side effects, whatever the row holds. The caller must build it well typed.
type SQL struct{ Expr Expr }

func (SQL) node() {}

// Expr is an expression. The types of this package are all there are.
type Expr interface{ expr() }

// Kind groups types that compare with one another.
type Kind string

// The kinds. The kinds of lists are text, uuid and number with "[]" behind.
const (
	Bool        Kind = "boolean"
	Text        Kind = "text"
	Number      Kind = "number"
	Float       Kind = "float" // apart from Number: a numeric may not fit into a float
	UUID        Kind = "uuid"
	Date        Kind = "date"
	Timestamp   Kind = "timestamp"
	TimestampTZ Kind = "timestamptz"
	JSONB       Kind = "jsonb"
	Opaque      Kind = "value" // any other type that is not composite: it can only be compared with NULL
)

// List is the kind of lists of k; Element undoes it.
func (k Kind) List() Kind    { return k + "[]" }
func (k Kind) Element() Kind { return Kind(strings.TrimSuffix(string(k), "[]")) }

type (
	// Column is a column of the row. Cast, if set, is the qualified type that it is cast to, which cannot fail: an enum
	// to text, integer[] to bigint[].
	Column struct {
		Name string
		Kind Kind
		Cast string
	}

	// Attr is an attribute of the session.
	Attr struct {
		Name     string
		Kind     Kind
		Type     string // qualified
		Optional bool   // the attribute may be missing
	}

	// Const is a constant; Value is what the type's input function takes.
	Const struct {
		Value string
		Kind  Kind
		Type  string // qualified
	}

	// Null is the constant.
	Null struct{}

	// Clock is the start of the statement, moved by a constant interval. As a Date or Timestamp it is that of UTC: the
	// time zone of the session is the agent's to set.
	Clock struct {
		Kind  Kind
		Shift Shift
	}

	// Compare compares two values of one kind: = <> < <= > >=. Bytes compares texts of different columns byte by byte,
	// since their collations could conflict.
	Compare struct {
		Op    string
		A, B  Expr
		Bytes bool
	}

	// AnyOf tells whether A equals an element of a list.
	AnyOf struct {
		A, List Expr
		Bytes   bool
	}

	// Array is a list of values.
	Array []Expr

	// Overlap compares two lists: && @> <@.
	Overlap struct {
		Op    string
		A, B  Expr
		Bytes bool
	}

	// Like matches a text against a constant pattern that does not end in a backslash.
	Like struct {
		A       Expr
		Pattern string
	}

	// And, Or and Negation are the operators of three-valued logic.
	And      []Expr
	Or       []Expr
	Negation struct{ Expr }

	// Test is IS NULL, IS TRUE or IS FALSE.
	Test struct {
		A  Expr
		Is string // NULL, TRUE, FALSE
	}

	// Case is a searched CASE. Bytes gives a text from several columns the collation "C".
	Case struct {
		When  []When
		Else  Expr // nil: NULL
		Bytes bool
	}

	// When is an arm of a Case.
	When struct{ If, Then Expr }

	// Call calls a function or operator of [Functions].
	Call struct {
		Name string
		Args []Expr
	}
)

// Shift is a length of time in the units of an interval, which may not be converted into one another.
type Shift struct{ Months, Days, Seconds int }

func (Column) expr()   {}
func (Attr) expr()     {}
func (Const) expr()    {}
func (Null) expr()     {}
func (Clock) expr()    {}
func (Compare) expr()  {}
func (AnyOf) expr()    {}
func (Array) expr()    {}
func (Overlap) expr()  {}
func (Like) expr()     {}
func (And) expr()      {}
func (Or) expr()       {}
func (Negation) expr() {}
func (Test) expr()     {}
func (Case) expr()     {}
func (Call) expr()     {}

// collatedC gives a text the collation "C".
func collatedC(text string, bytes bool) string {
	if bytes {
		return "(" + text + ` COLLATE pg_catalog."C")`
	}
	return text
}

// expressionSQL writes an expression with every name qualified, so that it means the same everywhere. An unknown
// expression is NULL.
func expressionSQL(e Expr, row string) string {
	write := func(e Expr) string { return expressionSQL(e, row) }
	switch e := e.(type) {
	case Column:
		if e.Cast != "" {
			return column(row, e.Name) + "::" + e.Cast
		}
		return column(row, e.Name)
	case Attr:
		if isListType(e.Type) {
			return "(SELECT " + attrText(e.Name) + "::" + e.Type + ")"
		}
		return attr(e.Name) + "::" + e.Type
	case Const:
		return catalog.QuoteLiteral(e.Value) + "::" + e.Type
	case Clock:
		return e.sql()
	case Compare:
		return "(" + collatedC(write(e.A), e.Bytes) + " OPERATOR(pg_catalog." + e.Op + ") " + write(e.B) + ")"
	case AnyOf:
		return "(" + collatedC(write(e.A), e.Bytes) + " OPERATOR(pg_catalog.=) ANY (" + listSQL(e.List, row) + "))"
	case Array:
		parts := make([]string, len(e))
		for i, part := range e {
			parts[i] = write(part)
		}
		return "ARRAY[" + strings.Join(parts, ", ") + "]"
	case Overlap:
		return "(" + collatedC(write(e.A), e.Bytes) + " OPERATOR(pg_catalog." + e.Op + ") " + write(e.B) + ")"
	case Like:
		return "(" + collatedC(write(e.A), true) + " OPERATOR(pg_catalog.~~) " + catalog.QuoteLiteral(e.Pattern) +
			"::pg_catalog.text)"
	case And:
		return logic(e, " AND ", row)
	case Or:
		return logic(e, " OR ", row)
	case Negation:
		return "(NOT " + write(e.Expr) + ")"
	case Test:
		return "(" + write(e.A) + " IS " + e.Is + ")"
	case Case:
		var b strings.Builder
		b.WriteString("(CASE")
		for _, arm := range e.When {
			b.WriteString(" WHEN " + write(arm.If) + " THEN " + write(arm.Then))
		}
		if e.Else != nil {
			b.WriteString(" ELSE " + write(e.Else))
		}
		b.WriteString(" END)")
		return collatedC(b.String(), e.Bytes)
	case Call:
		args := make([]string, len(e.Args))
		for i, arg := range e.Args {
			args[i] = write(arg)
		}
		switch f := Functions[e.Name]; {
		case f.Operator && len(args) == 2:
			return "(" + args[0] + " OPERATOR(pg_catalog." + e.Name + ") " + args[1] + ")"
		case f.Bytes && len(args) > 0:
			args[0] = collatedC(args[0], true)
			fallthrough
		default:
			return "pg_catalog." + catalog.QuoteIdent(e.Name) + "(" + strings.Join(args, ", ") + ")"
		}
	default:
		return "NULL"
	}
}

// listSQL keeps a list that is a sub-select from being read as a set by ANY.
func listSQL(e Expr, row string) string {
	if a, ok := e.(Attr); ok {
		return expressionSQL(e, row) + "::" + a.Type
	}
	return expressionSQL(e, row)
}

func logic(parts []Expr, operator, row string) string {
	out := make([]string, len(parts))
	for i, part := range parts {
		out[i] = expressionSQL(part, row)
	}
	if len(out) == 0 {
		return "NULL"
	}
	return "(" + strings.Join(out, operator) + ")"
}

// sql shifts the clock in UTC: otherwise the session's time zone would decide how long a day or a month is.
func (c Clock) sql() string {
	if c.Kind == TimestampTZ && c.Shift == (Shift{}) {
		return "pg_catalog.statement_timestamp()"
	}
	now := "pg_catalog.timezone('UTC'::pg_catalog.text, pg_catalog.statement_timestamp())"
	if c.Shift != (Shift{}) {
		now = fmt.Sprintf("(%s OPERATOR(pg_catalog.+) pg_catalog.make_interval(0, %d, 0, %d, 0, 0, %d))", now,
			c.Shift.Months, c.Shift.Days, c.Shift.Seconds)
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

// walkExpr visits e and the expressions inside it.
func walkExpr(e Expr, visit func(Expr)) {
	if e == nil {
		return
	}
	visit(e)
	for _, part := range parts(e) {
		walkExpr(part, visit)
	}
}

func parts(e Expr) []Expr {
	switch e := e.(type) {
	case Compare:
		return []Expr{e.A, e.B}
	case AnyOf:
		return []Expr{e.A, e.List}
	case Array:
		return e
	case Overlap:
		return []Expr{e.A, e.B}
	case Like:
		return []Expr{e.A}
	case And:
		return e
	case Or:
		return e
	case Negation:
		return []Expr{e.Expr}
	case Test:
		return []Expr{e.A}
	case Case:
		var out []Expr
		for _, arm := range e.When {
			out = append(out, arm.If, arm.Then)
		}
		return append(out, e.Else)
	case Call:
		return e.Args
	default:
		return nil
	}
}

// ColumnsOf are the columns that an expression reads, sorted.
func ColumnsOf(e Expr) []string {
	found := map[string]bool{}
	walkExpr(e, func(e Expr) {
		if c, ok := e.(Column); ok {
			found[c.Name] = true
		}
	})
	return sortedKeys(found)
}

func (n SQL) attributes() []Attr {
	var out []Attr
	walkExpr(n.Expr, func(e Expr) {
		if a, ok := e.(Attr); ok {
			out = append(out, a)
		}
	})
	return out
}
