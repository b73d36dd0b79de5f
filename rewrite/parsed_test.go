package rewrite

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// The rewriter parses a table's rule only when a statement needs it. Each view of a policy has its own rewriter, so
// with a hundred tables and a hundred views there would be ten thousand rules to parse.
func TestRulesAreParsedWhenNeeded(t *testing.T) {
	r := rewriter(t, InjectedMode)
	rules := 0
	parsing := testing.AllocsPerRun(1, func() {
		rules = 0
		for _, f := range r.fragments {
			if f.subquery != nil {
				_, _ = sqltext.Parse("SELECT FROM " + f.sql + " AS x")
				rules++
			}
		}
	})
	if rules < 5 {
		t.Fatalf("only %d tables have a rule", rules)
	}
	if making := testing.AllocsPerRun(1, func() { New(r.snap, r.pol, InjectedMode) }); making >= parsing {
		t.Errorf("a new rewriter allocates %.0f times, and parsing all rules %.0f", making, parsing)
	}
}
