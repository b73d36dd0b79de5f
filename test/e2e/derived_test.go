package e2e

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/rewrite"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const (
	noteIDPrefix    = "aaaaaaaa-0000-4000-8000-00000000000" // prefix of the ids of notes
	summaryIDPrefix = "bbbbbbbb-0000-4000-8000-00000000000" // prefix of the ids of summaries
	personIDPrefix  = "cccccccc-0000-4000-8000-00000000000" // prefix of the ids of persons
)

// The world of these tests: two users have notes about three persons, of whom 1 and 3 have granted and 2 has refused. A
// link table names the notes of each summary, a list the summaries of each digest. Reflections refer to one another.
const derivedSetup = `
SET ROLE arcive_owner;
CREATE TABLE persons (id uuid PRIMARY KEY, consent text);
CREATE TABLE notes (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid, person uuid REFERENCES persons, body text);
CREATE TABLE summaries (id uuid PRIMARY KEY, body text, emb cube);
CREATE TABLE summary_notes (summary uuid REFERENCES summaries ON DELETE CASCADE, note uuid, PRIMARY KEY (summary, note));
CREATE TABLE digests (id int PRIMARY KEY, body text, sources uuid[]);
CREATE TABLE drafts (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), user_id uuid, body text, sources uuid[]);
CREATE TABLE reflections (id int PRIMARY KEY, kind text, person uuid, body text);
CREATE TABLE reflected (reflection int, source int);
INSERT INTO persons VALUES ('cccccccc-0000-4000-8000-000000000001', 'granted'), ('cccccccc-0000-4000-8000-000000000002', 'refused'),
  ('cccccccc-0000-4000-8000-000000000003', 'granted');
INSERT INTO notes VALUES
  ('aaaaaaaa-0000-4000-8000-000000000001', '11111111-1111-4111-8111-111111111111', 'cccccccc-0000-4000-8000-000000000001', 'mine, granted'),
  ('aaaaaaaa-0000-4000-8000-000000000002', '11111111-1111-4111-8111-111111111111', 'cccccccc-0000-4000-8000-000000000002', 'HIDDENMARK refused'),
  ('aaaaaaaa-0000-4000-8000-000000000003', '22222222-2222-4222-8222-222222222222', 'cccccccc-0000-4000-8000-000000000003', 'HIDDENMARK of another, granted');
INSERT INTO summaries VALUES
  ('bbbbbbbb-0000-4000-8000-000000000001', 'of my own note',              '(1,1)'),
  ('bbbbbbbb-0000-4000-8000-000000000002', 'HIDDENMARK of the refused',   '(0,0)'),
  ('bbbbbbbb-0000-4000-8000-000000000003', 'of both users, all granted',  '(3,3)'),
  ('bbbbbbbb-0000-4000-8000-000000000004', 'HIDDENMARK of one and one',   '(0,0.1)'),
  ('bbbbbbbb-0000-4000-8000-000000000005', 'HIDDENMARK of nothing',       '(0,0.2)'),
  ('bbbbbbbb-0000-4000-8000-000000000006', 'HIDDENMARK of one that is gone', '(0,0.3)');
INSERT INTO summary_notes SELECT ('bbbbbbbb-0000-4000-8000-00000000000' || s)::uuid, ('aaaaaaaa-0000-4000-8000-00000000000' || n)::uuid
  FROM (VALUES (1, 1), (2, 2), (3, 1), (3, 3), (4, 1), (4, 2), (6, 1), (6, 9)) AS l (s, n);
INSERT INTO digests SELECT i, CASE WHEN i IN (1, 3) THEN 'digest ' ELSE 'HIDDENMARK ' END || i, sources FROM (VALUES
  (1, ARRAY['bbbbbbbb-0000-4000-8000-000000000001', 'bbbbbbbb-0000-4000-8000-000000000003']::uuid[]),
  (2, ARRAY['bbbbbbbb-0000-4000-8000-000000000002']::uuid[]),
  (3, ARRAY['bbbbbbbb-0000-4000-8000-000000000001']::uuid[]),
  (4, ARRAY['bbbbbbbb-0000-4000-8000-000000000001', NULL]::uuid[]), (5, '{}'), (6, NULL)) AS d (i, sources);
INSERT INTO reflections VALUES (1, 'seed', NULL, 'the first'),
  (2, 'made', 'cccccccc-0000-4000-8000-000000000001', 'of the first'), (3, 'made', NULL, 'of the second'),
  (4, 'seed', 'cccccccc-0000-4000-8000-000000000002', 'HIDDENMARK refused'), (5, 'made', NULL, 'HIDDENMARK of the refused'),
  (6, 'made', NULL, 'HIDDENMARK of that, and of the third'),
  (7, 'made', NULL, 'HIDDENMARK circle'), (8, 'made', NULL, 'HIDDENMARK circle'),
  (9, 'made', NULL, 'HIDDENMARK of the circle'), (10, 'made', NULL, 'HIDDENMARK of nothing');
INSERT INTO reflected VALUES (2, 1), (3, 2), (5, 4), (6, 5), (6, 3), (7, 8), (8, 7), (9, 7), (9, 1);
RESET ROLE;`

