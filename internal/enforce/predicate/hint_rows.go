package predicate

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// EstimateRowsHint returns the comment in front of a statement's text, or behind its signature, which says that a
// search finds few rows in the signed view of a table.
func EstimateRowsHint(table catalog.Name) string {
	return "/*pgconsent:estimate_rows " + tableHash(table) + "*/"
}

// tableHash returns a text that stands for a table in a comment: the table's own name might end the comment.
func tableHash(table catalog.Name) string {
	sum := sha256.Sum256([]byte(table.SQL()))
	return hex.EncodeToString(sum[:6])
}

// EstimateRowsCondition returns a condition that is true for every row of a signed view. With the hint in a statement's
// text, the planner expects it to be true for one row in two hundred. Without it the planner expects a hundredth of the
// table or more, since it has no statistics for search operators under row security. Then it hashes all tables that the
// rule reads.
//
// The planner expects an expression without statistics to be NULL in one row of two hundred (DEFAULT_UNK_SEL). NULLIF
// of a value and itself is always NULL.
func EstimateRowsCondition(table catalog.Name, row string) string {
	tableOID := row + ".tableoid"
	return "CASE WHEN pgconsent_signed.estimate_rows('" + tableHash(table) + "') THEN NULLIF(" + tableOID + ", " +
		tableOID +
		") IS NULL ELSE true END"
}
