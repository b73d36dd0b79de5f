package predicate

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// CurrentCatalog is an SQL condition. It is true, or fails as PostgreSQL plans the statement if the catalogs have
// changed since the proxy decided the statement.
const CurrentCatalog = "pgconsent_signed.current_catalog()"

// KeyType is the type, without a length, as which values of a key's column are passed.
func KeyType(c *catalog.Column) string {
	switch plain, _, _ := strings.Cut(c.Type, "("); plain {
	case "uuid", "date":
		return "pg_catalog." + plain
	case "smallint":
		return "pg_catalog.int2"
	case "integer":
		return "pg_catalog.int4"
	case "bigint":
		return "pg_catalog.int8"
	default: // text and varchar compare as text
		return "pg_catalog.text"
	}
}
