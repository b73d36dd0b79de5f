package attacks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const signedSchema = `
CREATE TABLE person (id int PRIMARY KEY, consent text NOT NULL);
INSERT INTO person SELECT g, CASE WHEN g > 0 THEN 'granted' ELSE 'no' END FROM generate_series(0, 3000) g;
CREATE EXTENSION citext;
CREATE EXTENSION pg_trgm;
CREATE EXTENSION ltree;
CREATE EXTENSION hstore;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE big (n numeric, id int PRIMARY KEY, a int NOT NULL, b int NOT NULL, f float8, f4 float4, i8 bigint, p numeric(5,2), body text NOT NULL DEFAULT 'n',
  found tsvector, doc jsonb, ts timestamp, tz timestamptz, d date, ta text[], m mood, mail citext, path ltree, attrs hstore, nums int[], i8s bigint[],
  span tstzrange, days daterange, low int4range, ns numrange, vs varchar[]);
INSERT INTO big SELECT g, g, g % 300, g % 211, g, g, g, 1, 'plain', 'a:1 b:2', '{"a":1}', '2020-01-01', '2020-01-01',
  '2020-01-01', '{a}', 'sad' FROM generate_series(1, 3000) g;
CREATE INDEX ON big (a);
CREATE INDEX ON big USING gin (found);
CREATE INDEX ON big USING gin (body gin_trgm_ops);
CREATE TABLE link (big_id int NOT NULL REFERENCES big ON DELETE CASCADE, person_id int NOT NULL REFERENCES person, PRIMARY KEY (big_id, person_id));
INSERT INTO link SELECT id, id % 3000 + 1 FROM big UNION ALL SELECT id, 0 FROM big;
DELETE FROM link WHERE person_id = 0 AND big_id <= 40;
DELETE FROM big WHERE a IN (123, 124);
CREATE TABLE wide (n int, i8 int, p int, f int, k int, one int, body text);
INSERT INTO wide VALUES (1, 1, 1, 1, 1, 1, 'x'), (2, 2, 2, 2, 2, 2, 'y');
CREATE VIEW odd AS SELECT b, i8, GREATEST(NULLIF(b, f), n) AS g, a FROM big;
CREATE VIEW merged AS SELECT n::bigint AS x, big.a FROM wide RIGHT JOIN big USING (n);
`

const signedPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  big: { rows: [ { consent: { every: [ link: { big_id: id }, person: { id: person_id } ], status: consent, is: granted } } ] }
  link: { rows: [ { visible: { big: { id: big_id } } } ] }
  person: { rows: [ { status: { column: consent, is: granted } } ] }
  wide: { rows: [ open ] }
