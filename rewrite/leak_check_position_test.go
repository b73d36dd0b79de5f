package rewrite

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// Leak-safe expressions and others, for each sign in pathPlaces. The signs mean a condition, a text that is compared,
// sorted or cut, and a text that is only returned. An expression is not leak-safe if it may fail for some value, or if
// its type has no usable equality.
var (
	leakSafeFor    = map[string]string{"{c}": "title = 'a'", "{t}": "lower(title)", "{r}": "lower(title)"}
	notLeakSafeFor = map[string][]string{
		"{c}": {"title ~ '(?=a)'", "icu = 'a'", "title::boolean", "score = fee", "occurred_at > now() - '3000000 years'", "'a'::public.uuid IS NULL",
			"octet_length(title) > 3", "public.octet_length(title) > 3", "1 < (SELECT sum(1.5) FROM people)", "1 < (SELECT avg(1.5) FROM people)"},
		"{t}": {"md5(title)", "embedding", "icu", "plainto_tsquery('english', title)",
			"plainto_tsquery('english', 'a')", "to_tsvector('english', title)", "interval '1 day'", "substr(title, 1, level)", "public.lower(title)",
			"title::public.exact", "(SELECT title FROM people)"},
		"{r}": {"md5(title)", "substr(title, 1, level)", "title || embedding", "(SELECT title FROM people)"},
	}
)

