package attacks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/instance"
)

const describedSchema = `
CREATE TABLE holder (name text PRIMARY KEY, owner text NOT NULL);
CREATE TABLE gone (a int, b int, c int);
CREATE TABLE notes (dropped int, id bigint PRIMARY KEY, owner text NOT NULL, a int NOT NULL, body varchar(40) NOT NULL DEFAULT 'n');
ALTER TABLE notes DROP COLUMN dropped;
CREATE TABLE cards (dropped int, id bigint PRIMARY KEY, secret text, owner text NOT NULL,
  number text NOT NULL DEFAULT '1234', due date NOT NULL DEFAULT '2020-01-01');
ALTER TABLE cards DROP COLUMN dropped;
CREATE VIEW recent AS SELECT body, id, a + 1 AS next FROM notes;
CREATE TABLE parted (id int, owner text, n int) PARTITION BY LIST (n);
CREATE TABLE part (n int, owner text, id int);
ALTER TABLE parted ATTACH PARTITION part FOR VALUES IN (1);
INSERT INTO holder VALUES ('me', 'me');
INSERT INTO notes (id, owner, a) SELECT g, CASE g % 2 WHEN 0 THEN 'me' ELSE 'other' END, g FROM generate_series(1, 4000) g;
INSERT INTO cards (id, owner) SELECT id, owner FROM notes;
INSERT INTO parted VALUES (1, 'me', 1);
ANALYZE`

const describedPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  holder: { rows: [ { own: { column: owner, is: user } } ] }
  notes: { rows: [ { visible: { holder: { name: owner } } } ] }
  cards:
    rows: [ { visible: { holder: { name: owner } } } ]
    columns: { id: allow, owner: allow, number: { mask: hash }, due: allow }
  parted: { rows: [ { own: { column: owner, is: user } } ] }