views: { odd: {}, merged: {} }
`

type signedCase struct {
	sql   string
	types []uint32
	args  []string
}

func signedSQL(sql string) signedCase { return signedCase{sql: sql} }

func signedParams(sql string, types []uint32, args ...string) signedCase {
	return signedCase{sql, types, args}
}

// installedCopy returns a database with the policy installed, which the test may change. It is a copy of a template
// that all tests with the same schema, policy and mode share.
func installedCopy(t *testing.T, schema, policy string, mode instance.Mode) instance.Database {
	t.Helper()
	d := instance.Database{Name: "pair", Policy: policy, SearchPath: []string{"public"},
		DB: pgtest.Template(t, schema, func(ctx context.Context, conn *pgx.Conn) error {
			for _, sql := range []string{schema, "VACUUM ANALYZE"} {
				if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
					return err
				}
			}
			return nil
		})}
	instance.Install(t, d, mode)
	return d
}

// startProxy starts a proxy for a database from installedCopy, with the login "agent".
func startProxy(t *testing.T, mode instance.Mode, d instance.Database) *instance.Proxy {
	t.Helper()
	return instance.Serve(t, mode, []instance.Database{d},
		[]instance.Agent{{Name: "agent", Database: d.Name, Attributes: map[string]string{"user": "me"}}})
}

// askSignedPath sends the cases to twins. One twin has an odd row with a = 123, the other an ordinary row with a = 124.
// Both rows are hidden.
func askSignedPath(t *testing.T, row string, mode instance.Mode, cases []signedCase) {
	t.Helper()
	askSignedPathPlanned(t, row, mode, []string{""}, cases)
}

// signedPlans are settings of the database, which agents cannot choose, that make the planner choose other plans.
var signedPlans = []string{
	"", "parallel_setup_cost = 0; parallel_tuple_cost = 0; min_parallel_table_scan_size = 0; max_parallel_workers_per_gather = 2",
	"enable_hashjoin = off; enable_nestloop = off",
	"enable_hashjoin = off; enable_mergejoin = off; enable_sort = off", "enable_hashagg = off; enable_seqscan = off",
}

// askSignedPathPlanned sends the cases to twins under each of the plans, and firstPlanCases under the first plan only.
func askSignedPathPlanned(t *testing.T, row string, mode instance.Mode, plans []string, cases []signedCase, firstPlanCases ...signedCase) {
	t.Helper()
	askSignedPathUnder(t, signedPolicy, signedSchema, row, mode, plans, cases, firstPlanCases...)
}

// askSignedPathUnder sends the cases to twins under another policy, which may need another schema.
func askSignedPathUnder(t *testing.T, policy, schema, row string, mode instance.Mode, plans []string, cases []signedCase, firstPlanCases ...signedCase) {
	t.Helper()
	newTwin := func(hidden bool) instance.Database {
		d := installedCopy(t, schema, policy, mode)
		a := 124
		if hidden {
			a = 123
		}
		instance.Exec(t, d.DB, fmt.Sprintf(
			"INSERT INTO big SELECT 1, 5001, %d, 1, 1, 1, 1, 1, 'plain', 'a:1 b:2', '{\"a\":1}', '2020-01-01', "+
				"'2020-01-01', '2020-01-01', '{a}', 'sad'; INSERT INTO link VALUES (5001, 0), (5001, 1)", a))
		if hidden {
			instance.Exec(t, d.DB, "UPDATE big SET "+row+" WHERE id = 5001")
		}
		instance.Exec(t, d.DB, "VACUUM ANALYZE big, link")
		return d
	}
	var got [2][]string
	var askedCases []signedCase
	for i, d := range []instance.Database{newTwin(true), newTwin(false)} {
		proxy := startProxy(t, mode, d)
		for p, plan := range plans {
			for setting := range strings.SplitSeq(plan, "; ") {
				if setting != "" {
					instance.Exec(t, d.DB, "ALTER DATABASE "+d.DB.Name+" SET "+setting)
				}
			}
			batch := cases
			if p == 0 {
				batch = append(slices.Clone(cases), firstPlanCases...)
			}
			c := proxy.Agent(t, "agent", "pair")
			if a := instance.Ask(c, "SET plan_cache_mode = force_generic_plan"); a.Code != "" {
				t.Fatal(a)
			}
			for n, k := range batch {
				got[i] = append(got[i], askCase(t, c, fmt.Sprint("s", n), k))
			}
			if i == 0 {
				askedCases = append(askedCases, batch...)
			}
			instance.Exec(t, d.DB, "ALTER DATABASE "+d.DB.Name+" RESET ALL")
		}
	}
	for k := range askedCases {
		if got[0][k] != got[1][k] {
			t.Errorf("%s: %.200s %.80s\n   %.200s\n   %.200s", mode.Name, askedCases[k].sql, askedCases[k].args, got[0][k], got[1][k])
		}
	}
}

func askCase(t *testing.T, c *pgconn.PgConn, name string, k signedCase) string {
	t.Helper()
	if k.args == nil {
		return instance.Ask(c, k.sql).SortedString()
	}
	if _, err := c.Prepare(t.Context(), name, k.sql, k.types); err != nil {
		t.Fatal(k.sql, err)
	}
	var values [][]byte
	for _, a := range k.args {
		values = append(values, []byte(a))
	}
	r := c.ExecPrepared(t.Context(), name, values, nil, nil).Read()
	return fmt.Sprintf("%v %s", r.Err, r.Rows)
}

func manyWords(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "w%d ", i)
	}
	return b.String()
}

// An agent makes PostgreSQL convert values implicitly: by lists, NULLIF, USING, stars that mean an outer query, and
// casts of parameters. A conversion that fails for the hidden row must not run on the signed path.
func TestImplicitConversionsOnTheSignedPath(t *testing.T) {
	tier.All(t)
	askSignedPath(t, "n = '1e400'::numeric, i8 = 9223372036854775807, f = 1e300", instance.SignedViews, []signedCase{
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND b = ANY (ARRAY[n, f])"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND '1' = ANY (ARRAY[n, f])"),
		signedSQL("SELECT count(*) FROM big o WHERE a = 123 AND EXISTS (SELECT FROM wide WHERE wide.k IN (o.n, o.f))"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND b IN (n, f)"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND NULLIF(i8, f)::bigint = 5"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND NULLIF(i8, f4)::bigint = 5"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND COALESCE(NULLIF(b, f), n) = 5"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND GREATEST(NULLIF(b, f), n) = 5"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND CASE WHEN b < 0 THEN NULLIF(b, f) ELSE n END = 5"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND n = NULLIF(b, f)"),
		signedSQL("SELECT count(*) FROM wide RIGHT JOIN big USING (n) WHERE a = 123 AND n::bigint = 5"),
		signedSQL("SELECT count(*) FROM wide RIGHT JOIN big USING (n) WHERE a = 123 AND f = n"),
		signedSQL("SELECT count(*) FROM wide RIGHT JOIN big USING (f) WHERE a = 123 AND f::bigint = 5"),
		signedSQL("SELECT count(*) FROM wide RIGHT JOIN big USING (f) WHERE a = 123 AND big.n = f"),
		signedSQL("SELECT count(*) FROM wide FULL JOIN big USING (n) WHERE a = 123 AND n::bigint = 5"),
		signedSQL("SELECT count(*) FROM big o WHERE a = 123 AND EXISTS (SELECT FROM (SELECT o.*, w.k FROM wide w) AS q(c1) WHERE c1::bigint = 5)"),
		signedSQL("SELECT count(*) FROM (SELECT n, a, id FROM big) o WHERE a = 123 AND EXISTS (SELECT FROM (SELECT " +
			"o.*, w.k FROM wide w) AS q(c1) WHERE c1::bigint = 5)"),
		signedSQL("SELECT count(*) FROM (SELECT n, a, id FROM big) o WHERE a = 123 AND EXISTS (SELECT FROM (SELECT " +
			"o.*, w.k FROM wide w) AS q(c1) WHERE o.f = c1)"),
		signedSQL("SELECT count(*) FROM big AS o(k) WHERE a = 123 AND k::bigint = 5"),
		signedSQL("SELECT count(*) FROM big AS o(id, n) WHERE a = 123 AND id::bigint = 5"),
		signedSQL("SELECT count(*) FROM big AS o(id) WHERE a = 123 AND id::bigint = 5"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND b = $1::int4", []uint32{20}, "99999999999"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND b < $1::int2", []uint32{20}, "99999999999"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND f = $1::float4", []uint32{701}, "1e300"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND b = $1::int4", nil, "5"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND (b < 0 OR $1 @@ plainto_tsquery('simple','x'))", nil, strings.Repeat("a b c ", 10)),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND (b < 0 OR $1 @@ plainto_tsquery('simple','x'))", nil, manyWords(1500000)),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND (b < 0 OR $1 @@ 'x'::tsquery)", nil, manyWords(1500000)),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND (b < 0 OR '" + manyWords(1040000) + "' @@ 'x'::tsquery)"),
		signedSQL("SELECT count(*) FROM big o WHERE a = 123 AND EXISTS (SELECT FROM (SELECT o.*, w.k FROM wide w) AS q(c1) JOIN big z ON z.f = q.c1)"),
		signedSQL("SELECT count(*) FROM odd WHERE a = 123 AND g = 5"),
		signedSQL("SELECT count(*) FROM merged WHERE a = 123 AND x = 5"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND f = ANY (ARRAY[1e400, b])"), // an array of numeric
		signedSQL("SELECT count(*) FROM big o WHERE a = 123 AND EXISTS (SELECT FROM wide WHERE o.f = ANY (ARRAY[1e400, wide.k]))"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND f4 = ANY (ARRAY[$1, 1.5])", nil, "1e400"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND (i8 = $1 OR b = $1::int2)", nil, "99999999"), // $1 is a bigint
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND (i8 = $1 OR b = $1::int4)", nil, "999999999999"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND (f > $1 OR f4 = $1::float4)", nil, "2e300"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND (b IN ($1, 99999999999) OR b = $1::int4)", nil, "999999999999"),
		signedParams("SELECT count(*) FROM wide JOIN big USING (i8) WHERE a = 123 AND (i8 = $1 OR b = $1::int4)", nil, "999999999999"),
	})
	askSignedPath(t, "n = '1e400'::numeric, i8 = 9223372036854775807, f = 1e300, body = 'z'", instance.Auto, []signedCase{
		signedParams("SELECT count(*) FROM big WHERE body LIKE '%z%' AND (i8 = $1 OR b = $1::int2)", nil, "99999999"),
		signedSQL("SELECT count(*) FROM big WHERE NULLIF(i8, f)::bigint = -5"),
		signedSQL("SELECT count(*) FROM big WHERE n = NULLIF(b, f) AND body LIKE '%z%'"),
		signedSQL("SELECT count(*) FROM wide RIGHT JOIN big USING (n) WHERE n::bigint = -5"),
		signedSQL("SELECT count(*) FROM big o WHERE EXISTS (SELECT FROM (SELECT o.*, w.k FROM wide w) AS q(c1) WHERE c1::bigint = -5)"),
	})
}

// The same for expressions whose stack depth or memory grows with a row's value: they must not run for the hidden row.
func TestDeepExpressionsOnTheSignedPath(t *testing.T) {
	tier.All(t)
	like, dashes := strings.Repeat("%a", 100_000), strings.Repeat("-", 40)+"a"
	phrase := func(n int) string { return strings.TrimSuffix(strings.Repeat("a<->", n), "<->") }
	askSignedPath(t, "body = repeat('a', 200000), found = 'a:1,2,3 b:4'::tsvector, doc = (repeat('[', 9000) || '1' || "+
		"repeat(']', 9000))::jsonb", instance.SignedViews, []signedCase{
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body LIKE '" + like + "'"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND body ILIKE '" + like + "'"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND body LIKE $1", nil, like),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND body NOT LIKE '%' || $1 || '%'", nil, like),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND found @@ plainto_tsquery('simple', $1)", nil, strings.Repeat("Ⱥ", 999)),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND found @@ websearch_to_tsquery('simple', $1)", nil, dashes),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND found @@ websearch_to_tsquery('simple', $1)", nil, strings.Repeat("- ", 40)+"a"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND CASE WHEN found @@ websearch_to_tsquery('" + dashes + "') THEN 1 ELSE 0 END = 1"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND (b < 0 OR (found @@ websearch_to_tsquery('" + dashes + "')) IS NULL)"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND found @@ '" + phrase(14_500) + "'::tsquery"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND found @@ to_tsquery('simple', '" + phrase(16_000) + "')"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND doc @> '" + strings.Repeat("[", 9000) + "1" + strings.Repeat("]", 9000) + "'"),
		signedSQL("SELECT count(*) FROM big x, big y WHERE x.a = 123 AND y.a = 123 AND x.doc @> y.doc"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND doc -> 0 -> 0 @> doc"),
		signedSQL("SELECT count(*) FROM big WHERE a = 123 AND doc <@ doc"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND doc @> $1", nil, strings.Repeat("[", 9000)+"1"+strings.Repeat("]", 9000)),
	})
}

// Expressions in the result list of the outermost SELECT may fail. They must be computed for visible rows only,
// whatever else the statement has and however it is planned.
func TestOutputsOnTheSignedPath(t *testing.T) {
	tier.All(t)
	failing := []string{"i8 + 1", "n::bigint", "f::float4", "1 / (a - 123)", "body::int", "date_trunc('year', ts)",
		"to_date(body, 'YYYY-MM-DD')", "repeat(body, 500000000)", "doc -> 0 ->> 'a' || body::date", "CASE WHEN a = 123 THEN 1 / (b - 1) END"}
	var cases, firstPlanCases []signedCase
	for k, e := range failing {
		for _, shape := range []string{
			"SELECT {} FROM big WHERE a < 0 OR b = 1 AND a > 122 ORDER BY id LIMIT 3",
			"SELECT id, {} FROM big WHERE a BETWEEN 120 AND 126 AND b = 1",
			"SELECT id, {} FROM big WHERE found @@ 'b'::tsquery AND a = 123 ORDER BY id",
			"SELECT count({}), sum(b) FROM big WHERE a = 123",
			"SELECT a, count({}), array_agg({} ORDER BY id) FROM big WHERE a > 122 AND a < 125 GROUP BY a ORDER BY a",
			"SELECT a, count(*) FILTER (WHERE ({}) IS NULL) AS c FROM big WHERE a = 123 GROUP BY a HAVING count({}) >= 0 ORDER BY c + sum(b) / 2",
			"SELECT id, lag({}) OVER (PARTITION BY a ORDER BY id) AS l, rank() OVER w FROM big WHERE a = 123 WINDOW w AS (ORDER BY b) ORDER BY 3",
			"SELECT {}, l.person_id FROM big JOIN link l ON l.big_id = big.id JOIN person p ON p.id = l.person_id WHERE a = 123 ORDER BY p.id, big.id",
			"SELECT {} FROM wide LEFT JOIN big ON big.id = wide.k + 0 OR big.a = 123 ORDER BY wide.k",
			"SELECT {} FROM (SELECT * FROM big WHERE a = 123 ORDER BY id LIMIT 5) AS q",
			"WITH q AS (SELECT * FROM big WHERE a = 123) SELECT {} FROM q WHERE EXISTS (SELECT FROM wide WHERE wide.k < q.id)",
			"SELECT DISTINCT ON (a) a, {} FROM big WHERE a = 123 ORDER BY a, id",
			"SELECT jsonb_agg(jsonb_build_object('v', {}) ORDER BY id) FROM big WHERE a = 123 AND EXISTS (SELECT FROM link WHERE big_id = big.id)",
			"SELECT coalesce(({})::text, (SELECT count(*) FROM link WHERE big_id = big.id)::text) FROM big WHERE a = 123",
		} {
			if testCase := signedSQL(strings.ReplaceAll(shape, "{}", e)); k > 2 { // the plans are the same for any of these expressions
				firstPlanCases = append(firstPlanCases, testCase)
			} else {
				cases = append(cases, testCase)
			}
		}
	}
	oddRow := "n = '1e400'::numeric, i8 = 9223372036854775807, f = 1e300, ts = '4714-11-24 BC', body = 'zz'"
	askSignedPathPlanned(t, oddRow, instance.SignedViews, signedPlans, cases, firstPlanCases...)
	askSignedPathPlanned(t, oddRow, instance.Auto, signedPlans, cases, firstPlanCases...)
}

// The same for conditions, groups and sort keys that are evaluated over the rows that an index search has found.
func TestConditionsAboveASearchOnTheSignedPath(t *testing.T) {
	tier.All(t)
	failing := []string{"i8 + 1", "n::bigint", "f::float4", "1 / (a - 123)", "body::int", "date_trunc('year', ts)",
		"to_date(body, 'YYYY-MM-DD')", "repeat(body, 500000000)", "CASE WHEN a = 123 THEN 1 / (b - 1) END"}
	var cases, firstPlanCases []signedCase
	for k, e := range failing {
		for _, shape := range []string{
			"SELECT id FROM big WHERE found @@ 'b'::tsquery AND ({}) IS NOT NULL ORDER BY id",
			"SELECT count(*) FROM big WHERE ({})::text <> 'x' AND found @@ 'b'::tsquery AND a = 123",
			"SELECT id FROM big WHERE a > 122 AND body LIKE '%' AND a < 125 AND (({}) IS NULL OR id < 0)",
			"SELECT {}, count(*) FROM big WHERE found @@ 'b'::tsquery AND a = 123 GROUP BY 1 ORDER BY 1",
			"SELECT max({}), min({}), count(DISTINCT {}) FROM big WHERE found @@ 'b'::tsquery AND a = 123",
			"SELECT id FROM big WHERE found @@ 'b'::tsquery AND a = 123 ORDER BY {}, id LIMIT 3",
			"SELECT DISTINCT {} FROM big WHERE doc @> '[]' AND a = 123",
			"SELECT DISTINCT ON ({}) id FROM big WHERE found @@ 'b'::tsquery AND a = 123 ORDER BY {}, id",
			"SELECT a FROM big WHERE found @@ 'b'::tsquery AND a = 123 GROUP BY a HAVING min({}) IS NULL",
			"SELECT id, rank() OVER (PARTITION BY {} ORDER BY {}, id) FROM big WHERE found @@ 'b'::tsquery AND a = 123 ORDER BY id",
			"SELECT string_agg(id::text, ',' ORDER BY {}, id) FILTER (WHERE ({}) IS NOT NULL) FROM big WHERE ta && '{a}' AND a = 123",
		} {
			if testCase := signedSQL(strings.ReplaceAll(shape, "{}", e)); k > 2 { // the plans are the same for any of these expressions
				firstPlanCases = append(firstPlanCases, testCase)
			} else {
				cases = append(cases, testCase)
			}
		}
	}
	for _, value := range []string{"2020-01-01", "5000-01-01"} {
		cases = append(cases, signedParams("SELECT id FROM big WHERE found @@ 'b'::tsquery AND a = 123 AND date_trunc('year', ts) = $1", nil, value),
			signedParams("SELECT id FROM big WHERE found @@ 'b'::tsquery AND a = 123 AND i8 + 1 > $1", nil, "17"))
	}
	oddRow := "n = '1e400'::numeric, i8 = 9223372036854775807, f = 1e300, ts = '4714-11-24 BC', body = 'zz'"
	askSignedPathPlanned(t, oddRow, instance.SignedViews, signedPlans, cases, firstPlanCases...)
	askSignedPathPlanned(t, oddRow, instance.Auto, signedPlans, cases, firstPlanCases...)
}

// PostgreSQL names a column without an alias after its expression, which may be another column's name. And constant
// folding may turn an expression over groups into one over rows. In both cases nothing that fails may be computed for
// the hidden row.
func TestNameResolutionOnTheSignedPath(t *testing.T) {
	tier.All(t)
	oddRow := "n = '1e400'::numeric, i8 = 9223372036854775807, f = 1e300, body = 'zz'"
	cases := []signedCase{
		signedSQL("SELECT count(*) FROM big o WHERE body LIKE '%zz%' AND EXISTS (SELECT FROM (SELECT CASE WHEN ts = " +
			"'x' THEN ts ELSE ts END FROM (SELECT o.body AS ts FROM wide) x) q WHERE ts::date = '2020-01-01')"),
		signedSQL("SELECT count(*) FROM big o WHERE EXISTS (SELECT FROM (SELECT CASE WHEN w.k > 0 THEN o.n ELSE " +
			"w.i8 END FROM wide w) q WHERE i8::bigint = -5)"),
		signedSQL("SELECT count(*) FROM big o WHERE EXISTS (SELECT FROM (SELECT CASE WHEN w.k > 0 THEN o.n ELSE w.i8 END FROM wide w) q WHERE f = i8)"),
		signedSQL("SELECT count(*) FROM big o WHERE EXISTS (WITH q AS (SELECT CASE WHEN w.k > 0 THEN o.n ELSE w.i8 " +
			"END FROM wide w) SELECT FROM q WHERE i8::bigint = -5)"),
		signedSQL("SELECT id FROM big o WHERE 5 IN (SELECT i8::bigint FROM (SELECT CASE WHEN w.k > 0 THEN o.n ELSE w.i8 END FROM wide w) q)"),
		signedSQL("SELECT a, body, count(*) FROM big GROUP BY a, body HAVING CASE WHEN true THEN CASE WHEN a = 123 " +
			"THEN body::int ELSE 5 END ELSE count(*) END > 100000"),
		signedSQL("SELECT a, count(*) FROM big GROUP BY a HAVING CASE WHEN true THEN 1 / (a - 123) ELSE count(*) END > 100000"),
		signedSQL("SELECT a, count(*) FROM big GROUP BY a HAVING (count(*) > 0 AND 1 / (a - 123) > 100000) = true"),
		signedSQL("SELECT a, count(*) FROM big GROUP BY a HAVING (count(*) > 0 AND 1 / (a - 123) > 100000) <> false"),
		signedSQL("SELECT a, count(*) FROM big GROUP BY a HAVING ((count(*) > 0 OR true) AND 1 / (a - 123) > 100000) IS TRUE"),
		signedSQL("SELECT a, count(*) FROM big GROUP BY a HAVING greatest(1 / (a - 123), count(*) * NULL) > 100000"),
		signedSQL("SELECT big.id, body::int FROM big, link ORDER BY body LIMIT 1"),
		signedSQL("SELECT big.id, CASE WHEN a = 123 THEN 1 / (b - 1) ELSE b END FROM big ORDER BY b LIMIT 1"),
		signedSQL("SELECT DISTINCT ON (body) body::int, big.id FROM big LIMIT 1"),
		signedSQL("SELECT CASE WHEN true THEN 1 / (a - 123) ELSE row_number() OVER (ORDER BY id) END FROM big ORDER BY 1 LIMIT 1"),
		signedSQL("SELECT id FROM big ORDER BY CASE WHEN true THEN 1 / (a - 123) ELSE row_number() OVER (ORDER BY id) END LIMIT 1"),
		signedSQL("SELECT DISTINCT ON (1) CASE WHEN true THEN 1 / (a - 123) ELSE row_number() OVER (ORDER BY id) END FROM big LIMIT 1"),
	}
	askSignedPathPlanned(t, oddRow, instance.SignedViews, signedPlans, cases)
	askSignedPathPlanned(t, oddRow, instance.Auto, signedPlans, cases)
}

// signedConditions are on the list of leak-safe expressions. signedRows assign values at the ends of their types'
// ranges.
var (
	signedConditions = []string{
		"mail = 'a'", "mail < 'b'", "mail IN ('a', 'b')", "mail LIKE '%a_'", "mail ILIKE '%a%'", "mail = ANY ('{a,b}')",
		"path = 'a.b'", "path <@ 'a'", "path @> 'a.b'", "path > ''", "attrs ? 'a'", "attrs ?| ARRAY['a', 'b']",
		"attrs ?& '{a}'", "attrs @> 'a=>1'", "attrs <@ 'a=>NULL'", "attrs -> 'a' = 'x'",
		"nums && ARRAY[1, 2]", "nums @> '{2147483647}'::int[]", "nums <@ ARRAY[]::int[]", "nums = '{}'",
		"1 = ANY (nums)", "i8s && '{1}'", "9223372036854775807 = ANY (i8s)", "f = ANY (i8s)", "n = ANY (nums)",
		"span @> now()", "span && '[2026-01-01,)'", "span <@ tstzrange('2026-01-01', '2026-02-01')",
		"span << '(,2026-01-01)'", "span >> 'empty'", "span &< '[2026-01-01,2027-01-01]'", "span &> '(,)'", "span = 'empty'", "tz <@ span",
		"days @> d", "days @> '2026-01-01'::date", "days && daterange('2026-01-01', '2026-01-01', '[]')", "low @> b",
		"low && '[1,2147483647)'", "low <> '(,)'", "b <@ low", "ns @> n", "ns && '[1,2]'",
		"vs && '{a}'", "'a' = ANY (vs)", "doc ?| ARRAY['a', 'b']",
		"body % 'plain'", "similarity(body, 'x') > 0.2", "word_similarity('plain', body) > 0.1",
		"strict_word_similarity(body, 'a b') > 0.1", "body <-> 'x' < 0.5",
		"d >= CURRENT_DATE - 30", "ts > CURRENT_DATE - interval '30 days'",
		"tz >= date_trunc('month', now()) - interval '1 month'", "tz < date_trunc('day', now() - interval '7 days')",
		"extract(year FROM d) = 2026", "extract(epoch FROM d) > 5",
		"found @@ 'a'::tsquery", "'a'::tsquery @@ found",
	}
	signedRows = []string{
		"mail = repeat('A', 3000000), path = 'a.b'::ltree, attrs = 'a=>NULL', nums = '{NULL,1}', i8s = " +
			"'{NULL,9223372036854775807}', span = 'empty', days = '(,)', low = '[-2147483648,2147483647)', ns = " +
			"'[NaN,NaN]', vs = '{NULL,a}', body = repeat('w€x ', 900000)",
		"mail = '', path = '', attrs = '', nums = '{}', i8s = '{{1,2},{3,4}}', span = '[-infinity,infinity]', " +
			"days = '[-infinity,infinity)', low = 'empty', ns = '(-infinity,infinity)', vs = '{{a},{b}}', body = " +
			"'', d = 'infinity', ts = '-infinity', tz = '4714-11-24 BC', n = 'NaN', f = 'NaN', found = ''",
		"mail = NULL, path = array_to_string(array_fill('abcdefgh'::text, '{6000}'), '.')::ltree, attrs = (SELECT " +
			"hstore(array_agg(g::text), array_agg(g::text)) FROM generate_series(1, 20000) g)",
		"span = '(,)', days = '[4713-01-01 BC,5874897-12-31)', low = '(,)', ns = '(,)', d = '5874897-12-31', tz = " +
			"'294276-12-31', ts = '294276-12-31', nums = array_fill(1, '{100000}')",
	}
)

// No expression on the list of leak-safe ones may fail for any value of its types, at the ends of their ranges either.
func TestLeakSafeExpressionsNeverFail(t *testing.T) {
	tier.All(t)
	var cases []signedCase
	for _, condition := range signedConditions {
		cases = append(cases, signedSQL("SELECT count(*) FROM big WHERE a = 123 AND "+condition),
			signedSQL("SELECT count(*) FROM big WHERE a = 123 AND (b < 0 OR "+condition+")"))
	}
	cases = append(cases,
		signedSQL("SELECT id FROM big WHERE a = 123 ORDER BY body <-> 'x', similarity(body, 'y'), span, low, path, "+
			"mail, nums LIMIT 3"), signedSQL("SELECT mail, path, span, nums, count(*) FROM big WHERE a = 123 GROUP BY 1, 2, 3, 4"))
	for _, row := range signedRows {
		askSignedPath(t, row, instance.SignedViews, cases)
	}
}

// The planner estimates some operators by running them on the statistics, which include hidden values. No such operator
// may run above the rows that a search has found. Row security, which is active for the reader of the signed views,
// prevents it.
func TestNoOperatorRunsOnStatistics(t *testing.T) {
	tier.All(t)
	db := pgtest.Database(t)
	instance.Exec(t, db, signedSchema+`UPDATE big SET body = CASE WHEN id > 40 THEN 'hidden' ELSE 'shown' END; ANALYZE big;
