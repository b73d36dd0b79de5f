package rewrite

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// Some texts take the signed path; for each other text, the rewriter gives the first reason against it.
func TestPathReasons(t *testing.T) {
	r := rewriter(t, AlwaysSignedMode)
	for sql, reason := range map[string]string{
		"SELECT title FROM memories WHERE title LIKE '%lake%'":                   "",
		"SELECT m.title, n.body FROM memories m, notes n WHERE m.title = n.body": "",
		"SELECT body FROM notes":                           "no table that rows are hidden in",
		"SELECT 1":                                         "no table that rows are hidden in",
		"SELECT title FROM memories; SELECT 1":             "exactly one statement",
		"COPY (SELECT title FROM memories) TO STDOUT":      "only SELECT",
		"SELECT relname FROM pg_class, memories":           "it reads pg_class",
		`SELECT title FROM memories WHERE title = 'a\b'`:   "backslash",
		`SELECT title FROM memories WHERE title = E'a\\b'`: "",
		"SELECT title FROM memories WHERE title LIKE 'a%'::text OR title ILIKE 'b%'::varchar":                                     "",
		`SELECT title FROM memories WHERE title LIKE E'a\\\\'::text`:                                                              "operator ~~",
		"SELECT title FROM memories WHERE title LIKE NULL::text":                                                                  "operator ~~",
		"SELECT title FROM memories WHERE title LIKE (title)::text":                                                               "operator ~~",
		"SELECT coalesce(sum(length(title)), 0), greatest(length(title), 3.5) FROM memories GROUP BY length(title)":               "",
		"SELECT id FROM memories WHERE greatest(title, 3) = 3":                                                                    "over different types",
		"SELECT title FROM memories WHERE occurred_at > now() - '1 mon'::interval AND occurred_at < now() + '02:00:00'::interval": "",
		"SELECT title FROM ONLY memories":                                                                                         "ONLY",
		"SELECT m FROM memories m":                                                                                                "whole-row",
		"SELECT title FROM memories WHERE length(title) + 1 > 3":                                                                  "operator +",
		"SELECT title FROM memories WHERE title ~ '(?=a)'":                                                                        "operator ~",
		"SELECT title FROM memories WHERE title OPERATOR(public.###) 'a'":                                                         "",
		"SELECT title FROM memories WHERE date_trunc('day', occurred_at) = now()":                                                 "function date_trunc",
		"SELECT id FROM memories WHERE title::varchar(3) = 'a'":                                                                   "a type",
		"SELECT (SELECT sum(length(title)) FROM memories) FROM people":                                                            "",
		"SELECT body FROM notes, short_titles":                                                                                    "it reads short_titles",
		"SELECT (SELECT title FROM memories LIMIT 1)":                                                                             "several rows",
		"SELECT (SELECT max(p.name) FROM memories) FROM people p":                                                                 "plainly a column",
		"SELECT title FROM memories WHERE title = current_user":                                                                   "CURRENT_USER",
		"SELECT title FROM memories ORDER BY embedding":                                                                           "type that is not leak-safe",
		"SELECT n FROM (SELECT count(*) OVER () AS n FROM memories) m":                                                            "OVER",
		"WITH RECURSIVE x AS (SELECT 1) SELECT title FROM memories":                                                               "RECURSIVE",
		"SELECT title FROM memories WHERE title IN (VALUES ('a'))":                                                                "VALUES",
		"SELECT title FROM memories ORDER BY title FETCH FIRST 1 ROW WITH TIES":                                                   "WITH TIES",
		"SELECT title FROM memories WHERE title LIKE (CASE WHEN true THEN 'a' ELSE 'b' END)":                                      "operator ~~",
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			if reason != "" || !strings.Contains(sql, "###") {
				t.Errorf("%s: %v", sql, refusal)
			}
			continue
		}
		isSigned := result.Path == verdict.PathSigned
		if isSigned != (reason == "") || !strings.Contains(result.RowSecurityReason, reason) || isSigned != result.NeedsSignature ||
			isSigned != strings.Contains(result.Text, "pgconsent_signed.visible_") {
			t.Errorf("%s: path %s, %q\n%s", sql, result.Path, result.RowSecurityReason, result.Text)
		}
	}
	result, _ := r.Rewrite("SELECT title FROM memories AS m WHERE m.id = 'd0000000-0000-4000-8000-000000000001'::uuid AND lower(title) = 'x'", false)
	const want = "SELECT title FROM pgconsent_signed.visible_public_memories AS m WHERE m.id = " +
		"'d0000000-0000-4000-8000-000000000001'::pg_catalog.uuid AND pg_catalog.lower(title) = 'x'"
	if result.Text != want {
		t.Errorf("got  %s\nwant %s", result.Text, want)
	}
}

