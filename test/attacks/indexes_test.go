package attacks

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// PostgreSQL skips the second index of a BitmapAnd if the first finds nothing. Whether the compared value is computed
// must not depend on hidden rows. The twins have 100,000 rows, all hidden, and were analyzed while they were equal.
// Then the rows with a = 123 were deleted from one, and those with a = 124 from the other.
const twoIndexesSchema = `
CREATE TABLE big (id bigint PRIMARY KEY, owner text NOT NULL, a int NOT NULL, b int NOT NULL, c int NOT NULL, note text NOT NULL DEFAULT 'n');
CREATE TABLE small (owner text NOT NULL, n int NOT NULL);
INSERT INTO small VALUES ('me', 0), ('me', 3), ('other', 5);
INSERT INTO big SELECT g, 'other', g % 300, g % 211, g % 223 FROM generate_series(1, 100000) g;
CREATE INDEX ON big (a);
CREATE INDEX ON big (b);
CREATE INDEX ON big (c);
SET default_statistics_target = 1000; -- all rows: what chance takes to look at would tell the twins apart
ANALYZE`

const twoIndexesPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  big: { rows: [ { own: { column: owner, is: user } } ], write: { commands: [update, delete] } }
  small: { rows: [ { own: { column: owner, is: user } } ] }
