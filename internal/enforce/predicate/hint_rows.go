package predicate

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// EstimateRowsHint returns a comment which says that a search finds few rows in the signed view of a table. The
// rewriter puts it in front of a statement's text, or behind the signature.
func EstimateRowsHint(table catalog.Name) string {
	return "/*pgconsent:estimate_rows " + tableHash(table) + "*/"
}

// tableHash returns a hash that names a table in a comment: the table's own name might contain the end of a comment.
func tableHash(table catalog.Name) string {
	sum := sha256.Sum256([]byte(table.SQL()))
	return hex.EncodeToString(sum[:6])
}

// EstimateRowsCondition returns an SQL condition that is true for every row of a signed view. With the hint in the
// statement's text, PostgreSQL expects it to be true for one row in two hundred. Without the hint, PostgreSQL expects a
// search to find a hundredth of the table or more, since it has no statistics for search operators under row security.
// Then it hashes all tables that the rule reads.
//
// PostgreSQL expects an expression without statistics to be NULL in one row of two hundred (DEFAULT_UNK_SEL). NULLIF of
// a value and itself is always NULL.
func EstimateRowsCondition(table catalog.Name, row string) string {
	tableOID := row + ".tableoid"
	return "CASE WHEN pgconsent_signed.estimate_rows('" + tableHash(table) + "') THEN NULLIF(" + tableOID + ", " +
		tableOID +
		") IS NULL ELSE true END"
}
