package attacks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const besideSchema = reachedSchema + `
CREATE EXTENSION pg_trgm;
CREATE TABLE memo (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, title text NOT NULL, n int, body text,
  UNIQUE (owner, title), CHECK (n IS NULL OR n < 1000));
INSERT INTO memo (owner, title, n, body) VALUES ('me', 'mine', 1, 'x'), ('me', 'two', 2, 'y'), ('other', 'theirs', 3, 'z');
CREATE VIEW bv AS SELECT id, owner, a, b, t, i8, m, f, note FROM big;
CREATE VIEW si WITH (security_invoker) AS SELECT id, a, b, t, i8, m, note FROM big WHERE a > 100;
CREATE VIEW memos AS SELECT id, title, n, body FROM memo WHERE n IS NULL OR n < 500 WITH CHECK OPTION;
CREATE VIEW joined AS SELECT big.a, big.b, memo.title, memo.n FROM big LEFT JOIN memo ON memo.n = big.b;
CREATE VIEW summed AS SELECT a, count(*) AS n, max(t) AS t FROM big GROUP BY a;
CREATE INDEX ON big (owner);
CREATE INDEX ON big (a);
CREATE INDEX ON big USING gin (t gin_trgm_ops);
CREATE MATERIALIZED VIEW mv AS SELECT * FROM big;
CREATE MATERIALIZED VIEW mvsum AS SELECT owner, a, count(*) AS n, max(t) AS t FROM big GROUP BY 1, 2;
`

const besidePolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  big: { rows: [ RULE ], write: { commands: [update, delete] } }
  holder: { rows: [ { own: { column: owner, is: user } } ] }
  small: { rows: [ { own: { column: owner, is: user } } ], write: { commands: [update] } }
  open: { rows: open, write: { commands: [insert, update, delete] } }
  memo: { rows: [ { own: { column: owner, is: user } } ],
    write: { commands: [insert, update, delete], columns: [title, n, body], stamp: { owner: { attribute: user } } } }
  mv: { rows: [ RULE ] }
  mvsum: { rows: [ { own: { column: owner, is: user } } ] }
