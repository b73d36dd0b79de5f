package e2e

import (
	"context"

	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

const materializedSetup = `
SET ROLE arcive_owner;
CREATE TABLE persons (id int PRIMARY KEY, consent text, until timestamptz);
CREATE TABLE notes (id int PRIMARY KEY, body text);
CREATE TABLE note_persons (note int, person int);
INSERT INTO persons VALUES (1, 'granted', NULL), (2, 'refused', NULL), (3, 'granted', now() + interval '1 hour'), (4, 'granted', now() - interval '1 hour');
INSERT INTO notes VALUES (1, 'of one'), (2, 'HIDDENMARK refused'), (3, 'of three'), (4, 'HIDDENMARK over'), (5, 'of nobody'),
  (6, 'HIDDENMARK of nobody who is there'), (7, 'HIDDENMARK of one and two');
INSERT INTO note_persons VALUES (1, 1), (2, 2), (3, 3), (4, 4), (6, 9), (7, 1), (7, 2);
RESET ROLE;`

const materializedRules = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  notes: { rows: [ consent: { every: [ note_persons: { note: id }, persons: { id: person } ], status: consent,
    is: granted, expires: until, materialize: true } ] }
  persons: { rows: [ status: { column: consent, is: granted } ] }
  note_persons: { rows: [ visible: { notes: { id: note } }, visible: { persons: { id: person } } ] }
`

// Materialized consents give the same rows as the registry of people, before and after they are filled in, in each
// mode. Tested are a withdrawal, an expiry, and changes after which the values are unusable until they are filled in
// again.
func TestMaterialized(t *testing.T) {
	tier.All(t)
	ctx := context.Background()
	for name, o := range map[string]options{"both": {}, "auto": {mode: rewrite.AutoMode},
		"row security alone": {mode: modeRLS}} {
		t.Run(name, func(t *testing.T) {
			o.beforeMigrate, o.policy = materializedSetup, materializedRules
			in := start(t, o)
			agent, super := in.agent(t), in.db.Connect(t, "postgres")
			const allQuery = `SELECT id FROM notes ORDER BY id`
			wantShown := func(moment, want string) {
				t.Helper()
				for _, sql := range []string{allQuery, `SELECT id FROM notes WHERE body ~ '.' ORDER BY id`, `/*pgconsent:use_hash*/` + allQuery} {
					if got := firstColumn(t, agent, sql); got != want {
						t.Errorf("%s: %s: got %s, want %s", moment, sql, got, want)
					}
				}
			}
			execSQL := func(sql string) {
				t.Helper()
				if _, err := super.Exec(ctx, sql); err != nil {
					t.Fatalf("%s: %v", sql, err)
				}
			}
			readReady := func() (isReady bool) {
				t.Helper()
				if err := super.QueryRow(ctx, "SELECT ready FROM pgconsent.materialized").Scan(&isReady); err != nil {
					t.Fatal(err)
				}
				return isReady
			}
			fills := fillsOf(t, super, materializedRules)
			wantShown("before it is filled in", "1 3 5")
			progressCalls := 0
			if err := migrations.FillAll(ctx, super, fills, func(migrations.Fill, int64) { progressCalls++ }); err != nil || progressCalls < 2 ||
				!readReady() {
				t.Fatalf("%v, told %d times", err, progressCalls)
			}
			wantShown("filled in", "1 3 5")
			for _, step := range []struct{ sql, want string }{
				{"UPDATE persons SET consent = 'refused' WHERE id = 1", "3 5"}, {
					"UPDATE persons SET consent = 'granted'", "1 2 3 5 7"}, {"UPDATE persons SET consent = NULL WHERE id = 2", "1 3 5"},
				{"INSERT INTO note_persons VALUES (5, 2)", "1 3"}, {
					"DELETE FROM note_persons WHERE note = 7 AND person = 2", "1 3 7"}, {"INSERT INTO persons VALUES (9, 'granted')", "1 3 6 7"},
				{"INSERT INTO notes VALUES (8, 'new'); INSERT INTO note_persons VALUES (8, 3)", "1 3 6 7 8"}, {
					"DELETE FROM persons WHERE id = 9", "1 3 7 8"}, {"UPDATE notes SET id = 9 WHERE id = 3", "1 7 8 9"},
				{"UPDATE notes SET id = 3 WHERE id = 9", "1 3 7 8"},
				{"BEGIN; UPDATE persons SET consent = 'refused' WHERE id = 3; SAVEPOINT a; UPDATE persons SET consent = 'refused'; ROLLBACK TO a; COMMIT", "1 7"},
				{"UPDATE persons SET consent = 'granted', until = clock_timestamp() + interval '1 hour' WHERE id = 3", "1 3 7 8"},
			} {
				if _, err := super.PgConn().Exec(ctx, step.sql).ReadAll(); err != nil {
					t.Fatalf("%s: %v", step.sql, err)
				}
				wantShown(step.sql, step.want)
			}
			if !readReady() {
				t.Error("what is kept does not count any more")
			}
			execSQL("UPDATE persons SET until = clock_timestamp() + interval '8 seconds' WHERE id = 3")
			wantShown("before the instant", "1 3 7 8")
			execSQL("SELECT pg_sleep(8.1)")
			wantShown("after the instant", "1 7")

			if _, err := super.PgConn().Exec(ctx,
				"BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE persons SET consent = 'refused' WHERE id = 1; COMMIT").ReadAll(); err != nil {
				t.Fatal(err)
			}
			wantShown("after a change that could not be settled", "")
			if readReady() {
				t.Error("what is kept counts although it was not settled")
			}
			execSQL("UPDATE persons SET consent = 'granted' WHERE id = 1")
			wantShown("meanwhile", "1 7")
			if err := migrations.FillAll(ctx, super, fills, func(migrations.Fill, int64) {}); err != nil || !readReady() {
				t.Fatal(err)
			}
			wantShown("filled in anew", "1 7")
			execSQL("TRUNCATE note_persons")
			wantShown("nobody is linked", "1 2 3 4 5 6 7 8")
		})
	}
}

func fillsOf(t *testing.T, super *pgx.Conn, rules string) []migrations.Fill {
	t.Helper()
	snap, err := pgcatalog.Load(context.Background(), super, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("policy.yaml", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc, snap)
	if err != nil {
		t.Fatal(err)
	}
	return rls.Generate(p, snap, rls.Options{}).Fills()
}
