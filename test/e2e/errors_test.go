package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/tier"
)

const narrowedPolicy = `
version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories:
    rows: [ own: { column: user_id, is: user },
      consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted } ]
    columns: { id: allow, title: allow, body: { mask: null }, metadata: { keys: { mood: string } } }
  people:
    rows: [ { own: { column: user_id, is: user } }, { status: { column: consent_status, is: granted } } ]
    columns: { id: allow, name: { mask: hash } }
  memory_participants: { rows: [ { visible: { memories: { id: memory_id } } }, { visible: { people: { id: person_id } } } ] }
`

// errorOf returns the error that the agent gets for a statement, by the simple or the extended protocol.
func errorOf(t *testing.T, c *pgconn.PgConn, sql string, isExtended bool) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	var err error
	if isExtended {
		_, err = c.ExecParams(ctx, sql, nil, nil, nil, nil).Close()
	} else {
		err = c.Exec(ctx, sql).Close()
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Sprint(err)
	}
	if otherFields := pg.Where + pg.SchemaName + pg.TableName + pg.ColumnName + pg.DataTypeName + pg.ConstraintName +
		pg.File + pg.Routine + pg.InternalQuery; otherFields != "" {
		t.Errorf("%s: %q", sql, otherFields)
	}
	position := ""
	if p := int(pg.Position); p > 0 && p <= len([]rune(sql)) {
		position, _, _ = strings.Cut(string([]rune(sql)[p-1:])+" ", " ")
	}
	return strings.TrimRight(fmt.Sprintf("%s %s|%s|%s|at %s", pg.Code, pg.Message, pg.Detail, pg.Hint, position), " ")
}

// Errors in the agent's own text and values have PostgreSQL's message and the position in the agent's text, in every
// mode.
func TestErrorsAreThoseOfPostgreSQL(t *testing.T) {
	for _, mode := range []rewrite.Mode{rewrite.InjectedMode, rewrite.RowSecurityMode} {
		in := startForReading(t, options{mode: mode})
		agent := in.agent(t)
		for sql, want := range map[string]string{
			"SELECT * FROM people WHERE nam = 'x'":    `42703 column "nam" does not exist||Perhaps you meant to reference the column "people.name".|at nam`,
			"SELECT p.nme FROM people AS p, memories": `42703 column p.nme does not exist||Perhaps you meant to reference the column "p.name".|at p.nme`,
			"SELECT id FROM people, memories":         `42702 column reference "id" is ambiguous|||at id`,
			"SELECT user_id, count(*) FROM people": `42803 column "people.user_id" must appear in the GROUP BY clause ` +
				`or be used in an aggregate function|||at user_id,`,
			"SELECT * FROM people WHERE id = 'x'": `22P02 invalid input syntax for type uuid: "x"|||at 'x'`,
			"SELECT /* ü */ 1 / 0 FROM people":    `22012 division by zero|||at`,
			"SELECT length(1) FROM people": `42883 function length(integer) does not exist||` +
				`No function matches the given name and argument types. You might need to add explicit type casts.|at length(1)`,
			"SELECT obj_description('a', 'b', 'c')": `42883 function obj_description(unknown, unknown, unknown) does not exist||` +
				`No function matches the given name and argument types. You might need to add explicit type casts.|at obj_description('a',`,
			"SELECT name + 1 FROM people": `42883 operator does not exist: text + integer||` +
				`No operator matches the given name and argument types. You might need to add explicit type casts.|at +`,
			"SELECT relnam FROM pg_class": `42703 column "relnam" does not exist||` +
				`Perhaps you meant to reference the column "pg_class.relname" or the column "pg_class.relam".|at relnam`,
			"SELECT table_nam FROM information_schema.tables": `42703 column "table_nam" does not exist||` +
				`Perhaps you meant to reference the column "tables.table_name".|at table_nam`,
			"SELECT people::int FROM people":           `42846 cannot cast type people to integer|||at ::int`,
			"SELECT 1 FROM people UNION SELECT 'x'":    `22P02 invalid input syntax for type integer: "x"|||at 'x'`,
			"SELECT 1 FROM people UNION SELECT now()":  `42804 UNION types integer and timestamp with time zone cannot be matched|||at now()`,
			"SELECT (SELECT name FROM people)":         `21000 more than one row returned by a subquery used as an expression|||at`,
			"SELECT * FROM people LIMIT -1":            `2201W LIMIT must not be negative|||at`,
			"SELECT '{bad'::jsonb":                     `22P02 invalid input syntax for type json|Token "bad" is invalid.||at '{bad'::jsonb`,
			"SELECT name FROM people WHERE name ~ '('": `2201B invalid regular expression: parentheses () not balanced|||at`,
			"COPY (SELECT nme FROM people) TO STDOUT":  `42703 column "nme" does not exist||Perhaps you meant to reference the column "people.name".|at nme`,
			"INSERT INTO people (name) VALUES (1 / 0)": `22012 division by zero|||at`,
			"INSERT INTO memories (title, body, occurred_at) VALUES ('a', 'b', 'soon')": `22007 invalid input syntax for ` +
				`type timestamp with time zone: "soon"|||at 'soon')`,
			"INSERT INTO memories (title, body) VALUES (NULL, 'b')": `23502 a column that must have a value would have none||` +
				`information_schema.columns tells which columns need a value (is_nullable).|at`,
		} {
			for _, isExtended := range []bool{false, true} {
				if got := errorOf(t, agent, sql, isExtended); got != strings.TrimRight(want, " ") {
					t.Errorf("mode %v, extended %v: %s\n got %s\nwant %s", mode, isExtended, sql, got, want)
				}
			}
		}
		in.requireNoMarker(t)
	}
}

