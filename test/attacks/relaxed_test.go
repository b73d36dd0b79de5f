package attacks

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// userCodeFunctions are SQL functions whose text seems to name no user object. User code runs in them all the same.
const userCodeFunctions = `
CREATE FUNCTION f$1(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN n; END $$;
CREATE FUNCTION f€(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN n; END $$;
CREATE FUNCTION gÄ(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN n; END $$;
CREATE FUNCTION by_dollar(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT public.f$1(1) + $1';
CREATE FUNCTION by_sign(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT public.f€(1) + $1';
CREATE FUNCTION by_case(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT public.gÄ(1) + $1';
CREATE FUNCTION by_columns(int, OUT a odd, OUT b int) LANGUAGE sql IMMUTABLE AS 'SELECT $1, 1';
CREATE FUNCTION by_default(n int, m int DEFAULT probe(1)) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + $2';
CREATE FUNCTION by_default_late(n int, m int DEFAULT probe(1)) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 + $2; END';
CREATE FUNCTION by_default_idle(n int, m int DEFAULT probe(1)) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN $1 + $2; END';
CREATE TYPE moods AS ENUM ('s1'); CREATE FUNCTION moody(moods) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN 1; END $$;
CREATE CAST (moods AS int) WITH FUNCTION moody(moods);
CREATE FUNCTION by_any(anyelement) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1::int';
CREATE FUNCTION by_setting(int) RETURNS text LANGUAGE sql IMMUTABLE SET standard_conforming_strings = off AS $f$ SELECT '\'' || public.probe(1) || '.' $f$;
CREATE EXTENSION tablefunc;
CREATE FUNCTION by_query(int) RETURNS text
  LANGUAGE sql IMMUTABLE AS $$ SELECT (public.crosstab2('SELECT ''a''::text, ''b''::text, public.probe(1)::text')).row_name $$;
CREATE FUNCTION hashed(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN 1; END $$;
CREATE FUNCTION hashed(int, bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN 1; END $$;
CREATE OPERATOR CLASS hashing_ints FOR TYPE int USING hash AS OPERATOR 1 =, FUNCTION 1 hashed(int), FUNCTION 2 hashed(int, bigint);
CREATE TABLE divided (x int) PARTITION BY HASH (x hashing_ints);
CREATE FUNCTION by_partition(int) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT satisfies_hash_partition('public.divided'::regclass, 2, 0, $1) $$;
CREATE FUNCTION by_label(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT public.probe(1) + $1 AS select';
CREATE FUNCTION by_parsing(int) RETURNS bool LANGUAGE sql STABLE AS $$ SELECT EXISTS (SELECT FROM public.small WHERE '{5}'::public.odd[] IS NOT NULL) $$;
CREATE FUNCTION by_input(int) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT domain_in('5', 'public.odd'::regtype, -1) IS NOT NULL $$;
`

// userCodeOperators are casts, operator classes and operators that run although no text names them. Where they exist,
// no SQL function counts as plain.
const userCodeOperators = `
CREATE FUNCTION bool_date(bool) RETURNS date LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN '2020-01-01'; END $$;
CREATE CAST (bool AS date) WITH FUNCTION bool_date(bool) AS ASSIGNMENT;
CREATE FUNCTION by_cast(int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT date_part('day', ($1 > 0)::date)::int $$;
CREATE FUNCTION by_result(bool) RETURNS date LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION json_same(json, json) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN $1::text = $2::text; END $$;
CREATE FUNCTION json_hash(json) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN hashtext($1::text); END $$;
CREATE OPERATOR === (LEFTARG = json, RIGHTARG = json, FUNCTION = json_same, COMMUTATOR = ===, HASHES);
CREATE OPERATOR CLASS jsons DEFAULT FOR TYPE json USING hash AS OPERATOR 1 ===, FUNCTION 1 json_hash(json);
CREATE FUNCTION by_class(int) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT ARRAY['1'::json] IN (ARRAY[json_build_array()], ARRAY[json_build_object()]) $$;
CREATE FUNCTION unlike(varchar, text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN true; END $$;
CREATE OPERATOR !~ (LEFTARG = varchar, RIGHTARG = text, FUNCTION = unlike);
CREATE FUNCTION by_similar(varchar) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT $1 NOT SIMILAR TO 'a' $$;
CREATE OR REPLACE FUNCTION geo_distance(point, point) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM public.asks(); RETURN 1; END $$;
CREATE FUNCTION by_replaced(int) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$ SELECT '(0,0)'::point OPERATOR(public.<@>) '(1,1)'::point $$;
`

