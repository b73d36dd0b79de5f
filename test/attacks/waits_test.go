package attacks

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The twins differ in the hidden doc 1000, which only the first twin has.
const waitSchema = `CREATE EXTENSION pg_trgm;
CREATE TABLE person (id int PRIMARY KEY, agreed text NOT NULL);
INSERT INTO person SELECT g, CASE WHEN g < 3 THEN 'yes' ELSE 'no' END FROM generate_series(0, 4) g;
CREATE TABLE doc (id int PRIMARY KEY, person int NOT NULL REFERENCES person, title text, body text, n int, owner text NOT NULL DEFAULT 'me', place int,
  UNIQUE (person, title) DEFERRABLE INITIALLY DEFERRED, EXCLUDE (person WITH =, place WITH =) DEFERRABLE);
INSERT INTO doc (id, person, title, body, n, place) SELECT g, g % 3, 'title ' || g, (ARRAY['a lake', 'two rivers', 'the old mill'])[1 + g % 7 % 3], g, g
FROM generate_series(1, 300) g;
CREATE INDEX ON doc USING gin (body gin_trgm_ops); CREATE INDEX ON doc (n); CREATE UNIQUE INDEX ON doc (person, n) WHERE n < 0;
CREATE TABLE part (id int PRIMARY KEY, doc int NOT NULL REFERENCES doc ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, word text);
INSERT INTO part SELECT g, 1 + g % 300, 'w' || g % 9 FROM generate_series(1, 400) g;
CREATE TABLE plain (id int PRIMARY KEY, note text); INSERT INTO plain VALUES (1, 'a');
`

const hiddenDocRow = "INSERT INTO doc (id, person, title, body, n, place) VALUES (1000, 3, 'title 7', 'a " +
	"lake', 7, 7); INSERT INTO part VALUES (1000, 1000, 'w1');"

const waitingPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  person: { rows: [ { status: { column: agreed, is: "yes" } } ] }
  doc: { rows: [ { visible: { person: { id: person } } } ], write: { commands: [update, delete], columns: [title, body, n, place, person] } }
  part: { rows: [ { visible: { doc: { id: doc } } } ], write: { commands: [update, delete], columns: [word, doc] } }
  plain: { rows: [ open ], write: { commands: [update] } }
`

// concurrentChanges change the hidden row in another transaction that has not committed.
var concurrentChanges = []string{
	"SELECT FROM doc WHERE id = 1000 FOR UPDATE",
	"SELECT FROM doc WHERE id = 1000 FOR KEY SHARE",
	"UPDATE doc SET n = n + 1, body = 'a lake again' WHERE id = 1000",
	"UPDATE doc SET id = 1001 WHERE id = 1000",
	"UPDATE doc SET person = 1, title = 'new', place = NULL WHERE id = 1000",
	"DELETE FROM doc WHERE id = 1000",
	"DELETE FROM part WHERE doc = 1000",
	"UPDATE part SET doc = 1 WHERE doc = 1000",
}

var waitingWrites = []string{
	"UPDATE doc SET n = n + 1 WHERE body ILIKE '%lake%' AND id / 2 < 100",
	"UPDATE doc SET n = 7, title = 'title 7' WHERE body ILIKE '%lake%' AND id / 2 = 3 RETURNING id, n",
	"UPDATE doc SET title = 'title 7' WHERE id = 6",
	"UPDATE doc SET place = 7 WHERE id = 6",
	"UPDATE doc SET n = 7 WHERE n = 7 RETURNING id",
	"UPDATE doc d SET body = 'x' FROM part p WHERE p.doc = d.id AND d.body LIKE '%lake%' AND p.word = 'w1' RETURNING d.id",
	"DELETE FROM doc WHERE body LIKE '%lake%' AND n / 2 = 3 RETURNING id",
	"DELETE FROM doc d USING part p WHERE p.doc = d.id AND d.n = 7",
	"DELETE FROM part WHERE word = 'w1' RETURNING id, doc",
	"UPDATE part SET word = 'x' WHERE EXISTS (SELECT FROM doc WHERE doc.id = part.doc AND doc.body LIKE '%lake%' AND doc.n / 2 = 3) RETURNING id",
	"UPDATE part SET doc = 1000 WHERE id = 1",
	"UPDATE part SET doc = 1001 WHERE id = 1",
	"UPDATE plain SET note = (SELECT count(*) FROM doc WHERE body LIKE '%lake%' AND n / 2 = 3) RETURNING note",
	"SELECT id FROM doc WHERE body LIKE '%lake%' AND n / 2 = 3 FOR UPDATE",
	"SELECT id FROM doc WHERE n = 7 FOR NO KEY UPDATE NOWAIT",
	"SELECT count(*) FROM (SELECT id FROM doc WHERE body LIKE '%lake%' FOR UPDATE SKIP LOCKED) q",
	"WITH q AS (SELECT id FROM doc WHERE n = 7 FOR UPDATE) UPDATE doc SET body = 'y' FROM q WHERE q.id = doc.id RETURNING doc.id",
}

// Another transaction has locked or changed a hidden row. No write of an agent may wait for it, and the answers must be
// as if the row did not exist.
func TestNoWriteWaitsForHiddenRows(t *testing.T) {
	tier.All(t)
	for _, mode := range modesOf(instance.Auto, instance.Both) {
		var got [2][]string
		var askedStatements []string
		for i, hidden := range []string{hiddenDocRow, ""} {
			db := pgtest.Database(t)
			instance.Exec(t, db, waitSchema+hidden+"ANALYZE;")
			d := instance.Database{Name: "pair", DB: db, Policy: waitingPolicy, SearchPath: []string{"public"}}
			c := instance.Start(t, mode, d, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
			other := instance.ConnectSuperuser(t, db)
			instance.Ask(c, "SET lock_timeout = '300ms'")
			for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
				for n, change := range concurrentChanges {
					instance.Ask(other, "BEGIN")
					if a := instance.Ask(other, change); a.Err != "" {
						t.Fatal(change, a.Err)
					}
					for k, write := range waitingWrites {
						if !tier.IsPicked(k+n, 6) || level == "REPEATABLE READ" && k%3 != 0 {
							continue
						}
						if i == 0 {
							askedStatements = append(askedStatements, level+": "+change+": "+write)
						}
						got[i] = append(got[i], askInTransaction(c, level, write))
					}
					instance.Ask(other, "ROLLBACK")
				}
			}
		}
		for k := range askedStatements {
			if got[0][k] != got[1][k] {
				t.Errorf("%s: %s\n   %s\n   %s", mode.Name, askedStatements[k], instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
			}
			if strings.Contains(got[0][k], "55P03") {
				t.Errorf("%s: %s waits", mode.Name, askedStatements[k])
			}
		}
	}
}

// askInTransaction sends a statement in a transaction of its own. It commits an UPDATE, which runs deferred checks, and
// rolls others back.
func askInTransaction(c *pgconn.PgConn, level, sql string) string {
	instance.Ask(c, "BEGIN ISOLATION LEVEL "+level)
	out := instance.Ask(c, sql).SortedString()
	if strings.HasPrefix(sql, "UPDATE") {
		return out + instance.Ask(c, "COMMIT").SortedString()
	}
	instance.Ask(c, "ROLLBACK")
	return out
}
