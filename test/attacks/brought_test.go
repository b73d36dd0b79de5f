package attacks

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// implicitCodeSchema has types and operator classes whose functions run although no statement names them.
const implicitCodeSchema = probeFunctions + `
CREATE DOMAIN odd AS int CHECK (probe(VALUE) > 0);
CREATE TYPE pair AS (d odd, x int);
CREATE TYPE stage AS ENUM ('s1', 's2');
CREATE FUNCTION stage_json(stage) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN '"s"'; END $$;
CREATE CAST (stage AS json) WITH FUNCTION stage_json(stage);
CREATE FUNCTION hashed(text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN hashtext($1); END $$;
CREATE OPERATOR CLASS hashing FOR TYPE text USING hash AS OPERATOR 1 =, FUNCTION 1 hashed(text);
CREATE FUNCTION compared(text, text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN bttextcmp($1, $2); END $$;
CREATE OPERATOR CLASS tags FOR TYPE text[] USING gin AS OPERATOR 1 && (anyarray, anyarray), OPERATOR 2 @> (anyarray, anyarray),
OPERATOR 3 <@ (anyarray, anyarray), OPERATOR 4 = (anyarray, anyarray),
	FUNCTION 1 compared(text, text), FUNCTION 2 ginarrayextract(anyarray, internal, internal),
		FUNCTION 3 ginqueryarrayextract(anyarray, internal, int2, internal, internal, internal, internal),
	FUNCTION 4 ginarrayconsistent(internal, int2, anyarray, int4, internal, internal, internal, internal), STORAGE text;
CREATE EXTENSION citext; CREATE OR REPLACE FUNCTION replace(citext, citext, citext) RETURNS text
  LANGUAGE plpgsql IMMUTABLE STRICT AS $$ BEGIN PERFORM public.asks(); RETURN $1; END $$;
CREATE FUNCTION wrapped(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + public.probe(1)';
`

const (
	manyRows        = "INSERT INTO T (id, owner, x, note) SELECT g, 'me', g, 'n' || g FROM generate_series(10, 4000) g;"
	splitPartitions = "CREATE TABLE low_of_T PARTITION OF split_of_T FOR VALUES FROM (0) TO (10); CREATE TABLE high_of_T " +
		"PARTITION OF split_of_T FOR VALUES FROM (10) TO (20); INSERT INTO split_of_T SELECT id, owner, x FROM T;"
)

