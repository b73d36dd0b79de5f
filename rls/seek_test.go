package rls_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/predicate"
	"github.com/pgconsent/pgconsent/rls"
)

// By the hint no index is read for whose rows they are, behind row security and in a door.
func TestSeekHintSparesAnIndex(t *testing.T) {
	w := newWorld(t, "CREATE INDEX memories_of ON memories (user_id)")
	w.compile("testdata/policy.yaml", rls.Options{Doors: true})
	w.migrate()
	agent := w.agent(user1)
	w.exec(agent, "SET jit = off; SET enable_seqscan = off")
	for _, from := range []string{"memories", "pgconsent_gate.door_public_memories"} {
		for _, hint := range []string{"", predicate.ScanHint, predicate.SeekHint} {
			text := hint + "EXPLAIN (COSTS OFF) SELECT title FROM " + from
			signed := w.key().Sign("", text)
			for _, sql := range []string{text, signed} {
				results, err := agent.PgConn().Exec(context.Background(), sql).ReadAll()
				if err != nil {
					t.Fatal(err)
				}
				read := false
				for _, line := range results[0].Rows {
					read = read || strings.Contains(string(line[0]), "memories_of")
				}
				if read != (hint != predicate.SeekHint) {
					t.Errorf("%.90s: the index is read: %v", sql, read)
				}
			}
		}
	}
	w.want(agent, predicate.SeekHint+titles, visible)
}
