package policy

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

var (
	integerConst = regexp.MustCompile(`^-?[0-9]{1,18}$`)
	decimalConst = regexp.MustCompile(`^-?[0-9]{1,18}\.[0-9]{1,12}$`)
)

func numberConst(text string) (predicate.Constant, bool) {
	c := predicate.Constant{Value: text, Kind: predicate.Number, Type: "pg_catalog.int8"}
	if decimalConst.MatchString(text) {
		c.Type = "pg_catalog.numeric"
		return c, true
	}
	return c, integerConst.MatchString(text)
}

// typedConst gives a string constant the type of its kind. It accepts only values whose meaning depends on no setting
// of the session: a timestamp with time zone must name its zone. The second result says how to write the value instead;
// "": the value is valid.
func typedConst(value string, kind predicate.Kind) (predicate.Constant, string) {
	c := predicate.Constant{Value: value, Kind: kind}
	stamp := func(layouts ...string) bool {
		return slices.ContainsFunc(layouts, func(layout string) bool {
			t, err := time.Parse(layout, value)
			return err == nil && t.Year() > 0
		})
	}
	var ok bool
	var form string
	switch kind {
	case predicate.Text:
		c.Type, ok = "pg_catalog.text", true
	case predicate.UUID:
		c.Type, ok, form = "pg_catalog.uuid", uuidPattern.MatchString(value), "write it in lower case with hyphens"
	case predicate.Bool:
		c.Type, ok, form = "pg_catalog.bool", value == "true" || value == "false", "write true or false"
	case predicate.Number:
		c, ok = numberConst(value)
		form = "write digits"
	case predicate.Float:
		c, ok = numberConst(value)
		c.Kind, c.Type, form = predicate.Float, "pg_catalog.float8", "write digits"
	case predicate.Date:
		c.Type, ok, form = "pg_catalog.date", stamp("2006-01-02"), "write 2026-12-31"
	case predicate.Timestamp:
		c.Type, ok, form = "pg_catalog.timestamp", stamp("2006-01-02", "2006-01-02 15:04:05"), "write 2026-12-31 23:59:59"
	case predicate.TimestampTZ:
		c.Type, ok, form = "pg_catalog.timestamptz", stamp("2006-01-02 15:04:05Z07:00"),
			"write 2026-12-31 23:59:59+00:00, with its time zone"
	case predicate.Text.List(), predicate.UUID.List(), predicate.Number.List():
		attribute := Attribute{Type: map[predicate.Kind]string{
			predicate.Text: "text[]", predicate.UUID: "uuid[]", predicate.Number: "bigint[]"}[kind.Element()]}
		c.Type, ok, form = attribute.SQLType(), attribute.Check(value) == nil, "write {a,b}"
	default:
		form = "it cannot be written as a constant"
	}
	if !ok {
		return c, form
	}
	return c, ""
}

// castTargets maps the names of types to which a constant may be cast to kinds of values.
var castTargets = map[string]predicate.Kind{
	"text": predicate.Text, "varchar": predicate.Text, "uuid": predicate.UUID, "bool": predicate.Bool, "date": predicate.Date,
	"int2": predicate.Number, "int4": predicate.Number, "int8": predicate.Number, "bigint": predicate.Number,
	"numeric":   predicate.Number,
	"timestamp": predicate.Timestamp, "timestamptz": predicate.TimestampTZ, "float8": predicate.Float,
}

// castTypeName returns the name of a type in pg_catalog without modifiers, with "[]" after it for a list; "": no cast
// to the type is allowed.
func castTypeName(t *sqltext.TypeName) string {
	names := stringsOf(t.GetNames())
	if len(names) == 2 && names[0] == "pg_catalog" {
		names = names[1:]
	}
	if len(names) != 1 || len(t.GetTypmods()) > 0 || len(t.GetArrayBounds()) > 1 || t.GetSetof() || t.GetPctType() {
		return ""
	}
	if len(t.GetArrayBounds()) == 1 {
		return names[0] + "[]"
	}
	return names[0]
}

// compileCast compiles a cast of a constant, or a cast to text whose result depends on no setting of the session.
func (x *sqlExpression) compileCast(n *sqltext.TypeCast) (operand, bool) {
	target := castTypeName(n.TypeName)
	o, ok := x.compile(n.Arg)
	if !ok {
		return o, false
	}
	kind, isKnown := castTargets[target]
	if isKnown && o.kind == kind {
		return o, true
	}
	if _, isConst := o.Expr.(predicate.Constant); isConst && isKnown {
		return x.convert(o, kind)
	}
	column, isColumn := o.Expr.(predicate.Column)
	if isColumn && kind == predicate.Text && column.Cast == "" &&
		(o.kind == predicate.UUID || o.kind == predicate.Number || o.kind == predicate.Bool) {
		column.Kind, column.Cast = predicate.Text, "pg_catalog.text"
		return operand{column, predicate.Text, o.at}, true
	}
	return x.fail(n.Location, "it could raise an error on some row; compare as text, or with a constant of the column's type",
		"this cast is not part of sql expressions")
}

var intervalPart = regexp.MustCompile(`^([0-9]{1,6}) (second|minute|hour|day|week|month|year)s?(?: |$)`)

// parseInterval reads an interval of whole numbers and units. Other forms are refused, because their meaning depends on
// the session's settings.
func parseInterval(text string) (predicate.Interval, bool) {
	var s predicate.Interval
	for text != "" {
		m := intervalPart.FindStringSubmatch(text)
		if m == nil {
			return s, false
		}
		text = text[len(m[0]):]
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return s, false
		}
		switch m[2] {
		case "second":
			s.Seconds += n
		case "minute":
			s.Seconds += n * 60
		case "hour":
			s.Seconds += n * 3600
		case "day":
			s.Days += n
		case "week":
			s.Days += n * 7
		case "month":
			s.Months += n
		case "year":
			s.Months += n * 12
		}
	}
	return s, s != (predicate.Interval{}) && s.Months <= 12000 && s.Days <= 365000 && s.Seconds <= 1<<31-1
}
