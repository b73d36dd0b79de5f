package enforce

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

// contracted is a policy with a contract whose terms depend on the attribute "stage" of the credential.
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

// TestContractsApplyToEachStatement: if the contract depends on an agent's credential, a text is allowed if each of its
// statements is allowed with these attributes. It does not matter what other statements the text has, whether it runs
// now or is prepared, and who sent the same text before. Records name the contracts, and have a reference for the
// attribute.
func TestContractsApplyToEachStatement(t *testing.T) {
	const memory, person, either, ids = 1, 2, 4, 8 // what a statement needs
	needs := map[string]int{
		"SELECT title FROM memories": memory, "SELECT name FROM people": person, "SELECT 1": either, "SELECT id FROM memories": ids,
		"SELECT title, name FROM memories, people": memory | person, "SELECT count(*) FROM people WHERE name = 'x'": person,
		"SELECT (SELECT max(title) FROM memories)": memory,
	}
	gives := map[string]int{"none": either, "1": either | memory | ids, "2": either | person,
		"3": either | memory | person | ids, "4": either | ids, "5": either}
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
	for round := range 2 { // the second time, verdicts come from the cache
		for stage, allows := range gives {
			c := w.client("agent " + stage)
			ask := func(text string, needed int) {
				t.Helper()
				may := needed&^allows == 0
				met[may]++
				for _, protocol := range []verdict.Protocol{verdict.Simple, verdict.Extended} {
					v := c.Decide(t.Context(), text, protocol)
					if protocol == verdict.Extended && v.Refusal != nil && v.Refusal.Code == sqlstate.SyntaxError {
						continue // the extended protocol does not accept several statements
					}
					if v.IsAllowed() != may {
						t.Errorf("round %d, stage %s: %s: %v, want allowed: %t", round, stage, text, v.Refusal, may)
					}
					if again := c.Recheck(t.Context(), v); again.IsAllowed() != may {
						t.Errorf("round %d, stage %s, asked again: %s: %v, want allowed: %t", round, stage, text, again.Refusal, may)
					}
					for _, e := range v.Effects {
						if e.Body != nil && c.Recheck(t.Context(), e.Body).IsAllowed() != may {
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

// TestContractsOfANewPolicy: once a policy is active, its contracts also apply to statements that were prepared before,
// when they are next executed.
func TestContractsOfANewPolicy(t *testing.T) {
	tier.All(t)
	changed := strings.Replace(contracted, "marker-1: { allow: { memory: structured } }", "marker-1: { allow: { person: structured } }", 1)
	w := start(t, func(w *world) {
		w.cfg.RewriteMode = rewrite.AutoMode // with row security, the text stays unchanged
		w.write(contracted)
		a := agent("one", ann)
		a.Attributes["stage"] = "marker-1"
		w.cfg.Agents = []Agent{a}
		if err := installWith(context.Background(), w.dba, contracted, rls.Options{SignedViews: true}); err != nil {
			t.Fatal(err)
		}
	})
	const memory, person = "SELECT title FROM memories WHERE id = '00000000-0000-4000-8000-000000000001'", "SELECT name FROM people"
	c := w.client("one")
	decided := map[string]*verdict.Verdict{}
	for _, text := range []string{memory, "SELECT 1", "PREPARE p AS " + memory, "COPY (" + memory + ") TO STDOUT"} {
		for _, protocol := range []verdict.Protocol{verdict.Simple, verdict.Extended} {
			v := c.Decide(t.Context(), text, protocol)
			if !v.IsAllowed() {
				t.Fatalf("%s: %v", text, v.Refusal)
			}
			decided[fmt.Sprint(text, protocol)] = v
			for _, e := range v.Effects {
				if e.Body != nil {
					decided[fmt.Sprint(text, protocol, " prepared")] = e.Body
				}
			}
		}
	}
	d := w.databases["memories"]
	before := d.servingState.Load().state.versions.Policy
	w.write(changed)
	if err := installWith(t.Context(), w.dba, changed, rls.Options{SignedViews: true}); err != nil {
		t.Fatal(err)
	}
	if err := w.Reload(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the look that finds it installed", func() bool {
		v := d.servingState.Load()
		return v.state != nil && v.state.versions.Policy != before
	})
	for text, v := range decided {
		if again := c.Recheck(t.Context(), v); again.IsAllowed() != strings.HasPrefix(text, "SELECT 1") {
			t.Errorf("%s: %v", text, again.Refusal)
		}
	}
	if v := c.Decide(t.Context(), person, verdict.Extended); !v.IsAllowed() {
		t.Errorf("%s: %v", person, v.Refusal)
	}
}

// TestContractsUseCurrentClaims: a statement that was prepared with one claim is checked against the contract for the
// claim at the time of its execution.
func TestContractsUseCurrentClaims(t *testing.T) {
	tier.All(t)
	claimed := strings.Replace(contracted, "stage: { type: text, source: credential, optional: true }",
		"stage: { type: text, source: set, optional: true, within: { values: [marker-1, marker-2] } }", 1)
	w := start(t, func(w *world) {
		w.write(claimed)
		w.cfg.Agents = []Agent{agent("one", ann)}
		if err := installWith(context.Background(), w.dba, claimed, rls.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	stage := "marker-1"
	s := w.client("one").Decider.(*session)
	s.info.Claims = func() verdict.Claims {
		return verdict.Claims{Known: true, Values: map[string]string{"pgconsent.stage": stage}}
	}
	for _, text := range []string{"SELECT title FROM memories", "PREPARE p AS SELECT title FROM memories", "COPY memories (title) TO STDOUT"} {
		stage = "marker-1"
		v := s.Decide(t.Context(), text, verdict.Simple)
		if !v.IsAllowed() {
			t.Fatalf("%s: %v", text, v.Refusal)
		}
		for _, again := range []struct {
			stage string
			may   bool
		}{{"marker-2", false}, {"marker-1", true}} {
			stage = again.stage
			if now := s.Recheck(t.Context(), v); now.IsAllowed() != again.may {
				t.Errorf("%s at %s: %v", text, stage, now.Refusal)
			}
		}
	}
}
