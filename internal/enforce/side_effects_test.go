package enforce

import (
	"context"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A text that writes has side effects, whatever it returns, and also if it only prepares the write.
func TestWritesDoMoreThanShowRows(t *testing.T) {
	s := stateWithoutDatabase(t, "tables: { memories: { rows: [ own: { column: user_id, is: user } ], write: { commands: "+
		"[insert, update, delete], columns: [id, title], stamp: { user_id: { attribute: user } }, accept: [conflicts] } } }\n")
	for text, more := range map[string]bool{
		"SELECT title FROM memories":                                     false,
		"PREPARE p AS SELECT title FROM memories":                        false,
		"UPDATE memories SET title = 'x' RETURNING title":                true,
		"DELETE FROM memories":                                           true,
		"INSERT INTO memories (id, title) VALUES (9, 'x')":               true,
		"WITH w AS (DELETE FROM memories RETURNING id) SELECT id FROM w": true,
		"SELECT title FROM memories; DELETE FROM memories":               true,
		"PREPARE p AS DELETE FROM memories":                              true,
	} {
		if got := hasSideEffects(s.snapshot, s.rewritten(t, text)); got != more {
			t.Errorf("%s: does more: %t", text, got)
		}
	}
}

// TestBoundedResultsAreRolledBack: if a result exceeds a limit, the changes of the execution are rolled back with it.
// This holds for a write, for a function that may change something, for a view with such a function, and for statements
// that are run by name.
func TestBoundedResultsAreRolledBack(t *testing.T) {
	tier.All(t)
	const representingPolicy = `version: 1
attributes: { user: { type: uuid, source: credential } }
limits: { result_rows: 5 }
tables:
  memories:
    rows: [ { own: { column: user_id, is: user } } ]
    write: { commands: [insert, update, delete], columns: [id, title], stamp: { user_id: { attribute: user } }, accept: [conflicts, references] }
  people: { rows: [ { own: { column: user_id, is: user } } ] }
views: { people_view: {} }
functions: { noisy: { reads: nothing }, calm: { reads: nothing }, fixed: { reads: nothing } }
`
	w := start(t, func(w *world) {
		w.exec(`CREATE VIEW people_view AS SELECT id, name, user_id FROM people;
			CREATE FUNCTION noisy() RETURNS int LANGUAGE sql VOLATILE RETURN 1;
			CREATE FUNCTION calm() RETURNS int LANGUAGE sql STABLE RETURN 1;
			CREATE FUNCTION fixed() RETURNS int LANGUAGE sql IMMUTABLE RETURN 1`)
		w.write(representingPolicy)
		if err := installWith(context.Background(), w.dba, representingPolicy, rls.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	c := w.client("caregiver")
	const more = true
	for text, acts := range map[string]bool{
		"SELECT title FROM memories": false, "SELECT lower(title), count(*) FROM memories GROUP BY 1": false, "SELECT 1": false,
		"SELECT calm() FROM memories": false, "SELECT fixed() FROM memories": false,
		"SELECT noisy() FROM memories": more, "SELECT title FROM memories WHERE id = (SELECT noisy())": more,
		"SELECT name FROM people_view":                    more,
		"UPDATE memories SET title = 'x' RETURNING title": more, "DELETE FROM memories RETURNING id": more,
		"INSERT INTO memories (id, title) VALUES (9, 'x') RETURNING id":  more,
		"WITH w AS (DELETE FROM memories RETURNING id) SELECT id FROM w": more,
	} {
		bound := func(v *verdict.Verdict, runs ...*verdict.Verdict) bool {
			t.Helper()
			if !v.IsAllowed() {
				t.Fatalf("%s: %v", v.Original, v.Refusal)
			}
			ticket := c.Record(v, runs...)
			defer ticket.RecordOutcome(verdict.Outcome{})
			return ticket.ResultBound().MustRollBack
		}
		decide := func(text string) *verdict.Verdict { return c.Decide(t.Context(), text, verdict.Simple) }
		if got := bound(decide(text)); got != acts {
			t.Errorf("%s: %t", text, got)
		}
		if got := bound(decide("SELECT 1; " + text)); got != acts {
			t.Errorf("behind another: %s: %t", text, got)
		}
		if got := bound(decide("EXECUTE p"), decide(text)); got != acts {
			t.Errorf("by EXECUTE of the wire's: %s: %t", text, got)
		}
		prepare := decide("PREPARE p AS " + text)
		if got := bound(decide("EXECUTE p"), prepare.Effects[0].Body); got != acts {
			t.Errorf("by EXECUTE: %s: %t", text, got)
		}
		if got := bound(decide("SELECT 1; PREPARE p AS " + text + "; EXECUTE p")); acts && !got {
			t.Errorf("prepared and run in one text: %s: %t", text, got)
		}
	}
}
