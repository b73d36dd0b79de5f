package registry

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/sql/builtin"
)

// Verify finds a function, operator or cast that a superuser has put into pg_catalog, if it can replace one that
// pgconsent's functions call. It ignores those in other schemas or of other names.
func TestPlantedCatalogObjectsAreFound(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	mustExecute(t, r, grant("ada", consent.StreamTemporary))
	requireVerified(t, r)
	conn := db.Connect(t, "postgres")
	const sha256 = "FUNCTION pg_catalog.sha256(bytea) RETURNS bytea IMMUTABLE STRICT "
	for sql, found := range map[string]bool{
		"CREATE FUNCTION pg_catalog.sha256(text) RETURNS bytea LANGUAGE sql AS 'SELECT NULL::bytea'":                 true,
		"CREATE FUNCTION pg_catalog.concat(uuid, uuid, uuid, uuid) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'": true,
		"CREATE FUNCTION pg_catalog.lower(uuid) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'":                    true,
		"ALTER FUNCTION pg_catalog.sha256(bytea) RENAME TO mine; CREATE " + sha256 +
			"LANGUAGE sql AS 'SELECT $1'": true,
		"CREATE OR REPLACE " + sha256 +
			"LANGUAGE sql AS 'SELECT $1'": true,
		"CREATE OR REPLACE " + sha256 +
			"LANGUAGE plpgsql AS 'BEGIN RETURN $1; END'": true,
		"CREATE FUNCTION public.f(text, uuid) RETURNS bool LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR " +
			"pg_catalog.= (FUNCTION = public.f, LEFTARG = text, RIGHTARG = uuid)": true,
		"CREATE FUNCTION public.f(internal, oid, internal, int) RETURNS float8 LANGUAGE internal AS 'eqsel'; " +
			"ALTER OPERATOR pg_catalog.= (text, text) SET (RESTRICT = public.f)": true,
		"CREATE FUNCTION public.f(internal, oid, internal, int2, internal) RETURNS float8 LANGUAGE internal AS " +
			"'eqjoinsel'; ALTER OPERATOR pg_catalog.= (text, text) SET (JOIN = public.f)": true,
		"CREATE FUNCTION public.f(text) RETURNS float8 LANGUAGE sql AS 'SELECT 1e9::float8'; CREATE CAST (text AS " +
			"float8) WITH FUNCTION public.f(text)": true,
		"ALTER FUNCTION pg_catalog.statement_timestamp() IMMUTABLE": true, "ALTER FUNCTION pg_catalog.current_setting(text, bool) IMMUTABLE": true,
		"ALTER FUNCTION pg_catalog.set_config(text, text, bool) STRICT": true, "ALTER FUNCTION pg_catalog.sha256(bytea) SET work_mem = '1MB'": true,
		"ALTER FUNCTION pg_catalog.sha256(bytea) SECURITY DEFINER": true, "ALTER FUNCTION pg_catalog.ascii(text) VOLATILE": false,
		"CREATE CAST (bytea AS text) WITHOUT FUNCTION":                                                        true,
		"ALTER TYPE pg_catalog.interval RENAME TO mine; CREATE DOMAIN pg_catalog.interval AS pg_catalog.mine": true,
		"ALTER EVENT TRIGGER zz_pgconsent_ddl DISABLE; ALTER EVENT TRIGGER zz_pgconsent_drop DISABLE; CREATE " +
			"FUNCTION public.h() RETURNS language_handler LANGUAGE C AS '$libdir/plpgsql', " +
			"'plpgsql_inline_handler'; CREATE OR REPLACE TRUSTED LANGUAGE plpgsql HANDLER public.h": true,

		"CREATE FUNCTION public.sha256(text) RETURNS bytea LANGUAGE sql AS 'SELECT NULL::bytea'; CREATE FUNCTION " +
			"public.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1'": false,
		"CREATE FUNCTION pg_catalog.of_mine(text) RETURNS text LANGUAGE sql AS 'SELECT $1'": false,
		"CREATE FUNCTION public.f(text, uuid) RETURNS bool LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR " +
			"public.= (FUNCTION = public.f, LEFTARG = text, RIGHTARG = uuid)": false,
		"CREATE CAST (integer AS text) WITH INOUT AS IMPLICIT": false,
		"CREATE FUNCTION public.f(text) RETURNS point LANGUAGE sql AS 'SELECT NULL::point'; CREATE CAST (text AS " +
			"point) WITH FUNCTION public.f(text) AS IMPLICIT": false,
	} {
		if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		} else if names, err := builtin.ReadPlantedObjects(t.Context(), conn); err != nil || len(names) > 0 != found {
			t.Errorf("%s: found %q, %v", sql, names, err)
		}
		if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), "CREATE FUNCTION pg_catalog.sha256(text) RETURNS bytea LANGUAGE sql AS 'SELECT NULL::bytea'"); err != nil {
		t.Fatal(err)
	}
	if report, err := r.Verify(t.Context()); err != nil || len(report.Findings) != 1 {
		t.Errorf("verify found %v, %v", report.Findings, err)
	}
}

// Audit references can be added to their table and forgotten. Every other change is refused, for every role.
func TestAuditReferencesCannotBeChanged(t *testing.T) {
	db := database(t)
	conn := db.Connect(t, "postgres")
	if _, err := conn.Exec(t.Context(), "SELECT pgconsent.audit_ref('ada'), pgconsent.audit_ref('bob')"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"UPDATE pgconsent.audit_subject SET subject = 'eve' WHERE subject = 'ada'",
		"UPDATE pgconsent.audit_subject SET ref = gen_random_uuid()", "TRUNCATE pgconsent.audit_subject",
		"SET session_replication_role = replica; UPDATE pgconsent.audit_subject SET subject = 'eve' WHERE subject = 'ada'",
	} {
		if _, err := conn.Exec(t.Context(), sql); err == nil {
			t.Errorf("not refused: %s", sql)
		}
	}
	var isForgotten bool
	if err := conn.QueryRow(t.Context(), "SELECT pgconsent.audit_forget('ada')").Scan(&isForgotten); err != nil || !isForgotten {
		t.Errorf("forgotten: %v, %v", isForgotten, err)
	}
}