// A virtual generated column may fail on a hidden row. A text that compares its value does not take the signed path.
func TestSignedPathIsNotForVirtualColumns(t *testing.T) {
	rewriter(t, AlwaysSignedMode)
	memories, _ := fixture.snap.Relation(catalog.Name{Schema: "public", Name: "memories"})
	title := memories.Column("title")
	title.Virtual = true
	defer func() { title.Virtual = false }()
	r := New(fixture.snap, fixture.pol, AlwaysSignedMode)
	for sql, isSigned := range map[string]bool{
		"SELECT count(*) FROM memories":                                                              true,
		"SELECT id, body FROM memories WHERE body LIKE 'a%'":                                         true,
		"SELECT p.name AS title FROM people p JOIN memories m ON m.body = p.name ORDER BY title":     false, // title may mean the alias or the virtual column
		"SELECT title FROM memories":                                                                 false,
		"SELECT id FROM memories WHERE title IS NULL":                                                false,
		"SELECT m.id FROM memories AS m WHERE m.title = 'a'":                                         false,
		"SELECT id FROM memories ORDER BY title":                                                     false,
		"SELECT count(*) FROM memories GROUP BY title":                                               false,
		"SELECT max(title) FROM memories":                                                            false,
		"SELECT id FROM (SELECT * FROM memories) AS m":                                               false,
		"SELECT id FROM (SELECT id, title AS body FROM memories) AS m":                               false,
		"WITH m AS (SELECT m.* FROM memories AS m) SELECT id FROM m":                                 false,
		"SELECT a.id FROM memories AS a JOIN memories AS b USING (title)":                            false,
		"SELECT name FROM people AS p WHERE EXISTS (SELECT FROM memories AS m WHERE title = p.name)": false,
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil || (result.Path == verdict.PathSigned) != isSigned {
			t.Errorf("%s: %v, path %s, %q", sql, refusal, result.Path, result.RowSecurityReason)
		}
	}
}

// A table with masked columns has a signed view with its other columns. A mask is an expression that may fail on a
// hidden row. A text that names a masked column does not take the signed path.
func TestSignedPathIsNotForMasks(t *testing.T) {
	r := rewriter(t, AlwaysSignedMode)
	for sql, isSigned := range map[string]bool{
		"SELECT count(*) FROM patients": true,
		"SELECT p.id FROM patients p JOIN notes n ON n.id = p.id WHERE p.id > 5 ORDER BY p.id": true,
		"SELECT body FROM notes WHERE EXISTS (SELECT FROM patients p WHERE p.id = notes.id)":   true,
		"SELECT * FROM patients":                                                                    false,
		"SELECT id FROM patients WHERE name IS NULL":                                                false,
		"SELECT id FROM patients p WHERE p.born = '2000-01-01'":                                     false,
		"SELECT id FROM patients ORDER BY visits":                                                   false,
		"SELECT count(*) FROM patients GROUP BY email":                                              false,
		"SELECT title AS name FROM memories WHERE EXISTS (SELECT FROM patients WHERE title = name)": false,
		"SELECT a.id FROM patients a JOIN patients b USING (name)":                                  false,
		"SELECT count(*) FROM patients, vehicles":                                                   false, // vehicles is open, and has no signed view
		"SELECT count(*) FROM patients, pages WHERE site = 'a'":                                     false,
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil || (result.Path == verdict.PathSigned) != isSigned {
			t.Errorf("%s: %v, path %s, %q", sql, refusal, result.Path, result.RowSecurityReason)
		}
	}
}

