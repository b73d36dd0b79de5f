package rewrite

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// For a result column without an alias, the rewriter finds the name that PostgreSQL gives it, or says that it does not
// know.
func TestColumnsWithoutNames(t *testing.T) {
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	if _, err := conn.Exec(t.Context(),
		"CREATE TYPE pair AS (one int, two text); CREATE TABLE t (a int, b text, c int[], d pair, e jsonb, at timestamptz)"); err != nil {
		t.Fatal(err)
	}
	for expression, isPlain := range map[string]bool{
		"a": true, "t.a": true, "public.t.b": true, "a::bigint": true, "a::bigint::text": true, "'x'::text": true,
		"'x'::pg_catalog.varchar(3)": true, "1": true, "'x'": true, "NULL": true, "true": true, "$1::date": true,
		"$1 + 1": true, "a + 1": true, "(a + 1)::int": true, "-a": true,
		"a = 1 AND true": true, "NOT a = 1": true, "a IS NULL": true, "(a = 1) IS TRUE": true, "a IN (1, 2)": true,
		"a BETWEEN 1 AND 2": true, "b LIKE 'x'": true, "NULLIF(a, 1)": true, "a IS DISTINCT FROM 1": true,
		"a = ANY (c)": true, "a = ANY (SELECT 1)": true, "a > ALL (SELECT 1)": true, "a IN (SELECT 1)": true,
		"CASE WHEN true THEN a END": true, "CASE WHEN true THEN 1 ELSE a END": true,
		"CASE WHEN true THEN 1 ELSE a::bigint END": true, "CASE WHEN true THEN 1 ELSE 2::bigint END": true,
		"CASE WHEN true THEN 1 ELSE CASE WHEN true THEN 1 ELSE t.a END END": true,
		"(CASE WHEN true THEN 1 END)::text":                                 true,
		"CASE WHEN true THEN 1 ELSE lower(b)::int END":                      true, "CASE WHEN true THEN 1 ELSE 1 + a END": true,
		"COALESCE(a, 1)": true, "GREATEST(a, 1)": true, "LEAST(a, 1)": true, "ARRAY[a]": true, "c[1]": true,
		"c[1:2]": true, "(d).one": true, "(d).two::text": true, "ROW(a, b)": false, "(SELECT 1)": true,
		"(SELECT 1 AS x)": true, "(SELECT b FROM t LIMIT 1)": true, "(SELECT 1::bigint)": true,
		"(SELECT a + 1 FROM t LIMIT 1)": true, "(SELECT 1 AS y UNION SELECT 2 AS z)": true, "(SELECT 1::int8)::text": true,
		"(SELECT * FROM (SELECT 1 AS q) s)": false, "(SELECT s.* FROM (SELECT 1 AS q) s)": false,
		"EXISTS (SELECT 1)": true, "ARRAY(SELECT 1)": false, "b COLLATE \"C\"": true,
		"(b || 'x') COLLATE \"C\"": true, "lower(b)": true, "pg_catalog.lower(b)": true, "count(*) OVER ()": true,
		"extract(year FROM at)": true, "at AT TIME ZONE 'UTC'": true, "position('x' IN b)": true, "substring(b FROM 1)": true,
		"trim(b)": true, "overlay(b PLACING 'x' FROM 1)": true, "CURRENT_DATE": false, "CURRENT_USER": false,
		"e -> 'a'": true, "e ->> 'a'": true, "(e ->> 'a')::int": true, "interval '1 day'": true,
		"date '2020-01-01'": true, "'{}'::int[]": true, "xmlconcat('<a/>')": false, "GROUPING(a)": false,
		"normalize(b)": true, "b IS NORMALIZED": true, "(at, at) OVERLAPS (at, at)": true, "b SIMILAR TO 'x'": true, "CAST(a AS numeric)": true,
	} {
		sql := "SELECT " + expression + " FROM t"
		if expression == "GROUPING(a)" {
			sql += " GROUP BY a"
		}
		description, err := conn.Prepare(t.Context(), "", sql)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		tree, refusal := sqltext.Parse(sql)
		if refusal != nil {
			t.Errorf("%s: %v", expression, refusal)
			continue
		}
		name := columnName(tree.Stmts[0].GetStmt().GetSelectStmt().GetTargetList()[0].GetResTarget())
		if want := string(description.Fields[0].Name); name != want && name != "" || (name != "") != isPlain {
			t.Errorf("%s: %q, and PostgreSQL calls it %q", expression, name, want)
		}
	}
}
