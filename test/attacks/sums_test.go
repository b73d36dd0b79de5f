package attacks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Sums overflow. On the signed path, where a table's rule is joined, PostgreSQL may start a sub-select in FROM because
// a hidden row has reached the join. The twins' rows are all hidden, and only one twin has rows with a = 123. The added
// values are visible, and overflow.
const summedSchema = `
CREATE TABLE person (id int PRIMARY KEY, consent text NOT NULL);
INSERT INTO person SELECT g, CASE WHEN g > 0 THEN 'granted' ELSE 'no' END FROM generate_series(0, 3000) g;
CREATE TABLE big (id int PRIMARY KEY, a int NOT NULL, b int NOT NULL, note text NOT NULL DEFAULT 'n');
INSERT INTO big SELECT g, g % 300, g % 211 FROM generate_series(1, 30000) g;
CREATE INDEX ON big (a);
CREATE TABLE link (big_id int NOT NULL REFERENCES big ON DELETE CASCADE, person_id int NOT NULL REFERENCES person, PRIMARY KEY (big_id, person_id));
INSERT INTO link SELECT id, id % 3000 + 1 FROM big UNION ALL SELECT id, 0 FROM big;
CREATE TABLE odd (k int NOT NULL, v float8 NOT NULL, n numeric NOT NULL);
INSERT INTO odd SELECT g / 2, 1.5e308, 6e131071 FROM generate_series(1, 420) g;
CREATE VIEW totals AS SELECT sum(v) AS total FROM odd;
CREATE VIEW totals_by AS SELECT sum(v) AS total, k FROM odd GROUP BY k;
SET default_statistics_target = 1000;
ANALYZE`

const summedPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  big: { rows: [ { consent: { every: [ link: { big_id: id }, person: { id: person_id } ], status: consent, is: granted } } ] }
  link: { rows: [ { visible: { big: { id: big_id } } } ] }
  person: { rows: [ { status: { column: consent, is: granted } } ] }
  odd: { rows: [ open ] }
views: { totals: {}, totals_by: {} }
`

var sumStatements = []string{
	"SELECT max(q.s) FROM big JOIN (SELECT sum(v) AS s, k FROM odd GROUP BY k) q ON q.k = big.b WHERE a = 123",
	"SELECT max(q.s) FROM big JOIN (SELECT sum(n) AS s, k FROM odd GROUP BY k) q ON q.k = big.b WHERE a = 123",
	"SELECT count(q.s) FROM big LEFT JOIN (SELECT sum(v) AS s, k FROM odd GROUP BY k) q ON q.k = big.b WHERE a = 123",
	"SELECT count(q.s) FROM big LEFT JOIN (SELECT sum(v) AS s FROM odd) q ON true WHERE a = 123",
	"SELECT count(q.s) FROM big LEFT JOIN (SELECT sum(v) AS s FROM odd) q ON big.note <> 'x' WHERE a = 123 AND b > 0",
	"SELECT count(*) FROM big, (SELECT sum(v) AS s FROM odd) q WHERE a = 123 AND s > 0",
	"SELECT count(*) FROM big JOIN (SELECT avg(v) AS s, k FROM odd GROUP BY k) q ON q.k = big.b AND q.s > 0 WHERE a = 123",
	"WITH q AS (SELECT sum(v) AS s FROM odd) SELECT count(q.s) FROM big LEFT JOIN q ON true WHERE a = 123",
	"WITH q AS (SELECT avg(v) AS s, k FROM odd GROUP BY k) SELECT max(q.s) FROM big JOIN q ON q.k = big.b WHERE a = 123",
	"WITH q AS MATERIALIZED (SELECT sum(v) AS s, k FROM odd GROUP BY k) SELECT max(q.s) FROM big JOIN q ON q.k = big.b WHERE a = 123",
	"SELECT count(*) FROM (SELECT sum(v) AS s FROM odd) q RIGHT JOIN big ON true WHERE a = 123",
	"SELECT (SELECT max(s) FROM (SELECT sum(v) AS s FROM odd) q) FROM big WHERE a = 123",
	"SELECT id FROM big WHERE a = 123 UNION ALL SELECT count(s) FROM (SELECT sum(v) AS s FROM odd) q",
	"SELECT max(q.total) FROM big JOIN totals_by q ON q.k = big.b WHERE a = 123",
	"SELECT count(q.total) FROM big LEFT JOIN totals_by q ON q.k = big.b WHERE a = 123",
	"SELECT count(s.total) FROM big LEFT JOIN totals s ON true WHERE a = 123",
	"SELECT count(*) FROM big WHERE a = 123 AND EXISTS (SELECT FROM totals WHERE total > 0)",
	"SELECT sum(v) FROM big JOIN odd ON k = b WHERE a = 123",
	"SELECT sum(v) FROM (SELECT v FROM big JOIN odd ON k = b WHERE a = 123) q",
}

func TestSumsOnTheSignedPath(t *testing.T) {
	tier.All(t)
	newTwin := func(value int) instance.Database {
		db := pgtest.Database(t)
		instance.Exec(t, db, summedSchema)
		instance.Exec(t, db, fmt.Sprintf("DELETE FROM big WHERE a = %d", value))
		instance.Exec(t, db, "VACUUM big, link")
		return instance.Database{Name: "pair", DB: db, Policy: summedPolicy, SearchPath: []string{"public"}}
	}
	for _, mode := range modesOf(instance.SignedViews, instance.Auto, instance.Both) {
		var got [2][]string
		for i, d := range []instance.Database{newTwin(123), newTwin(124)} {
			proxy := instance.Start(t, mode, d, map[string]string{"user": "me"})
			c := proxy.Agent(t, "agent", "pair")
			for _, sql := range sumStatements {
				got[i] = append(got[i], sql+"\n"+strings.ReplaceAll(instance.Ask(c, sql).SortedString(), d.DB.Name, "DATABASE"))
			}
		}
		failedCount := 0
		for k := range got[0] {
			if strings.Contains(got[0][k], "ERROR") {
				failedCount++
			}
			if got[0][k] != got[1][k] {
				t.Errorf("%s: %s\ntwin:\n%s", mode.Name, got[0][k], got[1][k])
			}
		}
		t.Logf("%s: %d of %d fail", mode.Name, failedCount, len(sumStatements))
	}
}