var userCodeCases = []struct{ name, sql string }{
	{"by_dollar", "CREATE INDEX ON T ((x + by_dollar(1)))"},
	{"by_sign", "CREATE INDEX ON T ((x + by_sign(1)))"},
	{"by_letter", "CREATE INDEX ON T ((x + by_case(1)))"},
	{"by_columns", "CREATE INDEX ON T ((x > 0 AND by_columns(x) IS NOT NULL))"},
	{"by_defaults", "CREATE INDEX ON T ((by_default(x)))"},
	{"by_default_late", "CREATE INDEX ON T ((by_default_late(x)))"},
	{"by_any_type", "CREATE INDEX ON T ((x + by_any('s1'::moods)))"},
	{"by_setting", "CREATE INDEX ON T ((x > 0 AND by_setting(1) IS NOT NULL))"},
	{"by_query", "CREATE INDEX ON T ((x > 0 AND by_query(1) IS NOT NULL))"},
	{"by_partition", "CREATE INDEX ON T ((x > 0 AND by_partition(1)))"},
	{"by_label_policy", "ALTER TABLE T ENABLE ROW LEVEL SECURITY; CREATE POLICY zz ON T USING (by_label(1) > 0)"},
	{"by_parsing_policy", "ALTER TABLE T ENABLE ROW LEVEL SECURITY; CREATE POLICY zz ON T USING (by_parsing(1))"},
	{"by_input", "CREATE INDEX ON T ((x > 0 AND by_input(1)))"},
	{"by_default_policy", "ALTER TABLE T ENABLE ROW LEVEL SECURITY; CREATE POLICY zz ON T USING (by_default_idle(x) > 0)"},
	{"by_a_name_of_ours", "CREATE POLICY pgconsent_zz ON T USING (probe(1) > 0)"},
	{"by_multirange", "CREATE INDEX ON T ((x > 0 AND '{[1,2]}'::spans_multirange @> 1))"},
}

var userCodeOperatorCases = []struct{ name, sql string }{
	{"by_cast", "CREATE INDEX ON T ((x + by_cast(1)))"},
	{"by_result", "CREATE INDEX ON T ((x > 0 AND by_result(true) IS NOT NULL))"},
	{"by_classes", "CREATE INDEX ON T ((x > 0 AND by_class(1)))"},
	{"by_similar", "CREATE INDEX ON T ((x > 0 AND by_similar('x')))"},
	{"by_replaced", "CREATE INDEX ON T ((x > by_replaced(1)))"},
}

// plainFunctionCases use SQL functions that run no user code, in the same schema.
var plainFunctionCases = []struct{ name, sql string }{
	{"an_initial", "CREATE FUNCTION initial(text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = '' AS $$ " +
		"SELECT pg_catalog.upper(left($1, 1)) || '.' $$; CREATE INDEX ON T (initial(note))"},
	{"a_default", "CREATE FUNCTION cut(text, n int DEFAULT 3) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT " +
		"left($1, n);'; CREATE INDEX ON T (cut(note)); ALTER TABLE T ADD CHECK (cut(note, 5) NOT SIMILAR TO 'zz')"},
	{"policies", "CREATE FUNCTION mine(n int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT EXISTS (SELECT FROM " +
		"small s WHERE s.n > $1 + probe(1))'; ALTER TABLE T ENABLE ROW LEVEL SECURITY; CREATE POLICY zz ON T USING (mine(x) OR mine(1))"},
}

// A table that runs user code through a seemingly plain SQL function must get a hardened plan. A table with a plain SQL
// function must get none. The twins must answer alike.
func TestUserCodeInSQLFunctionsTellsNothing(t *testing.T) {
	tier.All(t)
	check := func(mode instance.Mode, moreSQL string, cases []struct{ name, sql string }, unhardened bool) {
		schema, policy := implicitCodeSchema+userCodeFunctions+moreSQL+plainTablesSQL, costlyRulePolicy+plainTablesPolicy
		var statements []string
		for _, c := range cases {
			schema += withTableName(
				"CREATE TABLE T (id int PRIMARY KEY, owner text NOT NULL, x int, note text); INSERT INTO T (id, "+
					"owner, x, note) VALUES (1, 'me', 1, 'a'), (3, 'me', 3, 'c'), (2, 'other', 2, 'b');"+c.sql+";", c.name)
			policy += withTableName(
				"  T: { rows: [ { own: { column: owner, is: user } } ], write: { commands: [update, delete], "+
					"accept: [conflicts, values, references] } }\n", c.name)
			for _, sql := range []string{"SELECT id FROM T WHERE x = 1",
				"SELECT count(*) FROM T WHERE note LIKE '%a%'", "DELETE FROM T WHERE id = 77",
				"UPDATE T SET x = 7 WHERE id = 1", "SELECT id FROM (SELECT id, x FROM T UNION ALL SELECT id, x FROM T) q WHERE x > 1"} {
				if unhardened {
					sql = strings.Replace(sql, "x = 7", "note = 'z'", 1)
				}
				statements = append(statements, withTableName(sql, c.name))
			}
		}
		got, decisions := askTwins(t, mode, policy, schema, "", "", statements)
		for k, sql := range statements {
			if got[0][k] != got[1][k] || strings.HasPrefix(got[0][k], "ERROR") {
				t.Errorf("%s: %s {%s}\n   %s\n   %s", mode.Name, sql, decisions[k], instance.OneLine(got[0][k]), instance.OneLine(got[1][k]))
			}
			if strings.HasSuffix(decisions[k], "hardened: ") != unhardened {
				t.Errorf("%s: %s {%s}", mode.Name, sql, decisions[k])
			}
		}
	}
	for _, mode := range modesOf(instance.SignedViews, instance.Auto, instance.Both) {
		check(mode, "", userCodeCases, false)
	}
	check(instance.Auto, userCodeOperators, userCodeOperatorCases, false)
	check(instance.Auto, "", plainFunctionCases, true)
}
