package rls_test

import (
	"testing"

	"github.com/pgconsent/pgconsent/migrations"
)

// The sweeper deletes the rows of an erased person, and nobody else's, whether the person's id is a short number or has
// 19 digits.
func TestErasedPersonsMayHaveLongNumbers(t *testing.T) {
	db, super, _ := materializedDatabaseOf(t, `version: 1
attributes: { user: { type: bigint, source: credential } }
tables: { notes: { rows: [ consent: { subject: about, registry: {} } ], lifecycle: { subject: about } } }
`, "CREATE TABLE notes (id int PRIMARY KEY, about bigint); CREATE INDEX ON notes (about)")
	control := db.Connect(t, migrations.DefaultControlRole)
	const remainingQuery = "SELECT COALESCE(string_agg(about::text, ' ' ORDER BY id), '') FROM notes"
	for _, number := range []string{"0", "7", "-7", "20261122", "2147483648", "999999999999999999", "-999999999999999999",
		"1234567890123456789", "9223372036854775807", "-9223372036854775808"} {
		if _, err := super.PgConn().Exec(t.Context(), `TRUNCATE notes, pgconsent.sweep_erased;
			INSERT INTO notes VALUES (1, 1), (2, `+number+`), (3, NULL), (4, -1), (5, `+number+`);
			INSERT INTO pgconsent.sweep_erased VALUES ('`+number+`', now())`).ReadAll(); err != nil {
			t.Fatal(err)
		}
		for _, q := range []struct{ sql, want string }{
			{"SELECT subject || ' ' || what || ' ' || number FROM pgconsent.sweep_due()", number + " deleted 2"},
			{"SELECT what || ' ' || number FROM pgconsent.sweep_rows('public.notes', '" + number + "', 9)", "deleted 2"},
			{"SELECT count(*) FROM pgconsent.sweep_due()", "0"},
		} {
			if got, err := query(control, q.sql); err != nil || got != q.want {
				t.Errorf("%s: %s: got %q, want %q (%v)", number, q.sql, got, q.want, err)
			}
		}
		if got, err := query(super, remainingQuery); err != nil || got != "1 -1" {
			t.Errorf("%s: rows of %q are left (%v)", number, got, err)
		}
	}
	// An id outside the range of bigint matches no row.
	for _, id := range []string{"9223372036854775808", "-9223372036854775809", "9999999999999999999", "10000000000000000000", "ada"} {
		got, err := query(control, "SELECT count(*) FROM pgconsent.sweep_rows('public.notes', '"+id+"', 9)")
		if err != nil || got != "0" {
			t.Errorf("%s: %s rows are swept (%v)", id, got, err)
		}
	}
}
