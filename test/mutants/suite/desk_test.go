package suite

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/test/instance"
)

const sessionSchema = `
CREATE TABLE session (id integer PRIMARY KEY, user_id integer, stage integer);
CREATE TABLE turn (id integer PRIMARY KEY, session integer, body text);
CREATE TABLE pact (id integer PRIMARY KEY, body text);
CREATE TABLE person (id integer PRIMARY KEY, user_id integer, name text, record text);
CREATE TABLE visit (id integer PRIMARY KEY, user_id integer, clinic text, agreed boolean);
CREATE TABLE note (id integer PRIMARY KEY, user_id integer, body text, grants text[] NOT NULL DEFAULT '{}');
CREATE TABLE digest (user_id integer, sources integer[], body text);
CREATE TABLE shelf (id integer PRIMARY KEY);
CREATE TABLE held (shelf integer, person integer);
CREATE TABLE piece (id integer PRIMARY KEY, kind text);
CREATE TABLE part (whole integer, part integer);
CREATE FUNCTION pacts() RETURNS SETOF text LANGUAGE sql STABLE AS $$ SELECT body FROM public.pact ORDER BY id $$;
CREATE FUNCTION records() RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN QUERY EXECUTE 'SELECT record FROM FETCH(true, 1) ORDER BY 1'; END $$;
INSERT INTO session VALUES (1, 1, 1), (2, 2, 1), (3, 1, 2), (4, 1, 3);
INSERT INTO turn SELECT i, 1 + i % 3, 'turn ' || i FROM generate_series(1, 9) i;
INSERT INTO pact VALUES (1, 'we agreed');
INSERT INTO person VALUES (1, 1, 'one', 'record 1'), (2, 1, 'two', 'record 2'), (3, 2, 'three', 'record 3');
INSERT INTO visit SELECT i, 10 + i, CASE WHEN i > 5 THEN 'small' ELSE 'large' END, true FROM generate_series(1, 7) i;
INSERT INTO note VALUES (1, 1, 'first', '{ann,ben}');
INSERT INTO digest VALUES (1, '{1,3}', 'of two'), (1, '{1,9}', 'of nobody'), (1, '{}', 'of nothing'), (1, NULL, 'of nothing');
INSERT INTO shelf VALUES (1), (2), (3);
INSERT INTO held VALUES (1, 1), (1, 3), (3, 1), (3, 9);
INSERT INTO piece VALUES (1, 'first'), (2, 'made'), (3, 'made'), (4, 'made'), (5, 'made'), (6, 'made'), (7, 'made');
INSERT INTO part VALUES (2, 1), (3, 2), (4, 9), (4, 1), (5, 6), (6, 5);
`

const sessionPolicy = `version: 1
attributes:
  user: { type: integer, source: credential }
  session: { type: integer, source: set, setting: app.session, optional: true,
    within: { table: session, column: id, rows: [ own: { column: user_id, is: user } ] } }
  stage: { type: integer, source: query, optional: true, query: { table: session, column: stage, match: { id: session } } }
tables:
  turn: { rows: [ own: { column: session, is: session } ] }
  pact: { rows: open }
  person:
    rows: [ own: { column: user_id, is: user } ]
    columns: { id: allow, name: allow, record: by_key }
  visit:
    rows: [ own: { column: user_id, is: user } ]
    aggregate: { subject: user_id, rows: [ status: { column: agreed, is: true } ], minimum: 5, dimensions: { clinic: allow } }
  note:
    rows: [ own: { column: user_id, is: user } ]
    write: { commands: [update], columns: [body, grants], lists: { grants: { narrow: true } } }
  digest:
    rows: [ own: { column: user_id, is: user }, derived: { sources: sources, of: person } ]
    write: { commands: [insert], columns: [sources, body], stamp: { user_id: { attribute: user } } }
  shelf: { rows: [ derived: { from: [ held: { shelf: id }, person: { id: person } ] } ] }
  piece: { rows: [ derived: { from: [ part: { whole: id }, piece: { id: part } ], unless: [ status: { column: kind, is: first } ] } ] }
functions: { pacts: { reads: nothing }, records: { reads: nothing } }
objects:
  turn: { table: turn, metadata: [id, session] }
  pact: { table: pact }
contracts:
  retrieval: { by: stage, values: { 1: { allow: { turn: structured } },
    2: { allow: { turn: structured, pact: structured } }, 3: { allow: { turn: metadata } } } }
`

