package attacks

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const sizedSchema = `
CREATE TABLE holder (name text PRIMARY KEY, owner text NOT NULL);
CREATE TABLE notes (id int PRIMARY KEY, owner text NOT NULL, a int NOT NULL, i8 bigint, f float8, f4 float4, d date, u uuid, body text NOT NULL DEFAULT 'plain',
  vc varchar(9) DEFAULT 'v', found tsvector DEFAULT 'a:1 b:2', ts timestamp DEFAULT '2020-01-01');
INSERT INTO holder VALUES ('me', 'me');
INSERT INTO notes (id, owner, a, i8, f, f4) SELECT g, 'me', g, g, g, g FROM generate_series(1, 20) g;
`

const sizedPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  holder: { rows: [ { own: { column: owner, is: user } } ] }
  notes: { rows: [ { visible: { holder: { name: owner } } } ] }
`

// One of two twins has many more rows, all hidden. There a statement takes the signed path, and row security where the
// table is small. Both must give the same descriptions and the same errors.
func TestTableSizesTellNothing(t *testing.T) {
	tier.All(t)
	const search = " FROM notes WHERE found @@ 'b'::tsquery AND "
	statements := []string{
		"SELECT id, 'q'::int" + search + "d > 'x' AND body ~ '(?=x)'", "SELECT 'q'::date, id" + search +
			"u > 'x' AND body ~ '(?=x)'", "SELECT id" + search + "body ~ '(?=x)' AND a + 1 = 'q' AND i8 > 'x'",
		"SELECT id, date_trunc('year', ts) = 'q'" + search + "d > 'x'", "SELECT lower(id)" + search +
			"d > 'x' AND body ~ '(?=x)'", "SELECT id, nothing" + search + "d > 'x' AND body ~ '(?=x)'",
		"SELECT id FROM notes WHERE 1 / 0 = id AND found @@ to_tsquery('simple', 'a b')",
		"SELECT id FROM notes WHERE found @@ to_tsquery('simple', 'a b') AND 1 / 0 = id",
		"SELECT id FROM notes WHERE found @@ to_tsquery('simple', 'a b') AND body ~ '('",
		"SELECT id FROM notes WHERE body ~ '(' AND found @@ to_tsquery('simple', 'a b')",
		"SELECT a = $1" + search + "i8 > $1 AND body ~ '(?=x)'", "SELECT f4 = $1" + search +
			"f > $1 AND body ~ '(?=x)'", "SELECT vc = $1" + search + "body > $1 AND body ~ '(?=x)'", "SELECT a = $1" +
			search + "i8 IN (a, $1) AND body ~ '(?=x)'", "SELECT a = $1" + search + "i8 > $1",
		"SELECT id" + search + "a % 2 = $1 AND d > $2", "SELECT id, body ~ '(?=x)', vc" + search +
			"a % 2 = 1", "SELECT *" + search + "a % 2 = 1", "SELECT id" +
			search + "a % 2 = 1 LIMIT $1", "SELECT count(*), date_trunc('year', ts)" + search + "f > $1 GROUP BY 2",
	}
	describe := func(c *pgconn.PgConn, sql string) string {
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
	signed := 0
	for i, hidden := range []int{0, 8000} {
		db := pgtest.Database(t)
		instance.Exec(t, db, sizedSchema+fmt.Sprintf(
			"INSERT INTO notes (id, owner, a, i8, f, f4) SELECT g, 'other', g, g, g, g FROM generate_series(101, 100 + %d) g", hidden))
		instance.Exec(t, db, "VACUUM ANALYZE")
		d := instance.Database{Name: "pair", DB: db, Policy: sizedPolicy, SearchPath: []string{"public"}}
		m := instance.Compile(t, d, instance.Auto)
		r := rewrite.New(m.Snapshot, m.Policy, rewrite.AutoMode)
		c := instance.Start(t, instance.Auto, d, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
		for _, sql := range statements {
			got[i] = append(got[i], describe(c, sql))
			if result, _ := r.Rewrite(sql, true); i == 1 && result.Path == verdict.PathSigned {
				signed++
			}
		}
	}
	for k, sql := range statements {
		if got[0][k] != got[1][k] {
			t.Errorf("%s\n   %s\n   %s", sql, instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
		}
	}
	if signed < 10 {
		t.Errorf("%d of %d may take the signed path", signed, len(statements))
	}
}

const foundSchema = `
CREATE EXTENSION pg_trgm;
CREATE EXTENSION hstore;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN pos AS int CHECK (VALUE > 0);
CREATE TABLE holder (name text PRIMARY KEY, owner text NOT NULL);
CREATE TABLE notes (gone int, id int PRIMARY KEY, owner text NOT NULL, a int NOT NULL, gone2 text,
  i8 bigint, f float8, f4 float4, body text NOT NULL DEFAULT 'plain', vc varchar(9) DEFAULT 'v', c char(5) DEFAULT 'c', found tsvector DEFAULT 'a:1 b:2',
  m mood DEFAULT 'ok', p pos DEFAULT 3, n numeric(8,2) DEFAULT 1.5,
	j json DEFAULT '{"a":1}', t3 timestamp(3) DEFAULT '2020-01-01', nums int[] DEFAULT '{1,2}', "Odd Name" int DEFAULT 1);