// pathPlaces are the positions in a text on the signed path where an expression is allowed. The expression that is put
// there names title once.
var pathPlaces = []string{
	"SELECT {r} FROM memories",
	"SELECT {r} IS NULL FROM memories",
	"SELECT id, {r} FROM memories",
	"SELECT id, {c} FROM memories",
	"SELECT id FROM memories WHERE true AND true AND {c}",
	"SELECT id FROM memories WHERE false OR false OR {c}",
	"SELECT p.id FROM people p JOIN people q ON true JOIN memories ON {c}",
	"SELECT p.id FROM people p CROSS JOIN people q LEFT JOIN memories ON {c}",
	"WITH a AS (SELECT id FROM people), m AS (SELECT id FROM memories WHERE {c}) SELECT id FROM m",
	"SELECT id FROM people UNION ALL SELECT id FROM people UNION ALL SELECT id FROM memories WHERE {c}",
	"SELECT count(*), max(body) FILTER (WHERE {c}) FROM memories",
	"SELECT CASE WHEN body = 'a' THEN 1 WHEN {c} THEN 2 END FROM memories",
	"SELECT coalesce(body, body, {t}) FROM memories",
	"SELECT CASE body WHEN 'a' THEN 1 WHEN {t} THEN 2 END FROM memories",
	"SELECT CASE WHEN body = 'a' THEN 'a' WHEN body = 'b' THEN {t} ELSE 'c' END FROM memories",
	"SELECT id FROM memories ORDER BY id, {t}",
	"SELECT count(*) FROM memories GROUP BY body, {t}",
	"SELECT body, {t}, count(*) FROM memories GROUP BY 1, 2",
	"SELECT DISTINCT ON (id, {t}) id FROM memories",
	"SELECT DISTINCT id, {t} FROM memories",
	"SELECT id, {t} FROM memories UNION SELECT id, name FROM people",
	"SELECT id FROM memories WHERE body IN ('a', 'b', {t})",
	"SELECT id FROM memories WHERE body = ANY (ARRAY['a', 'b', {t}])",
	"SELECT count({r}) FROM memories",
	"SELECT max(body) FILTER (WHERE {c}) FROM memories",
	"SELECT id FROM memories WHERE {c}",
	"SELECT id FROM memories WHERE true AND {c}",
	"SELECT id FROM memories WHERE {c} OR body = 'a'",
	"SELECT id FROM memories WHERE NOT ({c})",
	"SELECT id FROM memories WHERE ({c}) IS NOT TRUE",
	"SELECT body FROM memories GROUP BY body HAVING bool_or({c})",
	"SELECT title FROM memories GROUP BY title HAVING {c}",
	"SELECT count(*) FROM memories HAVING bool_and({c}) AND true",
	"SELECT id FROM memories ORDER BY {c}",
	"SELECT p.id FROM people p JOIN memories ON {c}",
	"SELECT p.id FROM people p LEFT JOIN memories ON p.name = body AND {c}",
	"SELECT p.id FROM people p WHERE EXISTS (SELECT FROM memories WHERE {c})",
	"SELECT p.id FROM people p WHERE p.name IN (SELECT body FROM memories WHERE {c})",
	"SELECT p.id, (SELECT count(*) FROM memories WHERE {c}) FROM people p",
	"SELECT m.id FROM (SELECT id FROM memories WHERE {c}) AS m",
	"WITH m AS (SELECT id FROM memories WHERE {c}) SELECT id FROM m",
	"SELECT id FROM memories WHERE {c} UNION ALL SELECT id FROM people",
	"SELECT id FROM people UNION ALL SELECT id FROM memories WHERE {c}",
	"SELECT CASE WHEN {c} THEN body END FROM memories",
	"SELECT coalesce(false, {c}) FROM memories",
	"SELECT id FROM memories WHERE {t} = 'a'",
	"SELECT id FROM memories WHERE body < {t}",
	"SELECT id FROM memories WHERE {t} LIKE 'a%'",
	"SELECT id FROM memories WHERE {t} IS DISTINCT FROM 'a'",
	"SELECT id FROM memories WHERE body IS NOT DISTINCT FROM {t}",
	"SELECT nullif({t}, 'a') FROM memories",
	"SELECT nullif(body, {t}) FROM memories",
	"SELECT id FROM memories WHERE nullif({t}, NULL) = 'a'",
	"SELECT id FROM memories WHERE {t} IN ('a', 'b')",
	"SELECT id FROM memories WHERE body NOT IN ('a', {t})",
	"SELECT id FROM memories WHERE {t} BETWEEN 'a' AND 'b'",
	"SELECT id FROM memories WHERE body BETWEEN {t} AND 'b'",
	"SELECT id FROM memories WHERE body NOT BETWEEN 'a' AND {t}",
	"SELECT id FROM memories WHERE {t} = ANY (ARRAY['a', body])",
	"SELECT id FROM memories WHERE body = ANY (ARRAY['a', {t}])",
	"SELECT id FROM memories WHERE {t} = ANY ('{a,b}'::text[])",
	"SELECT id FROM memories WHERE {t} = ANY ('{a,b}')",
	"SELECT CASE {t} WHEN 'a' THEN 1 ELSE 2 END FROM memories",
	"SELECT CASE body WHEN {t} THEN 1 ELSE 2 END FROM memories",
	"SELECT CASE WHEN body = 'a' THEN {t} END FROM memories",
	"SELECT CASE WHEN body = 'a' THEN 'b' ELSE {t} END FROM memories",
	"SELECT coalesce({t}, 'a') FROM memories",
	"SELECT coalesce(body, {t}) FROM memories",
	"SELECT upper({t}) FROM memories",
	"SELECT substr({t}, 1, 2) FROM memories",
	"SELECT {t}::text = 'a' FROM memories",
	"SELECT max({t}) FROM memories",
	"SELECT count(DISTINCT {t}) FROM memories",
	"SELECT id FROM memories WHERE {t} IN (SELECT name FROM people)",
	"SELECT id FROM people WHERE name IN (SELECT {t} FROM memories)",
	"SELECT id FROM people WHERE name = (SELECT max({t}) FROM memories)",
	"SELECT id FROM memories ORDER BY {t} DESC",
	"SELECT {t} FROM memories ORDER BY 1",
	"SELECT {t} AS a FROM memories ORDER BY a",
	"SELECT count(*) FROM memories GROUP BY {t}",
	"SELECT {t}, count(*) FROM memories GROUP BY 1",
	"SELECT DISTINCT ON ({t}) id FROM memories",
	"SELECT DISTINCT {t} FROM memories",
	"SELECT {t} FROM memories UNION SELECT name FROM people",
	"SELECT name FROM people EXCEPT SELECT {t} FROM memories",
	"SELECT name FROM people UNION SELECT {t} FROM memories ORDER BY 1",
	"SELECT a.x FROM (SELECT {t} AS x FROM memories) AS a WHERE a.x = 'a'",
	"SELECT x FROM (SELECT {t} FROM memories) AS a (x) WHERE x = 'a'",
	"SELECT x FROM (SELECT * FROM (SELECT {t} AS x FROM memories) AS a) AS b WHERE x = 'a'",
	"SELECT x FROM (SELECT a.* FROM (SELECT {t} AS x FROM memories) AS a) AS b WHERE x = 'a'",
	"WITH m AS (SELECT {t} AS x FROM memories) SELECT x FROM m WHERE x = 'a'",
	"WITH m (x) AS (SELECT {t} FROM memories) SELECT x FROM m WHERE x = 'a'",
	"WITH m AS (SELECT {t} FROM memories) SELECT x FROM m AS n (x) WHERE x = 'a'",
	"WITH m AS (SELECT body AS x FROM memories) SELECT p.id FROM people p WHERE p.name IN (WITH m AS (SELECT {t} AS x FROM memories) SELECT x FROM m)",
	"WITH m AS (SELECT {t} AS x FROM memories) SELECT m.x FROM (WITH m AS (SELECT body AS x FROM memories) SELECT x FROM m) AS n, m WHERE m.x = 'a'",
	"SELECT n.x FROM (SELECT {t} AS x FROM memories) AS n WHERE EXISTS (SELECT FROM people p WHERE p.name = n.x)",
	"SELECT n.x FROM (SELECT {t} AS x FROM memories) AS n WHERE EXISTS (SELECT FROM people p WHERE p.name = x)",
	"SELECT a.id FROM people AS a JOIN (SELECT {t} AS name FROM memories) AS b USING (name)",
	"SELECT a.id FROM (SELECT {t} AS name, id FROM memories) AS a JOIN people AS b USING (name)",
}

