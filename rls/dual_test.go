package rls_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// The planner makes one of the two forms of a policy's sublinks, and a plan that is kept keeps its own.
func TestHintChoosesThePlan(t *testing.T) {
	w := migrated(t)
	agent := w.agent(user1)
	w.exec(agent, "SET plan_cache_mode = force_generic_plan; SET jit = off")
	// form is what the plan has: a set, or a sub-plan that looks up one memory.
	form := func(sql string) (set, look bool) {
		t.Helper()
		results, err := agent.PgConn().Exec(context.Background(), sql).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range results[0].Rows {
			set = set || strings.Contains(string(line[0]), "hashed SubPlan")
			look = look || strings.Contains(string(line[0]), "memory_id = memories.id")
		}
		return set, look
	}
	want := func(sql string, hinted bool) {
		t.Helper()
		if set, look := form(sql); set != hinted || look == hinted {
			t.Errorf("%.60s: a set %v, a look-up %v", sql, set, look)
		}
	}
	const explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) "
	// behind a signature, too
	signed := "/*pgconsent:v1:" + strings.Repeat("0", 64) + "*/" + predicate.UseHashHint
	for _, hint := range []string{predicate.UseHashHint, signed} {
		want(explain+titles, false)
		want(hint+explain+titles, true)
	}
	w.exec(agent, "PREPARE probes AS "+titles)
	w.exec(agent, "PREPARE sets AS "+titles)
	for range 2 {
		w.want(agent, "EXECUTE probes", visible)
		w.want(agent, predicate.UseHashHint+"EXECUTE sets", visible)
		for _, hint := range []string{"", predicate.UseHashHint} {
			want(hint+explain+"EXECUTE probes", false)
			want(hint+explain+"EXECUTE sets", true)
		}
	}
	// In the extended protocol the hint is that of the text that was prepared.
	for name, text := range map[string]string{"wire_probes": titles, "wire_sets": predicate.UseHashHint + titles} {
		if _, err := agent.PgConn().Prepare(context.Background(), name, text, nil); err != nil {
			t.Fatal(err)
		}
		if res := agent.PgConn().ExecPrepared(context.Background(), name, nil, nil, nil).Read(); res.Err != nil || len(res.Rows) == 0 {
			t.Fatalf("%d rows, %v", len(res.Rows), res.Err)
		}
		want(explain+"EXECUTE "+name, name == "wire_sets")
	}
	// It is no security input: an agent that writes it, or half of it, sees the same.
	for _, hint := range []string{predicate.UseHashHint, "/*pgconsent:use_hash", "/*pgconsent:use_hash*/ /*pgconsent:use_hash*/"} {
		if hint == "/*pgconsent:use_hash" {
			hint += " */"
		}
		w.want(agent, hint+titles, visible)
	}
}
