package attacks

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/pgtest"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/verdict"
)

const sizedSchema = `
CREATE TABLE holder (name text PRIMARY KEY, owner text NOT NULL);
CREATE TABLE notes (id int PRIMARY KEY, owner text NOT NULL, a int NOT NULL, i8 bigint, f float8, f4 float4, d date, u uuid, body text NOT NULL DEFAULT 'plain', vc varchar(9) DEFAULT 'v', found tsvector DEFAULT 'a:1 b:2', ts timestamp DEFAULT '2020-01-01');
INSERT INTO holder VALUES ('me', 'me');
INSERT INTO notes (id, owner, a, i8, f, f4) SELECT g, 'me', g, g, g, g FROM generate_series(1, 20) g;
`

const sizedPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  holder: { rows: [ { own: { column: owner, is: user } } ] }
  notes: { rows: [ { visible: { holder: { name: owner } } } ] }
`

// Twins of which one has many more rows, all hidden: a statement takes the gate door there, and row security where the table is small. What it is told, and what
// is wrong with it, is the same.
func TestHowManyAreHiddenTellsNothing(t *testing.T) {
	const search = " FROM notes WHERE found @@ 'b'::tsquery AND "
	statements := []string{
		"SELECT id, 'q'::int" + search + "d > 'x' AND body ~ '(?=x)'", "SELECT 'q'::date, id" + search + "u > 'x' AND body ~ '(?=x)'", "SELECT id" + search + "body ~ '(?=x)' AND a + 1 = 'q' AND i8 > 'x'",
		"SELECT id, date_trunc('year', ts) = 'q'" + search + "d > 'x'", "SELECT lower(id)" + search + "d > 'x' AND body ~ '(?=x)'", "SELECT id, nothing" + search + "d > 'x' AND body ~ '(?=x)'",
		"SELECT id FROM notes WHERE 1 / 0 = id AND found @@ to_tsquery('simple', 'a b')", "SELECT id FROM notes WHERE found @@ to_tsquery('simple', 'a b') AND 1 / 0 = id", "SELECT id FROM notes WHERE found @@ to_tsquery('simple', 'a b') AND body ~ '('", "SELECT id FROM notes WHERE body ~ '(' AND found @@ to_tsquery('simple', 'a b')",
		"SELECT a = $1" + search + "i8 > $1 AND body ~ '(?=x)'", "SELECT f4 = $1" + search + "f > $1 AND body ~ '(?=x)'", "SELECT vc = $1" + search + "body > $1 AND body ~ '(?=x)'", "SELECT a = $1" + search + "i8 IN (a, $1) AND body ~ '(?=x)'", "SELECT a = $1" + search + "i8 > $1",
		"SELECT id" + search + "a % 2 = $1 AND d > $2", "SELECT id, body ~ '(?=x)', vc" + search + "a % 2 = 1", "SELECT *" + search + "a % 2 = 1", "SELECT id" + search + "a % 2 = 1 LIMIT $1", "SELECT count(*), date_trunc('year', ts)" + search + "f > $1 GROUP BY 2",
	}
	described := func(c *pgconn.PgConn, sql string) string {
		d, err := c.Prepare(t.Context(), "", sql, nil)
		if err != nil {
			return err.Error() + instance.Ask(c, sql).String()
		}
		out := fmt.Sprint(d.ParamOIDs)
		for _, f := range d.Fields {
			out += fmt.Sprintf(" %s %d %d %d", f.Name, f.TableAttributeNumber, f.DataTypeOID, f.TypeModifier)
		}
		values := make([][]byte, len(d.ParamOIDs))
		for i, oid := range d.ParamOIDs {
			values[i] = map[bool][]byte{true: []byte("2020-01-01"), false: []byte("99999999999")}[oid == 1082]
		}
		r := c.ExecPrepared(t.Context(), "", values, nil, nil).Read()
		return fmt.Sprint(out, len(r.Rows), r.Err)
	}
	var got [2][]string
	gate := 0
	for i, hidden := range []int{0, 8000} {
		db := pgtest.Database(t)
		instance.Exec(t, db, sizedSchema+fmt.Sprintf("INSERT INTO notes (id, owner, a, i8, f, f4) SELECT g, 'other', g, g, g, g FROM generate_series(101, 100 + %d) g", hidden))
		instance.Exec(t, db, "VACUUM ANALYZE")
		d := instance.Database{Name: "pair", DB: db, Policy: sizedPolicy, SearchPath: []string{"public"}}
		m := instance.Compile(t, d, instance.Doors)
		r := rewrite.New(m.Snapshot, m.Policy, rewrite.Doors)
		c := instance.Start(t, instance.Doors, d, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
		for _, sql := range statements {
			got[i] = append(got[i], described(c, sql))
			if result, _ := r.Rewrite(sql, true); i == 1 && result.Door == verdict.DoorGate {
				gate++
			}
		}
	}
	for k, sql := range statements {
		if got[0][k] != got[1][k] {
			t.Errorf("%s\n   %s\n   %s", sql, instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
		}
	}
	if gate < 10 {
		t.Errorf("%d of %d may take the gate door", gate, len(statements))
	}
}
