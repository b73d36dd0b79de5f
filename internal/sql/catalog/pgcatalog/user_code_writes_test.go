package pgcatalog_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A write to a table counts as running no user code if PostgreSQL runs no function of other roles for it.
func TestTablesWithoutUserCode(t *testing.T) {
	tier.All(t)
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, `CREATE EXTENSION citext; CREATE EXTENSION pg_trgm; CREATE EXTENSION btree_gist; CREATE SCHEMA pgconsent;
		CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE FUNCTION pgconsent.noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
		CREATE FUNCTION eq(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 OPERATOR(pg_catalog.=) $2; END';
		CREATE FUNCTION brief(text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT length($1) < 9 AND $1 ~ ''^[^@ ]+$''';
		CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = eq, COMMUTATOR = ===);
		CREATE FUNCTION less(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp($1, $2)';
		CREATE OPERATOR CLASS others FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 less(int, int);
		CREATE FUNCTION asked(int) RETURNS bool LANGUAGE plpgsql STABLE AS 'BEGIN RETURN true; END';
		CREATE FUNCTION worked(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 1; END';
		CREATE FUNCTION uid() RETURNS uuid LANGUAGE sql STABLE
			AS $$ SELECT coalesce(nullif(current_setting('request.uid', true), ''), nullif(current_setting('request', true), '')::jsonb ->> 'uid')::uuid $$;
		CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE pair AS (a int, b int); CREATE DOMAIN short AS text CHECK (length(VALUE) < 9);
		CREATE DOMAIN mail AS citext CHECK (VALUE <> '' AND length(VALUE::text) < 99); CREATE DOMAIN phone AS text CHECK (VALUE ~ '^[0-9]+$');
		CREATE DOMAIN address AS citext CHECK (VALUE ~ '@'); CREATE DOMAIN host AS citext CHECK (split_part(VALUE, '@', 2) <> '');
		CREATE DOMAIN score AS int NOT NULL CHECK (VALUE BETWEEN 1 AND 5) CHECK (VALUE <> 4); CREATE DOMAIN plain AS numeric(9, 2);
		CREATE DOMAIN checked AS int CHECK (VALUE > 0) CHECK (f(VALUE) > 0); CREATE DOMAIN run AS text CHECK (query_to_xml(VALUE, true, true, '') IS NOT NULL);
		CREATE DOMAIN shorter AS short CHECK (length(VALUE) < 5); CREATE DOMAIN pairs AS pair; CREATE TYPE spans AS RANGE (SUBTYPE = int); CREATE EXTENSION cube;
		CREATE EXTENSION earthdistance; CREATE TYPE grade AS ENUM ('a', 'b');
		CREATE FUNCTION less(grade, grade) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT enum_cmp($1, $2)';
		CREATE OPERATOR CLASS grades DEFAULT FOR TYPE grade USING btree AS FUNCTION 1 less(grade, grade); CREATE DOMAIN graded AS grade;
		CREATE TYPE tint AS ENUM ('t1'); CREATE FUNCTION less(tint[], tint[]) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btarraycmp($1, $2)';
		CREATE OPERATOR CLASS tints DEFAULT FOR TYPE tint[] USING btree AS FUNCTION 1 less(tint[], tint[]);
		CREATE TYPE code AS ENUM ('c1'); CREATE FUNCTION number(code) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
		CREATE CAST (code AS int) WITH FUNCTION number(code) AS IMPLICIT;
		ALTER OPERATOR FAMILY gist_int4_ops USING gist ADD OPERATOR 50 === (int, int); CREATE TYPE sign AS ENUM ('s1'); CREATE FUNCTION eq(int, sign) RETURNS bool
			LANGUAGE sql IMMUTABLE AS 'SELECT $1 = 1'; CREATE FUNCTION eq(sign, sign) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT enum_eq($1, $2)';
		CREATE OPERATOR === (LEFTARG = int, RIGHTARG = sign, FUNCTION = eq); CREATE OPERATOR === (LEFTARG = sign, RIGHTARG = sign, FUNCTION = eq);
		ALTER OPERATOR FAMILY integer_ops USING btree ADD OPERATOR 3 === (int, sign), OPERATOR 3 === (sign, sign)`)
	for _, c := range []struct {
		name, columns, sql             string
		deleteRunsNone, updateRunsNone bool
	}{
		{"everyday columns",
			"a text, m mood, l mood[], j jsonb, ts tstzrange[], c citext, g text GENERATED ALWAYS AS (lower(a) || " +
				"'!') STORED, n int CHECK (n > 0 AND a ~ 'x' OR now() > '2000-01-01'), FOREIGN KEY (n) REFERENCES " +
				"keys, UNIQUE (a), EXCLUDE USING gist (n WITH =)",
			"CREATE INDEX ON T USING gin (a gin_trgm_ops); CREATE INDEX ON T (upper(a), (c || 'x')) WHERE n > 5; " +
				"CREATE TRIGGER i BEFORE INSERT ON T FOR EACH ROW EXECUTE FUNCTION fire(); CREATE TRIGGER n AFTER " +
				"UPDATE OR DELETE ON T FOR EACH ROW EXECUTE FUNCTION pgconsent.noted()", true, true},
		{"ours that changes rows", "a int", "CREATE TRIGGER n BEFORE UPDATE OR DELETE ON T FOR EACH ROW EXECUTE FUNCTION pgconsent.noted()", false, false},
		{"an update's trigger", "a int", "CREATE TRIGGER t BEFORE UPDATE OF a ON T FOR EACH ROW EXECUTE FUNCTION fire()", true, false},
		{"a delete's trigger", "a int", "CREATE TRIGGER t AFTER DELETE ON T FOR EACH STATEMENT EXECUTE FUNCTION fire()", false, true},
		{"a condition of a trigger", "a int",
			"CREATE TRIGGER t BEFORE UPDATE ON T FOR EACH ROW WHEN (f(NEW.a) > 0) EXECUTE FUNCTION suppress_redundant_updates_trigger()", true, false},
		{"a condition of PostgreSQL's own", "a int",
			"CREATE TRIGGER t BEFORE UPDATE ON T FOR EACH ROW WHEN (NEW.a > 0) EXECUTE FUNCTION suppress_redundant_updates_trigger()", true, true},
		{"rules", "a int", "CREATE RULE r AS ON UPDATE TO T DO ALSO NOTHING", false, false},
		{"a policy of others that restricts", "a int", "CREATE POLICY own ON T AS RESTRICTIVE USING (true)", false, false},
		{"one of other roles", "a int", "CREATE POLICY own ON T AS RESTRICTIVE TO pg_monitor USING (asked(a))", true, true},
		{"one beside which ours is true", "a int", "CREATE POLICY own ON T USING (asked(a) AND (SELECT uid()) IS NULL)", true, true},
		{"one of which something is worked out", "a int", "CREATE POLICY own ON T USING (a > worked(1))", false, false},
		{"one that checks so", "a int", "CREATE POLICY own ON T FOR INSERT WITH CHECK (a > worked(1))", false, false},
		{"one of which something is compared", "a int", "CREATE POLICY own ON T USING ('a'::grade > 'b')", false, false},
		{"one that checks what is compared", "a int", "CREATE POLICY own ON T FOR INSERT WITH CHECK ('a'::grade > 'b')", false, false},
		{"a policy of ours", "a int", "CREATE POLICY pgconsent_select ON T USING (true)", true, true},
		{"a check", "a int CHECK (f(a) > 0)", "", true, false},
		{"a check by a plain function in SQL", "a text CHECK (brief(a))", "CREATE INDEX ON T (a) WHERE brief(a)", true, true},
		{"a check by an operator", "a int CHECK (a === 1)", "", true, false},
		{"a check that runs a text", "a int CHECK (query_to_xml('SELECT 1', true, true, '') IS NOT NULL)", "", true, false},
		{"a check that goes by more than the row", "a text CHECK (to_tsvector(a) IS NOT NULL)", "", true, false},
		{"a check that casts to a domain", "a text CHECK (a::short <> '')", "", true, false},
		{"a check that casts to a row", "a text CHECK (a::pair IS NOT NULL)", "", true, false},
		{"a generated column", "a int, g int GENERATED ALWAYS AS (f(a)) STORED", "", true, false},
		{"an index's expression", "a int", "CREATE INDEX ON T (f(a))", true, false},
		{"an index's condition", "a int", "CREATE INDEX ON T (a) WHERE f(a) > 0", true, false},
		{"an index's class", "a int", "CREATE INDEX ON T (a others)", true, false},
		{"domains", "a short, b mail NOT NULL, c score DEFAULT 3, d plain, e phone", "", true, true},
		{"a domain with a check of others", "a checked", "", true, false},
		{"a domain with a check that runs a text", "a run", "", true, false},
		{"a domain with a check by an operator of an extension", "a address", "", true, true},
		{"a domain with a check in SQL of an extension", "a host", "", true, false},
		{"a domain of domains", "a shorter", "", true, false},
		{"a domain of rows", "a pairs", "", true, false},
		{"a domain of what others have made comparable", "a graded", "", true, false},
		{"a check that compares a domain", "a short CHECK (a > 'b')", "", true, false},
		{"a row", "a pair", "", true, false},
		{"a range of others", "a spans", "", true, false},
		{"an array of domains", "a short[]", "", true, false},
		{"a check of a range of others", "a int CHECK ('[1,2]'::spans @> a)", "", true, false},
		{"a check that is of no row", "a int CHECK ((a > 0) IS NOT FALSE AND a IS NOT NULL)", "", true, true},
		{"a check of a whole row", "a int, CHECK (quiet IS NOT NULL)", "", true, false},
		{"a condition of ours by a function of others", "a int",
			"CREATE TRIGGER n AFTER UPDATE OR DELETE ON T FOR EACH ROW WHEN (f(OLD.a) > 0) EXECUTE FUNCTION pgconsent.noted()", false, false},
		{"what others have made comparable", "a grade", "", true, false},
		{"an array of what others have made comparable", "a grade[]", "", true, false},
		{"an array that others have made comparable", "a tint[]", "", true, false},
		{"a check of an array of it", "a text[] CHECK (a::grade[] > '{}')", "", true, false},
		{"SQL of an extension", "a float8 CHECK (sec_to_gc(a) > 0)", "", true, false},
		{"a key that is cast by others", "a code REFERENCES keys", "", true, false},
		{"a column that others cast", "a code", "", true, true},
		{"a key by an operator of PostgreSQL", "a int, EXCLUDE USING hash (a WITH =)", "", true, true},
		{"a key by an operator of others", "a int, EXCLUDE USING gist (a WITH ===)", "", true, false},
		{"a key that is compared with others by theirs", "a sign REFERENCES keys", "", true, false},
		{"one that others are compared with", "a int PRIMARY KEY", "CREATE TABLE refer (s sign REFERENCES T )", true, false},
		{"partitions", "a int) PARTITION BY LIST (a", "", false, false},
	} {
		exec(t, conn, "DROP TABLE IF EXISTS refer, quiet; DROP TABLE IF EXISTS keys; CREATE TABLE keys (id int PRIMARY KEY)")
		exec(t, conn, "CREATE TABLE quiet ("+c.columns+");"+tableNamed(c.sql))
		relation, _ := load(t, conn).Relation(publicName("quiet"))
		if relation.DeleteRunsNoUserCode != c.deleteRunsNone || relation.UpdateRunsNoUserCode != c.updateRunsNone {
			t.Errorf("%s: deletes quietly %t, updates %t", c.name, relation.DeleteRunsNoUserCode, relation.UpdateRunsNoUserCode)
		}
	}
}

