package pgcatalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Types are marked if PostgreSQL by itself runs functions of other roles to compare or convert their values.
func TestTypesThatCompareByUserCode(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, `CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION ltree; CREATE EXTENSION cube;
		CREATE FUNCTION less(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp($1, $2)';
		CREATE OPERATOR CLASS others FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 less(int, int);
		CREATE TYPE mood AS ENUM ('sad', 'ok');
		CREATE TYPE spoken AS ENUM ('a'); CREATE CAST (spoken AS text) WITH INOUT AS IMPLICIT;
		CREATE TYPE asked AS ENUM ('a'); CREATE FUNCTION number(asked) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
		CREATE CAST (asked AS int) WITH FUNCTION number(asked) AS ASSIGNMENT;
		CREATE TYPE cast_by_itself AS ENUM ('a'); CREATE FUNCTION number(cast_by_itself) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
		CREATE CAST (cast_by_itself AS int) WITH FUNCTION number(cast_by_itself) AS IMPLICIT;
		CREATE TYPE sorted AS ENUM ('a'); CREATE FUNCTION less(sorted, sorted) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT enum_cmp($1, $2)';
		CREATE OPERATOR CLASS sorts DEFAULT FOR TYPE sorted USING btree AS FUNCTION 1 less(sorted, sorted);
		CREATE TYPE hashed AS ENUM ('a'); CREATE FUNCTION hash(hashed) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
		CREATE OPERATOR CLASS hashes DEFAULT FOR TYPE hashed USING hash AS FUNCTION 1 hash(hashed);
		CREATE TYPE spans AS RANGE (SUBTYPE = int); CREATE TYPE compared AS RANGE (SUBTYPE = int, SUBTYPE_OPCLASS = others);
		CREATE DOMAIN narrow AS cast_by_itself; CREATE FUNCTION good(text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN true; END';
		CREATE DOMAIN short AS text CHECK (length(VALUE) < 9) CHECK (VALUE ~ 'a'); CREATE DOMAIN tested AS text CHECK (good(VALUE)); CREATE DOMAIN over AS tested;
		CREATE DOMAIN email AS citext CHECK (VALUE ~ '^[^@]+@[^@]+$' AND VALUE <> 'a@b');
		CREATE FUNCTION alike(citext, citext) RETURNS bool LANGUAGE internal IMMUTABLE AS 'texticregexeq'; CREATE DOMAIN renamed AS citext CHECK (alike(VALUE, '@'));
		CREATE TYPE written AS ENUM ('a'); CREATE FUNCTION to_json(written) RETURNS json LANGUAGE sql IMMUTABLE AS 'SELECT ''1''::json';
		CREATE CAST (written AS json) WITH FUNCTION to_json(written); CREATE DOMAIN within AS int CHECK ('[1,2]'::compared @> VALUE);
		CREATE TYPE pair AS (a int, b sorted); CREATE TYPE plain AS (a int, b mood)`)
	snapshot := load(t, conn)
	for name, runsUserCode := range map[string]bool{
		"int": false, "text": false, "numeric": false, "jsonb": false, "tstzmultirange": false, "text[]": false,
		"citext": false, "hstore": false, "ltree[]": false, "cube": false,
		"mood": false, "mood[]": false, "spoken": false, "asked": false, "spans": false, "spans_multirange": false,
		"plain": false, "short": false, "short[]": false, "email": false, "email[]": false,
		"tested": true, "tested[]": true, "renamed": true, "over": true, "written": true, "written[]": true, "within": true,
		"cast_by_itself": true, "cast_by_itself[]": true, "narrow": true, "narrow[]": true, "sorted": true,
		"sorted[]": true, "hashed": true, "pair": true, "pair[]": true, "compared": true, "compared_multirange": true,
	} {
		var oid uint32
		if err := conn.QueryRow(t.Context(), "SELECT $1::text::regtype::oid", name).Scan(&oid); err != nil {
			t.Fatal(name, err)
		}
		if snapshot.TypeRunsUserCode(oid) != runsUserCode {
			t.Errorf("%s: %t, want %t", name, !runsUserCode, runsUserCode)
		}
	}
	if !snapshot.TypeRunsUserCode(1) {
		t.Error("a type that nobody knows runs nothing")
	}
}