ALTER TABLE notes DROP COLUMN gone;
ALTER TABLE notes DROP COLUMN gone2;
CREATE TABLE others (id int PRIMARY KEY, owner text NOT NULL, note int REFERENCES notes, body text);
CREATE TABLE open (n int, body text);
INSERT INTO open VALUES (1, 'x'), (2, 'y');
CREATE VIEW v AS SELECT id, a, body, n FROM notes WHERE a > 0;
INSERT INTO holder VALUES ('me', 'me');
INSERT INTO notes (id, owner, a, i8, f, f4) SELECT g, 'me', g, g, g, g FROM generate_series(1, 20) g;
INSERT INTO others SELECT g, 'me', g, 'x' FROM generate_series(1, 20) g;
CREATE INDEX ON notes (owner);
CREATE INDEX ON notes (a);
CREATE INDEX ON notes USING gin (found);
CREATE INDEX ON notes USING gin (body gin_trgm_ops);
`

const foundPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  holder: { rows: [ { own: { column: owner, is: user } } ] }
  notes: { rows: [ { own: { column: owner, is: user } }, { visible: { holder: { name: owner } } } ] }
  others: { rows: [ { own: { column: owner, is: user } } ] }
  open: { rows: open }
views: { v: {} }
`

// foundOutputs are result expressions over the rows that are found: whole rows, mistakes, and parameters. Some use
// names and types that only a table has, or only one of pgconsent's views.
var foundOutputs = []string{
	"notes", "notes.*", "*", "pg_typeof(notes)", "to_jsonb(notes)", "ROW(notes.*)", "notes::text", "array_agg(notes)",
	"count(notes)", "json_agg(notes ORDER BY id)", "hstore(notes)", "(notes).a", "a(notes)", "(notes).nothing",
	"nothing(notes)", "lower(notes)", "notes + 1", "notes::int", "notes < notes", "coalesce(notes, NULL)",
	"CASE WHEN true THEN notes END", "public.notes.a", "pair.public.notes.a", "tableoid::regclass",
	"ctid", "notes.oid", `a, body, vc, c, n, t3, m, p, "Odd Name", nums`, `"odd name"`, "nothing",
	"bodx", "id, p + 1, n * 2, m::text", "max(m)", "max(c)", "string_agg(c, ',' ORDER BY id)", "j = j", "DISTINCT j",
	"DISTINCT notes", "c::text, vc::char(3)",
	"NULLIF(p, 1), GREATEST(a, i8), COALESCE(vc, body), COALESCE(c, vc)", "sum(p), avg(n), sum(f4)",
	"nums[1], nums[1:1]", "m = 'bad'", "p = 'x'", "vc = 5", "body + 1", "nosuch(a)", "a::nosuch",
	"CAST(body AS mood)", "(SELECT max(a) FROM notes n2 WHERE n2.a <= notes.a)", "(SELECT notes FROM open LIMIT 1)",
	"(SELECT nothing FROM open LIMIT 1)",
	"EXISTS (SELECT FROM others WHERE others.note = notes.id)",
	"count(*) OVER (PARTITION BY m), rank() OVER (ORDER BY c, id)", "mode() WITHIN GROUP (ORDER BY m)", "a AS b, b",
	"count(*), a", "$1::int + a", "$1 + a", "a = $1, body = $2", "p = $1", "m = $1", "c = $1", "n = $1", "coalesce(vc, $1)", "$1",
}

