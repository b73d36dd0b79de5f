package predicate

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Own shows a row whose column equals an attribute of the session, or one of its elements if the attribute is a list.
type Own struct {
	Column    string
	Attribute string
	// the type as which the attribute is compared, qualified: pg_catalog.uuid, pg_catalog.text[], pg_catalog.bpchar for
	// a text with a char(n)
	Type     string
	AsText   bool // the column is an enum: its text is compared
	Optional bool // the attribute may be missing
}

// Tenant shows a row that Own shows, or whose column holds the value that everybody shares.
type Tenant struct {
	Own
	Shared     string // the value, of the attribute's type; "": none
	SharedNull bool   // NULL is shared: rows without a tenant belong to everybody
}

func (Own) node()    {}
func (Tenant) node() {}

// comparedColumn is the row's side of the comparison: the column itself, so that an index on it can be used.
func (n Own) comparedColumn(row string) string {
	if n.AsText {
		return column(row, n.Column) + "::pg_catalog.text"
	}
	return column(row, n.Column)
}

// nullForNull makes the comparison of a NULL with a list NULL: with an empty list it would be false, and Not would show
// the row.
func (n Own) nullForNull(row, comparison string, negated bool) string {
	if negated && isListType(n.Type) {
		return "CASE WHEN " + column(row, n.Column) + " IS NOT NULL THEN " + comparison + " END"
	}
	return comparison
}

func (n Own) sql(row string, negated bool) string {
	if isListType(n.Type) {
		return n.nullForNull(row, oneOf(n.comparedColumn(row), "(SELECT "+attrText(n.Attribute)+"::"+n.Type+")::"+n.Type),
			negated)
	}
	return equal(n.comparedColumn(row), attr(n.Attribute)+"::"+n.Type)
}

func (n Tenant) sql(row string, negated bool) string {
	own := n.Own.sql(row, negated)
	if n.Shared != "" {
		shared := catalog.QuoteLiteral(n.Shared) + "::" + strings.TrimSuffix(n.Type, "[]")
		if isListType(n.Type) {
			own = n.nullForNull(row, oneOf(n.comparedColumn(row),
				"(SELECT "+attrText(n.Attribute)+"::"+n.Type+" OPERATOR(pg_catalog.||) ARRAY["+shared+"])::"+n.Type), negated)
		} else {
			own = oneOf(n.comparedColumn(row), "ARRAY["+attr(n.Attribute)+"::"+n.Type+", "+shared+"]")
		}
	}
	if n.SharedNull {
		return "(" + column(row, n.Column) + " IS NULL OR " + own + ")"
	}
	return own
}

func (n Own) judge(row Row, w World) truth {
	value, ok := row[n.Column]
	attribute, sealed := w.Attributes[n.Attribute]
	if !ok || !sealed {
		return unknown
	}
	of := []string{attribute}
	if isListType(n.Type) {
		of = elements(attribute)
	}
	return truthOf(slices.ContainsFunc(of, func(a string) bool {
		if strings.HasPrefix(n.Type, "pg_catalog.bpchar") { // trailing blanks are not significant
			return strings.TrimRight(a, " ") == strings.TrimRight(value, " ")
		}
		return a == value
	}))
}

func (n Tenant) judge(row Row, w World) truth {
	value, ok := row[n.Column]
	if !ok && n.SharedNull || ok && n.Shared != "" && value == n.Shared {
		return yes
	}
	return n.Own.judge(row, w)
}

// isListType tells whether an attribute's type is a list.
func isListType(sqlType string) bool { return strings.HasSuffix(sqlType, "[]") }

// elements are the elements of a list's value that are not NULL; none if it is no list.
func elements(value string) []string {
	parsed, _ := ParseArray(value)
	var out []string
	for _, e := range parsed {
		if e != nil {
			out = append(out, *e)
		}
	}
	return out
}

func oneOf(value, array string) string { return value + " OPERATOR(pg_catalog.=) ANY (" + array + ")" }
