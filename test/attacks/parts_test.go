package attacks

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const partsSchema = `
CREATE TABLE holder (name text PRIMARY KEY, owner text NOT NULL);
INSERT INTO holder VALUES ('me', 'me');
CREATE TABLE notes (id int, owner text NOT NULL, a int, body text NOT NULL, found tsvector DEFAULT 'a b');
CREATE TABLE events (LIKE notes INCLUDING DEFAULTS) PARTITION BY LIST (owner);
CREATE TABLE mine PARTITION OF events FOR VALUES IN ('me');
CREATE TABLE others PARTITION OF events DEFAULT;
CREATE TABLE parent (LIKE notes INCLUDING DEFAULTS);
CREATE TABLE child () INHERITS (parent);
CREATE VIEW united AS SELECT * FROM notes UNION ALL SELECT * FROM events;
`

const partsPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  holder: { rows: [ { own: { column: owner, is: user } } ] }
  notes: { rows: [ { visible: { holder: { name: owner } } } ] }
  events: { rows: [ { visible: { holder: { name: owner } } } ] }
  parent: { rows: [ { visible: { holder: { name: owner } } } ] }
views: { united: {} }
`

// The planner's statistics of partitions and child tables include hidden rows. The planner must not try a pattern on
// their most common value, where it would fail. Servers whose planner does so are not served (doctor's server_minor).
func TestStatisticsOfPartsTellNothing(t *testing.T) {
	tier.All(t)
	var statements []string
	for _, table := range []string{"notes", "events", "parent", "united", "others", "child"} {
		for _, condition := range []string{`body LIKE E'_z\\'`, `body LIKE '_z!' ESCAPE '!'`, `body ILIKE E'_z\\'`,
			`NOT body LIKE E'_z\\'`, `(body LIKE E'_z\\' OR a = 3)`, `found @@ 'b'::tsquery AND body LIKE E'_z\\'`} {
			statements = append(statements, "SELECT count(*) FROM "+table+" WHERE "+condition)
		}
		statements = append(statements, "SELECT count(*) FROM (SELECT body FROM "+table+
			" GROUP BY body) AS q WHERE body LIKE E'_z\\\\'", "SELECT x.id FROM "+table+" x JOIN "+table+" y ON x.id = y.id AND y.body LIKE E'_z\\\\'",
			"SELECT body FROM "+table+" WHERE found @@ 'b'::tsquery GROUP BY body HAVING body LIKE E'_z\\\\' OR count(*) > 3")
	}
	for _, mode := range modesOf(instance.Auto, instance.Both) {
		var got [2][]string
		for i, body := range []string{"zzz", "yyy"} {
			db := pgtest.Database(t)
			instance.Exec(t, db, partsSchema)
			for _, table := range []string{"notes", "events", "parent", "child"} {
				instance.Exec(t, db, strings.ReplaceAll(
					"INSERT INTO t SELECT g, CASE WHEN g > 10 THEN 'other' ELSE 'me' END, g % 5, CASE WHEN g > "+
						"10 THEN '"+body+"' ELSE 'plain' END FROM generate_series(1, 3000) g", " t ", " "+table+" "))
			}
			instance.Exec(t, db, "ANALYZE")
			d := instance.Database{Name: "pair", DB: db, Policy: partsPolicy, SearchPath: []string{"public"}}
			c := instance.Start(t, mode, d, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
			for _, sql := range statements {
				got[i] = append(got[i], instance.Ask(c, sql).SortedString())
			}
		}
		for k, sql := range statements {
			if got[0][k] != got[1][k] || strings.Contains(got[0][k], "ERROR") {
				t.Errorf("%s: %s\n   %s\n   %s", mode.Name, sql, instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
			}
		}
	}
}
