package policydiff

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

const boundsBefore = `version: 1
attributes: { team: { type: text, source: credential }, stage: { type: integer, source: credential }, turn: { type: integer, source: credential } }
tables:
  people: { rows: [ own: { column: team, is: team } ] }
  log:
    rows: [ status: { column: what, is: open } ]
    aggregate: { subject: at, rows: [ not: { status: { column: what, is: open } } ], minimum: 5, dimensions: { what: allow } }
objects: { person: { table: people, metadata: [id] }, log: { table: log } }
contracts:
  stages:
    by: stage
    values: { 1: { allow: { person: metadata } }, 2: everything, 3: nothing }
  whole: { allow: everything, rows: 10 }
limits: [ { per: team, by_key: 60, rows: 1000 }, { statements: 10 } ]
`

// Changes of limits and restrictions are listed one by one. For tables that may be counted in groups, the rows are
// counted.
func TestBounds(t *testing.T) {
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	if _, err := super.Exec(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	after := strings.NewReplacer(
		"1: { allow: { person: metadata } }",
		"1: { allow: { person: [metadata, structured] }, requires: \"attribute('team') = 'n'\" }", "3: nothing", "4: nothing",
		"rows: 10 }", "rows: { at_most: 5, per: turn } }", "by_key: 60, rows: 1000", "by_key: 120, result_rows: 7", ", { statements: 10 }", "",
		"minimum: 5", "minimum: 9", "[ not: { status: { column: what, is: open } } ]",
		"[ not: { status: { column: what, is: open } }, sql: \"at < 100\" ]", "table: log }", "table: log, vessel: user }",
	).Replace(boundsBefore)
	oldPolicy, _ := compile(t, super, boundsBefore)
	now, _ := compile(t, super, after)
	r, err := Compare(t.Context(), super, Options{Old: PolicyVersion{"old", oldPolicy}, New: PolicyVersion{"new", now},
		Agents: map[string]map[string]string{"north": {"team": "n", "stage": "1", "turn": "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	r.Database = "d"
	Printer{Out: &b}.Print(r)
	const want = `
public.log
    grouped  north  857 → 85  -772

what bounds statements
  ~ aggregate of public.log, minimum: 5 → 9
  ~ aggregate of public.log, which rows count
  ~ contract stages, stage 1: person (metadata) → person (metadata, structured), if attribute('team') = 'n'
  ~ contract stages, stage 3 (gone)
  ~ contract stages, stage 4: nothing (new)
  ~ contract whole, every session: everything, at most 10 rows of a statement → everything, at most 5 rows per turn
  ~ limits per agent (gone)
  ~ limits per team, by_key: 60 → 120
  ~ limits per team, result_rows: no bound → 7
  ~ limits per team, rows: 1000 → no bound
  ~ object log, vessel: nothing → user

agents may gain something by what is otherwise (~)
`
	if _, got, _ := strings.Cut(b.String(), "\n"); got != want {
		t.Errorf("the report is\n%s\nwant\n%s", got, want)
	}
	if samePolicy, _ := compile(t, super, boundsBefore); len(boundChanges(oldPolicy, samePolicy)) != 0 {
		t.Errorf("equal policies differ: %v", boundChanges(oldPolicy, samePolicy))
	}
}
