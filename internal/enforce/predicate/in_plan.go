package predicate

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// WithSealInPlan returns an SQL expression of this package in a form that has the verified seal in the plan. For a
// prepared statement, PostgreSQL verifies the seal and reads the session's attributes while it plans. An execution
// compares the session's seal with the one in the plan, and verifies the session's seal only if they differ. Hashed
// forms do not change: they are for statements that read many rows.
func WithSealInPlan(sql string) string {
	return replaceUnquoted(sql, func(rest string) (string, int) {
		if strings.HasPrefix(rest, useHashBranchSQL) {
			n := len(useHashBranchSQL) + hashedLength(rest[len(useHashBranchSQL):])
			return rest[:n], n
		}
		if strings.HasPrefix(rest, sealedCallSQL) {
			return "COALESCE(CASE WHEN " + planIsCurrentSQL + " AND pgconsent_signed.plan_seal() OPERATOR(pg_catalog.=) " +
				currentSealSQL + " THEN true END, " + sealedCallSQL + ")", len(sealedCallSQL)
		}
		name, begins := strings.CutPrefix(rest, attributeCallStart)
		name, _, ends := strings.Cut(name, "')")
		if !begins || !ends {
			return "", 0
		}
		call := rest[:len(attributeCallStart)+len(name)+len("')")]
		return "COALESCE(CASE WHEN " + planIsCurrentSQL + " THEN pgconsent_signed.plan_attr(" + catalog.QuoteLiteral(name) +
			") OPERATOR(pg_catalog.->>) " + currentSealSQL + " END, " + call + ")", len(call)
	})
}

// hashedLength returns the length of the hashed form at the beginning of an expression: up to the ELSE of its CASE.
func hashedLength(rest string) int {
	depth, length := 0, 0
	replaceUnquoted(rest, func(rest string) (string, int) {
		switch {
		case length > 0:
		case strings.HasPrefix(rest, "CASE "):
			depth++
		case strings.HasPrefix(rest, " END"):
			depth--
		case depth == 0 && strings.HasPrefix(rest, " ELSE "):
			length = len(rest)
		}
		return "", 0
	})
	return len(rest) - length
}

const (
	useHashBranchSQL = "pgconsent_signed.use_hash() THEN "
	sealedCallSQL    = "pgconsent_signed.sealed()"
	planIsCurrentSQL = "pgconsent_signed.plan_time() OPERATOR(pg_catalog.@>) pg_catalog.transaction_timestamp()"
	currentSealSQL   = "pg_catalog.current_setting('pgconsent.seal', true)"
)