`

// Each message is sent alone, and in a transaction after a savepoint whose rollback undoes the settings of the
// statement before.
var twoIndexesMessages = []string{
	"SELECT count(*) FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small)",
	"SELECT count(*) FROM big WHERE b = (SELECT 1 / min(n) FROM small) AND a = 123",
	"SELECT count(*) FROM big WHERE a = 123 AND b = (SELECT n FROM small)",
	"SELECT count(*) FROM big WHERE a = 123 AND b IN (5, (SELECT 1 / min(n) FROM small))",
	"SELECT count(*) FROM big WHERE a = 123 AND b = (SELECT count(*) FROM small WHERE 1 / n > 0)",
	"SELECT count(*) FROM small s WHERE s.n = 0 AND EXISTS (SELECT FROM big WHERE a = 123 AND b = 1 / s.n OFFSET 0)",
	"SELECT (SELECT count(*) FROM big WHERE a = 123 AND b = 1 / s.n) FROM small s WHERE n = 0",
	"SELECT count(*) FROM (SELECT 1 / n AS v FROM small OFFSET 0) s CROSS JOIN LATERAL (SELECT id FROM big WHERE a = 123 AND b = s.v LIMIT 1) x",
	"WITH s AS (SELECT 1 / min(n) AS v FROM small) SELECT count(*) FROM big WHERE a = 123 AND b = (SELECT v FROM s)",
	"SELECT count(*) FROM (SELECT n, 1 / n AS v FROM small) s WHERE (SELECT count(*) FROM big WHERE a = 123 AND b = s.v) = 0",
	"UPDATE big SET note = 'x' WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small)",
	"DELETE FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small)",
	"SELECT id FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small) FOR UPDATE",
	"COPY (SELECT id FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small)) TO STDOUT",
	"BEGIN; DECLARE k CURSOR FOR SELECT id FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small); FETCH ALL FROM k; COMMIT",
	"BEGIN; DECLARE k CURSOR FOR SELECT id FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small); MOVE ALL FROM k; ROLLBACK",
	"PREPARE p AS SELECT count(*) FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small); EXECUTE p; DEALLOCATE p",
	"/*pgconsent:/* a comment within */ one of the agent's */ SELECT count(*) FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small)",
	"/*pgconsent:use_hash*//*pgconsent:left /* */ */SELECT count(*) FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small)",
	"/* x *//*pgconsent:use_hash*/SELECT count(*) FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small)",
	"SELECT id FROM big WHERE b = (SELECT max(n) - 3 FROM small); RESET plan_cache_mode; SELECT count(*) FROM big " +
		"WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small)",
	"SELECT 1; SELECT count(*) FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small)",
	"COMMIT; SELECT count(*) FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small)",
	"SELECT (SELECT max(n) FROM small) = 3; COMMIT; SELECT count(*) FROM big WHERE a = 123 AND b = (SELECT 1 / min(n) FROM small)",
	"SELECT id FROM big WHERE b = (SELECT max(n) - 3 FROM small); ROLLBACK; BEGIN; SELECT count(*) FROM big WHERE " +
		"a = 123 AND b = (SELECT 1 / min(n) FROM small); ROLLBACK",
}

// An agent compares the column of a second index with a value that fails. The error must not depend on what the first
// index finds among hidden rows.
func TestTwoIndexesTellNothing(t *testing.T) {
	tier.All(t)
	newTwin := func(value int) instance.Database {
		db := pgtest.Database(t)
		instance.Exec(t, db, twoIndexesSchema)
		instance.Exec(t, db, fmt.Sprintf("DELETE FROM big WHERE a = %d", value))
		instance.Exec(t, db, "VACUUM big")
		return instance.Database{Name: "pair", DB: db, Policy: twoIndexesPolicy, SearchPath: []string{"public"}}
	}
	for _, mode := range modesOf(instance.Both, instance.Auto) {
		one, two := newTwin(123), newTwin(124)
		var got [2][]string
		for i, d := range []instance.Database{one, two} {
			proxy := instance.Start(t, mode, d, map[string]string{"user": "me"})
			c := proxy.Agent(t, "agent", "pair")
			record := func(situation, message string, answer string) {
				got[i] = append(got[i], fmt.Sprintf("%s: %s\n%s", situation, message, strings.ReplaceAll(answer, d.DB.Name, "DATABASE")))
			}
			for _, message := range twoIndexesMessages {
				record("alone", message, instance.Ask(c, message).SortedString())
				instance.Ask(c, "ROLLBACK")
				if !strings.Contains(message, ";") {
					record("extended", message, instance.AskText(c, message).SortedString())
					instance.Ask(c, "BEGIN")
					instance.Ask(c, "SAVEPOINT s")
					record("after BEGIN", message, instance.Ask(c, message).SortedString())
					instance.Ask(c, "ROLLBACK TO s")
					record("after ROLLBACK TO", message, instance.Ask(c, message).SortedString())
					instance.Ask(c, "ROLLBACK TO s")
					record("after another, extended", message, instance.AskText(c, message).SortedString())
					instance.Ask(c, "ROLLBACK")
				}
			}
			for _, generic := range []string{
				"SELECT count(*) FROM big WHERE a = $1 AND b = $2::int / $3",
				"SELECT count(*) FROM big WHERE a = $1 AND b = ($2::text)::int + $3",
			} {
				record("generic", generic, genericPlan(c, generic))
			}
		}
		failedCount := 0
		for m := range got[0] {
			if strings.Contains(got[0][m], "22012") || strings.Contains(got[0][m], "21000") {
				failedCount++
			}
			if strings.Contains(got[0][m], "ERROR 42501") || strings.Contains(got[0][m], "ERROR XX000") || strings.Contains(got[0][m], "ERROR 0A000") {
				t.Errorf("%s, not answered: %s", mode.Name, got[0][m])
			}
			if got[0][m] != got[1][m] {
				t.Errorf("%s, %s\ntwin:\n%s", mode.Name, got[0][m], got[1][m])
			}
		}
		t.Logf("%s: %d answers, of which %d are errors of what was compared with", mode.Name, len(got[0]), failedCount)
	}
}

// genericPlan prepares a statement and executes it until its plan is a generic one. Then it executes it with parameters
// that fail.
func genericPlan(c *pgconn.PgConn, sql string) string {
	ctx := context.Background()
	if _, err := c.Prepare(ctx, "g", sql, nil); err != nil {
		return err.Error()
	}
	run := func(a, b, d string) string {
		r := c.ExecPrepared(ctx, "g", [][]byte{[]byte(a), []byte(b), []byte(d)}, nil, nil).Read()
		out := fmt.Sprint(r.Err)
		for _, row := range r.Rows {
			out += fmt.Sprintf(" %s", row[0])
		}
		return out
	}
	var out []string
	for range 7 {
		out = append(out, run("123", "7", "2"))
	}
	out = append(out, run("123", "7", "0"), run("123", "x", "0"))
	_, _ = c.Exec(ctx, "DEALLOCATE g").ReadAll()
	return strings.Join(out, "; ")
}