// A sum that may overflow takes the signed path only where PostgreSQL certainly computes it. Otherwise hidden rows of
// another table could decide whether it fails. Sums of integers, and of numerics with a declared precision, cannot
// overflow.
func TestSignedPathIsNotForSumsThatMayNotRun(t *testing.T) {
	r, _ := altered(t, AlwaysSignedMode, "ALTER TABLE memories ADD score double precision, ADD price numeric(10, 2), ADD loose numeric, ADD n integer")
	for sql, isSignedEverywhere := range map[string]bool{
		"SELECT sum(VALUE) FROM memories": true,
		"SELECT avg(m.VALUE) FROM memories m JOIN people p ON p.user_id = m.user_id WHERE EXISTS (SELECT FROM notes) GROUP BY p.name": true,
		"SELECT s FROM (SELECT sum(VALUE) AS s FROM memories) q WHERE s > 1":                                                          true,
		"WITH q AS (SELECT sum(VALUE) AS s FROM memories) SELECT s FROM q":                                                            true,
		"WITH q AS (SELECT sum(VALUE) AS s FROM memories), r AS (SELECT s FROM q) SELECT max(s) FROM r":                               true,
		"SELECT sum(VALUE) FROM memories UNION ALL SELECT sum(VALUE) FROM memories":                                                   true,

		"SELECT p.name, q.s FROM people p, (SELECT sum(VALUE) AS s FROM memories) q": false,
		"SELECT p.name, q.s FROM people p LEFT JOIN (SELECT user_id, avg(VALUE) AS s FROM memories GROUP BY " +
			"user_id) q ON q.user_id = p.user_id": false,
		"SELECT s FROM (SELECT sum(coalesce(VALUE, 0)) AS s FROM memories) q WHERE EXISTS (SELECT FROM people " +
			"WHERE id IS NULL)": false,
		"SELECT name FROM people WHERE EXISTS (SELECT sum(CASE WHEN id IS NULL THEN 1 ELSE VALUE END) FROM memories)": false,
		"WITH q AS (SELECT sum(VALUE) AS s FROM memories) SELECT p.name, s FROM people p JOIN q ON p.id IS NULL":      false,
		"WITH q AS (SELECT sum(VALUE) AS s FROM memories), r AS (SELECT s FROM q) SELECT p.name, s FROM people p, r":  false,
		"WITH q AS (SELECT max(VALUE) AS v FROM memories) SELECT name FROM people WHERE name IN (SELECT name FROM " +
			"people GROUP BY name HAVING (SELECT sum(v) FROM q) > 5)": false,
		"SELECT p.name FROM people p, (SELECT sum(v) FROM (SELECT VALUE AS v FROM memories UNION ALL SELECT VALUE " +
			"FROM memories) m) q": false,
		"SELECT p.name FROM people p, (SELECT sum(v) FROM (SELECT * FROM (SELECT min(VALUE) AS v FROM memories) " +
			"m) n) q": false,
	} {
		for column, isBounded := range map[string]bool{"n": true, "price": true, "score": false, "loose": false} {
			text := strings.ReplaceAll(sql, "VALUE", column)
			result, refusal := r.Rewrite(text, false)
			if refusal != nil || (result.Path == verdict.PathSigned) != (isSignedEverywhere || isBounded) {
				t.Errorf("%s: %v, path %s, %q", text, refusal, result.Path, result.RowSecurityReason)
			}
		}
	}
	for _, text := range []string{ // it is not certain which column is meant, or the column is computed
		"SELECT p.name FROM people p, (SELECT sum(x.v) FROM (SELECT price AS v FROM memories UNION ALL SELECT loose FROM memories) x) q",
		"SELECT p.name FROM people p, (SELECT sum(1e131071) FROM memories) q",
		"SELECT p.name FROM people p, (SELECT sum(extract(day FROM occurred_at)) FROM memories) q",
		"SELECT p.name FROM people p, (SELECT sum(coalesce(price, loose)) FROM memories) q",
		"SELECT p.name FROM people p, (SELECT sum(coalesce(loose, price)) FROM memories) q",
		"SELECT p.name FROM people p, (SELECT sum(CASE WHEN id IS NULL THEN price ELSE loose END) FROM memories) q",
		"SELECT p.name FROM people p, (SELECT sum(CASE WHEN id IS NULL THEN loose END) FROM memories) q",
	} {
		if result, refusal := r.Rewrite(text, false); refusal != nil || result.Path == verdict.PathSigned {
			t.Errorf("%s: %v, path %s", text, refusal, result.Path)
		}
	}
}

