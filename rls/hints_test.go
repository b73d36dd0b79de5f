package rls_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/rls"
)

// With the hint, the planner does not use an index on the column that says whose row it is. This holds under row
// security and for a signed view.
func TestUseIndexHintAvoidsTheOwnerIndex(t *testing.T) {
	w := newWorld(t, "CREATE INDEX memories_of ON memories (user_id)")
	w.compile("testdata/policy.yaml", rls.Options{SignedViews: true})
	w.migrate()
	agent := w.agent(user1)
	w.exec(agent, "SET jit = off; SET enable_seqscan = off")
	for _, relation := range []string{"memories", "pgconsent_signed.visible_public_memories"} {
		for _, hint := range []string{"", predicate.UseHashHint, predicate.UseIndexHint} {
			text := hint + "EXPLAIN (COSTS OFF) SELECT title FROM " + relation
			signedText := w.key().Sign("", text)
			for _, sql := range []string{text, signedText} {
				results, err := agent.PgConn().Exec(context.Background(), sql).ReadAll()
				if err != nil {
					t.Fatal(err)
				}
				readsIndex := false
				for _, line := range results[0].Rows {
					readsIndex = readsIndex || strings.Contains(string(line[0]), "memories_of")
				}
				if readsIndex != (hint != predicate.UseIndexHint) {
					t.Errorf("%.90s: the index is read: %v", sql, readsIndex)
				}
			}
		}
	}
	w.want(agent, predicate.UseIndexHint+titlesQuery, visibleTitles)
}

// PostgreSQL opens the functions of a policy's sets: it plans their queries, and looks at no row that they return. Where
// the policy looks up rows, nothing of them is in the plan.
func TestSetFunctionsAreOpened(t *testing.T) {
	w := migrated(t)
	agent := w.agent(user1)
	for hint, want := range map[string]bool{"": false, predicate.UseHashHint: true} {
		results, err := agent.PgConn().Exec(context.Background(), hint+"EXPLAIN (COSTS OFF) SELECT title FROM memories").ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for _, line := range results[0].Rows {
			plan.WriteString(string(line[0]) + "\n")
		}
		if strings.Contains(plan.String(), "hashed SubPlan") != want || strings.Contains(plan.String(), "Function Scan") {
			t.Errorf("%q:\n%s", hint, plan.String())
		}
		w.want(agent, hint+titlesQuery, visibleTitles)
	}
	w.wantRefusal(agent, "42501", "SELECT * FROM pgconsent.set1_public_memories()")
}

// A hint that a search finds few rows of a table lowers the planner's estimate for that table's signed view, and for no
// other. The result has the same rows.
func TestEstimateRowsHintAffectsOneTable(t *testing.T) {
	w := newWorld(t)
	w.compile("testdata/policy.yaml", rls.Options{SignedViews: true})
	w.migrate()
	agent := w.agent(user1)
	memories, people := catalog.Name{Schema: "public", Name: "memories"}, catalog.Name{Schema: "public", Name: "people"}
	sign := func(sql string) string { return w.key().Sign("p1", sql) }
	hasRowEstimate := func(hint string, table catalog.Name) bool {
		results, err := agent.PgConn().Exec(context.Background(),
			sign(hint+"EXPLAIN (COSTS OFF) SELECT id FROM "+predicate.SignedView(table).SQL())).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(results[0].Rows, func(line [][]byte) bool { return strings.Contains(string(line[0]), "NULLIF") })
	}
	for hint, want := range map[string][2]bool{
		"": {}, predicate.UseIndexHint: {}, "/*pgconsent:estimate_rows*/": {}, "/*pgconsent:estimate_rows */": {},
		strings.Repeat(" ", 1000) + predicate.EstimateRowsHint(memories): {},
		predicate.EstimateRowsHint(memories):                             {true, false}, predicate.EstimateRowsHint(people): {false, true}, predicate.UseIndexHint +
			predicate.EstimateRowsHint(memories) + predicate.EstimateRowsHint(people): {true, true},
	} {
		if got := [2]bool{hasRowEstimate(hint, memories), hasRowEstimate(hint, people)}; got != want {
			t.Errorf("%.60q: few of memories and people: %v", hint, got)
		}
		w.want(agent, sign(hint+strings.Replace(titlesQuery, "public.memories", "pgconsent_signed.visible_public_memories", 1)), visibleTitles)
	}
}