// A trigger that only sets columns to the time does not count as user code; a trigger that does anything else does.
func TestTriggersThatWriteTheTime(t *testing.T) {
	tier.All(t)
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	for _, c := range []struct {
		name, columns, body, options string
		trigger, furtherSQL          string // "": a trigger BEFORE UPDATE, and no further statements
		runsNoUserCode               bool
	}{
		{name: "an updated_at", body: "BEGIN NEW.u = now(); RETURN NEW; END;", runsNoUserCode: true},
		{name: "several, with comments", columns: ", \"On\" date",
			body: "-- when; it was\nbegin\n  new.u := CURRENT_TIMESTAMP; -- now\n NEW.v = now() AT TIME ZONE " +
				"'utc';\n\tNEW.\"On\" := timezone('utc'::text, pg_catalog.now());\n  RETURN new;\nend",
			trigger: "BEFORE INSERT OR UPDATE OF a ON quiet FOR EACH ROW WHEN (NEW.a > 3)", runsNoUserCode: true},
		{name: "as who made it", body: "BEGIN NEW.u = statement_timestamp(); RETURN NEW; END",
			options: "SECURITY DEFINER SET search_path = ''", runsNoUserCode: true},
		{name: "with an index", body: "BEGIN NEW.u = now(); RETURN NEW; END", furtherSQL: "CREATE INDEX ON quiet (u)", runsNoUserCode: true},
		{name: "not null", columns: ", w timestamptz NOT NULL CHECK (w > '2000-01-01')", body: "BEGIN NEW.w = now(); RETURN NEW; END", runsNoUserCode: true},
		{name: "two of them", body: "BEGIN NEW.u = now(); RETURN NEW; END",
			furtherSQL: "CREATE TRIGGER s BEFORE UPDATE ON quiet FOR EACH ROW EXECUTE FUNCTION stamp()", runsNoUserCode: true},

		{name: "the clock", body: "BEGIN NEW.u = clock_timestamp(); RETURN NEW; END"},
		{name: "another function", body: "BEGIN NEW.u = public.now(); RETURN NEW; END"},
		{name: "something before", body: "BEGIN PERFORM f(); NEW.u = now(); RETURN NEW; END"},
		{name: "something behind a return in a comment", body: "BEGIN NEW.u = now(); -- \r PERFORM f();\n RETURN NEW; END"},
		{name: "something in a value", body: "BEGIN NEW.u = now() + f(); RETURN NEW; END"},
		{name: "another row", body: "BEGIN NEW.u = now(); RETURN OLD; END"},
		{name: "declares", body: "DECLARE d int = f(); BEGIN NEW.u = now(); RETURN NEW; END"},
		{name: "an option", body: "#print_strict_params on\nBEGIN NEW.u = now(); RETURN NEW; END"},
		{name: "no time", body: "BEGIN NEW.a = now(); RETURN NEW; END"},
		{name: "no column", body: "BEGIN NEW.z = now(); RETURN NEW; END"},
		{name: "a text", columns: ", w text", body: "BEGIN NEW.w = now(); RETURN NEW; END"},
		{name: "one is a text", columns: ", w text", body: "BEGIN NEW.u = now(); NEW.w = now(); RETURN NEW; END"},
		{name: "in quotes", columns: ", \"U\" text", body: "BEGIN NEW.\"U\" = now(); RETURN NEW; END"},
		{name: "a key", body: "BEGIN NEW.u = now(); RETURN NEW; END", furtherSQL: "ALTER TABLE quiet ADD UNIQUE (u)"},
		{name: "in a key", body: "BEGIN NEW.u = now(); RETURN NEW; END", furtherSQL: "CREATE UNIQUE INDEX ON quiet (a, u)"},
		{name: "a foreign key", body: "BEGIN NEW.u = now(); RETURN NEW; END",
			furtherSQL: "CREATE TABLE keys (u timestamptz PRIMARY KEY); ALTER TABLE quiet ADD FOREIGN KEY (u) REFERENCES keys"},
		{name: "a constraint that excludes", body: "BEGIN NEW.u = now(); RETURN NEW; END",
			furtherSQL: "ALTER TABLE quiet ADD EXCLUDE (u WITH =)"},
		{name: "another setting", body: "BEGIN NEW.u = now(); RETURN NEW; END", options: "SET timezone = 'utc'"},
		{name: "after the row", body: "BEGIN NEW.u = now(); RETURN NEW; END", trigger: "AFTER UPDATE ON quiet FOR EACH ROW"},
		{name: "for the statement", body: "BEGIN NEW.u = now(); RETURN NEW; END", trigger: "BEFORE UPDATE ON quiet FOR EACH STATEMENT"},
		{name: "under a condition", body: "BEGIN NEW.u = now(); RETURN NEW; END", trigger: "BEFORE UPDATE ON quiet FOR EACH ROW WHEN (f() IS NULL)"},
		{name: "beside another", body: "BEGIN NEW.u = now(); RETURN NEW; END",
			furtherSQL: "CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE " +
				"TRIGGER s BEFORE UPDATE ON quiet FOR EACH ROW EXECUTE FUNCTION fire()"},
		{name: "where somebody has a now", body: "BEGIN NEW.u = now(); RETURN NEW; END",
			furtherSQL: "CREATE SCHEMA theirs; CREATE FUNCTION theirs.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'"},
	} {
		exec(t, conn, "DROP SCHEMA IF EXISTS theirs CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public; "+
			"CREATE FUNCTION f() RETURNS interval LANGUAGE sql AS 'SELECT NULL::interval'; CREATE TABLE quiet (a "+
			"int, u timestamptz, v timestamp"+c.columns+"); CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql "+c.options+" AS $$"+c.body+"$$")
		trigger := cmp.Or(c.trigger, "BEFORE UPDATE ON quiet FOR EACH ROW")
		exec(t, conn, "CREATE TRIGGER t "+trigger+" EXECUTE FUNCTION stamp(); "+c.furtherSQL)
		relation, _ := load(t, conn).Relation(publicName("quiet"))
		if !relation.DeleteRunsNoUserCode || relation.UpdateRunsNoUserCode != c.runsNoUserCode {
			t.Errorf("%s: deletes quietly %t, updates %t", c.name, relation.DeleteRunsNoUserCode, relation.UpdateRunsNoUserCode)
		}
	}
}

// The trigger function of the extension moddatetime, which sets a column to the time, does not count either.
func TestTriggersThatWriteTheTimeByAnExtension(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, "CREATE EXTENSION moddatetime")
	for column, runsNoUserCode := range map[string]bool{"u": true, "k": false, "nothing": false} {
		exec(t, conn, "DROP TABLE IF EXISTS quiet; CREATE TABLE quiet (a int, u timestamptz, k timestamptz "+
			"UNIQUE); CREATE TRIGGER t BEFORE UPDATE ON quiet FOR EACH ROW EXECUTE FUNCTION moddatetime("+column+")")
		if r, _ := load(t, conn).Relation(publicName("quiet")); r.UpdateRunsNoUserCode != runsNoUserCode {
			t.Errorf("%s: updates quietly %t", column, r.UpdateRunsNoUserCode)
		}
	}
}

func tableNamed(sql string) string { return strings.ReplaceAll(sql, " T ", " quiet ") }
