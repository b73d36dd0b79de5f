package migrations_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/migrations"
)

func TestMain(m *testing.M) { pgtest.MainAlone(m) }

// nothing is a plan that asks for nothing beside the base but that agents make no objects.
type nothing struct{}

func (nothing) Hash() string          { return "no hash" }
func (nothing) PolicyVersion() string { return "no policy" }

func (nothing) Objects(f migrations.Found) []migrations.Object {
	return []migrations.Object{{Identity: "no objects of agents", MakeStatements: []migrations.Statement{{
		SQL: "REVOKE CREATE, TEMPORARY ON DATABASE " + catalog.QuoteIdent(f.Database) + " FROM PUBLIC",
		Why: "Agents make no objects.",
	}}}}
}

func up(t *testing.T, conn *pgx.Conn) error {
	t.Helper()
	return migrations.Up(t.Context(), conn, migrations.Options{}, nothing{})
}

func count(t *testing.T, conn *pgx.Conn, sql string) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// The next numbered migration is installed in a database that has the ones before, and no row of its tables is lost. An
// older program says that it does not know it. --down takes all of them away.
func TestUpgrade(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	if err := up(t, conn); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `INSERT INTO pgconsent.subject (ref, subject, key)
		VALUES ('6f6b1a5e-0000-4000-8000-000000000001', 'ada', '\x01')`); err != nil {
		t.Fatal(err)
	}
	const function = "CREATE OR REPLACE FUNCTION pgconsent.consent_now() RETURNS pg_catalog.timestamptz\n" +
		"LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$\n" +
		"  SELECT pg_catalog.timestamptz '2030-01-01';\n$$;\n"
	bases := count(t, conn, "SELECT max(number) FROM pgconsent.migration")
	older := migrations.WithBase("next", "CREATE TABLE pgconsent.next (n pg_catalog.int4);\n"+function,
		"DROP TABLE pgconsent.next;\n")
	if err := up(t, conn); err != nil {
		older()
		t.Fatal(err)
	}
	if n := count(t, conn, "SELECT count(*) FROM pgconsent.subject WHERE subject = 'ada'"); n != 1 {
		t.Errorf("%d subjects are left", n)
	}
	if n := count(t, conn, "SELECT max(number) FROM pgconsent.migration"); n != bases+1 {
		t.Errorf("migration %d is the newest", n)
	}
	// An altered function is put back as in the newest migration.
	if _, err := conn.Exec(t.Context(), strings.Replace(function, "2030", "2040", 1)); err != nil {
		t.Fatal(err)
	}
	if err := up(t, conn); err != nil {
		t.Error(err)
	}
	if n := count(t, conn, "SELECT date_part('year', pgconsent.consent_now())::int"); n != 2030 {
		t.Errorf("the function that was altered says %d", n)
	}
	older()
	for name, err := range map[string]error{
		"up": up(t, conn), "down": migrations.Down(t.Context(), conn, migrations.Options{}),
	} {
		if e := (*sqlstate.Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Hint, "newer") {
			t.Errorf("%s by an older program: %v", name, err)
		}
	}
	defer migrations.WithBase("next", "", "DROP TABLE pgconsent.next;\n")()
	if err := migrations.Down(t.Context(), conn, migrations.Options{}); err != nil {
		t.Error(err)
	}
	if n := count(t, conn, `SELECT count(*) FROM pg_namespace WHERE nspname ~ '^pgconsent'`); n != 0 {
		t.Errorf("%d schemas are left", n)
	}
}

// The control role appends records of the audit, reads them and removes those whose time is over. It can do nothing else
// to them.
func TestRightsOnTheRecordsOfTheAudit(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	if err := up(t, conn); err != nil {
		t.Fatal(err)
	}
	run := func(sql string) (code string) {
		var pg *pgconn.PgError
		if _, err := conn.Exec(t.Context(), sql); errors.As(err, &pg) {
			return pg.Code
		} else if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return ""
	}
	granted := []string{"GRANT USAGE ON SCHEMA pgconsent TO pgconsent_control"}
	for _, g := range migrations.AuditGrants("pgconsent_control") {
		granted = append(granted, g.GrantStatement().SQL)
	}
	for _, sql := range append(granted, "SET ROLE pgconsent_control") {
		if code := run(sql); code != "" {
			t.Fatalf("%s: %s", sql, code)
		}
	}
	for _, c := range []struct{ sql, code string }{
		{"SELECT pgconsent.audit_append('one', 1, '{a,b,c}')", ""},
		{"SELECT pgconsent.audit_retire('one', 2, 10)", ""},
		{"DELETE FROM pgconsent.audit_record", "42501"},
		{"UPDATE pgconsent.audit_record SET line = 'x'", "42501"},
		{"INSERT INTO pgconsent.audit_record VALUES ('one', 4, 'd')", "42501"},
		{"INSERT INTO pgconsent.audit_retired VALUES ('one', 3)", "42501"},
		{"TRUNCATE pgconsent.audit_record", "42501"},
	} {
		if code := run(c.sql); code != c.code {
			t.Errorf("%s: SQLSTATE %q, want %q", c.sql, code, c.code)
		}
	}
	if n := count(t, conn, "SELECT sum(seq) FROM pgconsent.audit_record WHERE line = 'c'"); n != 3 ||
		count(t, conn, "SELECT count(*) FROM pgconsent.audit_record") != 1 {
		t.Error("left are other records than the last one")
	}
}

// A database of a version from before 0.1.0 is not taken for one of this version.
func TestFromBeforeTheFirstVersion(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	if err := up(t, conn); err != nil {
		t.Fatal(err)
	}
	for first, last := range map[string]string{"0001_base": "37", "0001_base_0_1": "2"} { // the earlier base migrations and their last numbers
		if _, err := conn.Exec(t.Context(), "UPDATE pgconsent.migration SET name = '"+first+"' WHERE number = 1; INSERT INTO "+
			"pgconsent.migration (number, name) SELECT n, 'x' FROM generate_series(2, "+last+") AS n ON CONFLICT DO NOTHING"); err != nil {
			t.Fatal(err)
		}
		_, read := migrations.ReadInstalled(t.Context(), conn)
		for name, err := range map[string]error{
			"up": up(t, conn), "down": migrations.Down(t.Context(), conn, migrations.Options{}), "read": read,
		} {
			if e := (*sqlstate.Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Hint, "migrate --down with that version") {
				t.Errorf("%s, %s: %v", first, name, err)
			}
		}
	}
}