// foundStatements are other statements, with a placeholder for the condition that finds rows.
var foundStatements = []string{
	"SELECT a, body FROM notes WHERE {} GROUP BY id",
	"SELECT a, count(*) FROM notes WHERE {} GROUP BY id, body ORDER BY m", "SELECT * FROM notes n(x, y) WHERE {}",
	"SELECT id FROM notes JOIN others USING (id) WHERE {}",
	"SELECT * FROM notes JOIN others USING (id, owner) WHERE {}", "SELECT * FROM notes NATURAL JOIN holder WHERE {}",
	"SELECT o.*, notes.id FROM open o JOIN notes ON o.body = notes.a WHERE {}",
	"SELECT id FROM notes WHERE {} ORDER BY j", "SELECT id FROM notes WHERE {} ORDER BY notes",
	"SELECT id FROM notes WHERE {} GROUP BY notes.id HAVING a > 1 ORDER BY a",
	"SELECT a FROM notes WHERE {} UNION SELECT body FROM notes", "SELECT c FROM notes WHERE {} UNION ALL SELECT vc FROM notes",
	"SELECT id FROM ONLY notes WHERE {}", "WITH notes AS (SELECT * FROM notes WHERE {}) SELECT notes FROM notes",
	"WITH q AS (SELECT * FROM notes WHERE {}) SELECT q, pg_typeof(q) FROM q",
	"SELECT q.notes FROM (SELECT notes FROM notes WHERE {}) q",
	"SELECT x FROM notes, LATERAL (SELECT notes.a) x WHERE {}", "SELECT v, a FROM v WHERE body LIKE '%p%' AND {}",
	"PREPARE p AS SELECT id FROM notes WHERE {}; SELECT name, statement, parameter_types, from_sql FROM " +
		"pg_prepared_statements; EXECUTE p; DEALLOCATE p",
	"BEGIN; DECLARE c CURSOR FOR SELECT id FROM notes WHERE {}; SELECT name, statement FROM pg_cursors; FETCH 1 " +
		"c; ROLLBACK", "EXPLAIN SELECT id FROM notes WHERE {}",
	"SELECT id FROM notes WHERE {} LIMIT 'x'", "SELECT id FROM notes WHERE {} LIMIT -1",
	"SELECT id FROM notes WHERE {} AND", "/*pgconsent:use_index*/SELECT id, body::int FROM notes WHERE {}",
	"/* é */ SELECT id, 1/(a-a) FROM notes WHERE {}", "SELECT 'é', id, bodx FROM notes WHERE {}",
	"SELECT nots.id FROM notes WHERE {}", "SELECT id FROM notes n WHERE {} AND notes.id = 1",
	"SELECT relname, relkind, reltuples, relpages FROM pg_class WHERE relname LIKE '%notes%'",
}

