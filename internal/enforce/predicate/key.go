package predicate

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// CurrentCatalog is a SQL condition. It is true, or it fails while PostgreSQL plans the statement, if the catalogs have
// changed since the proxy decided about the statement.
const CurrentCatalog = "pgconsent_signed.current_catalog()"

// KeyType returns the type, without a length, in which values of a key's column are passed.
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
	default: // text and varchar are compared as text
		return "pg_catalog.text"
	}
}