// Tables are marked if the planner runs functions of other roles for them: to evaluate expressions, or to find rows and
// partitions.
func TestTablesThatPlanWithUserCode(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, `CREATE EXTENSION citext; CREATE EXTENSION pg_trgm; CREATE EXTENSION unaccent; CREATE EXTENSION btree_gin;
		CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
		CREATE FUNCTION g(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
		CREATE FUNCTION inlined(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1 || public.g(''x'')';
		CREATE FUNCTION unaccented(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT public.unaccent('public.unaccent'::regdictionary, lower($1)); $$;
		CREATE FUNCTION less(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp($1, $2)';
		CREATE OPERATOR CLASS others FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 less(int, int);
		CREATE TYPE compared AS RANGE (SUBTYPE = int, SUBTYPE_OPCLASS = others); CREATE DOMAIN odd AS int; CREATE TABLE teams (x int);
		CREATE SCHEMA pgconsent_catalog; CREATE FUNCTION pgconsent_catalog.current_setting(text, bool) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE DOMAIN pgconsent_catalog.regdictionary AS text;
		CREATE FUNCTION uid() RETURNS uuid LANGUAGE sql STABLE
			AS $$ SELECT coalesce(nullif(current_setting('request.jwt.f.sub', true), ''), nullif(current_setting('g', true), '')::jsonb ->> 'sub')::uuid $$;
		CREATE FUNCTION member(int) RETURNS bool LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT f($1) > 0';
		CREATE FUNCTION team(int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT EXISTS (SELECT FROM teams WHERE x = $1)';
		CREATE FUNCTION asked(int) RETURNS bool LANGUAGE plpgsql STABLE AS 'BEGIN RETURN true; END';
		CREATE FUNCTION calls(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT f(1) + $1';
		CREATE OPERATOR <<~ (LEFTARG = int, RIGHTARG = int, FUNCTION = less); CREATE FUNCTION operates(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 1 <<~ 2';
		CREATE FUNCTION casts(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 1::odd';
		CREATE FUNCTION is_email(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT $1 ~* '^[^@ ]+@[^@ ]+$' AND length($1) BETWEEN 3 AND 254 $$;
		CREATE FUNCTION initial(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT upper(left(btrim($1), 1)) || '.' $$;
		CREATE FUNCTION labels(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT f(1) + $1 AS select';
		CREATE FUNCTION defaults(int, int DEFAULT f(1)) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN 1; END';
		CREATE FUNCTION makes(int) RETURNS bool LANGUAGE sql STABLE AS $$ SELECT EXISTS (SELECT FROM teams WHERE '[1,2]'::compared @> x) $$;
		CREATE FUNCTION dollars(int) RETURNS text LANGUAGE sql IMMUTABLE AS $f$ SELECT $q$'$q$ || f(1) || $q$'$q$ $f$;
		CREATE FUNCTION escapes(int) RETURNS text LANGUAGE sql IMMUTABLE AS $f$ SELECT E'\'' || f(1) || E'\'' $f$;
		CREATE FUNCTION comments(int) RETURNS text LANGUAGE sql IMMUTABLE AS $f$ SELECT /* ' */ f(1)::text /* ' */ $f$;
		CREATE FUNCTION aliases(int) RETURNS text LANGUAGE sql IMMUTABLE AS $f$ SELECT (SELECT 1 AS "a'")::text || f(1) || (SELECT 1 AS "b'")::text $f$;
		CREATE FUNCTION kindly(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT $1 LIKE 'f%' $$; CREATE FUNCTION quotes(int) RETURNS int
			LANGUAGE sql STABLE AS 'SELECT "f"(1)'; CREATE FUNCTION reads(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT count(*)::int FROM pg_class';
		CREATE FUNCTION parsed(int) RETURNS int LANGUAGE sql STABLE RETURN f(1)`)
	tables := []struct {
		name, sql    string
		runsUserCode bool
	}{
		{"plain", "CREATE INDEX ON T (lower(note)) WHERE x > 0; CREATE INDEX ON T USING gin (note gin_trgm_ops); " +
			"CREATE INDEX ON T USING gin (x); CREATE INDEX ON T (c); ALTER TABLE T ADD CHECK (length(note) < 9); " +
			"CREATE STATISTICS s_of_T ON (x + 1), (lower(note)) FROM T", false},
		{"of_columns", "CREATE INDEX ON T (f(x)); CREATE INDEX ON T (g(lower(note)), f(f(x) + 1)) WHERE f(x) > 0 " +
			"AND g(c::text) = 'a'; ALTER TABLE T ADD CHECK (f(x) > 0 OR g(note || 'b') IS NULL); CREATE STATISTICS s_of_T ON (f(x)), (g(note)) FROM T", false},
		{"wrapped", "CREATE INDEX ON T (unaccented(note)); CREATE INDEX ON T USING gin (unaccented(lower(note)) gin_trgm_ops)", false},
		{"of_others", "ALTER TABLE T ENABLE ROW LEVEL SECURITY; CREATE POLICY a ON T USING (f(x) > 0); CREATE " +
			"POLICY b ON T AS RESTRICTIVE TO pg_monitor USING (true)", false},
		{"of_constants", "CREATE INDEX ON T ((x + f(1)))", true},
		{"chosen", "CREATE INDEX ON T (f(COALESCE(1, x)))", true},
		{"chosen_by_case", "CREATE INDEX ON T (f(CASE WHEN true THEN 1 ELSE x END))", true},
		{"of_nothing", "CREATE INDEX ON T (g(note || NULL::text))", true},
		{"within", "CREATE INDEX ON T (f(x + f(1)))", true},
		{"in_sql", "CREATE INDEX ON T (inlined(note))", true},
		{"predicate", "CREATE INDEX ON T (note) WHERE x > f(1)", true},
		{"checked", "ALTER TABLE T ADD CHECK (x < f(9))", true},
		{"estimated", "CREATE STATISTICS s_of_T ON (x + f(1)), note FROM T", true},
		{"ranged", "ALTER TABLE T ADD CHECK ('[1,2]'::compared @> x)", true},
		{"by_a_class", "CREATE INDEX ON T (x others)", true},
		{"for_some", "CREATE POLICY a ON T USING (f(1) > 0)", true},
		{"of_other_roles",
			"CREATE POLICY a ON T TO pg_monitor USING (f(1) > 0); CREATE POLICY b ON T AS RESTRICTIVE TO pg_monitor USING (f(1) > 0)", false},
		{"of_ours", "CREATE POLICY pgconsent_select ON T AS RESTRICTIVE TO pg_read_all_stats USING (true); CREATE " +
			"POLICY a ON T TO pg_read_all_stats USING (f(1) > 0)", true},
		{"as_supabase_has_them",
			"CREATE POLICY a ON T USING (uid() = u); CREATE POLICY b ON T FOR SELECT USING ((SELECT uid()) = u " +
				"AND member(x) AND team(x)); CREATE POLICY c ON T FOR DELETE USING (CASE WHEN asked(1) THEN true END)", false},
		{"named_as_ours", "CREATE POLICY pgconsent_mine ON T USING (f(1) > x)", true},
		{"labelled", "CREATE POLICY a ON T USING (labels(1) > x)", true},
		{"with_a_default", "CREATE POLICY a ON T USING (defaults(x) > x)", true},
		{"with_a_constant", "CREATE POLICY a ON T USING (makes(x))", true},
		{"in_sql_with_others", "CREATE POLICY a ON T USING (calls(1) > x)", true},
		{"in_sql_with_operators", "CREATE POLICY a ON T USING (operates(1) > x)", true},
		{"in_sql_with_types", "CREATE POLICY a ON T USING (casts(1) > x)", true},
		{"in_sql_that_is_not_plain", "CREATE POLICY a ON T USING (quotes(1) > x)", true},
		{"in_sql_that_reads", "CREATE POLICY a ON T USING (reads(1) > x)", true},
		{"plain_check", "CREATE INDEX ON T (initial(note)); ALTER TABLE T ADD CHECK (is_email(note)) NOT VALID; " +
			"CREATE INDEX ON T (x) WHERE is_email('a')", false},
		{"liked", "ALTER TABLE T ADD CHECK (kindly(note)) NOT VALID", false},
		{"in_dollars", "ALTER TABLE T ADD CHECK (dollars(1) IS NOT NULL) NOT VALID", true}, {
			"with_escapes", "ALTER TABLE T ADD CHECK (escapes(1) IS NOT NULL) NOT VALID", true},
		{"with_comments", "ALTER TABLE T ADD CHECK (comments(1) IS NOT NULL) NOT VALID", true}, {
			"with_aliases", "ALTER TABLE T ADD CHECK (aliases(1) IS NOT NULL) NOT VALID", true},
		{"in_parsed_sql", "CREATE POLICY a ON T USING (parsed(1) > x)", true},
		{"for_all", "CREATE POLICY a ON T AS RESTRICTIVE FOR UPDATE USING (x > 0)", true},
		{"above", "CREATE TABLE heir_of_T () INHERITS (T); CREATE INDEX ON heir_of_T ((x + f(1)))", true},
	}
	for _, table := range tables {
		exec(t, conn, strings.NewReplacer("s_of_T", "s_of_"+table.name, "heir_of_T", "heir_of_"+table.name, "(T)",
			"("+table.name+")", " T ", " "+table.name+" ").Replace("CREATE TABLE T (x int, note text, c citext, u uuid); "+table.sql+" ;"))
	}
	exec(t, conn, "CREATE TABLE parted (x int) PARTITION BY RANGE (x others); CREATE TABLE part PARTITION OF "+
		"parted FOR VALUES FROM (1) TO (2); CREATE TABLE folded (x int) PARTITION BY RANGE ((x + f(1))); CREATE "+
		"TABLE plainly (x int) PARTITION BY RANGE ((x + 1)); CREATE TABLE other_part PARTITION OF plainly FOR VALUES FROM (1) TO (2)")
	snapshot := load(t, conn)
	for _, table := range append(tables, []struct {
		name, sql    string
		runsUserCode bool
	}{{"parted", "", true}, {"part", "", true}, {"folded", "", true}, {"plainly", "", false}, {
		"other_part", "", false}, {"heir_of_above", "", true}}...) {
		if relation, exists := snapshot.Relation(catalog.Name{Schema: "public", Name: table.name}); !exists || relation.PlannerRunsUserCode != table.runsUserCode {
			t.Errorf("%s: %t, want %t", table.name, !table.runsUserCode, table.runsUserCode)
		} else if relation.PlannerRunsUserCode != (relation.UserCodeSource != "") {
			t.Errorf("%s: it is said to be by %q", table.name, relation.UserCodeSource)
		}
	}
	for name, source := range map[string]string{
		"of_constants": "public.of_constants, index of_constants_expr_idx: public.f(integer)",
		"checked":      "public.checked, constraint checked_x_check: public.f(integer)",
		"estimated":    "public.estimated, statistics s_of_estimated: public.f(integer)",
		"ranged":       "public.ranged, constraint ranged_x_check: type public.compared",
		"by_a_class":   "public.by_a_class, index by_a_class_x_idx: operator class others",
		"for_some":     "public.for_some, row policy a: public.f(integer)",
		"for_all":      "public.for_all, row policy a, which is restrictive",
		"above":        "public.heir_of_above, index heir_of_above_expr_idx: public.f(integer)",
		"part":         "public.parted, the partition key: operator class others",
		"folded":       "public.folded, the partition key: public.f(integer)",
	} {
		if relation, _ := snapshot.Relation(catalog.Name{Schema: "public", Name: name}); relation.UserCodeSource != source {
			t.Errorf("%s: %q, want %q", name, relation.UserCodeSource, source)
		}
	}
}

