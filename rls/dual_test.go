package rls_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/predicate"
)

// One plan holds both forms of a policy's sublinks; which of them runs is decided as it runs, also for a generic plan.
func TestHintChoosesAtRunTime(t *testing.T) {
	w := newWorld(t).migrate()
	agent := w.agent(user1)
	w.exec(agent, "SET plan_cache_mode = force_generic_plan; SET jit = off; PREPARE q AS "+titles)
	hashedRan := func(sql string) bool {
		t.Helper()
		results, err := agent.PgConn().Exec(context.Background(), sql).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		hashed, ran := false, false
		lines := results[0].Rows
		for i, line := range lines {
			text := string(line[0])
			if !strings.Contains(text, "SubPlan") || strings.Contains(text, "Filter") || i+1 == len(lines) {
				continue
			}
			// The sub-plan that is not hashed looks up one memory.
			probes := false
			for _, below := range lines[i+1:] {
				if strings.Contains(string(below[0]), "SubPlan") {
					break
				}
				probes = probes || strings.Contains(string(below[0]), "memory_id = memories.id")
			}
			if !probes {
				hashed, ran = true, !strings.Contains(string(lines[i+1][0]), "never executed")
			}
		}
		if !hashed {
			t.Fatalf("the plan has no hashed sub-plan:\n%s", lines)
		}
		return ran
	}
	for range 2 {
		for _, sql := range []string{"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE q", "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) " + titles} {
			if hashedRan(sql) {
				t.Errorf("%s: the set was made without a hint", sql)
			}
			if !hashedRan(predicate.ScanHint + sql) {
				t.Errorf("%s: the hint was not followed", sql)
			}
		}
		w.want(agent, "EXECUTE q", visible)
		w.want(agent, predicate.ScanHint+"EXECUTE q", visible)
	}
	// The hint may come behind a signature.
	if !hashedRan("/*pgconsent:v1:" + strings.Repeat("0", 64) + "*/" + predicate.ScanHint + "EXPLAIN (ANALYZE, COSTS OFF) " + titles) {
		t.Error("the hint behind a signature was not followed")
	}
	// It is no security input: an agent that writes it, or half of it, sees the same.
	for _, hint := range []string{predicate.ScanHint, "/*pgconsent:scan", "/*pgconsent:scan*/ /*pgconsent:scan*/"} {
		if hint == "/*pgconsent:scan" {
			hint += " */"
		}
		w.want(agent, hint+titles, visible)
	}
}