// outputPlaces are those of pathPlaces whose expression is computed only for rows that passed every condition, and is
// neither sorted nor grouped by.
var outputPlaces = []string{
	"SELECT {r} FROM memories",
	"SELECT {r} IS NULL FROM memories",
	"SELECT id, {r} FROM memories",
	"SELECT id, {c} FROM memories",
	"SELECT count(*), max(body) FILTER (WHERE {c}) FROM memories",
	"SELECT CASE WHEN body = 'a' THEN 1 WHEN {c} THEN 2 END FROM memories",
	"SELECT coalesce(body, body, {t}) FROM memories",
	"SELECT CASE body WHEN 'a' THEN 1 WHEN {t} THEN 2 END FROM memories",
	"SELECT CASE WHEN body = 'a' THEN 'a' WHEN body = 'b' THEN {t} ELSE 'c' END FROM memories",
	"SELECT count({r}) FROM memories",
	"SELECT max(body) FILTER (WHERE {c}) FROM memories",
	"SELECT CASE WHEN {c} THEN body END FROM memories",
	"SELECT coalesce(false, {c}) FROM memories",
	"SELECT nullif({t}, 'a') FROM memories",
	"SELECT nullif(body, {t}) FROM memories",
	"SELECT CASE {t} WHEN 'a' THEN 1 ELSE 2 END FROM memories",
	"SELECT CASE body WHEN {t} THEN 1 ELSE 2 END FROM memories",
	"SELECT CASE WHEN body = 'a' THEN {t} END FROM memories",
	"SELECT CASE WHEN body = 'a' THEN 'b' ELSE {t} END FROM memories",
	"SELECT coalesce({t}, 'a') FROM memories",
	"SELECT coalesce(body, {t}) FROM memories",
	"SELECT upper({t}) FROM memories",
	"SELECT substr({t}, 1, 2) FROM memories",
	"SELECT {t}::text = 'a' FROM memories",
}

