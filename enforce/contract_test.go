package enforce

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/sqlstate"
	"github.com/pgconsent/pgconsent/verdict"
)

// TestContractsHoldForEachStatement: where a contract goes by what an agent's credential says, a text may run if each of its statements may with
// these attributes: whatever stands beside it, whether it runs now or is prepared, and whoever asked for the same text before. Records name the
// contracts, and the attribute by a reference.
func TestContractsHoldForEachStatement(t *testing.T) {
	const contracted = `version: 1
attributes:
  user: { type: uuid, source: credential }
  stage: { type: text, source: credential, optional: true }
tables:
  memories: { rows: [ { own: { column: user_id, is: user } } ] }
  people: { rows: [ { own: { column: user_id, is: user } } ] }
objects:
  memory: { table: memories, vessel: user, metadata: [id] }
  person: { table: people, vessel: user, metadata: [id] }
contracts:
  reading:
    by: stage
    values:
      marker-1: { allow: { memory: structured } }
      marker-2: { allow: { person: structured } }
      marker-3: { allow: { memory: structured, person: structured } }
      marker-4: { allow: { memory: metadata } }
`
	const memory, person, either, ids = 1, 2, 4, 8 // what a statement needs
	needs := map[string]int{
		"SELECT title FROM memories": memory, "SELECT name FROM people": person, "SELECT 1": either, "SELECT id FROM memories": ids,
		"SELECT title, name FROM memories, people": memory | person, "SELECT count(*) FROM people WHERE name = 'x'": person,
		"SELECT (SELECT max(title) FROM memories)": memory,
	}
	gives := map[string]int{"none": either, "1": either | memory | ids, "2": either | person, "3": either | memory | person | ids, "4": either | ids, "5": either}
	w := start(t, func(w *world) {
		w.write(contracted)
		w.cfg.Agents = nil
		for stage := range gives {
			a := agent("agent "+stage, ann)
			if stage != "none" {
				a.Attributes["stage"] = "marker-" + stage
			}
			w.cfg.Agents = append(w.cfg.Agents, a)
		}
		if err := installWith(context.Background(), w.dba, contracted, rls.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	met := map[bool]int{}
	for round := range 2 { // the second time what is kept is asked
		for stage, allows := range gives {
			c := w.client("agent " + stage)
			ask := func(text string, needed int) {
				t.Helper()
				may := needed&^allows == 0
				met[may]++
				for _, p := range []verdict.Protocol{verdict.Simple, verdict.Extended} {
					v := c.Decide(t.Context(), text, p)
					if p == verdict.Extended && v.Refusal != nil && v.Refusal.Code == sqlstate.SyntaxError {
						continue // several statements
					}
					if v.Allowed() != may {
						t.Errorf("round %d, stage %s: %s: %v, want allowed: %t", round, stage, text, v.Refusal, may)
					}
					if again := c.Recheck(t.Context(), v); again.Allowed() != may {
						t.Errorf("round %d, stage %s, asked again: %s: %v, want allowed: %t", round, stage, text, again.Refusal, may)
					}
					for _, e := range v.Effects {
						if e.Body != nil && c.Recheck(t.Context(), e.Body).Allowed() != may {
							t.Errorf("round %d, stage %s: what %s prepares, want allowed: %t", round, stage, text, may)
						}
					}
				}
			}
			if _, err := c.query("SELECT title FROM memories"); (err == nil) != (allows&memory != 0) {
				t.Errorf("stage %s: %v", stage, err)
			}
			for one, first := range needs {
				ask(one, first)
				ask("PREPARE p AS "+one, first)
				ask("DECLARE c CURSOR FOR "+one, first)
				ask("COPY ("+one+") TO STDOUT", first)
				for other, second := range needs {
					ask(one+"; "+other, first|second)
					ask(fmt.Sprintf("PREPARE p AS %s; %s", one, other), first|second)
				}
			}
			c.Close()
		}
	}
	named := 0
	for _, d := range w.records("decision") {
		if fmt.Sprint(d["contracts"]) != "<nil>" {
			named++
		}
		if line := fmt.Sprint(d); strings.Contains(line, "marker") {
			t.Errorf("a record has the value: %s", line)
		}
	}
	if named == 0 {
		t.Error("no record names a contract")
	}
	if met[true] == 0 || met[false] == 0 {
		t.Errorf("%v", met)
	}
}
