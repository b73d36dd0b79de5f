package predicate

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// EstimateRowsHint, in front of a statement's text or behind its signature, says that a search finds few rows of the
// signed view of a table.
func EstimateRowsHint(table catalog.Name) string { return "/*pgconsent:few " + tableMark(table) + "*/" }

// fewMark names a table in a comment, in which its own name might end the comment.
func tableMark(table catalog.Name) string {
	sum := sha256.Sum256([]byte(table.SQL()))
	return hex.EncodeToString(sum[:6])
}

// EstimateRows is a condition that every row of a signed view meets, and of which the planner expects that one row in two
// hundred does, if the text has the hint. The planner has no statistics of the operators of searches under row
// security, and reckons with a hundredth of the table, or more: for so many rows it makes sets of all that the rule
// looks into.
//
// What may be NULL, as an expression of which nothing is known, is by the planner's reckoning NULL in one row of two
// hundred (DEFAULT_UNK_SEL), and NULLIF of a value and itself always is.
func EstimateRows(table catalog.Name, row string) string {
	of := row + ".tableoid"
	return "CASE WHEN pgconsent_gate.few('" + tableMark(table) + "') THEN NULLIF(" + of + ", " + of + ") IS NULL ELSE true END"
}