// A view whose expressions are all leak-safe has a signed view: its query, over the signed views of its tables.
func TestSignedPathIsForViews(t *testing.T) {
	rewriter(t, AlwaysSignedMode)
	r, _ := altered(t, AlwaysSignedMode, `ALTER TABLE memories ADD score double precision, ADD price numeric(10, 2);
		CREATE OR REPLACE VIEW patient_list AS SELECT id, name, born, NULL::bigint AS notes FROM patients;
		CREATE OR REPLACE VIEW shares AS SELECT m.id, m.title, length(m.title) AS share FROM memories m WHERE m.title LIKE 'a%';
		CREATE OR REPLACE VIEW lowest AS SELECT s.share AS id, s.title AS body FROM shares s JOIN notes n ON n.body = s.title;
		CREATE OR REPLACE VIEW bodies AS SELECT count(*)::int AS id, max(title) AS body FROM memories`)
	for sql, isSigned := range map[string]bool{
		"SELECT title FROM shares WHERE title LIKE '%lake%'":                           true,
		"SELECT s.* FROM shares AS s":                                                  true,
		"SELECT body FROM lowest":                                                      true,
		"SELECT name FROM people WHERE EXISTS (SELECT FROM shares WHERE title = name)": true,
		"SELECT title FROM shares WHERE share + 1 > 2":                                 false,
		"SELECT body FROM bodies":                                                      false, // a cast that may fail
		"SELECT id FROM patient_list":                                                  false, // the view has masks
		"SELECT title FROM short_titles":                                               false, // it groups by a primary key
		"SELECT id FROM either":                                                        false,
		"SELECT * FROM hosted":                                                         true, // the join uses a part of a key
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil || (result.Path == verdict.PathSigned) != isSigned || isSigned != strings.Contains(result.Text, "pgconsent_signed.visible_public_") {
			t.Errorf("%s: %v, path %s, %q\n%s", sql, refusal, result.Path, result.RowSecurityReason, result.Text)
		}
	}
	for view, want := range map[string]string{
		"shares": "SELECT m.id, m.title, pg_catalog.length(m.title) AS share FROM " +
			"pgconsent_signed.visible_public_memories m WHERE (m.title ~~ 'a%'::pg_catalog.text)",
		"lowest": "SELECT s.share AS id, s.title AS body FROM (pgconsent_signed.visible_public_shares s JOIN public.notes n ON ((n.body = s.title)))",
	} {
		v, _ := r.pol.View(catalog.Name{Schema: "public", Name: view})
		got := strings.Join(strings.Fields(v.SignedQuery), " ") // from 16 on, columns of a single table have no qualifier
		if got != want && got != strings.NewReplacer("m.", "").Replace(want) {
			t.Errorf("%s: %s", view, got)
		}
	}
}

