package pgcatalog_test

import (
	"testing"

	"github.com/pgconsent/pgconsent/pgtest"
)

// What PostgreSQL runs by itself, to compare or convert values of a type, is told where it is somebody else's.
func TestTypesThatRunFunctionsOfOthers(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, `CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION ltree; CREATE EXTENSION cube;
		CREATE FUNCTION less(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp($1, $2)';
		CREATE OPERATOR CLASS others FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 less(int, int);
		CREATE TYPE mood AS ENUM ('sad', 'ok');
		CREATE TYPE spoken AS ENUM ('a'); CREATE CAST (spoken AS text) WITH INOUT AS IMPLICIT;
		CREATE TYPE asked AS ENUM ('a'); CREATE FUNCTION number(asked) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'; CREATE CAST (asked AS int) WITH FUNCTION number(asked) AS ASSIGNMENT;
		CREATE TYPE cast_by_itself AS ENUM ('a'); CREATE FUNCTION number(cast_by_itself) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'; CREATE CAST (cast_by_itself AS int) WITH FUNCTION number(cast_by_itself) AS IMPLICIT;
		CREATE TYPE sorted AS ENUM ('a'); CREATE FUNCTION less(sorted, sorted) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT enum_cmp($1, $2)'; CREATE OPERATOR CLASS sorts DEFAULT FOR TYPE sorted USING btree AS FUNCTION 1 less(sorted, sorted);
		CREATE TYPE hashed AS ENUM ('a'); CREATE FUNCTION hash(hashed) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'; CREATE OPERATOR CLASS hashes DEFAULT FOR TYPE hashed USING hash AS FUNCTION 1 hash(hashed);
		CREATE TYPE spans AS RANGE (SUBTYPE = int); CREATE TYPE compared AS RANGE (SUBTYPE = int, SUBTYPE_OPCLASS = others);
		CREATE DOMAIN narrow AS cast_by_itself; CREATE TYPE pair AS (a int, b sorted); CREATE TYPE plain AS (a int, b mood)`)
	snapshot := load(t, conn)
	for name, runs := range map[string]bool{
		"int": false, "text": false, "numeric": false, "jsonb": false, "tstzmultirange": false, "text[]": false, "citext": false, "hstore": false, "ltree[]": false, "cube": false,
		"mood": false, "mood[]": false, "spoken": false, "asked": false, "spans": false, "spans_multirange": false, "plain": false,
		"cast_by_itself": true, "cast_by_itself[]": true, "narrow": true, "narrow[]": true, "sorted": true, "sorted[]": true, "hashed": true, "pair": true, "pair[]": true, "compared": true, "compared_multirange": true,
	} {
		var oid uint32
		if err := conn.QueryRow(t.Context(), "SELECT $1::text::regtype::oid", name).Scan(&oid); err != nil {
			t.Fatal(name, err)
		}
		if snapshot.Runs(oid) != runs {
			t.Errorf("%s: %t, want %t", name, !runs, runs)
		}
	}
	if !snapshot.Runs(1) {
		t.Error("a type that nobody knows runs nothing")
	}
}
