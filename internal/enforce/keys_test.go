package enforce

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/rls"
)

// TestKeysOfEveryTableAreRecorded: the outcome has an entry for each table whose keys are recorded, whatever else the
// text does and however it is run. It says that all returned rows are known only if it has seen each of them.
func TestKeysOfEveryTableAreRecorded(t *testing.T) {
	const recording = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories: { rows: [ { own: { column: user_id, is: user } } ], audit: { keys: true } }
  people: { rows: [ { own: { column: user_id, is: user } } ], audit: { keys: true } }
`
	w := start(t, func(w *world) {
		w.write(recording)
		if err := installWith(context.Background(), w.dba, recording, rls.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	c := w.client("caregiver")
	tables := map[string][]string{
		"SELECT id FROM memories": {"public.memories"}, "SELECT id FROM people": {"public.people"}, "SELECT 1": nil,
		"SELECT m.id, p.id FROM memories m, people p":                                       {"public.memories", "public.people"},
		"SELECT id FROM memories WHERE id IN (SELECT id FROM people)":                       {"public.memories", "public.people"},
		"SELECT id FROM people UNION ALL SELECT id FROM memories":                           {"public.memories", "public.people"},
		"WITH w AS (SELECT id FROM people) SELECT id FROM w":                                {"public.people"},
		"SELECT (SELECT count(*) FROM people), (SELECT count(*) FROM memories), lower('x')": {"public.memories", "public.people"},
	}
	type outcome struct {
		text string
		rows int64
		of   []string
	}
	var all []outcome
	decide := func(text string) *verdict.Verdict {
		v := c.Decide(t.Context(), text, verdict.Simple)
		if !v.IsAllowed() {
			t.Fatalf("%s: %v", text, v.Refusal)
		}
		return v
	}
	done := func(text string, of []string, v *verdict.Verdict, runs ...*verdict.Verdict) {
		for _, rows := range []int64{0, 3} { // the record has seen none of them
			ticket := c.Record(v, runs...)
			if reads := ticket.(verdict.KeyReader).ReadsKeys(); reads != (len(of) > 0) {
				t.Errorf("%s: rows are looked at: %t", text, reads)
			}
			ticket.RecordOutcome(verdict.Outcome{Rows: rows, Code: sqlstate.SuccessfulCompletion})
			all = append(all, outcome{text, rows, of})
		}
	}
	for one, first := range tables {
		done(one, first, decide(one))
		done("EXECUTE of "+one, first, decide("EXECUTE p"), decide(one))
		done("EXECUTE of PREPARE of "+one, first, decide("EXECUTE p"), decide("PREPARE p AS " + one).Effects[0].Body)
		for other, second := range tables {
			both := slices.Concat(first, second)
			slices.Sort(both)
			both = slices.Compact(both)
			done(one+"; "+other, both, decide(one+"; "+other))
			done(one+"; EXECUTE of "+other, both, decide(one+"; EXECUTE p"), decide(other))
		}
	}
	c.Close()
	found, decisions := w.records("outcome"), w.records("decision")
	if len(found) != len(all) || len(decisions) != len(all) {
		t.Fatalf("%d outcomes and %d decisions of %d", len(found), len(decisions), len(all))
	}
	for i, o := range all {
		var of []string
		keys, _ := found[i]["keys"].([]any)
		for _, k := range keys {
			k := k.(map[string]any)
			of = append(of, fmt.Sprint(k["table"]))
			if exact, _ := k["exact"].(bool); exact != (o.rows == 0) {
				t.Errorf("%s: %d rows of %s that nobody has looked at are known: %t", o.text, o.rows, k["table"], exact)
			}
		}
		if slices.Sort(of); !slices.Equal(of, o.of) {
			t.Errorf("%s: the outcome speaks of %v, want %v", o.text, of, o.of)
		}
		decided := fmt.Sprint(decisions[i]["tables"])
		for _, table := range o.of {
			if !strings.Contains(decided, table) {
				t.Errorf("%s: the decision names %s, and not %s", o.text, decided, table)
			}
		}
	}
}

// TestCompleteKeyRecords: the record says that it has the keys of all rows that a statement has read from a table only
// if each of these rows is a row of the result.
func TestCompleteKeyRecords(t *testing.T) {
	const recording = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories: { rows: [ { own: { column: user_id, is: user } } ], audit: { keys: true } }
  people: { rows: [ { own: { column: user_id, is: user } } ] }
`
	w := start(t, func(w *world) {
		w.write(recording)
		if err := installWith(context.Background(), w.dba, recording, rls.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	c := w.client("caregiver")
	for text, want := range map[string]bool{
		"SELECT id FROM memories": true,
		"SELECT * FROM memories AS m WHERE title > 'a' ORDER BY id LIMIT 2":                        true,
		"SELECT id FROM memories AS m WHERE EXISTS (SELECT FROM memories AS o WHERE o.id <> m.id)": false,
		"SELECT id, (SELECT max(title) FROM memories) FROM memories":                               false,
		"SELECT id FROM memories UNION ALL SELECT id FROM memories":                                false,
		"SELECT m.id FROM memories AS m JOIN memories AS o USING (id)":                             false,
		"SELECT id FROM memories WHERE id IN (SELECT id FROM people)":                              false,
		"SELECT count(*) FROM memories":                                                            false,
		"SELECT DISTINCT id FROM memories":                                                         false,
		"SELECT id FROM memories; SELECT id FROM memories":                                         false,
	} {
		v := c.Decide(t.Context(), text, verdict.Simple)
		if !v.IsAllowed() {
			t.Fatalf("%s: %v", text, v.Refusal)
		}
		if got := v.EnforcerDetail.(*judgement).singleTable; got != want {
			t.Errorf("%s: each row that was read is returned: %t", text, got)
		}
	}
}