// Each construct that keeps a text off the signed path is tried, beside a similar one that does not.
func TestSignedPathTakesPlainTexts(t *testing.T) {
	r := rewriter(t, AlwaysSignedMode)
	for _, c := range []struct{ takesArguments, stays, reason string }{
		{"SELECT title FROM memories", "SELECT title INTO TEMP t FROM memories", "*"},
		{"SELECT title FROM memories LIMIT 3 OFFSET 1", "SELECT title FROM memories LIMIT 1 + 2", "LIMIT or OFFSET"},
		{"SELECT title FROM memories LIMIT NULL", "SELECT title FROM memories OFFSET -1", "LIMIT or OFFSET"},
		{"SELECT title FROM (SELECT title FROM memories LIMIT $1) AS m",
			"SELECT title FROM (SELECT title FROM memories LIMIT $1 + 1) AS m", "LIMIT or OFFSET"},
		{"SELECT title FROM memories LIMIT $1::integer OFFSET $2::bigint", "SELECT title FROM memories LIMIT $1::numeric", "LIMIT or OFFSET"},
		{"SELECT title FROM memories WHERE id = $1", "SELECT title FROM memories WHERE id = $1 OR title = $1", "two types"},
		{"SELECT title FROM memories", "SELECT title FROM memories FOR SHARE", "*"},
		{"SELECT count(*) OVER w FROM memories WINDOW w AS ()", "SELECT n FROM (SELECT count(*) OVER w AS n FROM memories WINDOW w AS ()) m", "WINDOW"},
		{"SELECT title FROM memories ORDER BY title DESC", "SELECT title FROM memories ORDER BY title USING <", "USING"},
		{"SELECT title FROM memories ORDER BY 1", "SELECT title FROM memories ORDER BY 2", "*"},
		{"SELECT title AS a FROM memories ORDER BY a", "SELECT embedding AS a FROM memories ORDER BY a", "type that is not leak-safe"},
		{"SELECT title FROM memories ORDER BY lower(title)", "SELECT title FROM memories ORDER BY embedding", "type that is not leak-safe"},
		{"SELECT DISTINCT title FROM memories", "SELECT DISTINCT embedding FROM memories", "DISTINCT over column"},
		{"SELECT DISTINCT ON (title) title FROM memories", "SELECT DISTINCT ON (embedding) title FROM memories", "type that is not leak-safe"},
		{"SELECT title, count(*) FROM memories GROUP BY title HAVING count(*) > 1",
			"SELECT embedding, count(*) FROM memories GROUP BY embedding", "type that is not leak-safe"},
		{"SELECT title, count(*) FROM memories GROUP BY 1", "SELECT title, count(*) FROM memories GROUP BY ROLLUP (title)", "GroupingSet"},
		{"WITH m AS (SELECT title FROM memories) SELECT * FROM m",
			"WITH m AS (SELECT title FROM memories) SELECT * FROM m, LATERAL (SELECT m.title) AS l", "LATERAL"},
		{"WITH m (a) AS (SELECT title FROM memories) SELECT a FROM m", "WITH m (a, b) AS (SELECT title FROM memories) SELECT a FROM m", "*"},
		{"SELECT a FROM (SELECT title FROM memories) AS m (a)", "SELECT a FROM (SELECT title FROM memories) AS m (a, b)", "*"},
		{"SELECT title FROM memories UNION SELECT name FROM people", "SELECT title FROM memories UNION SELECT id FROM people", "set operation"},
		{"SELECT title FROM memories UNION ALL SELECT body FROM memories ORDER BY 1",
			"SELECT embedding FROM memories UNION ALL SELECT embedding FROM memories", "set operation"},
		{"SELECT title FROM memories EXCEPT SELECT name FROM people", "SELECT title, id FROM memories UNION SELECT name FROM people", "*"},
		{"SELECT title FROM memories", "SELECT title FROM memories, generate_series(1, 2)", "generate_series"},
		{"SELECT title FROM memories m JOIN people p ON m.user_id = p.user_id", "SELECT title FROM memories NATURAL JOIN people", "NATURAL"},
		{"SELECT title FROM memories JOIN people USING (user_id)", "SELECT title FROM memories JOIN people USING (user_id) AS j", "alias of the join"},
		{"SELECT title FROM memories JOIN people USING (user_id)", "SELECT title FROM (memories JOIN people USING (user_id)) AS j", "alias of the join"},
		{"SELECT title FROM memories m LEFT JOIN people p ON m.user_id = p.user_id", "SELECT * FROM memories JOIN people USING (user_id)", "* over a join"},
		{"SELECT user_id FROM memories JOIN people USING (user_id)", "SELECT user_id FROM memories m JOIN people p ON m.user_id = p.user_id", "*"},
		{"SELECT m.title FROM memories m", "SELECT p.title FROM memories m, people p", "*"},
		{"SELECT title FROM memories WHERE title > 'a' AND NOT title = 'b'", "SELECT title FROM memories WHERE (title, body) = ('a', 'b')", "RowExpr"},
		{"SELECT title FROM memories WHERE NULL", "SELECT title FROM memories WHERE max(title) > 'a'", "*"},
		{"SELECT title FROM memories WHERE (title IS NULL) IS NOT TRUE",
			"SELECT title FROM memories WHERE occurred_at < LOCALTIMESTAMP", "CURRENT_USER and its like"},
		{"SELECT title FROM memories WHERE occurred_at < CURRENT_TIMESTAMP",
			"SELECT title FROM memories WHERE occurred_at < now() - title::interval", "not leak-safe"},
		{"SELECT title FROM memories WHERE occurred_at > now() - interval '30 days'",
			"SELECT title FROM memories WHERE occurred_at > now() - interval '3000000 years'", "not leak-safe"},
		{"SELECT title FROM memories WHERE occurred_at >= CURRENT_DATE", "SELECT title FROM memories WHERE occurred_at - now() > '1 day'", "operator -"},
		{"SELECT occurred_at::date FROM memories", "SELECT id FROM memories ORDER BY title::date", "cast date"},
		{"SELECT title FROM memories WHERE occurred_at > '2020-01-01'::date", "SELECT id FROM memories ORDER BY title::pg_catalog.int4", "a cast to"},
		{"SELECT id::text FROM memories", "SELECT id FROM memories ORDER BY title::text[]", "cast to an array"},
		{"SELECT title FROM memories WHERE title = ANY ('{a,b}'::text[])",
			"SELECT title FROM memories WHERE title = ANY (string_to_array(body, ','))", "string_to_array"},
		{"SELECT title FROM memories WHERE title = ANY (ARRAY['a', body])",
			"SELECT title FROM memories WHERE title = ALL (ARRAY['a', body])", "this form of operator"},
		{"SELECT title FROM memories WHERE title = ANY ($1)", "SELECT title FROM memories WHERE embedding = ANY ($1)", "ANY over"},
		{"SELECT title FROM memories WHERE title IN ('a', body)", "SELECT title FROM memories WHERE embedding IN ('[1]')", "operator ="},
		{"SELECT title FROM memories WHERE title BETWEEN 'a' AND 'b'",
			"SELECT title FROM memories WHERE title BETWEEN SYMMETRIC 'b' AND 'a'", "this form of operator"},
		{"SELECT nullif(title, body) FROM memories", "SELECT title FROM memories WHERE title SIMILAR TO 'a' ESCAPE 'b'", "*"},
		{"SELECT title FROM memories WHERE title IS DISTINCT FROM body", "SELECT title FROM memories WHERE -length(title) < 0", "in front of"},
		{"SELECT coalesce(title, 'a') FROM memories", "SELECT id FROM memories WHERE coalesce(embedding, NULL) IS NULL", "COALESCE over"},
		{"SELECT CASE title WHEN 'a' THEN body ELSE title END FROM memories",
			"SELECT id FROM memories ORDER BY CASE WHEN title = 'a' THEN length(body) ELSE now() END", "CASE over"},
		{"SELECT CASE WHEN title = 'a' THEN 1 END FROM memories", "SELECT id FROM memories ORDER BY CASE WHEN title THEN 1 END", "*"},
		{"SELECT lower(title) FROM memories", "SELECT id FROM memories ORDER BY md5(title)", "function md5"},
		{"SELECT extract(year FROM occurred_at) FROM memories", "SELECT id FROM memories ORDER BY pg_catalog.extract('year', occurred_at)", "extract"},
		{"SELECT extract(year FROM occurred_at) FROM memories", "SELECT id FROM memories ORDER BY extract(week FROM occurred_at)", "extract"},
		{"SELECT left(title, 3) FROM memories", "SELECT id FROM memories ORDER BY left(title, length(body))", "function left"},
		{"SELECT substr(title, 1, 2) FROM memories", "SELECT id FROM memories ORDER BY substr(title, 1, -2)", "function substr"},
		{"SELECT count(DISTINCT title) FROM memories", "SELECT count(DISTINCT embedding) FROM memories", "count over a type"},
		{"SELECT count(*) FILTER (WHERE title = 'a') FROM memories",
			"SELECT s FROM (SELECT string_agg(title, ',' ORDER BY title) AS s FROM memories) m", "ORDER BY"},
		{"SELECT max(title) FROM memories", "SELECT m FROM (SELECT max(embedding) AS m FROM memories) q", "*"},
		{"SELECT avg(length(title)) FROM memories",
			"SELECT p FROM (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY title) AS p FROM memories) q", "WITHIN GROUP"},
		{"SELECT name FROM people WHERE EXISTS (SELECT FROM memories)",
			"SELECT name FROM people WHERE ARRAY(SELECT title FROM memories) = '{}'", "this form of sub-select"},
		{"SELECT name FROM people WHERE name IN (SELECT title FROM memories)",
			"SELECT name FROM people WHERE name = ANY (SELECT title FROM memories)", "ANY (SELECT"},
		{"SELECT name FROM people WHERE name NOT IN (SELECT title FROM memories)", "SELECT name FROM people WHERE id IN (SELECT title FROM memories)", "*"},
		{"SELECT (SELECT count(*) FROM memories) FROM people", "SELECT (SELECT count(*) FROM memories GROUP BY title) FROM people", "several rows"},
		{"SELECT (SELECT max(title) FROM memories) FROM people", "SELECT (SELECT max(title) FROM memories UNION SELECT 'a') FROM people", "*"},
		{"SELECT metadata ->> 'place' FROM memories", "SELECT metadata ->> title FROM memories", ""},
		{"SELECT title FROM memories WHERE metadata @> '{}'", "SELECT id FROM memories ORDER BY (metadata ->> 'stars')::integer", "a cast to"},
		{"SELECT title FROM memories WHERE title LIKE 'a%'", "SELECT title FROM memories WHERE title LIKE body", "operator ~~"},
		{"SELECT title FROM memories WHERE title LIKE 'a%'", "SELECT title FROM memories WHERE title LIKE E'a\\\\'", "operator ~~"},
	} {
		for _, side := range []struct {
			sql      string
			isSigned bool
		}{{c.takesArguments, true}, {c.stays, c.reason == ""}} {
			result, refusal := r.Rewrite(side.sql, false)
			if refusal != nil {
				if side.isSigned || c.reason != "*" {
					t.Errorf("%s: %v", side.sql, refusal)
				}
				continue
			}
			if isSigned := result.Path == verdict.PathSigned; isSigned != side.isSigned || !isSigned && c.reason != "*" &&
				!strings.Contains(result.RowSecurityReason, c.reason) {
				t.Errorf("%s: path %s, %q, want %q", side.sql, result.Path, result.RowSecurityReason, c.reason)
			}
		}
	}
}