const derivedPolicy = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  persons: { rows: [ status: { column: consent, is: granted } ] }
  notes:
    rows:
      - own: { column: user_id, is: user }
      - consent: { every: [ persons: { id: person } ], status: consent, is: granted }
  summaries: { rows: [ derived: { from: [ summary_notes: { summary: id }, notes: { id: note } ] } ] }
  summary_notes: { rows: [ visible: { summaries: { id: summary } }, visible: { notes: { id: note } } ] }
  digests: { rows: [ derived: { sources: sources, of: summaries, on_erase: keep } ] }
  drafts:
    rows: [ own: { column: user_id, is: user }, derived: { sources: sources, of: notes } ]
    write: { commands: [insert, update], columns: [body, sources], immutable: [sources], stamp: { user_id: { attribute: user } } }
  reflections:
    rows:
      - any: [ sql: "person IS NULL", consent: { every: [ persons: { id: person } ], status: consent, is: granted } ]
      - derived: { from: [ reflected: { reflection: id }, reflections: { id: source } ], unless: [ status: { column: kind, is: seed } ] }
`

// Derived rows are visible only where all people of their source rows agree, through the proxy and in each mode. No
// part of a hidden row is sent, whatever the statement.
func TestDerived(t *testing.T) {
	tier.All(t)
	for name, o := range map[string]options{
		"both": {}, "auto": {mode: rewrite.AutoMode}, "signed": {mode: rewrite.AlwaysSignedMode}, "row security alone": {
			mode: modeRLS}, "text alone": {mode: modeInjected, rowSecurity: withoutPolicies},
	} {
		t.Run(name, func(t *testing.T) {
			if o.mode != rewrite.InjectedMode && o.mode != rewrite.AutoMode {
				tier.All(t)
			}
			o.beforeMigrate, o.policy = derivedSetup, derivedPolicy
			in := start(t, o)
			agent := in.agent(t)
			for _, q := range []struct{ sql, want string }{
				{`SELECT right(id::text, 1) FROM summaries ORDER BY id`, "1 3"},
				{`SELECT id FROM digests ORDER BY id`, "1 3"},
				{`SELECT id FROM reflections ORDER BY id`, "1 2 3"},
				{`SELECT count(*) FROM summary_notes`, "2"},
				{`SELECT right(id::text, 1) FROM summaries WHERE id NOT IN (SELECT summary FROM summary_notes)`, ""},
				{`SELECT right(id::text, 1) FROM summaries ORDER BY emb <-> '(0,0)'::cube LIMIT 2`, "1 3"},
				{`SELECT right(id::text, 1) FROM summaries ORDER BY emb <-> '(3,3)'::cube LIMIT 1`, "3"},
				{`SELECT count(*) FROM summaries AS s LEFT JOIN digests AS d ON s.id = ANY (d.sources)`, "3"},
				{
					`WITH RECURSIVE up AS (SELECT id FROM reflections WHERE id = 3 UNION SELECT f.id FROM up, reflections AS f WHERE f.id < up.id) SELECT id ` +
						`FROM up ORDER BY id`, "1 2 3"},
				{`SELECT count(*) FROM digests WHERE sources && (SELECT array_agg(id) FROM summaries)`, "2"},
				{`SELECT max(id) FROM reflections`, "3"},
			} {
				if got := firstColumn(t, agent, q.sql); got != q.want {
					t.Errorf("%s: got %s, want %s", q.sql, got, q.want)
				}
			}
			for _, sql := range []string{
				`SELECT body::int FROM summaries`, `SELECT 1 / (id - 2) FROM digests`,
				`SELECT 1 / (id - 9) FROM reflections`, `SELECT body::date FROM reflections WHERE id > 3`,
				`SELECT * FROM reflected`, `SELECT * FROM pgconsent.h_public_reflected`, `SELECT * FROM pgconsent_signed.public_summary_notes`,
				`SELECT pg_input_is_valid(body, 'int') FROM summaries`, `COPY (SELECT body FROM digests) TO STDOUT`,
				`SELECT summaries FROM summaries`, `SELECT id FROM digests FOR UPDATE`,
			} {
				if a := harness.Ask(agent, sql); o.mode != modeInjected && strings.Contains(a.String(), "HIDDENMARK") {
					t.Errorf("%s: %s", sql, a)
				}
			}
			if o.mode != modeInjected {
				in.requireNoMarker(t)
			}
		})
	}
}

// When a person of a source row withdraws, derived rows are hidden from the next statement on, through every link.
// Older snapshots end. The same holds when a source is deleted or added.
func TestDerivedFreshness(t *testing.T) {
	tier.All(t)
	in := start(t, options{beforeMigrate: derivedSetup, policy: derivedPolicy})
	agent, snapshotConn := in.agent(t), in.agent(t)
	allQuery :=
		`SELECT (SELECT string_agg(right(id::text, 1), '' ORDER BY id) FROM summaries) || '|' || (SELECT string_agg(id::text, '' ORDER BY id) FROM digests) || '|' ` +
			`|| (SELECT string_agg(id::text, '' ORDER BY id) FROM reflections)`
	if got := firstColumn(t, agent, allQuery); got != "13|13|123" {
		t.Fatalf("before: %s", got)
	}
	for _, step := range []struct{ changeSQL, undoSQL, want string }{
		{"UPDATE persons SET consent = 'refused' WHERE id = '" + personIDPrefix + "3'",
			"UPDATE persons SET consent = 'granted' WHERE id = '" + personIDPrefix + "3'", "1|3|123"},
		{"UPDATE persons SET consent = NULL WHERE id = '" + personIDPrefix + "1'", "UPDATE persons SET consent = 'granted' WHERE id = '" + personIDPrefix + "1'", ""},
		{"INSERT INTO summary_notes VALUES ('" + summaryIDPrefix + "3', '" + noteIDPrefix + "2')",
			"DELETE FROM summary_notes WHERE summary = '" + summaryIDPrefix + "3' AND note = '" + noteIDPrefix + "2'", "1|3|123"},
		{"UPDATE summary_notes SET note = '" + noteIDPrefix + "8' WHERE summary = '" + summaryIDPrefix + "3' AND note = '" +
			noteIDPrefix + "1'", "UPDATE summary_notes SET note = '" + noteIDPrefix + "1' WHERE note = '" + noteIDPrefix + "8'", "1|3|123"},
		{"UPDATE digests SET sources = sources || ARRAY['" + summaryIDPrefix + "2']::uuid[] WHERE id = 1",
			"UPDATE digests SET sources = sources[1:2] WHERE id = 1", "13|3|123"},
		{"INSERT INTO reflected VALUES (2, 4)", "DELETE FROM reflected WHERE reflection = 2 AND source = 4", "13|13|1"},
		{"DELETE FROM reflected WHERE reflection = 2", "INSERT INTO reflected VALUES (2, 1)", "13|13|1"},
		{"UPDATE reflections SET kind = 'made' WHERE id = 1", "UPDATE reflections SET kind = 'seed' WHERE id = 1", ""},
		{"UPDATE reflected SET source = 3 WHERE reflection = 2", "UPDATE reflected SET source = 1 WHERE reflection = 2", "13|13|1"},
	} {
		harness.Ask(snapshotConn, "BEGIN ISOLATION LEVEL REPEATABLE READ")
		if got := firstColumn(t, snapshotConn, allQuery); got != "13|13|123" {
			t.Fatalf("%s: before: %s", step.changeSQL, got)
		}
		runAsSuperuser(t, in.db, step.changeSQL)
		if got := firstColumn(t, agent, allQuery); got != step.want {
			t.Errorf("%s: got %s, want %s", step.changeSQL, got, step.want)
		}
		if a := harness.Ask(snapshotConn, allQuery); !strings.Contains(a.Err, "40001") {
			t.Errorf("%s: an older snapshot goes on: %s", step.changeSQL, a)
		}
		harness.Ask(snapshotConn, "ROLLBACK")
		runAsSuperuser(t, in.db, step.undoSQL)
		if got := firstColumn(t, agent, allQuery); got != "13|13|123" {
			t.Errorf("%s: got %s", step.undoSQL, got)
		}
	}
	runAsSuperuser(t, in.db, "DELETE FROM notes WHERE id = '"+noteIDPrefix+"3'")
	if got := firstColumn(t, agent, allQuery); got != "1|3|123" {
		t.Errorf("a source is gone: %s", got)
	}
	in.requireNoMarker(t)
}

// Agents can make derived rows from rows that they see, and cannot change the sources afterwards.
func TestDerivedWrites(t *testing.T) {
	in := start(t, options{beforeMigrate: derivedSetup, policy: derivedPolicy})
	agent := in.agent(t)
	if a := harness.Ask(agent, "INSERT INTO drafts (body, sources) VALUES ('from mine', ARRAY['"+noteIDPrefix+"1']::uuid[]) RETURNING body"); a.Err != "" {
		t.Fatal(a)
	}
	refusalTexts := map[string]bool{}
	for description, sources := range map[string]string{
		"a hidden one": "ARRAY['" + noteIDPrefix + "2']::uuid[]", "one of another user, who has agreed": "ARRAY['" +
			noteIDPrefix + "3']::uuid[]", "one that is not there": "ARRAY['" + noteIDPrefix + "7']::uuid[]",
		"one of each": "ARRAY['" + noteIDPrefix + "1', '" + noteIDPrefix + "3']::uuid[]", "nobody": "ARRAY[NULL]::uuid[]",
	} {
		a := harness.Ask(agent, "INSERT INTO drafts (body, sources) VALUES ('x', "+sources+")")
		if !strings.Contains(a.Err, "42501") {
			t.Errorf("%s: %s", description, a)
		}
		refusalTexts[a.Err] = true
	}
	if len(refusalTexts) != 1 {
		t.Errorf("the errors tell sources apart: %v", refusalTexts)
	}
	for _, sql := range []string{
		"INSERT INTO drafts (body) VALUES ('of nothing')", "INSERT INTO drafts (body, sources) VALUES ('of nothing', '{}')",
		"UPDATE drafts SET sources = '{}'", "UPDATE drafts SET sources = array_remove(sources, '" + noteIDPrefix +
			"1')", "UPDATE drafts SET id = gen_random_uuid()",
		"DELETE FROM summary_notes", "INSERT INTO summary_notes VALUES ('" + summaryIDPrefix + "5', '" + noteIDPrefix +
			"1')", "UPDATE summary_notes SET note = '" + noteIDPrefix + "1'", "DELETE FROM reflected",
	} {
		if a := harness.Ask(agent, sql); a.Err == "" {
			t.Errorf("%s: %s", sql, a)
		}
	}
	if a := harness.Ask(agent, "UPDATE drafts SET body = 'better'"); a.Err != "" {
		t.Error(a)
	}
	runAsSuperuser(t, in.db, "UPDATE persons SET consent = 'refused' WHERE id = '"+personIDPrefix+"1'")
	if got := firstColumn(t, agent, "UPDATE drafts SET body = 'late' RETURNING body"); got != "" {
		t.Errorf("a draft whose source is hidden was updated: %s", got)
	}
	in.requireNoMarker(t)
}
