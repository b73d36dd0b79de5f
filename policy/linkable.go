package policy

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// linkable groups the columns that the two sides of a link may be: those of a family, and those of types whose equality
// is of pg_catalog too, but which nothing else of a session can equal. "" links with nothing.
func (c *compiler) linkable(column *catalog.Column) string {
	under := c.under(column)
	if f := family(under); f != "" {
		return f
	}
	if c.enum(column) {
		return fmt.Sprintf("enum %d", column.TypeOID)
	}
	base, _, modified := strings.Cut(under, "(")
	if modified { // numeric(10,2), timestamp(3) with time zone
		_, rest, _ := strings.Cut(under, ")")
		base += rest
	}
	switch {
	case blankPadded(under):
		return "character"
	case base == "numeric", base == "timestamp with time zone", base == "timestamp without time zone", base == "boolean":
		return base
	}
	return ""
}

// under is the type by which a column compares: a value of a domain compares as one of the type under it.
func (c *compiler) under(column *catalog.Column) string {
	if t := c.snap.TypeByOID(column.TypeOID); t != nil && t.Kind == 'd' {
		return t.BaseName
	}
	return column.Type
}

// blankPadded tells a char(n), of which blanks at the end mean nothing: as a text it is without them. It is apart from
// the family of texts, with which PostgreSQL would compare it as a text, past its indexes.
func blankPadded(sqlType string) bool {
	return sqlType == "character" || sqlType == "bpchar" ||
		strings.HasPrefix(sqlType, "character(") && strings.HasSuffix(sqlType, ")")
}