// Every date and time type has the fields that EXTRACT may name, and can be truncated to the units. Otherwise the
// expression would fail on a hidden row.
func TestEveryTimeTypeHasTheseFields(t *testing.T) {
	_, conn := altered(t, AlwaysSignedMode, "SELECT 1")
	evaluateAll := func(format, field string, times ...string) {
		for _, timeValue := range times {
			if _, err := conn.Exec(t.Context(), fmt.Sprintf(format, field, timeValue)); err != nil {
				t.Errorf("%s of %s: %v", field, timeValue, err)
			}
		}
	}
	for _, field := range timeFields {
		evaluateAll("SELECT extract(%s FROM %s)", field, "'infinity'::timestamp", "'4713-01-01 BC'::timestamp",
			"'294276-12-31 23:59:59'::timestamp", "'-infinity'::timestamptz", "now()")
	}
	for _, field := range dateFields {
		evaluateAll("SELECT extract(%s FROM %s)", field, "'infinity'::date", "'4713-01-01 BC'::date", "'5874897-12-31'::date")
	}
	for _, unit := range truncUnits {
		evaluateAll("SELECT date_trunc('%s', %s)", unit, "now()", "CURRENT_DATE")
	}
}

// Every entry of the list of leak-safe functions has a reason, and names only kinds of arguments that exist.
func TestLeakSafeListIsWellFormed(t *testing.T) {
	kinds := map[kind]bool{"any": true, "pattern": true, "string": true, "short": true, "field": true,
		"datefield": true, "unit": true, "days": true, "integer": true, "natural": true, "label": true, "brief": true,
		"shallow": true, "expression": true, "query": true, "same": true,
		kindEnum: true, kindCurrentTime: true, kindRecent: true, kindToday: true, kindInterval: true}
	for _, k := range typeKinds {
		kinds[k] = true
	}
	for _, k := range extensionKinds {
		kinds[kind(k)] = true
	}
	for name, entries := range leakSafeList {
		kindOfEntry, entryName, _ := strings.Cut(name, " ")
		for _, e := range entries {
			if e.reason == "" || !kinds[e.result] {
				t.Errorf("%s: result %q, reason %q", name, e.result, e.reason)
			}
			for _, operands := range e.operands {
				for _, k := range operands {
					if !kinds[k] {
						t.Errorf("%s: operand %q", name, k)
					}
				}
			}
		}
		if (kindOfEntry == "function" || kindOfEntry == "aggregate") && catalogFunctions[entryName].class != classAllow &&
			!extensionFunctions.allows("pg_trgm", entryName) {
			t.Errorf("%s is not a function that agents may call", entryName)
		}
		if kindOfEntry == "operator" && !operatorList.allows(catalogKey, entryName) && !operatorList.allows("pg_trgm", entryName) {
			t.Errorf("%s is not an operator that agents may use", entryName)
		}
	}
}

