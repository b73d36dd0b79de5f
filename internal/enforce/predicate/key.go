package predicate

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// CurrentCatalog is an SQL condition that is always true. It raises an error while PostgreSQL plans the statement if
// the catalogs have changed since the proxy decided on the statement.
const CurrentCatalog = "pgconsent_signed.current_catalog()"

// KeyType returns the type, without a length, in which the values of a key column are passed to functions.
func KeyType(column *catalog.Column) string {
	switch plain, _, _ := strings.Cut(column.Type, "("); plain {
	case "uuid", "date":
		return "pg_catalog." + plain
	case "smallint":
		return "pg_catalog.int2"
	case "integer":
		return "pg_catalog.int4"
	case "bigint":
		return "pg_catalog.int8"
	default: // text and varchar are passed as text
		return "pg_catalog.text"
	}
}
