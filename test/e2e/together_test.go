package e2e

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// One statement cannot insert a row and the rows that make it visible, since no part of a statement sees what another
// part inserts. The error says how to do it, and that works.
func TestDependentPartsOfAStatementAreRefused(t *testing.T) {
	tier.All(t)
	db := pgtest.Database(t)
	harness.Exec(t, db, `CREATE TABLE notes (id bigint PRIMARY KEY, member int NOT NULL);
		CREATE TABLE links (note_id bigint NOT NULL REFERENCES notes, person text NOT NULL);
		DO $$ BEGIN CREATE ROLE together_owner LOGIN; EXCEPTION WHEN duplicate_object THEN END $$;
		ALTER TABLE notes OWNER TO together_owner; ALTER TABLE links OWNER TO together_owner`)
	servedDatabase := harness.Database{Name: "notes", DB: db, SearchPath: []string{"public"}, Policy: `
version: 1
attributes: { member: { type: bigint, source: credential } }
tables:
  notes: { rows: [ own: { column: member, is: member } ],
    write: { commands: [insert, update], columns: [id], stamp: { member: { attribute: member } }, accept: [conflicts] } }
  links: { rows: [ visible: { notes: { id: note_id } } ], write: { commands: [insert], columns: [note_id, person] } }
`}
	for _, mode := range harness.Modes(harness.Auto, harness.Both) {
		harness.Install(t, servedDatabase, mode)
		agent := harness.Serve(t, mode, []harness.Database{servedDatabase},
			[]harness.Agent{{Name: "one", Database: "notes", Attributes: map[string]string{"member": "1"}}}).Agent(t, "one", "notes")
		const hint = "send two statements in one transaction"
		for sql, hasHint := range map[string]bool{
			"WITH made AS (INSERT INTO notes (id) VALUES (1) RETURNING id) INSERT INTO links (note_id, person) " +
				"SELECT id, 'ann' FROM made": true,
			"WITH made AS (INSERT INTO notes (id) VALUES (2) RETURNING id), led AS (INSERT INTO links (note_id, " +
				"person) SELECT id, 'ann' FROM made) SELECT id FROM made": true,
			"INSERT INTO links (note_id, person) VALUES (3, 'ann')":                                                      false,
			"WITH made AS (SELECT 4 AS id) INSERT INTO links (note_id, person) SELECT id, 'ann' FROM made":               false,
			"WITH made AS (INSERT INTO notes (id) VALUES (1/0) RETURNING id) INSERT INTO links SELECT id, 'a' FROM made": false,
		} {
			a := harness.Ask(agent, sql)
			if a.Err == "" || strings.Contains(a.Err, hint) != hasHint {
				t.Errorf("%s: %s\n%s", mode.Name, sql, a.Err)
			}
		}
		for _, sql := range []string{"BEGIN", "INSERT INTO notes (id) VALUES (5)", "INSERT INTO links (note_id, person) VALUES (5, 'ann')", "ROLLBACK"} {
			if a := harness.Ask(agent, sql); a.Err != "" {
				t.Errorf("%s: %s: %s", mode.Name, sql, a.Err)
			}
		}
	}
}