// Where a rule's answers are materialized, row security reads them. The signed path would evaluate the rule for every
// user. So such tables take the signed path only for operators that need it.
func TestMaterializedAnswersNeedNoSignedPath(t *testing.T) {
	rewriter(t, AutoMode)
	text, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	notInjected := strings.Replace(string(text), "status: consent_status, is: granted }", "status: consent_status, is: granted, materialize: true }", 1)
	doc, err := policy.Parse("policy.yaml", []byte(notInjected))
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.Compile(doc, fixture.snap, policy.WithViews(RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	notMaterialized, materialized := rewriter(t, AutoMode).WithSizes(sizes()), New(fixture.snap, pol, AutoMode).WithSizes(sizes())
	for sql, want := range map[string]verdict.Path{
		"SELECT count(*) FROM memories": verdict.PathRowSecurity,
		"SELECT count(*) FROM memories WHERE title <> 'x' AND occurred_at > now() - interval '1 day'": verdict.PathRowSecurity,
		"SELECT count(*) FROM memories WHERE title ILIKE '%x%'":                                       verdict.PathSigned,
		"SELECT count(*) FROM memories WHERE metadata @> '{}'":                                        verdict.PathSigned,
		"SELECT count(*) FROM memories WHERE metadata = '{}'":                                         verdict.PathSigned,
		"SELECT count(*) FROM memories m JOIN people p ON p.id = m.id":                                verdict.PathSigned,
	} {
		before, refusal := notMaterialized.Rewrite(sql, false)
		after, refusedToo := materialized.Rewrite(sql, false)
		if refusal != nil || refusedToo != nil {
			t.Errorf("%s: %v, %v", sql, refusal, refusedToo)
			continue
		}
		if before.Path != verdict.PathSigned || after.Path != want {
			t.Errorf("%s: %s (%s), and where the answers are materialized %s (%s)", sql, before.Path, before.RowSecurityReason, after.Path, after.RowSecurityReason)
		}
	}
}

// An extension's aggregate with the name of a PostgreSQL aggregate does not keep the latter off the signed path, as
// long as the types differ.
func TestSignedPathIsForAggregatesOfManyNames(t *testing.T) {
	r, _ := altered(t, AlwaysSignedMode, "CREATE EXTENSION citext")
	for sql, isSigned := range map[string]bool{
		"SELECT max(title), min(occurred_at) FROM memories": true, "SELECT max('x') FROM memories": false,
		"SELECT min(NULL) FROM memories": false, "SELECT max($1) FROM memories": false,
	} {
		if result, refusal := r.Rewrite(sql, false); refusal != nil || isSigned != (result.Path == verdict.PathSigned) {
			t.Errorf("%s: path %s, %q, %v", sql, result.Path, result.RowSecurityReason, refusal)
		}
	}
	r, _ = altered(t, AlwaysSignedMode, "CREATE AGGREGATE public.max(jsonb) (SFUNC = jsonb_concat, STYPE = jsonb)")
	if result, refusal := r.Rewrite("SELECT max(title) FROM memories", false); refusal == nil && result.Path == verdict.PathSigned {
		t.Errorf("an aggregate of the owner's: %s", result.Text)
	}
}
