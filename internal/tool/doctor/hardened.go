package doctor

import (
	"context"
	"fmt"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// checkHardenedPlans names the tables for which PostgreSQL may run functions of other roles while it plans a read or
// compares values. Such a function might reveal hidden rows, so statements that read the table take the row security
// path with a hardened plan. That is safe, but slow if a search needs an index.
func checkHardenedPlans(_ context.Context, x *examination) ([]Finding, error) {
	var found []Finding
	for _, table := range x.Policy.Tables() {
		source, runs := x.Snapshot.ReadRunsUserCode(table.Relation)
		for _, h := range table.LookupTables() {
			if !runs && h.Relation.PlannerRunsUserCode {
				source, runs = h.Relation.UserCodeSource+" (which its rules look into)", true
			}
		}
		if runs {
			found = append(found, hardenedFinding(table.Relation, source))
		}
	}
	return found, nil
}

// hardenedFinding returns the finding about a table with hardened plans.
func hardenedFinding(r *catalog.Relation, source string) Finding {
	return Finding{"hardened_plan", SeverityAdvice,
		fmt.Sprintf("statements about %s get hardened plans and take no signed path, since a function may run there "+
			"that is neither PostgreSQL's own nor of a known extension: %s", r.Name, source),
		"Nothing, unless searches are too slow: docs/explanation/performance.md, \"Tables with hardened " +
			"plans\", says which functions do not count."}
}
