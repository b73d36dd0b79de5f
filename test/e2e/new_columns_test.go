package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const (
	growingSchema = `CREATE TABLE orgs (id int PRIMARY KEY, title text); INSERT INTO orgs VALUES (1, 'one'), (2, 'two');
CREATE TABLE people (id int PRIMARY KEY, name text, owner text, org int);
INSERT INTO people VALUES (1, 'Ada', 'me', 1), (2, 'Bob', 'me', 2), (3, 'Hid', 'other', 1);
CREATE TABLE letters (id int PRIMARY KEY, subject text, body text, owner text); INSERT INTO letters VALUES (1, 'hello', 'secret', 'me');
CREATE TABLE events (id int, owner text, what text) PARTITION BY RANGE (id); CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (10);
INSERT INTO events VALUES (1, 'me', 'met'), (2, 'other', 'hid');
CREATE VIEW named AS SELECT id, name FROM people;
ANALYZE;`
	growingPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
views: { named: {} }
tables:
  orgs: { rows: open }
  people:
    rows: [ { own: { column: owner, is: user } } ]
    write: { commands: [insert, update, delete], columns: [id, name, owner, org], accept: [conflicts, values] }
  letters: { rows: [ { own: { column: owner, is: user } } ], columns: { id: allow, subject: allow, owner: allow } }
  events: { rows: [ { own: { column: owner, is: user } } ] }
`
	addColumns = `ALTER TABLE people ADD COLUMN note text DEFAULT 'NEWCOLUMN', ADD COLUMN made timestamptz NOT NULL DEFAULT now(),
  ADD COLUMN team int REFERENCES orgs (id), ADD COLUMN tags text[] NOT NULL DEFAULT '{}';
ALTER TABLE letters ADD COLUMN stamp text DEFAULT 'NEWCOLUMN'; ALTER TABLE events ADD COLUMN place text DEFAULT 'NEWCOLUMN';
ALTER TABLE orgs ADD COLUMN note text DEFAULT 'NEWCOLUMN'; CREATE INDEX ON people (note);`
)

// grownStatements are statements whose answers do not depend on columns that were added after pgconsent migrate.
var grownStatements = []string{
	"SELECT * FROM people", "SELECT p.* FROM people p JOIN orgs o ON o.id = p.org",
	"SELECT * FROM people p JOIN orgs o ON o.id = p.org ORDER BY p.id",
	"TABLE people", "SELECT * FROM people AS p (a, b) WHERE a = 1", "SELECT * FROM public.people",
	"SELECT public.people.* FROM public.people",
	"SELECT row_to_json(p) FROM people p", "SELECT p::text FROM people p", "SELECT to_jsonb(people) FROM people",
	"SELECT count(p) FROM people p",
	"SELECT array_agg(p.name ORDER BY p.name) FROM people p NATURAL JOIN people q",
	"SELECT * FROM (SELECT * FROM people) x", "WITH x AS (SELECT * FROM people) SELECT * FROM x",
	"SELECT name FROM people WHERE EXISTS (SELECT * FROM orgs)", "SELECT * FROM letters", "TABLE letters",
	"SELECT row_to_json(l) FROM letters l", "SELECT * FROM events", "SELECT * FROM events_1",
	"SELECT * FROM named", "SELECT row_to_json(n) FROM named n",
	"SELECT note FROM people", "SELECT p.note FROM people p", "SELECT x.note FROM (SELECT * FROM people) x",
	"SELECT count(*) FROM people JOIN orgs USING (note)",
	"SELECT name FROM people ORDER BY note", "SELECT stamp FROM letters", "SELECT place FROM events",
	"SELECT o.note FROM orgs o", "SELECT (p).note FROM people p",
	"SELECT * FROM people ORDER BY id FOR UPDATE", "SELECT p.* FROM people p ORDER BY p.id FOR NO KEY UPDATE OF p",
	"SELECT p.* FROM people p GROUP BY p.id ORDER BY p.id", "SELECT tableoid::regclass, people.* FROM people",
	"SELECT * FROM ONLY people",
	"SELECT name, tableoid::regclass FROM people", "SELECT p.name FROM people p GROUP BY p.id",
	"SELECT name FROM ONLY people",
	"COPY people TO STDOUT", "COPY people (name) TO STDOUT", "COPY (SELECT * FROM people) TO STDOUT",
	"COPY people TO STDOUT (FORMAT csv, HEADER)", "COPY letters TO STDOUT",
	"BEGIN; DECLARE c CURSOR FOR SELECT * FROM people ORDER BY id; FETCH ALL c; COMMIT",
	"INSERT INTO people VALUES (10, 'New', 'me', 1) RETURNING *",
	"INSERT INTO people (id, name, owner) VALUES (11, 'New', 'me') RETURNING id, name",
	"INSERT INTO people AS p VALUES (12, 'New', 'me') RETURNING p.*",
	"UPDATE people SET name = 'Eve' WHERE id = 1 RETURNING *", "UPDATE people SET name = 'Eve' WHERE id = 1",
	"UPDATE people p SET name = o.title FROM orgs o WHERE o.id = p.org RETURNING p.*",
	"DELETE FROM people WHERE id = 2 RETURNING *",
	"INSERT INTO people VALUES (1, 'x', 'me', 1) ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING *",
	"INSERT INTO people SELECT id + 20, name, owner, org FROM people RETURNING *", "INSERT INTO people DEFAULT VALUES",
	"PREPARE s AS SELECT * FROM people; EXECUTE s",
	"SELECT attname FROM pg_attribute WHERE attrelid IN ('people'::regclass, 'letters'::regclass, " +
		"'orgs'::regclass, 'events'::regclass, 'events_1'::regclass) AND attnum > 0 ORDER BY attrelid, attnum",
	"SELECT table_name, column_name, column_default FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, ordinal_position",
	"SELECT object_name, collection_type_identifier FROM information_schema.element_types WHERE object_schema = 'public'",
	"SELECT column_name FROM information_schema.column_privileges WHERE table_name = 'people' ORDER BY 1",
	"SELECT column_name FROM information_schema.column_udt_usage WHERE table_name = 'people' ORDER BY 1",
	"SELECT conname FROM pg_constraint WHERE conrelid = 'people'::regclass ORDER BY 1",
	"SELECT indexname FROM pg_indexes WHERE tablename = 'people' ORDER BY 1",
	"SELECT adnum FROM pg_attrdef WHERE adrelid = 'people'::regclass", "SELECT col_description('people'::regclass, 5)",
}

// ungrownStatements would read a column that the installed policy does not know. They are refused with a hint.
var ungrownStatements = []string{
	"SELECT NULL::people", "UPDATE people SET note = 'x' WHERE id = 1", "UPDATE people SET name = note WHERE id = 1",
	"INSERT INTO people (id, note) VALUES (40, 'x')",
	"INSERT INTO people VALUES (41, 'x', 'me', 1, 'y')", "INSERT INTO people SELECT * FROM people",
	"DELETE FROM people WHERE note = 'NEWCOLUMN'",
	"UPDATE people SET name = 'x' WHERE id = 1 RETURNING note",
	"UPDATE people p SET name = 'x' WHERE id = 1 RETURNING row_to_json(p)", "COPY people (note) TO STDOUT",
	"SELECT name FROM ONLY people WHERE note IS NULL", "SELECT p.name FROM people p WHERE p.note IS NULL GROUP BY p.id",
	"INSERT INTO people VALUES (1, 'x', 'me', 1) ON CONFLICT (id) DO UPDATE SET name = people.note",
}

// TestANewColumnIsNoOutage checks that a new column does not exist for agents until the policy is migrated again.
// Meanwhile agents are served, also after a restart.
func TestANewColumnIsNoOutage(t *testing.T) {
	for _, mode := range harness.Modes(harness.Auto, harness.Both, harness.RLS, harness.SignedViews) {
		t.Run(mode.Name, func(t *testing.T) {
			grownDatabase, proxy := startGrowing(t, mode, "")
			_, referenceProxy := startGrowing(t, mode, "")
			harness.Exec(t, grownDatabase.DB, addColumns)
			wantSame := func(p *harness.Proxy, stride int) {
				t.Helper()
				for i, sql := range grownStatements {
					if i%stride == 0 {
						wantSameAnswer(t, p, referenceProxy, sql)
					}
				}
				for i, sql := range ungrownStatements {
					if i%stride != 0 {
						continue
					}
					a := askUntilAnswered(t, p, sql)
					if text := a.String(); strings.Contains(text, "NEWCOLUMN") || !strings.Contains(text, "ERROR") && !a.Refused() {
						t.Errorf("%s: %s", sql, text)
					}
				}
			}
			wantSame(proxy, tier.Count(2, 2, 1))
			agents := []harness.Agent{{Name: "agent", Database: "app", Attributes: map[string]string{"user": "me"}}}
			restartedProxy := harness.Serve(t, mode, []harness.Database{grownDatabase}, agents)
			wantSame(restartedProxy, tier.Count(5, 3, 1))
			harness.Migrate(t, grownDatabase, mode)
			for _, p := range []*harness.Proxy{proxy, restartedProxy} {
				for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
					if a := askUntilAnswered(t, p, "SELECT note FROM people WHERE id = 1"); strings.Contains(a.String(), "NEWCOLUMN") {
						break
					} else if time.Since(start) > tier.Patience {
						t.Fatalf("after migrate: %s", a)
					}
				}
			}
		})
	}
}

// TestADroppedColumnIsNoOutage drops columns that no rule reads, and views that use them. Agents are then served as if
// the columns had never existed.
func TestADroppedColumnIsNoOutage(t *testing.T) {
	const dropSQL = "ALTER TABLE people DROP COLUMN name CASCADE; ALTER TABLE orgs DROP COLUMN title; ALTER TABLE events DROP COLUMN what CASCADE;"
	for _, mode := range harness.Modes(harness.Auto, harness.Both, harness.RLS, harness.SignedViews) {
		t.Run(mode.Name, func(t *testing.T) {
			withoutColumn := strings.NewReplacer("[id, name, owner, org]", "[id, owner, org]", "views: { named: {} }\n", "")
			shrunkDatabase, proxy := startGrowing(t, mode, "DROP VIEW named", withoutColumn)
			_, referenceProxy := startGrowing(t, mode, "DROP VIEW named; "+dropSQL, withoutColumn)
			harness.Exec(t, shrunkDatabase.DB, dropSQL)
			for _, sql := range []string{
				"SELECT * FROM people", "SELECT p.*, o.* FROM people p JOIN orgs o ON o.id = p.org",
				"SELECT id FROM people WHERE id = 1", "SELECT count(*) FROM people WHERE org = 1",
				"SELECT id FROM people ORDER BY id DESC LIMIT 1", "SELECT name FROM people", "SELECT * FROM events",
				"SELECT id FROM events WHERE id < 5 ORDER BY id LIMIT 3", "SELECT * FROM letters",
				"COPY people TO STDOUT", "INSERT INTO people VALUES (10, 'me', 1) RETURNING *",
				"UPDATE people SET org = 2 WHERE id = 1 RETURNING *",
				"SELECT attname FROM pg_attribute WHERE attrelid = 'people'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
			} {
				wantSameAnswer(t, proxy, referenceProxy, sql)
			}
		})
	}
}

// startGrowing serves the schema with additional SQL, under its policy.
func startGrowing(t *testing.T, mode harness.Mode, moreSQL string, policyEdits ...*strings.Replacer) (harness.Database, *harness.Proxy) {
	t.Helper()
	db := pgtest.Database(t)
	harness.Exec(t, db, growingSchema+moreSQL)
	d := harness.Database{Name: "app", DB: db, Policy: growingPolicy, SearchPath: []string{"public"}, Refresh: 50 * time.Millisecond}
	for _, p := range policyEdits {
		d.Policy = p.Replace(d.Policy)
	}
	return d, harness.Start(t, mode, d, map[string]string{"user": "me"})
}

func wantSameAnswer(t *testing.T, p, referenceProxy *harness.Proxy, sql string) {
	t.Helper()
	if got, want := askUntilAnswered(t, p, sql).SortedString(), askUntilAnswered(t, referenceProxy, sql).SortedString(); got != want {
		t.Errorf("%s\nchanged:\n%s\nwithout:\n%s", sql, harness.Truncate(got), harness.Truncate(want))
	}
}

// askUntilAnswered sends a statement on a new connection, which is closed without a commit. It retries on 40001, as
// long as the database changes.
func askUntilAnswered(t *testing.T, p *harness.Proxy, sql string) (answer harness.Answer) {
	t.Helper()
	needsNoBegin := strings.HasPrefix(sql, "BEGIN") || strings.HasPrefix(sql, "PREPARE")
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c := p.Agent(t, "agent", "app")
		if !needsNoBegin && !strings.HasPrefix(sql, "COPY") {
			if a := harness.Ask(c, "BEGIN"); a.Refused() {
				t.Fatal(a)
			}
		}
		if strings.HasPrefix(sql, "COPY") {
			answer = harness.AskCopy(c, sql)
		} else {
			answer = harness.Ask(c, sql)
		}
		harness.Close(c)
		if !strings.Contains(answer.String(), "40001") || time.Since(start) > tier.Patience {
			return answer
		}
	}
}
