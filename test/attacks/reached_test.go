package attacks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// reachedSchema has the hidden row that the twins differ in: the first twin has one with a = 123 (and none with 122),
// the second has it with a = 9999. The only indexes are those of keys. So all plans are scans, which evaluate their
// conditions in order.
const reachedSchema = `
CREATE TYPE comp AS (x int, y int);
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE holder (name text PRIMARY KEY, owner text NOT NULL);
INSERT INTO holder VALUES ('me', 'me'), ('other', 'other');
CREATE TABLE big (id bigint PRIMARY KEY, owner text NOT NULL, a int NOT NULL, b int NOT NULL, c int, note text NOT NULL DEFAULT 'n',
	m numeric DEFAULT '1e400', f float8 DEFAULT 1, f4 float4 DEFAULT 1, k json DEFAULT '{}', j jsonb DEFAULT '{"a": [1,2]}', l int[] DEFAULT '{100000,1}',
	tl text[] DEFAULT '{x,y}', ts timestamp DEFAULT '200000-01-01', tz timestamptz DEFAULT '2020-01-01',
	day date DEFAULT '5000000-01-01', t text DEFAULT 'secret', po point DEFAULT '(0,0)', co comp DEFAULT '(1,2)',
	mo mood DEFAULT 'ok', bx box DEFAULT '((0,0),(1,1))', i8 bigint DEFAULT 5000000000, ml mood[] DEFAULT '{ok}', pg polygon DEFAULT '((0,0),(1,1),(1,0))',
	bi bit(8) DEFAULT B'10101010', x xml, uu uuid DEFAULT gen_random_uuid());
INSERT INTO big (id, owner, a, b, c) SELECT g, 'other', g, g % 211, g % 223 FROM generate_series(1, 500) g;
INSERT INTO big (id, owner, a, b, c, m, l, t, day, ts) SELECT g, 'me', g, g % 211, g % 223, 1, '{1}', '1',
  '2020-01-01', '2020-01-01' FROM generate_series(1001, 1005) g;
CREATE TABLE small (owner text NOT NULL, n int NOT NULL, v numeric DEFAULT '1e400', d date DEFAULT '5000000-01-01', s text DEFAULT 'x',
  j jsonb DEFAULT '{"a": "x", "b": 0}', l int[], g float8, k json DEFAULT '{}', note text);
INSERT INTO small (owner, n, l) VALUES ('me', 0, '{1}'), ('me', 3, '{1,2}'), ('other', 5, '{}');
CREATE TABLE open (n int, d date, ts timestamp, tz timestamptz);
CREATE TABLE round (id bigint PRIMARY KEY, owner text NOT NULL, a int NOT NULL, ci circle DEFAULT '<(0,0),1>', ls lseg DEFAULT '[(0,0),(1,1)]');
INSERT INTO round (id, owner, a) SELECT id, owner, a FROM big;
INSERT INTO open VALUES (0, '2020-01-01', '2020-01-01', '2020-01-01'), (3, '2020-01-01', '2020-01-01', '2020-01-01');
`

const costlyRulePolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  big: { rows: [ { visible: { holder: { name: owner } } } ], write: { commands: [update, delete] } }
  holder: { rows: [ { own: { column: owner, is: user } } ] }
  round: { rows: [ { visible: { holder: { name: owner } } } ] }
  small: { rows: [ { own: { column: owner, is: user } } ], write: { commands: [update] } }
  open: { rows: open }