views: { bv: {}, si: {}, memos: {}, joined: {}, summed: {} }
`

var besideRules = []string{
	"{ own: { column: owner, is: user } }, { visible: { holder: { name: owner } } }",
	"{ visible: { holder: { name: owner } } }",
	"{ own: { column: owner, is: user } }",
}

// besideStatements are writes with reads beside them, and reads of views and materialized views. Each has a condition
// that only the hidden row reaches.
var besideStatements = []string{
	"WITH d AS (DELETE FROM big WHERE a BETWEEN 123 AND 123 AND {} RETURNING a, t) SELECT * FROM d",
	"WITH u AS (UPDATE big SET note = 'u' WHERE a BETWEEN 123 AND 123 AND {} RETURNING a, t) SELECT count(*) FROM u",
	"WITH u AS (UPDATE big SET note = t || ({})::text WHERE a BETWEEN 123 AND 123 RETURNING a) SELECT count(*) FROM u",
	"WITH gone AS (UPDATE small SET note = 'g' WHERE n = 0 RETURNING n) SELECT count(*) FROM big WHERE a BETWEEN " +
		"123 AND 123 AND b = 1 / (SELECT n FROM gone)",
	"WITH gone AS (UPDATE small SET note = 'g' RETURNING n) UPDATE big SET note = 'x' FROM gone WHERE big.a BETWEEN 123 AND 123 AND big.b = 1 / gone.n",
	"WITH i AS (INSERT INTO memo (title, n) SELECT t, a FROM big WHERE a BETWEEN 123 AND 123 AND {} RETURNING " +
		"title) SELECT count(*) FROM i, big WHERE a BETWEEN 123 AND 123",
	"WITH i AS (INSERT INTO memo (title, n) VALUES ('mine', 1) ON CONFLICT (owner, title) DO NOTHING RETURNING n) " +
		"SELECT count(i.n), count(*) FROM i RIGHT JOIN big ON a BETWEEN 123 AND 123 AND {} WHERE a = 123",
	"WITH i AS (INSERT INTO memo (title, n) VALUES ('mine', 1) ON CONFLICT (owner, title) DO UPDATE SET n = " +
		"(SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND {}) RETURNING n) SELECT n FROM i",
	"INSERT INTO memo (title, n) VALUES ('theirs', 1) ON CONFLICT (owner, title) DO UPDATE SET n = 2 WHERE EXISTS " +
		"(SELECT FROM big WHERE a BETWEEN 123 AND 123 AND {}) RETURNING n",
	"MERGE INTO big USING open ON big.a BETWEEN 123 AND 123 AND {} WHEN MATCHED THEN UPDATE SET note = 'm'",
	"MERGE INTO big USING (SELECT n AS x FROM small) s ON big.a = s.x + 120 WHEN MATCHED AND {} THEN DELETE",
	"MERGE INTO memo USING (SELECT * FROM big WHERE a BETWEEN 123 AND 123 AND {}) q ON memo.title = q.t WHEN NOT " +
		"MATCHED THEN INSERT (title) VALUES (q.t)",
	"UPDATE memo SET body = q.t FROM (SELECT * FROM big) q WHERE q.a BETWEEN 123 AND 123 AND memo.n = q.b AND " +
		"EXISTS (SELECT FROM big WHERE big.id = q.id AND {})",
	"UPDATE small SET note = 'f' FROM bv WHERE bv.a BETWEEN 123 AND 123 AND EXISTS (SELECT FROM big WHERE big.id = bv.id AND {})",
	"DELETE FROM memo USING big WHERE big.a BETWEEN 123 AND 123 AND {} RETURNING memo.title",
	"UPDATE big SET (note, t) = (SELECT 'n', 'x' FROM small WHERE n = 0) WHERE a BETWEEN 123 AND 123 AND {} RETURNING a",
	"SELECT count(*) FROM bv WHERE a BETWEEN 123 AND 123 AND {}",
	"SELECT count(*) FROM si WHERE a BETWEEN 123 AND 123 AND {}",
	"SELECT count(*) FROM mv WHERE t LIKE '%ecre%' AND a BETWEEN 123 AND 123 AND {}",
	"SELECT count(*) FROM mv x JOIN big y USING (id) WHERE x.a BETWEEN 123 AND 123 AND y.t LIKE '%ecre%' AND " +
		"EXISTS (SELECT FROM mv WHERE id = y.id AND {})",
	"SELECT count(*) FROM summed q JOIN mvsum s USING (a) WHERE a BETWEEN 123 AND 123 AND EXISTS (SELECT FROM big WHERE big.a = s.a AND {})",
	"SELECT q.a, q.n FROM mvsum q WHERE a BETWEEN 123 AND 123 AND length(t) > 1 / (SELECT min(n) FROM small)",
	"SELECT * FROM joined WHERE a BETWEEN 123 AND 123 AND title LIKE '%i%' AND 1 / n IS NULL",
	"UPDATE bv SET note = 'v' WHERE a BETWEEN 123 AND 123 AND {}",
	"DELETE FROM si WHERE a BETWEEN 123 AND 123 AND t LIKE '%e%' RETURNING a",
	"UPDATE memos SET n = 501 WHERE title = 'mine'",
	"UPDATE memos SET n = (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND {}) RETURNING title, n",
	"INSERT INTO memos (title, n) SELECT 'v' || a, 5 FROM big WHERE a BETWEEN 123 AND 123 AND {} RETURNING title",
	"COPY (WITH u AS (UPDATE big SET note = 'c' WHERE a BETWEEN 123 AND 123 AND {} RETURNING a) SELECT * FROM u) TO STDOUT",
	"COPY (SELECT a FROM bv WHERE a BETWEEN 123 AND 123 AND {}) TO STDOUT",
	"BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT a, t FROM big WHERE a BETWEEN 122 AND 1001 AND {}; COMMIT; FETCH ALL c; CLOSE c",
	"BEGIN; DECLARE c CURSOR FOR SELECT a FROM big WHERE a BETWEEN 122 AND 1001 AND NOT ({}) FOR UPDATE; FETCH c; " +
		"UPDATE big SET note = 'cur' WHERE CURRENT OF c; FETCH ALL c; ROLLBACK",
	"BEGIN; DECLARE c CURSOR FOR SELECT a, t FROM bv WHERE a BETWEEN 122 AND 1001; FETCH c; DELETE FROM big WHERE CURRENT OF c; MOVE ALL c; ROLLBACK",
	"PREPARE p AS WITH u AS (UPDATE big SET note = 'p' WHERE a BETWEEN 123 AND 123 AND {} RETURNING a) SELECT count(*) FROM u; EXECUTE p; DEALLOCATE p",
	"SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND {} AND EXISTS (SELECT FROM memo WHERE memo.n = big.b FOR UPDATE)",
	"WITH RECURSIVE r AS (SELECT 123 AS x UNION ALL SELECT big.a + 1 FROM big, r WHERE big.a = r.x AND {}), u AS " +
		"(UPDATE small SET note = 'r' WHERE n IN (SELECT x FROM r) RETURNING n) SELECT (SELECT count(*) FROM r), (SELECT count(*) FROM u)",
	"WITH d AS (DELETE FROM open WHERE EXISTS (SELECT FROM big WHERE a BETWEEN 123 AND 123 AND {}) RETURNING n), " +
		"i AS (INSERT INTO open (n) SELECT n + 100 FROM d RETURNING n) SELECT count(*) FROM d, i, big WHERE a BETWEEN 123 AND 123",
	"WITH d AS MATERIALIZED (DELETE FROM memo WHERE n = 99 RETURNING n), q AS NOT MATERIALIZED (SELECT *, {} AS e " +
		"FROM big) SELECT count(*), (SELECT count(*) FROM d) FROM q WHERE a BETWEEN 123 AND 123 AND e",
}

var besideConditions = []string{
	"1 / (a - 123) IS NULL", "t::int > 5", "to_date(t, 'YYYY-MM-DD') IS NULL", "t ~ repeat('(', a - 122)",
	"m::bigint = 5", "i8 + 9223372036854775807 > 5", "b = 1 / (SELECT min(n) FROM small)", "(ARRAY[t]::text[])::int[] IS NULL", "t LIKE '%ecre%'",
}

// besideCopies are COPY statements, each with the data to copy in.
var besideCopies = [][2]string{
	{"COPY memo (title, n) FROM STDIN", "theirs\t5\ncopied\t6\n"}, {"COPY memo (title, n) FROM STDIN", "mine\t5\n"}, {
		"COPY memo (title, n) FROM STDIN", "c2\t5000\n"}, {"COPY memo (title, n) FROM STDIN", "c3\tx\n"},
	{"COPY memo (owner, title) FROM STDIN", "other\ttheirs\n"},
	{"COPY open (n) FROM STDIN", "5\n"}, {"COPY memos (title, n) FROM STDIN", "c4\t501\n"}, {
		"COPY mv (a) FROM STDIN", "5\n"}, {"COPY memo (title) FROM STDIN WHERE EXISTS (SELECT FROM big WHERE a = 123)", "w\n"},
}

// An agent sends writes with reads beside them, and uses views, materialized views, cursors and COPY, with a hint in
// front or without. The twins must answer alike, and have the same visible rows afterwards.
func TestWritesWithReadsTellNothing(t *testing.T) {
	tier.All(t)
	var statements []string
	for p, place := range besideStatements {
		for f, condition := range besideConditions {
			if !strings.Contains(place, "{}") {
				statements = append(statements, place)
				break
			}
			if tier.IsPicked(p+f, 6) {
				statements = append(statements, strings.ReplaceAll(place, "{}", condition))
			}
		}
	}
	statements = append(statements, "SELECT n, body, title FROM memo ORDER BY title",
		"SELECT id, note, t FROM big ORDER BY id", "SELECT n, note FROM small ORDER BY n, note", "SELECT count(*) FROM open")
	for m, mode := range modesOf(instance.Auto, instance.Both, instance.SignedViews) {
		for r, rule := range besideRules {
			if !tier.IsPicked(3*m+r, 10) {
				continue
			}
			t.Run(fmt.Sprintf("%s, rule %d", mode.Name, r), func(t *testing.T) {
				var got [2][]string
				for i, change := range []string{"UPDATE big SET a = 9999 WHERE a = 122",
					"UPDATE big SET a = 9999 WHERE a = 123; DELETE FROM memo WHERE owner = 'other'"} {
					db := pgtest.Database(t)
					instance.Exec(t, db, besideSchema)
					instance.Exec(t, db, "ANALYZE")
					instance.Exec(t, db, change+"; REFRESH MATERIALIZED VIEW mv; REFRESH MATERIALIZED VIEW mvsum")
					d := instance.Database{Name: "pair", DB: db, Policy: strings.ReplaceAll(besidePolicy, "RULE", rule), SearchPath: []string{"public"}}
					proxy := instance.Start(t, mode, d, map[string]string{"user": "me"})
					for _, hint := range []string{"", predicate.UseIndexHint} {
						c := proxy.Agent(t, "agent", "pair")
						for _, sql := range statements {
							got[i] = append(got[i], askAndReset(c, hint+sql))
						}
						for _, copyIn := range besideCopies {
							tag, err := c.CopyFrom(t.Context(), strings.NewReader(copyIn[1]), copyIn[0])
							got[i] = append(got[i], fmt.Sprint(tag, err))
						}
					}
				}
				answered := 0
				for k := range got[0] {
					n := k % (len(got[0]) / 2)
					statement := "a COPY"
					if n < len(statements) {
						statement = statements[n]
					}
					if got[0][k] != got[1][k] {
						t.Errorf("%s\n   %s\n   %s", statement, instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
					}
					if !strings.Contains(got[0][k], "ERROR") {
						answered++
					}
				}
				if answered < len(got[0])*2/3 {
					t.Errorf("%d of %d are answered", answered, len(got[0]))
				}
			})
		}
	}
}

// askAndReset sends a statement, and then ends its transaction and deallocates what it has prepared.
func askAndReset(c *pgconn.PgConn, sql string) string {
	if strings.Contains(sql, "COPY ") {
		return instance.AskCopy(c, sql).SortedString()
	}
	answer := instance.Ask(c, sql).SortedString()
	if strings.Contains(sql, ";") {
		instance.Ask(c, "ROLLBACK")
		instance.Ask(c, "DEALLOCATE ALL")
	}
	return answer
}