// A function of an extension that is not in C counts as replaceable by the extension's owner.
func TestReplacedFunctionsOfExtensions(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, `CREATE EXTENSION citext; CREATE EXTENSION pg_trgm; CREATE EXTENSION hstore;
		CREATE FUNCTION others(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1'; CREATE DOMAIN narrow AS text;
		CREATE OR REPLACE FUNCTION replace(citext, citext, citext) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
		CREATE OR REPLACE FUNCTION split_part(citext, citext, int) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT public.others($1::text)';
		CREATE OR REPLACE FUNCTION translate(citext, citext, text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT (SELECT max(relname) FROM pg_class)::text';
		CREATE OR REPLACE FUNCTION regexp_match(string citext, pattern citext) RETURNS text[] LANGUAGE sql IMMUTABLE RETURN ARRAY[public.others($1::text)];
		CREATE OR REPLACE FUNCTION regexp_replace(string citext, pattern citext, replacement text) RETURNS text
			LANGUAGE sql IMMUTABLE RETURN (SELECT max(relname) FROM pg_class);
		CREATE OR REPLACE FUNCTION regexp_split_to_array(string citext, pattern citext) RETURNS text[] LANGUAGE sql IMMUTABLE RETURN ARRAY[($1::narrow)::text];
		CREATE EXTENSION cube; CREATE EXTENSION earthdistance; CREATE FUNCTION others(float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT $1';
		CREATE OPERATOR <<~ (RIGHTARG = float8, FUNCTION = others);
		CREATE OR REPLACE FUNCTION sec_to_gc(float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT <<~ $1';
		CREATE OR REPLACE FUNCTION gc_to_sec(float8 DEFAULT others(1)) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT $1';
		CREATE OR REPLACE FUNCTION strpos(citext, citext) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT length($1::narrow)'`)
	snapshot := load(t, conn)
	var replaceable []string
	for _, f := range snapshot.Functions() {
		if f.MayBeReplaced {
			replaceable = append(replaceable, f.Name.Name)
		}
	}
	slices.Sort(replaceable)
	if want := []string{"gc_to_sec", "regexp_match", "regexp_replace", "regexp_split_to_array", "replace",
		"sec_to_gc", "split_part", "strpos", "translate"}; !slices.Equal(replaceable, want) {
		t.Errorf("%v, want %v", replaceable, want)
	}
}