`

func cheapRulePolicy() string {
	return strings.ReplaceAll(costlyRulePolicy, "rows: [ { visible: { holder: { name: owner } } } ]", "rows: [ { own: { column: owner, is: user } } ]")
}

// indexHintPolicy is a policy, a part of whose rule has another form under the hint that few rows are searched for.
func indexHintPolicy() string {
	return strings.ReplaceAll(costlyRulePolicy, "rows: [ { visible:", "rows: [ { own: { column: owner, is: user } }, { visible:")
}

// observedTablesPolicy is a policy whose rule reads a table that is only observed. The compared values are in an
// observed table, too.
func observedTablesPolicy() string {
	return strings.NewReplacer("holder: { rows", "holder: { observe: true, rows", "small: { rows",
		"small: { observe: true, rows", "open: { rows: open }", "open: { observe: true, rows: [ open ] }").Replace(costlyRulePolicy)
}

const (
	hidden      = "SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND " // true for the hidden row of the first twin
	hiddenRound = "SELECT count(*) FROM round WHERE a BETWEEN 123 AND 123 AND "
)

// foldedDivisions returns queries that divide by the least visible number, which is 0, plus one of the values.
func foldedDivisions(values ...string) []string {
	var out []string
	for _, value := range values {
		out = append(out, hidden+"b = 1 / ((SELECT min(n) FROM small) + "+value+")")
	}
	return out
}

// reachCases are statements that once told the twins apart, grouped by what they need in the schema.
var reachCases = []struct {
	name, sql, afterSQL, policy, twinSQL string
	withCheapRule                        bool // to be tried with a cheap rule as well
	minVersion                           int  // the oldest server version that has the feature
	statements                           []string
}{
	{name: "arrays are cast element by element, which PostgreSQL takes for leak-proof", statements: []string{
		hidden + "(ARRAY[t]::text[])::int[] IS NULL", // its message would quote the hidden text
		hidden + "(ARRAY[t]::text[])::mood[] IS NULL",
		hidden + "(ARRAY[t]::text[])::jsonb[] IS NULL",
		hidden + "(ARRAY[t]::text[])::uuid[] IS NULL",
		hidden + "(ARRAY[t]::text[])::date[] IS NULL",
		hidden + "5 = ANY ((ARRAY[i8]::bigint[])::int[])",
		hidden + "(ARRAY[b]::int[])::numeric(1,0)[] IS NULL",
		"SELECT count(*) FROM open o LEFT JOIN big ON a BETWEEN 123 AND 123 AND 5 = ANY ((ARRAY[i8]::bigint[])::int[])",
		"COPY (SELECT t FROM big WHERE a BETWEEN 123 AND 123 AND ((ARRAY[t]::text[])::int[]) IS NULL) TO STDOUT",
	}},
	{name: "as of 17, which knows how long arrays are", minVersion: 17, statements: []string{hidden + "l::int2[] IS NULL"}},
	{name: "arrays are cast by PostgreSQL itself", sql: "ALTER TABLE big ADD o oid DEFAULT 5", statements: []string{
		hidden + "f = ANY (ARRAY[m])", hidden + "f4 = ANY (ARRAY[m])", hidden + "f < ALL (ARRAY[m, 5])", hidden +
			"o = ANY (ARRAY[i8])", hidden + "(CASE WHEN b >= 0 THEN ARRAY[m] ELSE ARRAY[f] END) IS NULL",
		hidden + "f = ANY (ARRAY[1e400, b])", hidden + "f < ALL (ARRAY[b, 1e400])", hidden +
			"'1'::float8 = ANY (ARRAY[1e400, b])", hidden + "(b < 0 OR (SELECT max(n) FROM open)::float8 < ANY (ARRAY[1e400, i8]))",
		"SET plan_cache_mode = force_generic_plan; PREPARE a AS " + hidden +
			"f = ANY (ARRAY[$1, 1.5])", "EXECUTE a ('1e400')", "DEALLOCATE a", "PREPARE a (float8) AS " + hidden +
			"$1 = ANY (ARRAY[1e400, b])", "EXECUTE a (1)", "DEALLOCATE a", "RESET plan_cache_mode",
		"SET plan_cache_mode = force_generic_plan; PREPARE a (bigint[]) AS " + hidden +
			"o = ANY ($1)", "EXECUTE a ('{5000000000}')", "DEALLOCATE a", "RESET plan_cache_mode",
		hidden + "CASE m WHEN f THEN true END", hidden + "CASE i8 WHEN o THEN true END",
		hidden + "CASE WHEN b > 0 THEN '{5000000-01-01}'::date[] ELSE ARRAY[now()] END IS NULL",
		hidden + "(b < -4 OR CASE WHEN b < 0 THEN ARRAY[tz] ELSE ARRAY['5000000-01-01'::date] END IS NULL)",
	}},
	{name: "as of 17", minVersion: 17,
		sql: "ALTER TABLE big ADD nl numeric[] DEFAULT '{1e400}', ADD o oid DEFAULT 5, ADD il bigint[] DEFAULT " +
			"'{5000000000}'", statements: []string{hidden + "f = ANY (nl)", hidden + "o = ANY (il)"}},
	{name: "CASE x WHEN y compares a placeholder, which PostgreSQL takes for no column", withCheapRule: true, statements: []string{
		hidden + "CASE ROW(k) WHEN ROW('{}'::json) THEN true ELSE false END",
		hidden + "CASE ROW(k, b) WHEN ROW('{}'::json, 1) THEN 1 ELSE 0 END = 1",
		hidden + "CASE ROW(b) WHEN ROW('x'::text) THEN true END",
	}},
	{name: "converted first: the message has the hidden number", statements: []string{hidden + "CASE m WHEN 1.5::float8 THEN true END"}},
	{name: "conditions go into a query in FROM that stays one",
		sql: `CREATE VIEW pv AS SELECT DISTINCT a, b, f, (SELECT min(n) FROM small) AS kk, (SELECT max(v) FROM small) AS vv FROM big;
			CREATE VIEW pu AS SELECT a, b, (SELECT min(n) FROM small) AS kk FROM big UNION SELECT n, n, n FROM small`,
		policy: "views: { pv: {}, pu: {} }\n", statements: []string{
			"SELECT count(*) FROM (SELECT DISTINCT a, b, (SELECT min(n) FROM small) AS k FROM big) q WHERE a BETWEEN 123 AND 123 AND b = 1 / k",
			"SELECT count(*) FROM (SELECT a, b, (SELECT min(n) FROM small) AS k, count(*) AS c FROM big GROUP BY " +
				"a, b) q WHERE a BETWEEN 123 AND 123 AND b = 1 / k",
			"SELECT count(*) FROM (SELECT a, b, (SELECT min(n) FROM small) AS k FROM big UNION SELECT n, n, n " +
				"FROM small) q WHERE a BETWEEN 123 AND 123 AND b = 1 / k",
			"SELECT count(*) FROM (SELECT a, b, (SELECT min(n) FROM small) AS k FROM big ORDER BY a) q WHERE a BETWEEN 123 AND 123 AND b = 1 / k",
			"SELECT count(*) FROM (SELECT a, b, (SELECT min(n) FROM small) AS k, row_number() OVER (PARTITION BY " +
				"a, b, (SELECT min(n) FROM small)) FROM big) q WHERE a BETWEEN 123 AND 123 AND b = 1 / k",
			"WITH q AS (SELECT a, b, (SELECT min(n) FROM small) AS k FROM big ORDER BY a) SELECT count(*) FROM q WHERE a BETWEEN 123 AND 123 AND b = 1 / k",
			"SELECT count(*) FROM open o, LATERAL (SELECT DISTINCT a, b, o.n AS kk FROM big) q WHERE a BETWEEN 123 AND 123 AND b = 1 / kk",
			"SELECT (SELECT count(*) FROM (SELECT DISTINCT a, b, o.n AS kk FROM big) q WHERE a BETWEEN 123 AND 123 AND b = 1 / kk) FROM open o",
			"SET plan_cache_mode = force_generic_plan; PREPARE p (int) AS SELECT count(*) FROM (SELECT a, b, $1 " +
				"AS kk FROM big ORDER BY a) q WHERE a BETWEEN 123 AND 123 AND b = 1 / kk", "EXECUTE p (0)", "DEALLOCATE p", "RESET plan_cache_mode",
			"SELECT count(*) FROM pv WHERE a BETWEEN 123 AND 123 AND b = 1 / kk",
			"SELECT count(*) FROM pv WHERE a BETWEEN 123 AND 123 AND b = ('x' || kk)::int", "SELECT count(*) FROM pv WHERE a BETWEEN 123 AND 123 AND f = vv",
			"SELECT count(*) FROM pu WHERE a BETWEEN 123 AND 123 AND b = 1 / kk",
		}},
	{name: "a column is gone with the NULL beside it", statements: foldedDivisions(
		"(1 BETWEEN 2 AND b)::int", "(1 NOT IN (1, b))::int", "((b + NULL) IS NOT DISTINCT FROM 5)::int",
		"((b + NULL) = ANY ('{}'))::int", "num_nonnulls(b + NULL)", "num_nonnulls(substr(t, NULL))", "num_nonnulls(t || NULL)", "length(concat(b + NULL))",
		"length(concat_ws(',', b + NULL))", "length(quote_nullable(b + NULL)) - 4",
		"length(json_build_array(b + NULL)::text) - 6", "jsonb_array_length(jsonb_build_array(b + NULL)) - 1",
		"cardinality(array_remove('{}'::int[], b + NULL))",
		"cardinality(string_to_array('', t || NULL))", "length(array_to_string('{}'::text[], ',', t || NULL))",
		"length(upper(concat(t || NULL)))", "cardinality(ARRAY[b + NULL]) - 1",
		"(b <@ 'empty'::int4range)::int", "('empty'::int4range @> b)::int", "(day <@ 'empty'::daterange)::int")},
	{name: "the same by other ways", statements: []string{
		hidden + "b = 1 / (CASE b WHEN NULL THEN 1 ELSE (SELECT min(n) FROM small) END)", hidden +
			"b = 1 / (CASE b WHEN NULL THEN 1 WHEN 5 THEN 1 ELSE (SELECT min(n) FROM small) END)",
		hidden + "uu = (concat(t || NULL) || (SELECT max(s) FROM small))::uuid", hidden +
			"f = (SELECT max(v) FROM small) + num_nonnulls(b + NULL)", hidden +
			"f = concat(m * NULL, (SELECT max(v) FROM small))::numeric", hidden + "jsonb_build_object(b + NULL, 1) IS NULL",
		"SELECT count(*) FROM open o LEFT JOIN big ON a BETWEEN 123 AND 123 AND b = 1 / ((SELECT min(n) FROM small) + num_nonnulls(o.n + NULL))",
		"PREPARE p (int) AS " + hidden + "b = 1 / ((SELECT min(n) FROM small) + num_nonnulls(b + $1))", "EXECUTE p (NULL)", "DEALLOCATE p",
	}},
	{name: "what is made may be too large", withCheapRule: true, sql: "UPDATE big SET t = repeat('x', 1000000) WHERE a = 123", statements: []string{
		hidden + "ARRAY[t" + strings.Repeat(", t", 1099) + "] IS NULL", hidden + "ROW(ROW(t" + strings.Repeat(", t", 1099) + ")) IS NULL",
	}},
	{name: "halves of a UNION, and columns that USING merges, become one type",
		sql: "ALTER TABLE big ADD nl numeric[] DEFAULT '{1e400}'; ALTER TABLE open ADD nl float8[]", statements: []string{
			"SELECT count(*) FROM (SELECT a, nl AS x FROM big UNION ALL SELECT 1, '{1.5}'::float8[]) q WHERE a BETWEEN 123 AND 123 AND x IS NULL",
			"SELECT count(*) FROM (SELECT a, nl AS x FROM big UNION ALL SELECT n, nl FROM open) q WHERE a BETWEEN 123 AND 123 AND x IS NULL",
			"SELECT count(*) FROM (SELECT a, nl AS x FROM big UNION SELECT n, nl FROM open) q WHERE a BETWEEN 123 AND 123 AND x IS NULL",
			"WITH q AS (SELECT a, nl AS x FROM big UNION ALL SELECT n, nl FROM open) SELECT count(*) FROM q WHERE a BETWEEN 123 AND 123 AND x IS NULL",
			"SELECT count(*) FROM big JOIN open USING (nl) WHERE a BETWEEN 123 AND 123 AND nl IS NULL",
			"SELECT count(*) FROM big LEFT JOIN open USING (nl) WHERE a BETWEEN 123 AND 123 AND nl IS NULL",
			"SELECT count(*) FROM (SELECT a, CASE WHEN b > 0 THEN nl ELSE '{1.5}'::float8[] END AS x FROM big) q WHERE a BETWEEN 123 AND 123 AND x IS NULL",
		}},
	{name: "slices of what has a fixed length", withCheapRule: true, statements: []string{
		hidden + "(t::name)[id:id] IS NULL", hidden + "(po)[id:id] IS NULL",
	}},
	{name: "operators that are leak-proof and raise errors", withCheapRule: true, statements: []string{
		hiddenRound + "ci = '<(0,0),1e200>'", hiddenRound + "ci < '<(0,0),1e200>'", hiddenRound +
			"ci IN ('<(0,0),1e200>', '<(0,0),1>')", hiddenRound + "ci IS DISTINCT FROM '<(0,0),1e200>'", hiddenRound + "ls < '[(-1e308,0),(1e308,0)]'",
	}},
	{name: "the column is gone once constants are folded", statements: []string{
		hidden + "b = 1 / (CASE WHEN true THEN (SELECT min(n) FROM small) ELSE a END)",
		hidden + "b IN (5, 1 / (CASE WHEN true THEN (SELECT min(n) FROM small) ELSE a END))",
		hidden + "b = 1 / ((SELECT min(n) FROM small) + (a = 1 AND false)::int)",
		hidden + "b = 1 / ((SELECT min(n) FROM small) + (NOT (b = 1 OR true))::int)",
		hidden + "b = 1 / ((SELECT min(n) FROM small) + coalesce(0, a))",
		hidden + "b = 1 / ((SELECT min(n) FROM small) + (ROW(a, 1) IS NULL)::int)",
		hidden + "f = CASE WHEN true THEN (SELECT max(v) FROM small) ELSE m END",
		hidden + "b = ((CASE WHEN true THEN (SELECT max(s) FROM small) ELSE t END) || '')::int",
		hidden + "uu = (CASE WHEN true THEN (SELECT min(s) FROM small) ELSE t END)::uuid",
		"SET plan_cache_mode = force_generic_plan; PREPARE p AS " + hidden +
			"b = 1 / (CASE WHEN true THEN $1 ELSE a END)", "EXECUTE p (0)", "DEALLOCATE p", "RESET plan_cache_mode",
		"SELECT setseed(0.1)", hidden + "setseed(CASE WHEN true THEN 0.9 ELSE f END) IS NULL", "SELECT random()",
	}},
	{name: "as of 17", minVersion: 17, statements: []string{
		"SELECT setseed(0.1)", hidden + "b > random(0, CASE WHEN true THEN 9 ELSE b END)", "SELECT random()"}},
	{name: "ARRAY (SELECT an array)", statements: []string{hidden + "b = ANY (ARRAY(SELECT w.l FROM small w))"}},
	{name: "an aggregate of a query outside makes no one row", statements: []string{
		"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND b = (SELECT max(o.n) FROM small w)) FROM open o",
		"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND b = (SELECT count(o.n) FROM small w)) FROM open o",
	}},
	{name: "rows are locked, or found locked, on the way", statements: []string{
		"OTHER BEGIN", "OTHER SELECT n FROM small FOR UPDATE", hidden + "b = (SELECT n FROM small ORDER BY n LIMIT 1 FOR UPDATE NOWAIT)", "OTHER ROLLBACK",
		"BEGIN", hidden + "b = (SELECT n FROM small ORDER BY n LIMIT 1 FOR UPDATE)", "OTHER SELECT n FROM small FOR UPDATE SKIP LOCKED", "ROLLBACK",
	}},
	{name: "dates in lists become times with zones as the statement runs", statements: []string{
		hidden + "CASE WHEN tz IN ('5000000-01-01'::date, '2020-01-01'::date) THEN true END AND k IS NOT NULL AND b % 1 = 0", // by row security
		hidden + "b = (SELECT count(*) FROM small w WHERE now() IN ('5000000-01-01'::date, '2020-01-01'::date))",
		"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR o.d IN (now(), o.d))) FROM small o",
		"PREPARE p (timestamptz) AS SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR " +
			"o.d IN ($1, o.d))) FROM small o", "EXECUTE p (now())", "DEALLOCATE p",
	}},
	{name: "a column that USING merges is converted where it is named", sql: "ALTER TABLE open DROP COLUMN d, ADD d timestamptz", statements: []string{
		"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (d IS NULL OR b = 5)), s.k::text FROM small s LEFT JOIN open USING (d)",
		"SELECT s.k::text FROM small s LEFT JOIN open USING (d) WHERE EXISTS (SELECT FROM big WHERE a BETWEEN 123 " +
			"AND 123 AND (d IS NULL OR b = 5) OFFSET 0)",
		"SELECT count(*) FROM small s LEFT JOIN open USING (d), LATERAL (SELECT FROM big WHERE a BETWEEN 123 AND 123 AND (d IS NULL OR b = 5) OFFSET 0) q",
	}},
	{name: "parts of a LATERAL that reads nothing are not looked at", statements: []string{
		"SELECT count(*) FROM small x, LATERAL (SELECT DISTINCT ON ((SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND b = 1 / x.n)) 1 AS v) y",
		"SELECT y.v FROM small x, LATERAL (SELECT max(x.n) OVER w AS v WINDOW w AS (ORDER BY (SELECT count(*) " +
			"FROM big WHERE a BETWEEN 123 AND 123 AND b = 1 / x.n))) y",
		"SELECT y.v FROM small x, LATERAL (SELECT first_value(x.n) OVER w AS v WINDOW w AS (PARTITION BY (SELECT " +
			"count(*) FROM big WHERE a BETWEEN 123 AND 123 AND b = 1 / x.n))) y",
	}},
	{name: "virtual columns in sub-selects", minVersion: 18,
		sql: "ALTER TABLE small ADD vc int GENERATED ALWAYS AS (1 / n) VIRTUAL; UPDATE small SET note = 'x', g = 1", statements: []string{
			hidden + "b = (SELECT w.vc FROM small w LIMIT 1)", hidden + "b = (SELECT count(w.vc) FROM small w)", hidden +
				"b = (SELECT count(w) FROM small w)", hidden + "(b = 5 OR (SELECT w FROM small w LIMIT 1) IS NULL)",
			"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (o IS NOT NULL OR b = 5)) FROM small o",
		}},
	{name: "virtual columns whose expressions PostgreSQL takes for leak-proof: the message has the hidden text", minVersion: 18,
		sql: `UPDATE big SET tl = '{1}', t = '1' WHERE owner = 'me'; UPDATE big SET tl = '{SECRETWORD}' WHERE owner <> 'me'; ALTER TABLE open ADD v1 int;
			ALTER TABLE big ADD vt int[] GENERATED ALWAYS AS (tl::int[]) VIRTUAL, ADD v1 int GENERATED ALWAYS AS ((tl::int[])[1]) VIRTUAL,
			ADD vb boolean GENERATED ALWAYS AS ((tl::int[])[1] > 3) VIRTUAL,
				ADD vc boolean GENERATED ALWAYS AS (CASE m WHEN f THEN true END) VIRTUAL, ADD vi boolean GENERATED ALWAYS AS (f = ANY (ARRAY[m])) VIRTUAL;
			CREATE VIEW vv AS SELECT a, b, vt, vb FROM big`,
		policy: "views: { vv: {} }\n", statements: []string{
			hidden + "vt IS NULL", hidden + "v1 IS NOT NULL", hidden + "vb", hidden + "NOT vb", hidden +
				"vb IS TRUE", hidden + "v1 > b", hidden + "(b < -5 OR vt IS NULL)", hidden + "vc", hidden +
				"vi", hidden + "v1 IN (1, 2, b)", hidden + "v1 = (SELECT max(n) FROM small)",
			hidden + "big IS NULL", hidden + "(big).vb", hidden + "vb(big)", hidden + "ROW(big.*) IS NULL", hidden +
				"coalesce(v1, b) = 1", hidden + "CASE WHEN vb THEN true END", hidden +
				"EXISTS (SELECT FROM small WHERE vb OFFSET 0)", hidden + "v1 IN (SELECT n FROM small)",
			"SELECT count(*) FROM open o LEFT JOIN big ON a BETWEEN 123 AND 123 AND vt IS NULL",
			"SELECT count(*) FROM open o JOIN big ON a BETWEEN 123 AND 123 AND big.v1 = o.n",
			"SELECT count(*) FROM open o JOIN big USING (v1) WHERE a BETWEEN 123 AND 123",
			"SELECT count(*) FROM open o NATURAL JOIN (SELECT a, v1 FROM big) y WHERE a BETWEEN 123 AND 123",
			"SELECT count(*) FROM big x JOIN big y ON x.v1 = y.v1 AND x.vb IS NULL WHERE x.a BETWEEN 123 AND 123 AND y.a BETWEEN 123 AND 123",
			"SELECT count(*) FROM (SELECT a, vt FROM big) q WHERE a BETWEEN 123 AND 123 AND vt IS NULL",
			"SELECT count(*) FROM (SELECT a, vt IS NULL AS z FROM big) q WHERE a BETWEEN 123 AND 123 AND z",
			"SELECT count(*) FROM (SELECT DISTINCT a, v1 FROM big) q WHERE a BETWEEN 123 AND 123 AND v1 = 5",
			"SELECT count(*) FROM (SELECT a, vb FROM big GROUP BY a, vb) q WHERE a BETWEEN 123 AND 123 AND vb",
			"SELECT count(*) FROM (SELECT a, vb FROM big UNION ALL SELECT a, vb FROM big) q WHERE a BETWEEN 123 " +
				"AND 123 AND vb", "SELECT count(*) FROM big x, LATERAL (SELECT x.vb AS z) q WHERE a BETWEEN 123 AND 123 AND z",
			"SELECT count(*) FROM big x, LATERAL (VALUES (x.vb)) q (z) WHERE a BETWEEN 123 AND 123 AND z",
			"SELECT count(*) FROM (SELECT big AS r, a FROM big) q WHERE a BETWEEN 123 AND 123 AND (r).vb",
			"SELECT vt FROM big GROUP BY a, vt HAVING a BETWEEN 123 AND 123 AND vt IS NULL",
			"SELECT max(v1), count(vt) FROM big WHERE a BETWEEN 123 AND 123",
			"SELECT v1, count(*) FROM big WHERE a > 5 GROUP BY v1 ORDER BY v1", "SELECT a, v1, vt, vb, vc, vi FROM big ORDER BY v1, a LIMIT 2",
			"SELECT o.n, y.v1 FROM open o LEFT JOIN big y ON y.a BETWEEN 123 AND 123", "SELECT u FROM big, unnest(vt) u WHERE a BETWEEN 123 AND 123",
			"WITH q AS (SELECT * FROM big) SELECT count(*) FROM q WHERE a BETWEEN 123 AND 123 AND vb",
			"SELECT count(*) FROM vv WHERE a BETWEEN 123 AND 123 AND vt IS NULL",
			"SELECT count(*) FROM (SELECT * FROM vv) q WHERE a BETWEEN 123 AND 123 AND vb",
			"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND vb) FROM open",
			"SELECT (SELECT count(*) FROM open o WHERE big.vb OR o.n = 0) FROM big WHERE a BETWEEN 123 AND 123",
			"COPY (SELECT b FROM big WHERE a BETWEEN 123 AND 123 AND vb) TO STDOUT",
			"UPDATE big SET note = 'x' WHERE a BETWEEN 123 AND 123 AND vb", "DELETE FROM big WHERE a BETWEEN 123 AND 123 AND vt IS NULL",
		}},
	{name: "what is stored, under a cheap rule, hardened or not", withCheapRule: true,
		sql: "CREATE MATERIALIZED VIEW mv AS SELECT * FROM big", afterSQL: "REFRESH MATERIALIZED VIEW mv",
		policy: "  mv: { rows: [ { own: { column: owner, is: user } } ] }\n", statements: []string{
			"SELECT count(*) FROM mv WHERE a BETWEEN 123 AND 123 AND b > 1 / (SELECT min(n) FROM small)",
			"SELECT count(*) FROM mv WHERE a BETWEEN 123 AND 123 AND b >= (SELECT n FROM small)",
			"SELECT count(*) FROM mv WHERE a BETWEEN 123 AND 123 AND b IN (5, 1 / (SELECT min(n) FROM small))",
			"SELECT count(*) FROM mv WHERE a BETWEEN 123 AND 123 AND (ARRAY[t]::text[])::int[] IS NULL",
		}},
	{name: "the signed path: what lists, arrays and USING convert",
		sql: "ALTER TABLE open ADD day timestamptz DEFAULT '2020-01-01'; INSERT INTO big (id, owner, a, b) SELECT " +
			"g, 'other', g, g FROM generate_series(2000, 30000) g", statements: []string{
			hidden + "tz = ANY (ARRAY[day, ts])", hidden + "tz = ANY (ARRAY[day, now()])",
			hidden + "CASE WHEN tz IN ('5000000-01-01'::date, '2020-01-01'::date) THEN true END",
			hidden + "CASE WHEN day IN ('2020-01-01'::timestamptz, '5000000-01-01'::date) THEN true END",
			hidden + "EXISTS (SELECT FROM open o WHERE o.tz IN (big.day, big.ts) OFFSET 0)",
			"SELECT count(*) FROM big LEFT JOIN open o USING (day) WHERE a BETWEEN 123 AND 123 AND day > '2020-01-01'",
		}},
	{name: "an index that sorts by distance is asked before the rule, by an operator that need not be leak-proof",
		sql: `CREATE INDEX ON round USING gist (ci); CREATE INDEX ON big USING gist (po); CREATE INDEX ON big USING gist (pg);
			UPDATE big SET po = NULL, pg = NULL WHERE owner = 'me'; UPDATE round SET ci = NULL WHERE owner = 'me';
			INSERT INTO big (id, owner, a, b) SELECT g, 'other', g, g FROM generate_series(2000, 10000) g;
			INSERT INTO round (id, owner, a) SELECT g, 'other', g FROM generate_series(2000, 10000) g`,
		// the second twin has no hidden row
		twinSQL: "CREATE TEMP TABLE keep AS SELECT * FROM big WHERE owner = 'me'; TRUNCATE big; INSERT INTO big " +
			"SELECT * FROM keep; DELETE FROM round WHERE owner <> 'me'", statements: []string{
			"SELECT id FROM round ORDER BY ci <-> point '(1.7e308,1.7e308)' LIMIT 1",
			"SELECT id FROM big ORDER BY po <-> point '(1.7e308,1.7e308)' LIMIT 1", "SELECT id FROM big ORDER BY pg <-> point '(1.7e308,1.7e308)' LIMIT 1",
		}},
	{name: "what is compared with an operand of any type",
		sql: `CREATE TYPE fcomp AS (x float8, o oid); ALTER TABLE big ADD fl float8[] DEFAULT '{1,2}', ADD o oid DEFAULT 5, ADD fc fcomp DEFAULT '(1,1)',
				ADD ol oid[] DEFAULT '{5}', ADD rc regclass DEFAULT 'pg_class'; ALTER TABLE small ADD i8 bigint DEFAULT 5000000000`,
		statements: []string{
			hidden + "GREATEST(f, 1) = (SELECT max(v) FROM small)",
			hidden + "LEAST(f4, f) = (SELECT max(v) FROM small)",
			hidden + "GREATEST(f, 1) BETWEEN 0 AND (SELECT max(v) FROM small)",
			hidden + "GREATEST(f, 1) IN (b, (SELECT max(v) FROM small))",
			hidden + "GREATEST(f, 1) IN (SELECT (SELECT max(v) FROM small))",
			hidden + "GREATEST(f, 1) IS DISTINCT FROM (SELECT max(v) FROM small)",
			hidden + "nullif(GREATEST(f, 1), (SELECT max(v) FROM small)) IS NULL",
			hidden + "CASE WHEN b > 0 THEN f END = (SELECT max(v) FROM small)",
			hidden + "CASE b WHEN 5 THEN f ELSE f4 END <> (SELECT max(v) FROM small)",
			hidden + "fl[1] = (SELECT max(v) FROM small)",
			hidden + "(fc).x = (SELECT max(v) FROM small)",
			hidden + "(fc).o = (SELECT max(i8) FROM small)",
			hidden + "ol[1] = (SELECT max(i8) FROM small)",
			hidden + "GREATEST(o, o) = (SELECT max(i8) FROM small)",
			hidden + "CASE WHEN b > 0 THEN rc END = (SELECT max(i8) FROM small)",
			hidden + "float8(b) = (SELECT max(v) FROM small)",
			"SELECT b FROM big WHERE a BETWEEN 123 AND 123 GROUP BY b, f HAVING GREATEST(f, 1) = (SELECT max(v) FROM small)",
			"SET plan_cache_mode = force_generic_plan", "PREPARE p (bigint) AS " + hidden +
				"GREATEST(o, o) = $1", "EXECUTE p (5000000000)", "DEALLOCATE p", "RESET plan_cache_mode",
		}},
	{name: "DISTINCT and NULLIF are not strict", statements: []string{
		hidden + "(b < -5 OR (f + NULL) IS DISTINCT FROM (SELECT max(v) FROM small))",
		hidden + "(b < -5 OR nullif((SELECT max(v) FROM small), f + NULL) IS NULL)",
		hidden + "(b < -5 OR (SELECT max(v) FROM small) IS DISTINCT FROM abs(f * NULL))",
	}},
	{name: "functions that are leak-proof, called by name",
		sql: "ALTER TABLE big ADD o oid DEFAULT 5, ADD mac macaddr DEFAULT '08:00:2b:01:02:03'; ALTER TABLE small " +
			"ADD i8 bigint DEFAULT 5000000000, ADD mac8 macaddr8 DEFAULT '08:00:2b:01:02:03:04:05'", statements: []string{
			hidden + "float8eq(f, (SELECT max(v) FROM small))",
			hidden + "btfloat8cmp(f, (SELECT max(v) FROM small)) = 0",
			hidden + "timestamptz_eq(tz, (SELECT max(d) FROM small))",
			hidden + "timestamp_cmp(ts, (SELECT max(d) FROM small)) = 0",
			hidden + "oideq(o, (SELECT max(i8) FROM small))",
			hidden + "macaddr_eq(mac, (SELECT mac8 FROM small LIMIT 1))",
		}},
	{name: "subscripts are converted as assignments are", sql: "ALTER TABLE small ADD i8 bigint DEFAULT 5000000000", statements: []string{
		hidden + "l[(SELECT max(i8) FROM small)] IS NULL",
		hidden + "l[(SELECT max(v) FROM small)] = 5",
		hidden + "tl[1:(SELECT max(v) FROM small)] IS NULL",
		hidden + "b = (SELECT w.l[w.v] FROM small w LIMIT 1)",
		hidden + "b = (SELECT count(*) FROM small w WHERE w.l[w.v] IS NULL)",
		"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR l[s.i8] = 5)) FROM small s",
		"SELECT count(*) FROM small s JOIN LATERAL (SELECT a FROM big WHERE a BETWEEN 123 AND 123 AND l[s.v] = 5 OFFSET 0) y ON true",
		"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR q.x IS NULL)) FROM (SELECT l[v] AS x FROM small) q",
		"SET plan_cache_mode = force_generic_plan", "PREPARE p (bigint) AS " + hidden +
			"l[$1] IS NULL", "EXECUTE p (5000000000)", "DEALLOCATE p", "RESET plan_cache_mode",
	}},
	{name: "an aggregate whose FILTER names columns outside alone is one of the query outside", statements: []string{
		"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND b = (SELECT count(*) FILTER (WHERE o.n > 0) FROM small w)) FROM open o",
		"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND b = (SELECT sum(5) FILTER (WHERE o.n > 0) FROM small w)) FROM open o",
		"SELECT (SELECT count(*) FROM (SELECT a, b, count(*) FILTER (WHERE o.n > 100) AS k FROM big) q WHERE a " +
			"BETWEEN 123 AND 123 AND b = 1 / k) FROM open o",
	}},
	{name: "an aggregate goes when constants are folded, and the condition goes from HAVING to WHERE", statements: []string{
		"SELECT count(*) FROM (SELECT a, b, CASE WHEN true THEN (SELECT min(n) FROM small) ELSE count(*) END AS k " +
			"FROM big GROUP BY a, b) q WHERE a BETWEEN 123 AND 123 AND b = 1 / k",
		"SELECT count(*) FROM (SELECT a, b, CASE WHEN true THEN 1 / (SELECT min(n) FROM small) ELSE count(*) END " +
			"AS k FROM big GROUP BY a, b) q WHERE a BETWEEN 123 AND 123 AND b = k",
		"SELECT count(*) FROM (SELECT a, b, greatest((SELECT min(n) FROM small), count(*) * NULL) AS k FROM big " +
			"GROUP BY a, b) q WHERE a BETWEEN 123 AND 123 AND b = 1 / k",
		"SELECT count(*) FROM (SELECT a, b, (count(*) > 0 OR true)::int + (SELECT min(n) FROM small) - 1 AS k " +
			"FROM big GROUP BY a, b) q WHERE a BETWEEN 123 AND 123 AND b = 1 / k",
		"SELECT count(*) FROM (SELECT DISTINCT a, b, (SELECT min(n) FROM small) + (count(*) IS NULL AND " +
			"false)::int AS k FROM big GROUP BY a, b) q WHERE a BETWEEN 123 AND 123 AND b = 1 / k",
		"WITH q AS (SELECT a, b, CASE WHEN true THEN (SELECT min(n) FROM small) ELSE count(*) END AS k FROM big " +
			"GROUP BY a, b) SELECT count(*) FROM q WHERE a BETWEEN 123 AND 123 AND b = 1 / k",
	}},
	{name: "a sub-select asks for what a query in FROM converts",
		sql: "ALTER TABLE small ADD i8 bigint DEFAULT 5000000000, ADD o oid DEFAULT 5; UPDATE small SET g = 1", statements: []string{
			"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR q.x)) FROM (SELECT g = v AS x FROM small) q",
			"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR q.x)) FROM (SELECT g BETWEEN 1 AND v AS x FROM small) q",
			"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR q.x)) FROM (SELECT o = i8 AS x FROM small) q",
			"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR q.x IS NULL)) FROM (SELECT nullif(g, v) AS x FROM small) q",
			"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR q.x IS NULL)) FROM (SELECT ARRAY[s]::int[] AS x FROM small) q",
			"SELECT count(*) FROM (SELECT g = v AS x FROM small) q, LATERAL (SELECT a FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR q.x) OFFSET 0) y",
			"WITH q AS (SELECT g = v AS x FROM small) SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR q.x)) FROM q",
		}},
	{name: "and for a column that USING merges", sql: "ALTER TABLE open DROP COLUMN d, ADD d timestamptz", statements: []string{
		"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR q.d IS NULL)) FROM (SELECT d FROM small LEFT JOIN open USING (d)) q",
		"WITH q AS (SELECT d FROM small LEFT JOIN open USING (d)) SELECT (SELECT count(*) FROM big WHERE a " +
			"BETWEEN 123 AND 123 AND (b < -5 OR q.d IS NULL)) FROM q",
	}},
	{name: "and for a virtual column", minVersion: 18, sql: "ALTER TABLE small ADD vc int GENERATED ALWAYS AS (1 / n) VIRTUAL", statements: []string{
		"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR q.vc IS NULL)) FROM (SELECT vc FROM small) q",
		"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND b = q.vc) FROM (SELECT * FROM small) q",
		"SELECT count(*) FROM (SELECT vc FROM small) q, LATERAL (SELECT a FROM big WHERE a BETWEEN 123 AND 123 AND b = q.vc OFFSET 0) y",
	}},
	{name: "circles and segments in composite columns",
		sql: `CREATE TYPE cc AS (ci circle, ls lseg);
			ALTER TABLE big ADD cx cc DEFAULT '("<(0,0),1>","[(0,0),(1,1)]")', ADD ca cc[] DEFAULT ARRAY['("<(0,0),1>","[(0,0),(1,1)]")'::cc]; CREATE DOMAIN dcc AS cc;
			ALTER TABLE big ADD dx dcc DEFAULT '("<(0,0),1>","[(0,0),(1,1)]")'`, statements: []string{
			hidden + "(cx).ci = '<(0,0),1e200>'",
			hidden + "(cx).ls < '[(-1e308,0),(1e308,0)]'",
			hidden + "(ca)[1].ci = '<(0,0),1e200>'",
			hidden + "(dx).ci = '<(0,0),1e200>'",
			"SELECT count(*) FROM (SELECT (cx).ci AS c, a FROM big) q WHERE a BETWEEN 123 AND 123 AND c = '<(0,0),1e200>'",
		}},
	{name: "bounds of ranges that are arrays",
		sql: "CREATE TYPE ir AS RANGE (subtype = int[]); ALTER TABLE big ADD i ir DEFAULT ir('{1}', '{2}')", statements: []string{
			hidden + "b = 1 / ((SELECT min(n) FROM small) + cardinality(lower(i * NULL) || 7) - 1)", hidden +
				"b = 1 / ((SELECT min(n) FROM small) + cardinality(7 || upper(i * NULL)) - 1)",
		}},
	{name: "operators of hstore that give arrays", sql: "CREATE EXTENSION hstore; ALTER TABLE big ADD h hstore DEFAULT 'a=>1'", statements: []string{
		hidden + "b = 1 / ((SELECT min(n) FROM small) + cardinality(((h || NULL::hstore) -> ARRAY['a']) || 'x'::text) - 1)",
	}},
	{name: "operators of intarray that give arrays", sql: "CREATE EXTENSION intarray", statements: []string{
		hidden + "b = 1 / ((SELECT min(n) FROM small) + cardinality((l + NULL::int) || 7) - 1)",
		hidden + "b = 1 / ((SELECT min(n) FROM small) + cardinality((l - NULL::int) || 7) - 1)",
	}},
	{name: "functions that are folded with an empty or a whole range", minVersion: 17, statements: []string{
		hidden + "b = 1 / ((SELECT min(n) FROM small) + elem_contained_by_range(b, 'empty'::int4range)::int)",
		hidden + "b = 1 / ((SELECT min(n) FROM small) + range_contains_elem('empty'::int4range, b)::int)",
		hidden + "b = 1 / ((SELECT min(n) FROM small) + elem_contained_by_range(b, '(,)'::int4range)::int - 1)",
	}},
	{name: "slices of what has a fixed length, in a field of an array's element",
		sql: `CREATE TYPE cc AS (nm name, po point); ALTER TABLE big ADD ca cc[] DEFAULT ARRAY['(abc,"(0,0)")'::cc]`, statements: []string{
			"SELECT count(*) FROM big WHERE CASE WHEN a = 123 THEN (ca)[1].po[0:b] IS NULL END",
			"SELECT count(*) FROM big WHERE CASE WHEN a = 123 THEN (ca)[1].nm[1:1] IS NULL END",
		}},
	{name: "a column of a query in FROM that is NULL when constants are folded", statements: []string{
		"SELECT count(*) FROM (SELECT a, b, b + NULL AS k FROM big) q WHERE a BETWEEN 123 AND 123 AND b = 1 / " +
			"((SELECT min(n) FROM small) + num_nonnulls(k))",
		"SELECT count(*) FROM (SELECT a, b, b + NULL AS k FROM big) q WHERE a BETWEEN 123 AND 123 AND b = 1 / " +
			"CASE WHEN k > 0 THEN 5 ELSE (SELECT min(n) FROM small) END",
		"SELECT count(*) FROM (SELECT a, b, b + NULL AS k FROM big GROUP BY a, b) q WHERE a BETWEEN 123 AND 123 " +
			"AND b = 1 / ((SELECT min(n) FROM small) + num_nonnulls(k))",
		"WITH q AS (SELECT a, b, b + NULL AS k FROM big) SELECT count(*) FROM q WHERE a BETWEEN 123 AND 123 AND b " +
			"= 1 / ((SELECT min(n) FROM small) + num_nonnulls(k))",
		"SELECT count(*) FROM (SELECT a, b, b + NULL AS k FROM big UNION ALL SELECT a, b, b + NULL FROM big) q " +
			"WHERE a BETWEEN 123 AND 123 AND b = 1 / ((SELECT min(n) FROM small) + num_nonnulls(k))",
		"SELECT count(*) FROM big LEFT JOIN (SELECT n + NULL AS k FROM small) y ON true WHERE a BETWEEN 123 AND " +
			"123 AND b = 1 / ((SELECT min(n) FROM small) + num_nonnulls(y.k))",
		"SELECT count(*) FROM (SELECT a, b, f + NULL AS k FROM big) q WHERE a BETWEEN 123 AND 123 AND (b < -5 OR " +
			"k IS DISTINCT FROM (SELECT max(v) FROM small))",
	}},
	{name: "the same of views",
		sql: "CREATE VIEW vn AS SELECT a, b, b + NULL::int AS k FROM big; CREATE VIEW vw AS SELECT a, b, CASE " +
			"WHEN true THEN (SELECT min(n) FROM small) ELSE count(*) END AS k FROM big GROUP BY a, b",
		policy: "views: { vn: {}, vw: {} }\n", statements: []string{
			"SELECT count(*) FROM vn WHERE a BETWEEN 123 AND 123 AND b = 1 / ((SELECT min(n) FROM small) + num_nonnulls(k))",
			"SELECT count(*) FROM vw WHERE a BETWEEN 123 AND 123 AND b = 1 / k",
		}},
	{name: "a sub-select among the columns of a query in FROM",
		sql:    "CREATE VIEW pk AS SELECT a, b, (SELECT 1 / min(n) FROM small) AS k FROM big",
		policy: "views: { pk: {} }\n", withCheapRule: true, statements: []string{
			"SELECT count(*) FROM (SELECT a, b, (SELECT 1 / min(n) FROM small) AS k FROM big) q WHERE a BETWEEN 123 AND 123 AND b = k",
			"SELECT count(*) FROM (SELECT a, b, (SELECT 1 / min(n) FROM small) AS k FROM big) q WHERE a BETWEEN 123 AND 123 AND k IS NULL",
			"SELECT count(*) FROM (SELECT a, b, (SELECT 1 / min(n) FROM small) AS k FROM big) q WHERE a BETWEEN 123 AND 123 AND (b < -5 OR ROW(q.*) IS NULL)",
			"SELECT count(*) FROM (SELECT a, b, (SELECT 1 / min(n) > 0 FROM small) AS k FROM big) q WHERE a BETWEEN 123 AND 123 AND k",
			"SELECT count(*) FROM (SELECT * FROM (SELECT a, b, (SELECT 1 / min(n) FROM small) AS k FROM big) p) q WHERE a BETWEEN 123 AND 123 AND b = k",
			"SELECT count(*) FROM (SELECT a, k + 1 AS l FROM (SELECT a, b, (SELECT 1 / min(n) FROM small) AS k FROM " +
				"big) p) q WHERE a BETWEEN 123 AND 123 AND l = 5",
			"SELECT count(*) FROM ((SELECT a, (SELECT 1 / min(n) > 0 FROM small) AS k FROM big) q JOIN open ON true) " +
				"AS x (a, k) WHERE x.a BETWEEN 123 AND 123 AND x.k",
			"SELECT count(*) FROM (SELECT a, (SELECT 1 / min(n) FROM small) AS n FROM big WHERE a BETWEEN 123 AND 123) q JOIN open USING (n)",
			"SELECT (SELECT count(*) FROM big b WHERE b.a BETWEEN 123 AND 123 AND b.b = q.k) FROM (SELECT n, (SELECT 1 / min(n) FROM small) AS k FROM open) q",
			"SELECT count(*) FROM (SELECT a, b, (SELECT 1 / min(n) FROM small) AS k FROM big) q, LATERAL (SELECT q.k " +
				"AS l) z WHERE a BETWEEN 123 AND 123 AND l = 5",
			"SELECT count(*) FROM (SELECT DISTINCT a, (SELECT 1 / min(n) FROM small) AS k FROM big) q WHERE a BETWEEN 123 AND 123",
			"SELECT count(*) FROM (SELECT a, (SELECT 1 / min(n) FROM small) AS k, count(*) FROM big GROUP BY a) q WHERE a BETWEEN 123 AND 123",
			"SELECT count(*) FROM (SELECT a, (SELECT 1 / min(n) FROM small) AS k FROM big ORDER BY 2 LIMIT 3) q WHERE a BETWEEN 123 AND 123",
			"SELECT count(k) FROM (SELECT a, (SELECT 1 / min(n) FROM small) AS k FROM big) q WHERE a BETWEEN 123 AND 123",
			"SELECT max(k) FROM (SELECT a, (SELECT 1 / min(n) FROM small) AS k FROM big) q WHERE a BETWEEN 123 AND 123 GROUP BY k ORDER BY k",
			"SELECT o.n, q.k FROM open o LEFT JOIN (SELECT a, b, (SELECT 1 / min(n) FROM small) AS k FROM big) q ON q.a BETWEEN 123 AND 123",
			"WITH q AS (SELECT a, b, (SELECT 1 / min(n) FROM small) AS k FROM big) SELECT x.k FROM q x JOIN q y USING (a) WHERE a BETWEEN 123 AND 123",
			"WITH q AS MATERIALIZED (SELECT a, b, (SELECT 1 / min(n) FROM small) AS k FROM big WHERE a BETWEEN 123 AND 123) SELECT k FROM q",
			"SELECT k FROM pk WHERE a BETWEEN 123 AND 123",
			"SELECT count(*) FROM pk WHERE a BETWEEN 123 AND 123 AND b = k", "SELECT count(pk) FROM pk WHERE a BETWEEN 123 AND 123",
		}},
	{name: "a call that is named like a type is a cast, or none at all",
		sql: "ALTER TABLE big ADD o oid DEFAULT 5, ADD rc regclass DEFAULT 'pg_class'; ALTER TABLE small ADD i8 " +
			"bigint DEFAULT 5000000000", statements: []string{
			hidden + "oid(b) = (SELECT max(i8) FROM small)", hidden +
				"pg_catalog.oid(b) = (SELECT max(i8) FROM small)", hidden +
				"oid(o) >= (SELECT i8 FROM small LIMIT 1)", hidden +
				"regclass(b) <> (SELECT max(i8) FROM small)", hidden + "oid(rc) BETWEEN 1 AND (SELECT max(i8) FROM small)",
			"SELECT count(*) FROM open o LEFT JOIN big ON a BETWEEN 123 AND 123 AND oid(b) = (SELECT max(i8) FROM small)",
			"SELECT (SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND (b < -5 OR oid(b) = s.i8)) FROM small s",
			"SET plan_cache_mode = force_generic_plan", "PREPARE p (bigint) AS " + hidden +
				"oid(b) = $1", "EXECUTE p (5000000000)", "DEALLOCATE p", "PREPARE p (bigint) AS " + hidden +
				"regclass(o) IN ($1)", "EXECUTE p (5000000000)", "DEALLOCATE p", "RESET plan_cache_mode",
		}},
	{name: "a star, and rows of rows, are many columns", sql: "UPDATE big SET t = repeat('x', 2500000) WHERE a = 123",
		twinSQL: "UPDATE big SET t = 'x' WHERE a = 123", statements: []string{
			"SELECT count(*) FROM (SELECT a, " + strings.TrimSuffix(strings.Repeat("t AS c, ", 500), ", ") + " FROM big) q WHERE ROW(ROW(q.*)) IS NULL",
		}},
}

// askTwins sends the same statements to both twins. It returns what each answered, and the decision of the rewriter for
// each statement.
func askTwins(t *testing.T, mode instance.Mode, policy, sql, afterSQL, twinSQL string, statements []string) (got [2][]string, decisions []string) {
	for i, change := range []string{"UPDATE big SET a = 9999 WHERE a = 122; UPDATE round SET a = 9999 WHERE a = 122",
		"UPDATE big SET a = 9999 WHERE a = 123; UPDATE round SET a = 9999 WHERE a = 123"} {
		db := pgtest.Database(t)
		instance.Exec(t, db, reachedSchema)
		if sql != "" {
			instance.Exec(t, db, sql)
		}
		instance.Exec(t, db, "ANALYZE")
		switch {
		case twinSQL == "":
			instance.Exec(t, db, change)
		case i == 1:
			instance.Exec(t, db, twinSQL)
		}
		if afterSQL != "" {
			instance.Exec(t, db, afterSQL)
		}
		d := instance.Database{Name: "pair", DB: db, Policy: policy, SearchPath: []string{"public"}}
		m := instance.Compile(t, d, mode)
		rewriter := rewrite.New(m.Snapshot, m.Policy, mode.Rewrite)
		proxy := instance.Start(t, mode, d, map[string]string{"user": "me"})
		c, other := proxy.Agent(t, "agent", "pair"), proxy.Agent(t, "agent", "pair")
		for _, sql := range statements {
			session := c
			if strings.HasPrefix(sql, "OTHER ") {
				session, sql = other, strings.TrimPrefix(sql, "OTHER ")
			}
			if i == 0 {
				if result, refused := rewriter.Rewrite(sql, false); refused != nil {
					decisions = append(decisions, "refused: "+refused.Message)
				} else {
					decisions = append(decisions, string(result.Path)+", hardened: "+result.HardenedReason)
				}
			}
			if strings.HasPrefix(policy, indexHintPolicy()) { // an agent may write this hint itself
				sql = predicate.UseIndexHint + sql
			}
			got[i] = append(got[i], strings.ReplaceAll(instance.Ask(session, sql).SortedString(), db.Name, "DATABASE"))
		}
	}
	return got, decisions
}

// An agent sends expressions that fail, lock rows or draw random numbers when they are computed. None may be computed
// for the hidden row, so the twins must answer alike.
func TestNoExpressionIsComputedForHiddenRows(t *testing.T) {
	tier.All(t)
	for m, mode := range signedPathModes() {
		for k, f := range reachCases {
			if pgtest.Binaries().Major < f.minVersion || !tier.IsPicked(m+k, 24) { // the nightly run tries each in all modes
				continue
			}
			policies := []string{costlyRulePolicy}
			if f.withCheapRule {
				policies = append(policies, cheapRulePolicy())
			}
			if tier.IsPicked(k, 6) {
				policies = append(policies, indexHintPolicy())
			}
			if tier.IsPicked(k, 30) {
				policies = append(policies, observedTablesPolicy())
			}
			for i, policy := range policies {
				t.Run(fmt.Sprintf("%s, %s, rule %d", f.name, mode.Name, i), func(t *testing.T) { // the sub-test ends its proxies
					got, decisions := askTwins(t, mode, policy+f.policy, f.sql, f.afterSQL, f.twinSQL, f.statements)
					for k, sql := range f.statements {
						if got[0][k] != got[1][k] {
							t.Errorf("%s {%s}\n   %s\n   %s", sql, decisions[k], instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
						}
						for _, code := range []string{"ERROR 426", "ERROR 427", "ERROR 42501", "ERROR 0A000", "ERROR XX000"} {
							if strings.Contains(got[0][k], code) {
								t.Errorf("%s is not asked: %s", sql, instance.OneLine(got[0][k]))
							}
						}
					}
				})
			}
		}
	}
}