// The same where a statement finds few rows of many, so that the rewritten statement has another path and a hint in one
// twin. The test compares descriptions with the numbers of tables and columns, errors with their positions, and the
// session's catalogs.
func TestEstimatedRowsTellNothing(t *testing.T) {
	tier.All(t)
	var statements []string
	for w, where := range []string{"found @@ 'b'::tsquery", "body LIKE '%lai%'", "a = 5", "a > 3 AND body ILIKE '%A%'", "true"} {
		for k, output := range foundOutputs {
			if tier.IsPicked(w+k, 3) {
				statements = append(statements, "SELECT "+output+" FROM notes WHERE "+where)
			}
		}
		for k, sql := range foundStatements {
			if tier.IsPicked(w+k, 3) {
				statements = append(statements, strings.ReplaceAll(sql, "{}", where))
			}
		}
	}
	var got [2][]string
	var signed, hinted [2]int
	for i, hidden := range []int{0, 40000} {
		db := pgtest.Database(t)
		instance.Exec(t, db, foundSchema+fmt.Sprintf(
			"INSERT INTO notes (id, owner, a, i8, f, f4) SELECT g, 'other' || g %% 5, g %% 100, g, g, g FROM generate_series(101, 100 + %d) g", hidden))
		instance.Exec(t, db, "VACUUM ANALYZE")
		d := instance.Database{Name: "pair", DB: db, Policy: foundPolicy, SearchPath: []string{"public"}}
		m := instance.Compile(t, d, instance.Auto)
		c := instance.Start(t, instance.Auto, d, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
		sizes, err := pgcatalog.Sizes(t.Context(), db.Connect(t, "postgres"), rls.PredicateTables(m.Policy))
		if err != nil {
			t.Fatal(err)
		}
		r := rewrite.New(m.Snapshot, m.Policy, rewrite.AutoMode).WithSizes(sizes)
		names := namesOf(t, db)
		for _, sql := range statements {
			got[i] = append(got[i], describeByNames(t, c, sql, names))
			result, refused := r.Rewrite(sql, true)
			if refused == nil && result.Path == verdict.PathSigned {
				signed[i]++
			}
			if refused == nil && result.UseIndex {
				hinted[i]++
			}
		}
	}
	for k, sql := range statements {
		if got[0][k] != got[1][k] {
			t.Errorf("%s\n   %s\n   %s", sql, instance.Truncate(got[0][k]), instance.Truncate(got[1][k]))
		}
	}
	if signed[1] < signed[0]+20 || hinted[1] < hinted[0]+5 {
		t.Errorf("of %d statements %d take the signed path, %d have the hint", len(statements), signed, hinted)
	}
}

// namesOf returns the names of relations and types by their OIDs.
func namesOf(t *testing.T, db *pgtest.DB) map[uint32]string {
	t.Helper()
	names := map[uint32]string{}
	for _, row := range instance.Ask(instance.ConnectSuperuser(t, db),
		"SELECT oid, 'the table ' || relname FROM pg_class UNION ALL SELECT oid, 'the type ' || typname FROM pg_type").Results[0].Rows {
		number, name, _ := strings.Cut(row, "\t")
		oid, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		names[uint32(oid)] = name
	}
	return names
}

// describeByNames returns the answer to a statement and its description, with names in place of OIDs.
func describeByNames(t *testing.T, c *pgconn.PgConn, sql string, names map[uint32]string) string {
	t.Helper()
	simpleAnswer := askAndReset(c, sql)
	if strings.Contains(sql, ";") {
		return simpleAnswer
	}
	d, err := c.Prepare(t.Context(), "", sql, nil)
	if err != nil {
		return err.Error() + simpleAnswer
	}
	var out strings.Builder
	values := make([][]byte, len(d.ParamOIDs))
	for i, oid := range d.ParamOIDs {
		fmt.Fprintf(&out, "$%d is %s; ", i+1, names[oid])
		values[i] = []byte("5")
	}
	for _, f := range d.Fields {
		fmt.Fprintf(&out, "%s of %s, column %d, %s, modified %d, %d bytes; ", f.Name, names[f.TableOID],
			f.TableAttributeNumber, names[f.DataTypeOID], f.TypeModifier, f.DataTypeSize)
	}
	r := c.ExecPrepared(t.Context(), "", values, nil, nil).Read()
	return fmt.Sprint(out.String(), len(r.Rows), r.Err, simpleAnswer)
}