views: { recent: {} }
`

var describedStatements = []string{
	"SELECT * FROM notes", "SELECT n.body, n.id, n.a + 1, lower(n.body) FROM notes n WHERE n.a > 5",
	"SELECT count(*), max(id) FROM notes", "SELECT q.x FROM (SELECT body AS x FROM notes) q",
	"WITH q AS (SELECT body AS x, id FROM notes) SELECT * FROM q",
	"SELECT a.id, b.body FROM notes a JOIN notes b USING (id) WHERE b.body LIKE 'n%'",
	"SELECT id FROM notes UNION ALL SELECT id FROM cards", "SELECT id, body FROM notes ORDER BY a LIMIT 3",
	"SELECT id, due, number FROM cards", "SELECT due, id FROM cards WHERE due > '2019-01-01'",
	"SELECT c.due, n.body FROM cards c, notes n WHERE c.id = n.id",
	"SELECT * FROM recent", "SELECT next, body FROM recent WHERE body LIKE 'n%'", "SELECT * FROM parted", "SELECT n, id FROM part",
	"SELECT oid, relname, relkind FROM pg_class",
	"SELECT table_name, is_insertable_into FROM information_schema.tables",
	"SELECT a.attname, t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid", "SELECT * FROM pg_namespace",
	"SELECT 1 AS one, g FROM generate_series(1, 3) g", "VALUES (1, 2)", "SELECT n FROM notes n",
	"SELECT count(n) FROM notes n", "SELECT (n).a FROM notes n", "SELECT q FROM (SELECT id FROM notes) q", "SELECT array_agg(n) FROM notes n",
}

// The description of a result must name the tables and columns that the client has named, by whichever path the
// statement runs. Drivers use these numbers. The path depends on the sizes of tables, including hidden rows, which the
// numbers must not reveal.
func TestResultsAreDescribedByTheNamedColumns(t *testing.T) {
	describe := func(c *pgconn.PgConn, sql string) (prepared, executed string) {
		d, err := c.Prepare(t.Context(), "", sql, nil)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		r := c.ExecPrepared(t.Context(), "", nil, nil, nil).Read()
		results, err := c.Exec(t.Context(), sql).ReadAll()
		if r.Err != nil || err != nil || len(results) != 1 {
			t.Fatalf("%s: %v, %v", sql, r.Err, err)
		}
		for _, f := range d.Fields {
			prepared += fmt.Sprintf(" %s:%d.%d %d %d", f.Name, f.TableOID, f.TableAttributeNumber, f.DataTypeOID, f.TypeModifier)
		}
		for _, f := range results[0].FieldDescriptions {
			executed += fmt.Sprintf(" %s:%d.%d %d %d", f.Name, f.TableOID, f.TableAttributeNumber, f.DataTypeOID, f.TypeModifier)
		}
		return prepared, executed
	}
	db := pgtest.Database(t)
	instance.Exec(t, db, describedSchema)
	owner := instance.ConnectSuperuser(t, db)
	for _, mode := range modesOf(instance.SignedViews, instance.Auto, instance.Both) {
		t.Run(mode.Name, func(t *testing.T) { // the sub-test ends its proxy
			d := instance.Database{Name: "described", DB: db, Policy: describedPolicy, SearchPath: []string{"public"}}
			agent := instance.Start(t, mode, d, map[string]string{"user": "me"}).Agent(t, "agent", d.Name)
			for _, sql := range describedStatements {
				expected, _ := describe(owner, sql)
				prepared, executed := describe(agent, sql)
				if prepared != expected || executed != expected {
					t.Errorf("%s\n   %s\n   %s\nis %s", sql, prepared, executed, expected)
				}
			}
		})
	}
}

// A hardened plan changes planner settings for the transaction. No setting that an agent can read may show that they
// have been changed.
func TestNoSettingTellsOfHardening(t *testing.T) {
	db := pgtest.Database(t)
	instance.Exec(t, db, describedSchema)
	d := instance.Database{Name: "described", DB: db, Policy: describedPolicy, SearchPath: []string{"public"}}
	agent := instance.Start(t, instance.Auto, d, map[string]string{"user": "me"}).Agent(t, "agent", d.Name)
	const hardened = "SELECT count(*) FROM notes WHERE a = 1 / (SELECT min(a) FROM notes)"
	m := instance.Compile(t, d, instance.Auto)
	if result, refused := rewrite.New(m.Snapshot, m.Policy, instance.Auto.Rewrite).Rewrite(hardened, false); refused != nil || result.HardenedReason == "" {
		t.Fatal("it has no hardened plan")
	}
	var settingQueries []string
	for _, name := range verdict.HardenedPlanSettings {
		settingQueries = append(settingQueries, "SHOW "+name, "SELECT current_setting('"+name+"')",
			"SELECT current_setting('"+strings.ToUpper(name)+"', true)", "SELECT current_setting('"+name[:3]+
				"' || '"+name[3:]+"')", "SELECT current_setting(upper(n)) FROM (VALUES ('"+name+"')) AS v (n)")
	}
	settingQueries = append(settingQueries, "SELECT * FROM pg_settings",
		"SELECT name, setting, source, sourceline FROM pg_settings WHERE source = 'session'", "SHOW ALL",
		"EXPLAIN SELECT g + 1 FROM generate_series(1, 10) g WHERE g > 5",
		"SELECT min_val, reset_val, context FROM pg_settings WHERE name ~ 'plan_cache|bitmapscan|operator_cost'")
	for _, query := range settingQueries {
		var got []string
		for _, firstStatement := range []string{hardened, "SELECT count(*) FROM notes"} {
			instance.Ask(agent, "BEGIN")
			if answer := instance.Ask(agent, firstStatement); answer.Refused() {
				t.Fatal(answer)
			}
			got = append(got, instance.Ask(agent, query).String())
			instance.Ask(agent, "ROLLBACK")
		}
		if got[0] != got[1] {
			t.Errorf("%s: %s\nnot %s", query, got[0], got[1])
		}
	}
}
