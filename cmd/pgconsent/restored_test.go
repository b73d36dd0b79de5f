package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

// An older copy is put in the place of a database while serve runs, into it and by making it anew. Consents that were
// withdrawn since are back in it, and no agent reads it. Agents are refused, owners pass, and doctor names a remedy,
// which works.
func TestRestoredUnderServe(t *testing.T) {
	tier.All(t)
	i := installDSAR(t)
	pgDump, _ := pgtest.ClientProgram(t, "pg_dump")
	pgRestore, _ := pgtest.ClientProgram(t, "pg_restore")
	run := func(program string, args ...string) {
		t.Helper()
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil { //nolint:gosec // the test's own
			t.Fatalf("%s: %v %s", program, err, out)
		}
	}
	file := filepath.Join(t.TempDir(), "older.dump")
	anchor := filepath.Join(i.dir(), "consent.anchor")
	p, address := i.serving(t)
	reads := func(want int) func() bool {
		return func() bool { n, err := i.countVisible(t, address, "ada"); return err == nil && n == want }
	}
	for _, restoreKind := range []string{"into it", "made anew"} {
		runSteps(t, i.config, []commandStep{{"consent grant ada --stream TEMPORARY", exitOK, "given"}})
		waitFor(t, restoreKind+": the agent reads", reads(2))
		run(pgDump, "-Fc", "-f", file, i.db.DSN("postgres", ""))
		agent := connect(t, i.dsn("chat", address))
		runSteps(t, i.config, []commandStep{{"consent revoke ada", exitOK, "withdrawn"}})
		if n := queryInt(t, agent, "SELECT count(*) FROM interactions WHERE user_id = 'ada'"); n != 0 {
			t.Errorf("%s: %d rows after a withdrawal", restoreKind, n)
		}
		if restoreKind == "into it" {
			run(pgRestore, "--clean", "--if-exists", "--single-transaction", "-d", i.db.DSN("postgres", ""), file)
		} else {
			i.remake(t)
			run(pgRestore, "-d", i.db.DSN("postgres", ""), file)
		}
		waitFor(t, restoreKind+": agents are refused", func() bool { _, err := i.countVisible(t, address, "ada"); return err != nil })
		// It stays so, and whoever was there before reads nothing either.
		for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			if n, err := i.countVisible(t, address, "ada"); err == nil {
				t.Fatalf("%s: an agent reads %d rows", restoreKind, n)
			}
			var n int
			if err := agent.QueryRow(t.Context(), "SELECT count(*) FROM interactions WHERE user_id = 'ada'").Scan(&n); err == nil {
				t.Fatalf("%s: an agent that was there reads %d rows", restoreKind, n)
			}
		}
		owner := connect(t, i.dsn("app_owner", address))
		if n := queryInt(t, owner, "SELECT count(*) FROM interactions"); n != 3 {
			t.Errorf("%s: the owner reads %d rows", restoreKind, n)
		}
		runSteps(t, i.config, []commandStep{{"migrate", exitOK, ""}}) // rights on the database are in no dump
		out, _, code := call(t, "", "doctor", "-c", i.config)
		if code != exitError || !strings.Contains(out, "After an older backup") {
			t.Errorf("%s: doctor says %d %s", restoreKind, code, out)
		}
		// Serve found the rights first, which are back now.
		waitFor(t, restoreKind+": serve says why", func() bool {
			return strings.Contains(p.errs.String(), "which was acknowledged, is not in the database")
		})
		// As the page says: what was withdrawn is recorded again, and the anchor moved away.
		runSteps(t, i.config, []commandStep{{"consent grant bob --stream TEMPORARY", exitError, "ConsentTamperedError"}, {"consent revoke ada", exitOK, "withdrawn"}})
		if err := os.Rename(anchor, anchor+"."+strings.ReplaceAll(restoreKind, " ", "-")); err != nil {
			t.Fatal(err)
		}
		runSteps(t, i.config, []commandStep{{"consent grant bob --stream TEMPORARY", exitOK, "given"}})
		waitFor(t, restoreKind+": the agent is served again", reads(0))
	}
	p.signal(t, syscall.SIGTERM)
	p.awaitEnd(t)
}

// remake makes the database anew, empty, as it was made.
func (i *installation) remake(t *testing.T) {
	t.Helper()
	conn := pgtest.Database(t).Connect(t, "postgres")
	for _, sql := range []string{"DROP DATABASE " + i.db.Name + " WITH (FORCE)",
		"CREATE DATABASE " + i.db.Name + " OWNER app_owner TEMPLATE template0"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}
