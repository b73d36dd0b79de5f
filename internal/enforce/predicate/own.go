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
	// Type is the qualified type in which the attribute is compared: pg_catalog.uuid, pg_catalog.text[], or
	// pg_catalog.bpchar for a text that is compared with a char(n).
	Type         string
	ComparesText bool // the column is an enum, which is compared as text
	Optional     bool // the session may lack the attribute
}

// Tenant shows a row that its Own shows, or whose column has a value that all tenants share.
type Tenant struct {
	Own
	SharedValue string // the shared value as text; "": there is none
	SharedNull  bool   // NULL is a shared value: rows without a tenant belong to everybody
}

func (Own) node()    {}
func (Tenant) node() {}

// comparedColumnSQL returns the row's side of the comparison. It is the column itself where possible, so that
// PostgreSQL can use an index on it.
func (n Own) comparedColumnSQL(row string) string {
	if n.ComparesText {
		return columnSQL(row, n.Column) + "::pg_catalog.text"
	}
	return columnSQL(row, n.Column)
}

// nullForNullSQL makes the comparison of a NULL column with a list NULL. With an empty list PostgreSQL would return
// false, and a Not would show the row.
func (n Own) nullForNullSQL(row, comparison string, negated bool) string {
	if negated && isListType(n.Type) {
		return "CASE WHEN " + columnSQL(row, n.Column) + " IS NOT NULL THEN " + comparison + " END"
	}
	return comparison
}

func (n Own) sql(row string, negated bool) string {
	if isListType(n.Type) {
		return n.nullForNullSQL(row, oneOfSQL(n.comparedColumnSQL(row),
			"(SELECT "+attrText(n.Attribute)+"::"+n.Type+")::"+n.Type),
			negated)
	}
	return equalSQL(n.comparedColumnSQL(row), attrSQL(n.Attribute)+"::"+n.Type)
}

func (n Tenant) sql(row string, negated bool) string {
	ownCondition := n.Own.sql(row, negated)
	if n.SharedValue != "" {
		shared := catalog.QuoteLiteral(n.SharedValue) + "::" + strings.TrimSuffix(n.Type, "[]")
		if isListType(n.Type) {
			ownCondition = n.nullForNullSQL(row, oneOfSQL(n.comparedColumnSQL(row),
				"(SELECT "+attrText(n.Attribute)+"::"+n.Type+" OPERATOR(pg_catalog.||) ARRAY["+shared+"])::"+n.Type), negated)
		} else {
			ownCondition = oneOfSQL(n.comparedColumnSQL(row), "ARRAY["+attrSQL(n.Attribute)+"::"+n.Type+", "+shared+"]")
		}
	}
	if n.SharedNull {
		return "(" + columnSQL(row, n.Column) + " IS NULL OR " + ownCondition + ")"
	}
	return ownCondition
}

func (n Own) evalOwn(row Row, w World) truth {
	value, ok := row[n.Column]
	attribute, sealed := w.Attributes[n.Attribute]
	if !ok || !sealed {
		return truthUnknown
	}
	values := []string{attribute}
	if isListType(n.Type) {
		values = nonNullElements(attribute)
	}
	return truthOf(slices.ContainsFunc(values, func(a string) bool {
		if strings.HasPrefix(n.Type, "pg_catalog.bpchar") { // trailing blanks of a char(n) are not significant
			return strings.TrimRight(a, " ") == strings.TrimRight(value, " ")
		}
		return a == value
	}))
}

func (n Tenant) evalTenant(row Row, w World) truth {
	value, ok := row[n.Column]
	if !ok && n.SharedNull || ok && n.SharedValue != "" && value == n.SharedValue {
		return truthYes
	}
	return n.Own.evalOwn(row, w)
}

// isListType reports whether an attribute's type is a list.
func isListType(sqlType string) bool { return strings.HasSuffix(sqlType, "[]") }

// nonNullElements returns the elements of a list that are not NULL. It returns none if the value is no list.
func nonNullElements(value string) []string {
	parsed, _ := ParseArray(value)
	var out []string
	for _, e := range parsed {
		if e != nil {
			out = append(out, *e)
		}
	}
	return out
}

func oneOfSQL(value, array string) string {
	return value + " OPERATOR(pg_catalog.=) ANY (" + array + ")"
}
