package registry

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// If records that a proxy has acknowledged are missing from the registry, the proxy reports it. Here a restored older
// pg_dump has replaced the registry. A proxy that has acknowledged nothing reports nothing.
func TestRestoredOlderDumpIsNoticed(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	mustExecute(t, r, grant("ada", consent.StreamTemporary))
	conn := db.Connect(t, "pgconsent_control")
	check := func(conn *pgx.Conn, anchor string) error {
		return CheckAcknowledged(t.Context(), conn, r.Keys, anchor, "app")
	}
	file := filepath.Join(t.TempDir(), "older.dump")
	dump, _ := pgtest.ClientProgram(t, "pg_dump")
	restore, _ := pgtest.ClientProgram(t, "pg_restore")
	if out, err := exec.Command(dump, "-Fc", "-f", file, db.DSN("postgres", "")).CombinedOutput(); err != nil { //nolint:gosec // the test chooses the arguments
		if strings.Contains(string(out), "server version mismatch") {
			t.Skipf("NOT TESTED: this pg_dump does not dump a server of a later version: %s", out)
		}
		t.Fatalf("pg_dump: %v %s", err, out)
	}
	mustExecute(t, r, consent.Command{Action: consent.ActionRevoke, Subject: "ada", Caller: subject("ada")})
	if err := check(conn, r.Anchor); err != nil {
		t.Errorf("nothing is wrong, and yet: %v", err)
	}
	super := db.Connect(t, "postgres")
	if _, err := super.Exec(t.Context(), "DROP SCHEMA pgconsent, pgconsent_signed, pgconsent_catalog, pgconsent_rows CASCADE"); err != nil {
		t.Fatal(err)
	}
	if err := check(conn, r.Anchor); err != nil {
		t.Errorf("nothing is installed, which others say: %v", err)
	}
	if out, err := exec.Command(restore, "-d", db.DSN("postgres", ""), file).CombinedOutput(); err != nil { //nolint:gosec // the test chooses the arguments
		t.Fatalf("%v %s", err, out)
	}
	if err := check(conn, r.Anchor); err == nil {
		t.Error("an older dump is not noticed")
	}
	if err := check(conn, filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("without an anchor: %v", err)
	}
	report, err := r.Verify(t.Context())
	if err != nil || len(report.Findings) != 1 {
		t.Errorf("verify: %v %v", report.Findings, err)
	}
	// The withdrawal that the dump lacks is recorded again, and the anchor file is moved away.
	mustExecute(t, r, consent.Command{Action: consent.ActionRevoke, Subject: "ada", Caller: subject("ada")})
	if err := os.Rename(r.Anchor, r.Anchor+".kept"); err != nil {
		t.Fatal(err)
	}
	mustExecute(t, r, grant("bob", consent.StreamTemporary))
	if err := check(conn, r.Anchor); err != nil {
		t.Errorf("with a new anchor: %v", err)
	}
	requireVerified(t, r)
}
