package doctor_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
)

// A finding about a single table names it as the affected table. A finding about more than one table names none.
func TestFindingsOfSingleTables(t *testing.T) {
	db := migratedDatabase(t)
	super := db.Connect(t, "postgres")
	s := subject(t, db)
	control := db.Connect(t, "pgconsent_control")
	memories := oidOf(t, super, "public.memories")
	for _, q := range []struct {
		sql, undo  string
		tableError bool
	}{
		{"ALTER TABLE public.memories DISABLE ROW LEVEL SECURITY", "ALTER TABLE public.memories ENABLE ROW LEVEL SECURITY", true},
		{"ALTER POLICY pgconsent_select ON public.memories RENAME TO pgconsent_other",
			"ALTER POLICY pgconsent_other ON public.memories RENAME TO pgconsent_select", true},
		{"GRANT TRUNCATE ON public.memories TO pgconsent_agent", "REVOKE TRUNCATE ON public.memories FROM pgconsent_agent", true},
		{"CREATE POLICY own ON public.memories TO pgconsent_agent USING (true)", "DROP POLICY own ON public.memories", true},
		{"CREATE VIEW pgconsent_signed.of_mine AS SELECT 1 AS one", "DROP VIEW pgconsent_signed.of_mine", false},
		{"ALTER ROLE pgconsent_agent BYPASSRLS", "ALTER ROLE pgconsent_agent NOBYPASSRLS", false},
		{"ALTER TABLE public.memories DISABLE ROW LEVEL SECURITY; ALTER ROLE pgconsent_agent BYPASSRLS",
			"ALTER TABLE public.memories ENABLE ROW LEVEL SECURITY; ALTER ROLE pgconsent_agent NOBYPASSRLS", false},
	} {
		exec(t, super, q.sql)
		err := doctor.CheckServing(context.Background(), control, s)
		var tableError *doctor.UnsafeTables
		switch isTableError := errors.As(err, &tableError); {
		case err == nil:
			t.Errorf("%s: is safe", q.sql)
		case isTableError != q.tableError:
			t.Errorf("%s: about single tables: %t; %v", q.sql, isTableError, err)
		case isTableError && !slices.Equal(slices.Compact(tableError.Relations), []uint32{memories}):
			t.Errorf("%s: is about %v, want %d", q.sql, tableError.Relations, memories)
		}
		exec(t, super, q.undo)
	}
	if err := doctor.CheckServing(context.Background(), control, s); err != nil {
		t.Error(err)
	}
	// A view of pgconsent belongs to one table by its name, whatever it reads.
	view := predicate.LookupView(catalog.Name{Schema: "public", Name: "people"}).SQL()
	exec(t, super, "CREATE OR REPLACE VIEW "+view+" WITH (security_barrier) AS "+one(t, super, "SELECT pg_get_viewdef('"+view+"'::regclass)"))
	err := doctor.CheckServing(context.Background(), control, s)
	var tableError *doctor.UnsafeTables
	if !errors.As(err, &tableError) || !slices.Equal(tableError.Relations, []uint32{oidOf(t, super, "public.people")}) {
		t.Errorf("a view over people that was altered: %v", err)
	}
}

func one(t *testing.T, conn *pgx.Conn, sql string) (text string) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

func oidOf(t *testing.T, conn *pgx.Conn, table string) (oid uint32) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT $1::text::regclass::oid", table).Scan(&oid); err != nil {
		t.Fatal(err)
	}
	return oid
}