// A write to a view, or to a table with hidden columns, is redirected to a view of pgconsent's. No message names that
// view.
func TestErrorsNameWhatIsWritten(t *testing.T) {
	tier.All(t)
	in := startWrites(t, options{})
	agent := in.agent(t)
	for sql, want := range map[string]string{
		"INSERT INTO full_items (name, nothing) VALUES ('a', 1)": `42703 column "nothing" of relation "full_items" does not exist|||at nothing)`,
		"UPDATE all_slots SET nothing = 1":                       `42703 column "nothing" of relation "all_slots" does not exist|||at nothing`,
		"UPDATE loose_items SET nothing = 1":                     `42703 column "nothing" of relation "loose_items" does not exist|||at nothing`,
		"INSERT INTO odd_slots (a) VALUES ('x') ON CONFLICT ON CONSTRAINT slots_pkey DO NOTHING": `42704 constraint ` +
			`"slots_pkey" for table "odd_slots" does not exist|||at`,
		"UPDATE red_items SET n = 9000": `44000 the new row is not one that you may write||The view allows only rows that it would show afterwards.|at`,
		"UPDATE loose_items SET n = 1":  `44000 the new row is not one that you may write||The view allows only rows that it would show afterwards.|at`,
		"UPDATE cards SET nothing = 1": `42703 column "nothing" of relation "cards" does not exist||` +
			`Columns that you can read of cards: id, name, born, level, note.|at nothing`,
	} {
		for _, isExtended := range []bool{false, true} {
			if got := errorOf(t, agent, sql, isExtended); got != want {
				t.Errorf("%s\n got %s\nwant %s", sql, got, want)
			}
		}
	}
}

// Messages name neither what pgconsent has added to the text nor columns that are hidden from the agent.
func TestErrorsOverHiddenColumns(t *testing.T) {
	tier.All(t)
	in := start(t, options{policy: narrowedPolicy})
	agent := in.agent(t)
	for _, sql := range []string{
		"SELECT consent_statu FROM people", "SELECT p.user_i FROM people p", "SELECT people.createdat FROM people", "SELECT consent_status FROM people",
		"SELECT people::int FROM people", "SELECT (people).user_id FROM people",
		"SELECT people.* FROM people WHERE people = 1", "SELECT sum(people) FROM people",
		"SELECT row_to_json(memories)::int FROM memories", "SELECT occurred_a FROM memories m",
		"SELECT m.embeddin FROM memories m", "SELECT memories < people FROM memories, people",
		"SELECT array_agg(people) + 1 FROM people",
		"SELECT * FROM people ORDER BY people LIMIT (SELECT people FROM people)", "SELECT user_id FROM people GROUP BY name",
		"SELECT * FROM people JOIN memories USING (user_id)",
		"SELECT * FROM people NATURAL JOIN memories m (x, y, id, user_id, z, w, v)", "SELECT coalesce(people, 1) FROM people",
		"SELECT CASE WHEN true THEN people ELSE 1 END FROM people",
		"SELECT people IS NOT DISTINCT FROM 1 FROM people", "SELECT name::int FROM people", "SELECT metadata::int FROM memories",
		"SELECT (metadata->'x')::int FROM memories", "SELECT ARRAY[people, 1] FROM people",
		"SELECT length(people) FROM people", "SELECT pg_typeof(people)::int FROM people",
		"INSERT INTO people (user_id) VALUES (1)", "UPDATE people SET consent_status = 1",
		"COPY people (consent_status) TO STDOUT", "COPY (SELECT people::int FROM people) TO STDOUT",
		"SELECT consent_status FROM people p (a)", "SELECT * FROM (SELECT * FROM people) x WHERE x.user_id = 1",
		"WITH x AS (TABLE people) SELECT user_id FROM x",
	} {
		for _, isExtended := range []bool{false, true} {
			got := errorOf(t, agent, sql, isExtended)
			message, _, _ := strings.Cut(got, "|at ")
			if strings.Contains(message, "pgconsent") {
				t.Errorf("%s: %s", sql, got)
			}
			for _, hiddenColumn := range []string{"consent_status", "user_id", "created_at", "is_self", "occurred_at", "embedding"} {
				if strings.Contains(message, hiddenColumn) && !strings.Contains(sql, hiddenColumn) {
					t.Errorf("%s names %s: %s", sql, hiddenColumn, got)
				}
			}
			if strings.Contains(message, "withheld") {
				t.Errorf("%s does not help: %s", sql, got)
			}
		}
	}
	for sql, want := range map[string]string{
		"SELECT people::int FROM people": `42846 cannot cast type people to integer|||at ::int`,
		"SELECT array_agg(people) + 1 FROM people": `42883 operator does not exist: people[] + integer||` +
			`No operator matches the given name and argument types. You might need to add explicit type casts.|at +`,
		"SELECT consent_statu FROM people": `42703 column "consent_statu" does not exist||Columns that you can read of people: id, name.|at consent_statu`,
		"SELECT p.consent_status FROM people AS p": `42703 column p.consent_status does not exist||` +
			`Columns that you can read of people: id, name.|at p.consent_status`,
		"SELECT p.nothing FROM people AS p, memories": `42703 column p.nothing does not exist||` +
			`Columns that you can read of memories: id, title, body, metadata; of people: id, name.|at p.nothing`,
		"SELECT nam FROM people":                         `42703 column "nam" does not exist||Perhaps you meant to reference the column "people.name".|at nam`,
		"SELECT pg_class::int FROM pg_class":             `42846 cannot cast type pg_class to integer|||at ::int`,
		"SELECT c::int FROM information_schema.tables c": `42846 cannot cast type information_schema.tables to integer|||at ::int`,
	} {
		if got := errorOf(t, agent, sql, false); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
	in.requireNoMarker(t)
}
