package rewrite

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A rewriter parses the rule of a table when a statement needs it, not before. Each view of a policy has its own
// rewriter, so a hundred tables and a hundred views would mean ten thousand rules to parse.
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