// An agent asks for tables with claims, stages of a session, columns by key, groups, derived rows and narrowed lists.
// No filtered copy can answer these statements, so the expected answers are written here.
func TestSessionRules(t *testing.T) {
	db := pgtest.Template(t, "desk", func(ctx context.Context, conn *pgx.Conn) error {
		fetch := predicate.KeyedView(catalog.Name{Schema: "public", Name: "person"}, true).SQL()
		_, err := conn.Exec(ctx, strings.ReplaceAll(sessionSchema, "FETCH", fetch))
		return err
	})
	p := instance.Start(t, instance.Both, instance.Database{
		Name: "desk", DB: db, Policy: sessionPolicy, SearchPath: []string{"public"}}, map[string]string{"user": "1"})
	for _, c := range []struct{ session, sql, want string }{
		{"1", "SELECT id FROM turn ORDER BY id", "3 6 9"},
		{"3", "SELECT id FROM turn ORDER BY id", "2 5 8"},
		{"2", "SELECT id FROM turn ORDER BY id", "42501"}, // another user's session
		{"", "SELECT id FROM turn ORDER BY id", "42501"},
		{"3", "SELECT body FROM pact", "we agreed"},
		{"3", "SELECT pacts()", "we agreed"},
		{"1", "SELECT body FROM pact", "42501"},
		{"1", "SELECT pacts()", ""}, // the function reads a table that the contract does not allow
		{"4", "SELECT count(*) FROM turn", "0"},
		{"4", "SELECT count(*) FROM turn WHERE body = 'x'", "42501"},
		{"4", "SELECT count(*) FROM (SELECT body FROM turn EXCEPT ALL SELECT 'x') s", "42501"},
		{"4", "SELECT count(*) FROM (SELECT DISTINCT body FROM turn) s", "42501"},
		{"4", "SELECT rank() OVER (ORDER BY body) FROM turn", "42501"},
		{"4", "SELECT count(*) FROM turn JOIN (SELECT 'x' AS body) s USING (body)", "42501"},
		{"1", "SELECT record FROM person WHERE id = 2", "record 2"},
		{"1", "SELECT record FROM person WHERE id = 3", ""},
		{"1", "SELECT record FROM person WHERE id > 0", "42703"},
		{"1", "SELECT record FROM person WHERE id = 1 OR id = 2", "42703"},
		{"1", "SELECT p.record FROM person p LEFT JOIN turn t ON p.id = 2", "42703"},
		{"1", "SELECT records()", "record 1"},
		{"1", "SELECT count(*) FROM visit", "5"},
		{"1", "SELECT clinic, count(*) FROM visit GROUP BY clinic", "large\t5"},
		{"1", "UPDATE note SET grants = '{ben}' RETURNING grants", "{ben}"},
		{"1", "UPDATE note SET grants = '{ben,eve}' RETURNING grants", "42501"},
		{"1", "UPDATE note SET grants = '{{ben}}' RETURNING grants", "22023"},
		{"1", "SELECT body FROM digest ORDER BY body", "of two"},
		{"1", "INSERT INTO digest (sources, body) VALUES ('{2}', 'new') RETURNING body", "new"},
		{"1", "INSERT INTO digest (sources, body) VALUES ('{3}', 'new') RETURNING body", "42501"}, // the person belongs to another user
		{"1", "SELECT id FROM shelf ORDER BY id", "1"},
		{"1", "SELECT id FROM piece ORDER BY id", "1 2 3"},
	} {
		conn := p.Agent(t, "agent", "desk")
		setAnswer := instance.Ask(conn, "SET app.session = '"+c.session+"'")
		answer := instance.Ask(conn, c.sql)
		got := answer.Code
		if got == "" {
			var rows []string
			for _, r := range answer.Results {
				rows = append(rows, r.Rows...)
			}
			got = strings.Join(rows, " ")
		}
		if got != c.want || (setAnswer.Code != "") != (c.session == "2") {
			t.Errorf("session %q (%s): %s\n\t%q, want %q", c.session, setAnswer.Code, c.sql, got, c.want)
		}
		instance.Close(conn)
	}
}