// implicitCodeCases are tables. A read of one runs code of the owner's that the statement does not name.
var implicitCodeCases = []struct {
	name, columns, sql string
	statements         []string
}{
	{name: "a_rule", sql: "CREATE TABLE led_of_T (name text PRIMARY KEY, owner text NOT NULL); INSERT INTO " +
		"led_of_T VALUES ('me', 'me'); CREATE INDEX ON led_of_T ((length(name) + probe(1))); CREATE TABLE " +
		"ruled_of_T (id int, owner text NOT NULL); INSERT INTO ruled_of_T SELECT id, owner FROM T", statements: []string{"SELECT id FROM ruled_of_T"}},
	{name: "arrays_of_domains", columns: ", ds odd[] DEFAULT '{1}'", statements: []string{
		"SELECT ds = '{5}' FROM T", "SELECT id FROM T WHERE ds = '{5}'", "SELECT COALESCE(ds, '{5}') FROM T",
		"SELECT array_position(ds, '5') FROM T", "SELECT array_append(ds, '5') FROM T",
		"SELECT CASE WHEN id = 3 THEN ds ELSE '{5}' END FROM T", "SELECT ds FROM T UNION SELECT '{5}'", "SELECT COALESCE(ds, ARRAY[5]) FROM T",
		"SELECT id FROM T WHERE ds IN ('{5}', '{6}')", "DELETE FROM T WHERE ds = '{5}'",
		"UPDATE aim SET note = 'x' FROM T WHERE ds = '{5}'", "SELECT lag(ds, 1, '{5}') OVER () FROM T",
		"DELETE FROM T WHERE id = 9 RETURNING ds = '{5}'", "SELECT ds @> '{5}' FROM T", "SELECT ARRAY[ds, '{5}'] FROM T",
	}},
	{name: "composites_of_domains", columns: ", h pair DEFAULT '(1,2)'",
		statements: []string{"SELECT COALESCE(h, '(1,2)') FROM T",
			"SELECT json_populate_record(h, '{\"d\": 5}') FROM T", "SELECT ARRAY[h, '(5,6)'] FROM T",
			"SELECT (jsonb_populate_recordset(h, '[{\"d\": 5}]')).* FROM T"}},
	{name: "rows_with_domains", columns: ", d odd DEFAULT 1",
		statements: []string{"SELECT jsonb_populate_record(T, '{\"d\": 5}') FROM T",
			"SELECT COALESCE(T, '(1,me,1,a,5)') FROM T", "SELECT array_position(ARRAY[d], '5') FROM T", "SELECT lag(d, 1, '5') OVER () FROM T"}},
	{name: "casts_to_json", columns: ", c stage DEFAULT 's1', cs stage[] DEFAULT '{s1}'", statements: []string{
		"SELECT to_json(c) FROM T", "SELECT to_jsonb(c) FROM T", "SELECT row_to_json(T) FROM T",
		"SELECT jsonb_agg(T) FROM T", "SELECT json_build_object('c', c) FROM T",
		"SELECT jsonb_object_agg(id, c) FROM T", "SELECT to_json(cs) FROM T", "SELECT to_json('s1'::stage)",
		"SELECT json_agg(q) FROM (SELECT c, id FROM T) q",
		"DELETE FROM T WHERE id = 3 RETURNING to_json(c)", "SELECT array_to_json(cs) FROM T", "UPDATE aim SET note = to_json(c)::text FROM T",
	}},
	{name: "replaced", columns: ", c citext DEFAULT 'c'",
		statements: []string{"SELECT replace(c, 'a', 'b') FROM T",
			"DELETE FROM T WHERE id = 3 RETURNING replace(c, 'a', 'b')", "SELECT id FROM T WHERE replace(c, 'a'::citext, 'b'::citext) = 'x'"}},
	{name: "an_index", sql: manyRows + "CREATE INDEX ON T (x probing); ANALYZE T",
		statements: []string{"SELECT id FROM T WHERE x = 77", "SELECT count(*) FROM T WHERE x BETWEEN 77 AND 79",
			"DELETE FROM T WHERE x = 77", "SELECT count(*) FROM aim JOIN T USING (x)",
			"UPDATE aim SET note = 'x' FROM T WHERE T.x = 77", "SELECT id FROM view_of_T WHERE x = 77"}},
	{name: "a_hash", sql: manyRows + "CREATE INDEX ON T USING hash (note hashing); ANALYZE T",
		statements: []string{"SELECT id FROM T WHERE note = 'n77'", "DELETE FROM T WHERE note = 'n77'"}},
	{name: "a_gin", columns: ", tg text[]", sql: manyRows +
		"UPDATE T SET tg = ARRAY['t' || x % 500, 'u' || x]; CREATE INDEX ON T USING gin (tg tags); ANALYZE T",
		statements: []string{"SELECT id FROM T WHERE tg @> '{t77}'",
			"DELETE FROM T WHERE tg @> '{u77}' AND x / 2 = 5", "SELECT count(*) FROM T JOIN aim ON aim.id = T.id WHERE tg && '{u77}' AND T.x / 2 > 5"}},
	{name: "an_expression", sql: "CREATE INDEX ON T ((x + probe(1)))",
		statements: []string{"SELECT id FROM T", "DELETE FROM T WHERE id = 9", "SELECT id FROM view_of_T"}},
	{name: "a_predicate", sql: "CREATE INDEX ON T (note) WHERE x > probe(1)",
		statements: []string{"SELECT id FROM T WHERE x = 1", "DELETE FROM T WHERE x > 7"}},
	{name: "an_inlined_one", sql: "CREATE INDEX ON T (wrapped(x))", statements: []string{"SELECT id FROM T WHERE x = 1"}},
	{name: "a_range", sql: "CREATE INDEX ON T ((x = 1 AND '[1,2]'::spans @> 1))", statements: []string{"SELECT id FROM T WHERE x = 1"}},
	{name: "statistics", sql: "CREATE STATISTICS stat_of_T ON (x + probe(1)), id FROM T; ANALYZE T",
		statements: []string{"SELECT id FROM T WHERE x = 1", "DELETE FROM T WHERE x > 7", "SELECT count(*) FROM T GROUP BY x"}},
	{name: "a_policy", sql: "ALTER TABLE T ENABLE ROW LEVEL SECURITY; CREATE POLICY team ON T USING (probe(1) > 0)",
		statements: []string{"SELECT id FROM T WHERE x = 1"}},
	{name: "a_policy_of_updates",
		sql: "ALTER TABLE T ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON T AS RESTRICTIVE FOR UPDATE USING " +
			"(probe(x) > 0)", statements: []string{"SELECT id FROM T WHERE x = 1 FOR UPDATE", "SELECT id FROM T FOR KEY SHARE"}},
	{name: "a_check", sql: "ALTER TABLE T ADD CHECK (x < 1000 + probe(1))",
		statements: []string{"SELECT id FROM (SELECT id, x FROM T UNION ALL SELECT id, x FROM T) q WHERE x > 1"}},
	{name: "its_classes", sql: "CREATE TABLE split_of_T (id int, owner text, x int) PARTITION BY RANGE (x probing);" +
		splitPartitions, statements: []string{"SELECT id FROM split_of_T", "SELECT id FROM split_of_T WHERE x = 1"}},
	{name: "its_expression",
		sql: "CREATE TABLE split_of_T (id int, owner text, x int) PARTITION BY RANGE ((x + probe(1)));" +
			splitPartitions, statements: []string{"SELECT id FROM split_of_T", "SELECT id FROM split_of_T WHERE x = 1"}},
	{name: "a_part", sql: "CREATE TABLE split_of_T (id int, owner text, x int) PARTITION BY RANGE (id);" + splitPartitions +
		"CREATE INDEX ON low_of_T ((x + probe(1)))", statements: []string{"SELECT id FROM split_of_T", "SELECT id FROM split_of_T WHERE x = 1"}},
}

