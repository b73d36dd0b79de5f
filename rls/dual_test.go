package rls_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// A hint chooses which of the two forms of a policy's sub-selects the planner uses. A prepared statement keeps the form
// that it was planned with.
func TestHintChoosesThePlan(t *testing.T) {
	w := migrated(t)
	agent := w.agent(user1)
	w.exec(agent, "SET plan_cache_mode = force_generic_plan; SET jit = off")
	// planForm tells which form the plan has: a hashed set, or a sub-plan that looks up one memory.
	planForm := func(sql string) (hasSet, hasLookup bool) {
		t.Helper()
		results, err := agent.PgConn().Exec(context.Background(), sql).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range results[0].Rows {
			hasSet = hasSet || strings.Contains(string(line[0]), "hashed SubPlan")
			hasLookup = hasLookup || strings.Contains(string(line[0]), "memory_id = memories.id")
		}
		return hasSet, hasLookup
	}
	checkForm := func(sql string, wantsSet bool) {
		t.Helper()
		if hasSet, hasLookup := planForm(sql); hasSet != wantsSet || hasLookup == wantsSet {
			t.Errorf("%.60s: a set %v, a look-up %v", sql, hasSet, hasLookup)
		}
	}
	const explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) "
	// the hint also works behind a signature
	signedHint := "/*pgconsent:v1:" + strings.Repeat("0", 64) + "*/" + predicate.UseHashHint
	for _, hint := range []string{predicate.UseHashHint, signedHint} {
		checkForm(explain+titlesQuery, false)
		checkForm(hint+explain+titlesQuery, true)
	}
	w.exec(agent, "PREPARE probes AS "+titlesQuery)
	w.exec(agent, "PREPARE sets AS "+titlesQuery)
	for range 2 {
		w.want(agent, "EXECUTE probes", visibleTitles)
		w.want(agent, predicate.UseHashHint+"EXECUTE sets", visibleTitles)
		for _, hint := range []string{"", predicate.UseHashHint} {
			checkForm(hint+explain+"EXECUTE probes", false)
			checkForm(hint+explain+"EXECUTE sets", true)
		}
	}
	// In the extended protocol the hint in the text that was prepared counts.
	for name, text := range map[string]string{"wire_probes": titlesQuery, "wire_sets": predicate.UseHashHint + titlesQuery} {
		if _, err := agent.PgConn().Prepare(context.Background(), name, text, nil); err != nil {
			t.Fatal(err)
		}
		if res := agent.PgConn().ExecPrepared(context.Background(), name, nil, nil, nil).Read(); res.Err != nil || len(res.Rows) == 0 {
			t.Fatalf("%d rows, %v", len(res.Rows), res.Err)
		}
		checkForm(explain+"EXECUTE "+name, name == "wire_sets")
	}
	// The hint has no effect on security: an agent that writes it, or a part of it, sees the same rows.
	for _, hint := range []string{predicate.UseHashHint, "/*pgconsent:use_hash", "/*pgconsent:use_hash*/ /*pgconsent:use_hash*/"} {
		if hint == "/*pgconsent:use_hash" {
			hint += " */"
		}
		w.want(agent, hint+titlesQuery, visibleTitles)
	}
}