CREATE FUNCTION tell(text, text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE '%', $1; RETURN false; END $$;
CREATE OPERATOR ### (LEFTARG = text, RIGHTARG = text, FUNCTION = tell, RESTRICT = matchingsel)`)
	instance.Migrate(t, instance.Database{Name: "pair", DB: db, Policy: signedPolicy, SearchPath: []string{"public"}}, instance.Auto)
	c := instance.ConnectSuperuser(t, db)
	if plain := instance.Ask(c, "EXPLAIN SELECT FROM big WHERE body ### 'x'"); plain.Err != "" || len(plain.Notices) == 0 {
		t.Fatalf("the operator is not asked without the signed path: %s", plain.Err)
	}
	if set := instance.Ask(c, "SET ROLE pgconsent_agent"); set.Err != "" {
		t.Fatal(set.Err)
	}
	for _, sql := range []string{
		"EXPLAIN SELECT FROM (SELECT * FROM pgconsent_signed.visible_public_big AS big WHERE found @@ 'b'::tsquery OFFSET 0) AS big WHERE body ### 'x'",
		"EXPLAIN SELECT body FROM (SELECT * FROM pgconsent_signed.visible_public_big AS big WHERE found @@ " +
			"'b'::tsquery OFFSET 0) AS big GROUP BY body HAVING body ### 'x' OR count(*) > 3",
	} {
		if got := instance.Ask(c, sql); got.Err != "" || len(got.Notices) > 0 {
			t.Errorf("%s: %s %v", sql, got.Err, got.Notices)
		}
	}
}