// An expression that is not leak-safe keeps a text off the signed path at each position, except in the results of the
// outermost SELECT. A leak-safe one never does. The last check fails for a field of the grammar that was not tried.
func TestNotLeakSafeInEveryPosition(t *testing.T) {
	r, conn := altered(t, AlwaysSignedMode, `ALTER TABLE memories ADD icu text COLLATE "en-x-icu", ADD score double precision, ADD fee numeric, ADD level integer;
		CREATE INDEX ON memories USING gin (to_tsvector('english', title)); CREATE DOMAIN uuid AS text CHECK (VALUE > 'b');
		CREATE FUNCTION octet_length(text) RETURNS integer LANGUAGE sql AS 'SELECT 1 / pg_catalog.length($1)'`)
	text, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("policy.yaml", []byte(strings.Replace(string(text), "functions:\n", "functions:\n  public.octet_length: {}\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, r.snap, policy.WithViews(RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	r = New(r.snap, pol, AlwaysSignedMode) // under a policy that lists another role's function with the name of a leak-safe one
	fieldsWithTitle, fields := map[string]bool{}, map[string]bool{}
	for _, position := range pathPlaces {
		for sign, leakSafe := range leakSafeFor {
			if !strings.Contains(position, sign) {
				continue
			}
			sql := strings.ReplaceAll(position, sign, leakSafe)
			if strings.Count(sql, "title")-strings.Count(position, "title") != 1 {
				t.Fatalf("%s: title stands there more than once", sql)
			}
			if _, err := conn.Prepare(t.Context(), "", sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
			result, refusal := r.Rewrite(sql, false)
			if refusal != nil || result.Path != verdict.PathSigned {
				t.Errorf("%s: %v, path %s, %q", sql, refusal, result.Path, result.RowSecurityReason)
				continue
			}
			checkQualified(t, sql, result.Text)
			tree, _ := sqltext.Parse(sql)
			collectFields(tree.ProtoReflect(), fieldsWithTitle, fields)
			for _, notLeakSafe := range notLeakSafeFor[sign] {
				sql := strings.ReplaceAll(position, sign, notLeakSafe)
				if result, refusal := r.Rewrite(sql, false); !slices.Contains(outputPlaces, position) && refusal == nil && result.Path == verdict.PathSigned {
					t.Errorf("%s: takes the signed path", sql)
				}
				sql = "SELECT count(*) FROM (" + sql + ") AS inside"
				if result, refusal := r.Rewrite(sql, false); refusal == nil && result.Path == verdict.PathSigned {
					t.Errorf("%s: takes the signed path", sql)
				}
			}
			sql = "SELECT count(*) FROM (" + sql + ") AS inside"
			if result, refusal := r.Rewrite(sql, false); refusal != nil || result.Path != verdict.PathSigned {
				t.Errorf("%s: %v, path %s, %q", sql, refusal, result.Path, result.RowSecurityReason)
			}
		}
	}
	// A LIMIT whose value is not known before execution may fail. In a sub-select it depends on rows whether it is
	// evaluated, so the text is refused the signed path there.
	for position, isTop := range map[string]bool{
		"SELECT title FROM memories {}": true, "SELECT title FROM memories UNION ALL SELECT name FROM people {}": true,
		"SELECT title FROM (SELECT title FROM memories {}) AS m": false, "WITH m AS (SELECT title FROM memories {}) SELECT title FROM m": false,
		"SELECT name FROM people WHERE EXISTS (SELECT FROM memories {})":                      false,
		"SELECT name FROM people WHERE name IN (SELECT title FROM memories {})":               false,
		"SELECT (SELECT count(*) FROM memories {}) FROM people":                               false,
		"(SELECT title FROM memories {}) UNION ALL SELECT name FROM people":                   false,
		"SELECT name FROM people UNION ALL (SELECT title FROM memories {})":                   false,
		"SELECT name FROM people JOIN (SELECT title FROM memories {}) AS m ON m.title = name": false,
	} {
		for limit, isKnown := range map[string]bool{
			"LIMIT $1": false, "OFFSET $1": false, "LIMIT 3 OFFSET $1": false, "LIMIT 3": true, "OFFSET 0 LIMIT 1": true} {
			sql := strings.Replace(position, "{}", limit, 1)
			result, refusal := r.Rewrite(sql, true)
			if refusal != nil || result.Path != verdict.PathSigned || (result.Forms[1]&verdict.NonNegative != 0) != (!isTop && !isKnown) {
				t.Errorf("%s: %v, path %s, %q, forms %v", sql, refusal, result.Path, result.RowSecurityReason, result.Forms)
			}
		}
	}
	for f := range fields {
		if !fieldsWithTitle[f] && !fieldsWithoutColumns[f] &&
			!slices.Contains([]string{"SelectStmt.values_lists", "SelectStmt.window_clause", "SelectStmt.limit_count", "SelectStmt.limit_offset",
				"FuncCall.agg_order", "FuncCall.over", "SelectStmt.locking_clause", "A_ArrayExpr.elements"}, f) {
			t.Errorf("no place is below %s", f)
		}
	}
}

// A sum may overflow for rows that a hidden row of the outer query selects. So a sum inside an expression keeps the
// text off the signed path.
func TestSumsInsideExpressions(t *testing.T) {
	r := rewriter(t, AlwaysSignedMode)
	for _, query := range []string{
		"SELECT {} FROM memories AS n", "SELECT {} FROM memories AS n WHERE n.id = m.id",
		"SELECT max(x) FROM (SELECT {} AS x FROM memories AS n) AS a", "WITH a AS (SELECT {} AS x FROM memories AS n) SELECT max(x) FROM a",
		"SELECT max(x) FROM (WITH a AS (SELECT {} AS x FROM memories AS n) SELECT x FROM a) AS b",
		"SELECT max(x) FROM (SELECT {} AS x FROM memories AS n UNION ALL SELECT 1 AS x FROM people) AS a",
		"SELECT max(x) FROM (SELECT 1 AS x FROM people UNION ALL SELECT {} AS x FROM memories AS n) AS a",
		"SELECT max(p.id::text) FROM people AS p WHERE EXISTS (SELECT {} FROM memories AS n)",
		"SELECT max(p.id::text) FROM people AS p JOIN (SELECT {} AS x FROM memories AS n) AS a ON true",
		"SELECT count(*) FROM memories AS n HAVING {} IS NULL",
	} {
		for _, position := range []string{"SELECT m.id FROM memories AS m WHERE EXISTS (@)",
			"SELECT m.id FROM memories AS m WHERE (@) IS NULL", "SELECT (@) FROM memories AS m", "SELECT m.id FROM memories AS m ORDER BY (@)"} {
			for aggregate, sums := range map[string]bool{
				"sum(extract(day FROM n.occurred_at))": true, "avg(extract(day FROM n.occurred_at))": true, "count(n.title)": false} {
				if strings.Contains(query, "HAVING") && !strings.Contains(position, "EXISTS") {
					continue // the sub-select may have several rows, or none
				}
				sql := strings.Replace(position, "@", strings.Replace(query, "{}", aggregate, 1), 1)
				result, refusal := r.Rewrite(sql, false)
				if refusal != nil || sums && result.Path == verdict.PathSigned {
					t.Errorf("%s: %v, path %s", sql, refusal, result.Path)
				}
				if !sums && result.Path != verdict.PathSigned && !strings.Contains(query, "1 AS x") && !strings.Contains(query, "p.id::text") {
					t.Errorf("%s does not take the signed path: %s", sql, result.RowSecurityReason)
				}
			}
		}
		for _, position := range []string{"WITH a AS (@) SELECT p.id FROM people AS p, a",
			"WITH a AS (@), b AS (SELECT * FROM a) SELECT p.id FROM people AS p, b", "WITH a AS (@) SELECT p.id FROM people AS p WHERE EXISTS (SELECT FROM a)",
			"SELECT p.id FROM people AS p, (@) AS a",
			"SELECT p.id FROM people AS p, (WITH a AS (@) SELECT * FROM a) AS b",
			"WITH a AS (@) SELECT p.id FROM people AS p UNION SELECT q.id FROM people AS q, a"} {
			if strings.Contains(query, "m.id") {
				continue // it names a column of the outer query
			}
			sql := strings.Replace(position, "@", strings.Replace(query, "{}", "sum(extract(day FROM n.occurred_at))", 1), 1)
			if result, refusal := r.Rewrite(sql, false); refusal != nil || result.Path == verdict.PathSigned {
				t.Errorf("%s: %v, takes the signed path", sql, refusal)
			}
		}
	}
}

// Some expressions that are leak-safe alone are not in certain combinations. Examples are an aggregate's filter that
// names columns of an outer query, and GROUP BY beside a function that returns several rows. Others are types without a
// PostgreSQL ordering, and a parameter compared with a column of a larger type than its cast.
func TestLeakSafeExpressionsBesideOthers(t *testing.T) {
	r, conn := altered(t, AlwaysSignedMode,
		"CREATE EXTENSION hstore; ALTER TABLE memories ADD n integer, ADD level integer, ADD h hstore; ALTER TABLE people ADD n bigint")
	for sql, isSigned := range map[string]bool{
		"SELECT p.id FROM people p WHERE EXISTS (SELECT count(m.title) FILTER (WHERE m.title = m.body) FROM memories m)": true,
		"SELECT p.id FROM people p WHERE EXISTS (SELECT count(m.title) FILTER (WHERE m.title = p.name) FROM memories m)": false,
		"SELECT (SELECT count(*) FILTER (WHERE m.title = 'a') FROM memories m) FROM people p":                            true,
		"SELECT (SELECT count(*) FILTER (WHERE p.name = 'a') FROM memories m) FROM people p":                             false,
		"SELECT (SELECT count(*) FROM memories) FROM people":                                                             true,
		"SELECT (SELECT count(*) FROM memories GROUP BY title) FROM people":                                              false,
		"SELECT (SELECT count(*) FROM memories HAVING count(*) > 1) FROM people":                                         false,
		"SELECT h FROM memories":                              true,
		"SELECT h FROM memories ORDER BY h":                   false,
		"SELECT DISTINCT h FROM memories":                     false,
		"SELECT count(*) FROM memories GROUP BY h":            false,
		"SELECT count(DISTINCT h) FROM memories":              false,
		"SELECT h FROM memories UNION SELECT h FROM memories": false,
		"SELECT m.title FROM memories m JOIN people p USING (n) WHERE m.n = $1 AND m.level > $1::integer": true,
		"SELECT m.title FROM memories m JOIN people p USING (n) WHERE n = $1 AND m.level > $1::integer":   false,
		"SELECT m.title FROM people p JOIN memories m USING (n) WHERE n = $1 AND m.level > $1::integer":   false,
	} {
		if _, err := conn.Prepare(t.Context(), "", sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
		if result, refusal := r.Rewrite(sql, false); refusal != nil || (result.Path == verdict.PathSigned) != isSigned {
			t.Errorf("%s: %v, path %s, %q", sql, refusal, result.Path, result.RowSecurityReason)
		}
	}
}