// PostgreSQL runs some code of the owner's that no statement names: while it plans, finds rows, or converts values. A
// statement that runs such code must get a hardened plan, and must not take the signed path.
func TestUnnamedOwnersCodeTellsNothing(t *testing.T) {
	tier.All(t)
	schema, policy, views := implicitCodeSchema+plainTablesSQL, costlyRulePolicy+plainTablesPolicy, "views: {"
	var statements []string
	for _, c := range implicitCodeCases {
		schema += withTableName("CREATE TABLE T (id int PRIMARY KEY, owner text NOT NULL, x int, note text"+c.columns+
			"); INSERT INTO T (id, owner, x, note) VALUES (1, 'me', 1, 'a'), (3, 'me', 3, 'c'), (2, 'other', 2, "+
			"'b'); CREATE VIEW view_of_T AS SELECT id, x FROM T;"+c.sql+";", c.name)
		policy += withTableName("  T: { rows: [ { own: { column: owner, is: user } } ], write: { commands: [update, delete] } }\n", c.name)
		views += withTableName(" view_of_T: {},", c.name)
		if strings.Contains(c.sql, "split_of_T") {
			policy += withTableName("  split_of_T: { rows: [ { own: { column: owner, is: user } } ] }\n", c.name)
		}
		if strings.Contains(c.sql, "ruled_of_T") {
			policy += withTableName(
				"  led_of_T: { rows: [ { own: { column: owner, is: user } } ] }\n  ruled_of_T: { rows: [ { "+
					"visible: { led_of_T: { name: owner } } } ] }\n", c.name)
		}
		for _, sql := range c.statements {
			statements = append(statements, withTableName(sql, c.name))
		}
	}
	for _, mode := range signedPathModes() {
		got, decisions := askTwins(t, mode, policy+views+" }\n", schema, "", "", statements)
		for k, sql := range statements {
			if got[0][k] != got[1][k] || strings.HasPrefix(got[0][k], "ERROR") {
				t.Errorf("%s: %s {%s}\n   %s\n   %s", mode.Name, sql, decisions[k], instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
			}
			if strings.HasSuffix(decisions[k], "hardened: ") || strings.HasPrefix(decisions[k], "signed") {
				t.Errorf("%s: %s {%s}", mode.Name, sql, decisions[k])
			}
		}
	}
}

// modesOf returns the modes in which a test attacks. Signed views alone, which no operator may choose, are tried in the
// nightly run, or by a test that has no other mode.
func modesOf(all ...instance.Mode) []instance.Mode {
	all = instance.Modes(all...)
	if tier.IsNightly() || len(all) < 2 {
		return all
	}
	return slices.DeleteFunc(all, func(m instance.Mode) bool { return m.Name == instance.SignedViews.Name })
}

// signedPathModes returns the modes of tests of the signed path: in the quick run only the signed path itself.
func signedPathModes() []instance.Mode {
	if tier.Quick() {
		return []instance.Mode{instance.Auto}
	}
	return modesOf(instance.Auto, instance.Both)
}

var tableLetter = regexp.MustCompile(`\bT\b`)

// withTableName replaces the letter T in a statement by a table's name, also in names that end with _of_T.
func withTableName(sql, name string) string {
	return tableLetter.ReplaceAllString(strings.ReplaceAll(sql, "_of_T", "_of_"+name), name)
}

// A constant beside a value is converted to the value's type when the statement is parsed. The conversion may run code
// of the owner's, which must not reveal the hidden row in any protocol form.
func TestParseTimeConversionsTellNothing(t *testing.T) {
	tier.All(t)
	const schema = implicitCodeSchema +
		"CREATE TABLE q (id int PRIMARY KEY, owner text NOT NULL, ds odd[] DEFAULT '{1}', h pair DEFAULT '(1,2)', " +
		"s spans DEFAULT '[1,2]', sm spans_multirange DEFAULT '{[1,2]}'); INSERT INTO q VALUES (1, 'me'), (2, 'other');"
	policy := costlyRulePolicy + "  q: { rows: [ { own: { column: owner, is: user } } ], write: { commands: [delete] } }\n"
	reads := []string{"SELECT id FROM q WHERE ds = '{5}'", "SELECT COALESCE(h, '(5,6)') FROM q",
		"SELECT id FROM q WHERE s && '[3,4]'", "SELECT sm = '{[3,4]}' FROM q", "DELETE FROM q WHERE ds = '{5}'", "SELECT array_append(ds, '5') FROM q"}
	for _, mode := range signedPathModes() {
		var got [2][]string
		var askedStatements []string
		for i, hidden := range []string{"122", "123"} {
			db := pgtest.Database(t)
			instance.Exec(t, db, reachedSchema+schema+"ANALYZE; UPDATE big SET a = 9999 WHERE a = "+hidden)
			d := instance.Database{Name: "pair", DB: db, Policy: policy, SearchPath: []string{"public"}}
			c := instance.Start(t, mode, d, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
			addAnswer := func(form, sql string, answer instance.Answer) {
				if i == 0 {
					askedStatements = append(askedStatements, form+": "+sql)
				}
				got[i] = append(got[i], answer.SortedString())
			}
			for _, sql := range reads {
				addAnswer("extended", sql, instance.AskExtended(c, sql))
				addAnswer("prepared", sql, instance.AskPrepared(c, sql, nil, nil, nil))
				addAnswer("PREPARE", sql, instance.Ask(c, "PREPARE p AS "+sql))
				addAnswer("PREPARE, extended", sql, instance.AskExtended(c, "PREPARE r AS "+sql))
				addAnswer("EXECUTE", sql, instance.Ask(c, "EXECUTE p; DEALLOCATE ALL"))
				if strings.HasPrefix(sql, "SELECT") {
					instance.Ask(c, "BEGIN")
					addAnswer("DECLARE", sql, instance.AskExtended(c, "DECLARE w CURSOR FOR "+sql))
					instance.Ask(c, "ROLLBACK")
					addAnswer("COPY", sql, instance.AskCopy(c, "COPY ("+sql+") TO STDOUT"))
				}
			}
			addAnswer("parameters", "", instance.AskExtended(c, "SELECT id FROM q WHERE ds = $1 OR s = $2", []byte("{5}"), []byte("[3,4]")))
		}
		for k := range askedStatements {
			if got[0][k] != got[1][k] || strings.Contains(got[0][k], "ERROR") {
				t.Errorf("%s: %s\n   %s\n   %s", mode.Name, askedStatements[k], instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
			}
		}
	}
}

// A client may declare a parameter's type, and the type may run functions of other roles that the statement does not
// name. These functions must not see the signature in the statement's text.
func TestDeclaredTypesSeeNoSignature(t *testing.T) {
	const schema = `CREATE EXTENSION pg_trgm; CREATE TYPE seen AS ENUM ('s');
CREATE FUNCTION seen_json(seen) RETURNS json
  LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN IF current_query() ~ '^/\*pgconsent:v1:' THEN RAISE EXCEPTION 'signed'; END IF; RETURN '"s"'; END $$;
CREATE CAST (seen AS json) WITH FUNCTION seen_json(seen);
CREATE TABLE w (id int PRIMARY KEY, owner text NOT NULL, note text); INSERT INTO w SELECT g, 'me', 'note ' || g FROM generate_series(1, 3000) g;
CREATE INDEX ON w USING gin (note gin_trgm_ops); ANALYZE;`
	db := pgtest.Database(t)
	instance.Exec(t, db, schema)
	var seen uint32
	if err := db.Connect(t, "postgres").QueryRow(t.Context(), "SELECT 'seen'::regtype::oid").Scan(&seen); err != nil {
		t.Fatal(err)
	}
	d := instance.Database{Name: "pair", DB: db,
		Policy: policyHead + "  w: { rows: [ own: { column: owner, is: user } ], write: { commands: [delete] } }\n", SearchPath: []string{"public"}}
	c := instance.Start(t, instance.Auto, d, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
	for _, sql := range []string{"DELETE FROM w WHERE note LIKE '%te 12%' AND id / 2 = 62 RETURNING to_json($1)",
		"SELECT to_json($1) FROM w JOIN w x USING (id) WHERE w.note LIKE '%te 13%' AND x.id / 2 > 3 LIMIT 1",
		"SELECT id, jsonb_build_array($1) FROM w WHERE note LIKE '%te 13%' LIMIT 1"} {
		if a := instance.AskDeclared(c, sql, []uint32{seen}, []byte("s")); a.Err != "" || len(a.Results) != 1 || len(a.Results[0].Rows) == 0 {
			t.Errorf("%s: %s", sql, a.SortedString())
		}
	}
}