// An SQL function is harmless if its body shows that it runs no function of other roles. Argument defaults and types,
// which the body does not show, count as well.
func TestPlainFunctionsInSQL(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, `CREATE EXTENSION tablefunc; CREATE EXTENSION cube; CREATE EXTENSION earthdistance; CREATE DOMAIN odd AS int;
		CREATE TYPE mood AS ENUM ('a'); CREATE TABLE t (x int);
		CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END'; CREATE FUNCTION h$1(int) RETURNS int
			LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END'; CREATE FUNCTION k€(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
		CREATE FUNCTION gÄ(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
		CREATE FUNCTION f_mood(mood) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 1; END'; CREATE CAST (mood AS int) WITH FUNCTION f_mood(mood);
		CREATE FUNCTION says(text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN true; END'; CREATE FUNCTION same(json, json) RETURNS bool
			LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN true; END'; CREATE FUNCTION hashed(json) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 1; END';
		CREATE FUNCTION to_date(bool) RETURNS date LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN now(); END';
		CREATE FUNCTION unlike(varchar, text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN true; END'`)
	runsUserCode := func(definition, call string) bool {
		t.Helper()
		exec(t, conn, definition+"; ALTER TABLE t ADD CHECK ("+call+") NOT VALID")
		relation, _ := load(t, conn).Relation(catalog.Name{Schema: "public", Name: "t"})
		exec(t, conn, "DROP FUNCTION p CASCADE; DROP CAST IF EXISTS (bool AS date); DROP OPERATOR FAMILY IF "+
			"EXISTS jsons USING hash CASCADE; DROP OPERATOR IF EXISTS !~ (varchar, text)")
		return relation.PlannerRunsUserCode
	}
	const body = "LANGUAGE sql IMMUTABLE "
	if pgtest.Binaries().Major >= 16 && !runsUserCode("CREATE FUNCTION p(int) RETURNS bool "+body+"AS $$SELECT pg_input_is_valid('5', 'odd')$$", "p(1)") {
		t.Error("what asks a type that is named in a string is plain")
	}
	for _, c := range []struct {
		definition, call string
		runsUserCode     bool
	}{
		{"CREATE FUNCTION p(int) RETURNS int " + body + "AS 'SELECT abs($1) + 1;'", "p(1) > 0", false},
		{"CREATE FUNCTION p(a int, b int DEFAULT 3) RETURNS int " + body + "SET search_path = '' AS ' select a + b'", "p(1) > 0", false},
		{"CREATE FUNCTION p(varchar) RETURNS bool " + body + "AS $$SELECT $1 NOT SIMILAR TO 'f\"x€%'$$", "p('a')", false},
		{"CREATE FUNCTION p(point) RETURNS float8 " + body + "AS 'SELECT $1 <@> $1'", "p('(0,0)') > 0", false},
		{"CREATE FUNCTION p(int) RETURNS int " + body + "AS 'SELECT public.h$1(1)'", "p(1) > 0", true},
		{"CREATE FUNCTION p(int) RETURNS int " + body + "AS 'SELECT k€(1)'", "p(1) > 0", true},
		{"CREATE FUNCTION p(int) RETURNS int " + body + "AS 'SELECT gÄ(1)'", "p(1) > 0", true},
		{"CREATE FUNCTION p(int) RETURNS int " + body + "AS 'SELECT F(1)'", "p(1) > 0", true},
		{"CREATE FUNCTION p(int) RETURNS int " + body + "AS 'SELECT 1; SELECT 2'", "p(1) > 0", true},
		{"CREATE FUNCTION p(a int, b int DEFAULT f(1)) RETURNS int " + body + "AS 'SELECT a'", "p(x) > 0", true},
		{"CREATE FUNCTION p(a int, b int DEFAULT f(1)) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN a; END'", "p(x) > 0", true},
		{"CREATE FUNCTION p(a int, b int DEFAULT 3) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN a; END'", "p(x) > 0", false},
		{"CREATE FUNCTION p(int, OUT a odd, OUT b int) " + body + "AS 'SELECT 1, 2'", "p(1) IS NOT NULL", true},
		{"CREATE FUNCTION p(anyelement) RETURNS int " + body + "AS 'SELECT $1::int'", "p('a'::mood) > 0", true},
		{"CREATE FUNCTION p(int) RETURNS text " + body + "SET standard_conforming_strings = off AS $$SELECT '\\'' || f(1) || '\\''$$", "p(1) > ''", true},
		{"CREATE FUNCTION p(int) RETURNS text " + body + "AS $$SELECT (crosstab2('SELECT f(1)')).row_name$$", "p(1) > ''", true},
		{"CREATE FUNCTION p(int) RETURNS bool " + body + "AS $$SELECT domain_in('5', 'odd'::regtype, -1) IS NULL$$", "p(1)", true},
		{"CREATE FUNCTION p(int) RETURNS text " + body + "AS $$SELECT set_config('enable_bitmapscan', 'on', true)$$", "p(1) > ''", true},
		{"CREATE FUNCTION p(int) RETURNS bool " + body + "AS $$SELECT satisfies_hash_partition('t'::regclass, 2, 0, $1)$$", "p(1)", true},
		{"CREATE CAST (bool AS date) WITH FUNCTION to_date(bool); CREATE FUNCTION p(int) RETURNS date " + body +
			"AS 'SELECT ($1 > 0)::date'", "p(1) > '2000-01-01'", true},
		{"CREATE OPERATOR === (LEFTARG = json, RIGHTARG = json, FUNCTION = same, COMMUTATOR = ===, HASHES); " +
			"CREATE OPERATOR CLASS jsons DEFAULT FOR TYPE json USING hash AS OPERATOR 1 ===, FUNCTION 1 " +
			"hashed(json); CREATE FUNCTION p(int) RETURNS bool " + body + "AS 'SELECT ARRAY[json_build_array()] = ARRAY[json_build_array()]'", "p(1)", true},
		{"CREATE FUNCTION p(varchar) RETURNS bool " + body +
			"AS $$SELECT $1 NOT SIMILAR TO 'f'$$; CREATE OPERATOR !~ (LEFTARG = varchar, RIGHTARG = text, FUNCTION = unlike)", "p('a')", true},
		{"CREATE FUNCTION p(point) RETURNS float8 " + body +
			"AS 'SELECT $1 <@> $1'; CREATE OR REPLACE FUNCTION geo_distance(point, point) RETURNS float8 LANGUAGE " +
			"plpgsql IMMUTABLE AS 'BEGIN RETURN 1; END'", "p('(0,0)') > 0", true},
	} {
		if got := runsUserCode(c.definition, c.call); got != c.runsUserCode {
			t.Errorf("%s: %t, want %t", c.definition, got, c.runsUserCode)
		}
	}
}
