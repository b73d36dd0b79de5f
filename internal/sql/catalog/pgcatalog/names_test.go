package pgcatalog_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// The facts about types and functions: which functions check, compare or cast values of a type, what a function
// returns, and what a name can mean.
func TestTypesThatRunUserCode(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, `
		CREATE EXTENSION cube;
		CREATE SCHEMA other;
		CREATE FUNCTION compared(text, text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT bttextcmp($1, $2)';
		CREATE FUNCTION below(text, text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 < $2';
		CREATE FUNCTION apart(text, text) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT 1.0::float8';
		CREATE FUNCTION same(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true';
		CREATE FUNCTION turned(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -$1';
		CREATE OPERATOR <# (LEFTARG = text, RIGHTARG = text, FUNCTION = below);
		CREATE OPERATOR =# (LEFTARG = int, RIGHTARG = int, FUNCTION = same);
		CREATE OPERATOR =# (LEFTARG = text, RIGHTARG = text, FUNCTION = below);
		CREATE OPERATOR !# (RIGHTARG = int, FUNCTION = turned);
		CREATE OPERATOR CLASS strange FOR TYPE text USING btree AS OPERATOR 1 <#, OPERATOR 2 <=, OPERATOR 3 =,
		OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 compared(text, text);
		CREATE TYPE span AS RANGE (SUBTYPE = text, SUBTYPE_OPCLASS = strange, SUBTYPE_DIFF = apart, COLLATION = "C");
		CREATE DOMAIN odd AS int CHECK (VALUE =# 1);
		CREATE DOMAIN spans AS span_multirange;
		CREATE TYPE mood AS ENUM ('b', 'c'); ALTER TYPE mood ADD VALUE 'a' BEFORE 'b';
		CREATE TYPE other.mood AS ENUM ('x');
		CREATE FUNCTION of_int(int) RETURNS mood LANGUAGE sql AS $$ SELECT 'b'::mood $$;
		CREATE FUNCTION of_date(date) RETURNS mood LANGUAGE sql AS $$ SELECT 'b'::mood $$;
		CREATE FUNCTION of_bool(bool) RETURNS mood LANGUAGE sql AS $$ SELECT 'b'::mood $$;
		CREATE CAST (int AS mood) WITH FUNCTION of_int(int); CREATE CAST (date AS mood) WITH FUNCTION of_date(date) AS ASSIGNMENT;
		CREATE CAST (bool AS mood) WITH FUNCTION of_bool(bool) AS IMPLICIT;
		CREATE FUNCTION rows_of(n int, VARIADIC more mood[]) RETURNS TABLE (k date, m mood) LANGUAGE sql AS 'SELECT NULL::date, NULL::mood';
		CREATE FUNCTION twice(a int DEFAULT 1) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION other.twice(text) RETURNS int LANGUAGE sql AS 'SELECT 1';`)
	snap := loadWithPath(t, conn, "public", "other")
	onlyType := func(schema, name string) *catalog.Type {
		list := snap.TypesNamed(schema, name)
		if len(list) != 1 {
			t.Fatalf("%s: %v", name, list)
		}
		return list[0]
	}
	checkFunctionNames := func(name string) string {
		var out []string
		for _, oid := range onlyType("public", name).CheckFunctions {
			if f := snap.FunctionByOID(oid); f != nil {
				out = append(out, f.Name.Name)
			}
		}
		slices.Sort(out)
		return fmt.Sprint(out)
	}
	var casts []string
	for _, c := range snap.CastsTo(onlyType("public", "mood").OID) {
		casts = append(casts, fmt.Sprint(snap.FunctionByOID(c.Function).Name.Name, c.Implicit))
	}
	slices.Sort(casts)
	rows := snap.FunctionsNamed("", "rows_of")[0]
	constructorCounts := map[uint32]int{}
	for _, name := range []string{"span", "span_multirange"} {
		for _, f := range snap.FunctionsNamed("", name) {
			constructorCounts[f.RangeType]++
		}
	}
	for _, c := range []struct{ name, got, want string }{
		{"a range", checkFunctionNames("span"), "[apart below compared]"},
		{"a domain whose check has an operator", checkFunctionNames("odd"), "[same]"},
		{"a range's bounds, and a multirange's ranges",
			fmt.Sprint(onlyType("", "span").Base == 25, onlyType("", "span_multirange").Base == onlyType("", "span").OID,
				onlyType("", "spans").Base == onlyType("", "span_multirange").OID), "true true true"},
		{"collations", fmt.Sprint(snap.Collations(onlyType("", "span").OID), snap.Collations(onlyType("", "span_multirange").OID),
			snap.Collations(onlyType("", "spans").OID), snap.Collations(onlyType("", "_span").OID)), "[C] [C] [C] [C]"},
		{"labels", fmt.Sprint(onlyType("public", "mood").Labels), "[a b c]"},
		{"names in two schemas", fmt.Sprint(len(snap.TypesNamed("", "mood")), len(snap.TypesNamed("other", "mood")),
			len(snap.FunctionsNamed("", "twice")), len(snap.OperatorsNamed("", "=#")), len(snap.OperatorsNamed("", "!#"))), "2 1 2 2 1"},
		{"casts", fmt.Sprint(casts), "[of_booltrue of_datetrue of_intfalse]"},
		{"what a function gives", fmt.Sprint(rows.ArgNames, rows.ArgTypes, rows.Variadic,
			slices.Contains(rows.ResultTypes, uint32(1082)), slices.Contains(rows.ResultTypes, onlyType("public", "mood").OID)),
			"[n more] [integer public.mood[]] true true true"},
		{"what makes ranges", fmt.Sprint(constructorCounts[onlyType("", "span").OID], constructorCounts[onlyType("", "span_multirange").OID],
			constructorCounts[0]), "2 3 0"},
		{"an extension's", onlyType("", "cube").Extension + " " + onlyType("", "_cube").Extension, "cube cube"},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, c.got, c.want)
		}
	}
}
