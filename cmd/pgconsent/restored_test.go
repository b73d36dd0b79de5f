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

// While serve runs, a database is replaced by an older copy: restored into it, or after it is created anew. The copy
// has consents that were withdrawn since, and no agent may read it. Agents are refused, owners are served, and the
// doctor's fix works.
func TestRestoredUnderServe(t *testing.T) {
	tier.All(t)
	i := installDSAR(t)
	pgDump, _ := pgtest.ClientProgram(t, "pg_dump")
	pgRestore, _ := pgtest.ClientProgram(t, "pg_restore")
	runProgram := func(program string, args ...string) {
		t.Helper()
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil { //nolint:gosec // the test's own
			t.Fatalf("%s: %v %s", program, err, out)
		}
	}
	file := filepath.Join(t.TempDir(), "older.dump")
	anchor := filepath.Join(i.dir(), "consent.anchor")
	p, address := i.startServe(t)
	agentReads := func(want int) func() bool {
		return func() bool { n, err := i.countVisible(t, address, "ada"); return err == nil && n == want }
	}
	for _, restoreKind := range []string{"into it", "made anew"} {
		runSteps(t, i.config, []commandStep{{"consent grant ada --stream TEMPORARY", exitOK, "given"}})
		waitFor(t, restoreKind+": the agent reads", agentReads(2))
		runProgram(pgDump, "-Fc", "-f", file, i.db.DSN("postgres", ""))
		agent := connect(t, i.dsn("chat", address))
		runSteps(t, i.config, []commandStep{{"consent revoke ada", exitOK, "withdrawn"}})
		if n := queryInt(t, agent, "SELECT count(*) FROM interactions WHERE user_id = 'ada'"); n != 0 {
			t.Errorf("%s: %d rows after a withdrawal", restoreKind, n)
		}
		if restoreKind == "into it" {
			runProgram(pgRestore, "--clean", "--if-exists", "--single-transaction", "-d", i.db.DSN("postgres", ""), file)
		} else {
			i.recreateDatabase(t)
			runProgram(pgRestore, "-d", i.db.DSN("postgres", ""), file)
		}
		waitFor(t, restoreKind+": agents are refused", func() bool { _, err := i.countVisible(t, address, "ada"); return err != nil })
		// This lasts, also for sessions that were open before.
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
		runSteps(t, i.config, []commandStep{{"migrate", exitOK, ""}}) // a dump does not have the rights on the database
		out, _, code := call(t, "", "doctor", "-c", i.config)
		if code != exitError || !strings.Contains(out, "After an older backup") {
			t.Errorf("%s: doctor says %d %s", restoreKind, code, out)
		}
		// serve first noticed the rights, which migrate has restored.
		waitFor(t, restoreKind+": serve says why", func() bool {
			return strings.Contains(p.errs.String(), "which was acknowledged, is not in the database")
		})
		// As the page says: the withdrawal is recorded again, and the anchor is moved away.
		runSteps(t, i.config, []commandStep{{"consent grant bob --stream TEMPORARY", exitError, "ConsentTamperedError"}, {"consent revoke ada", exitOK, "withdrawn"}})
		if err := os.Rename(anchor, anchor+"."+strings.ReplaceAll(restoreKind, " ", "-")); err != nil {
			t.Fatal(err)
		}
		runSteps(t, i.config, []commandStep{{"consent grant bob --stream TEMPORARY", exitOK, "given"}})
		waitFor(t, restoreKind+": the agent is served again", agentReads(0))
	}
	p.signal(t, syscall.SIGTERM)
	p.awaitEnd(t)
}

// recreateDatabase drops the database and creates it again, empty.
func (i *installation) recreateDatabase(t *testing.T) {
	t.Helper()
	conn := pgtest.Database(t).Connect(t, "postgres")
	for _, sql := range []string{"DROP DATABASE " + i.db.Name + " WITH (FORCE)",
		"CREATE DATABASE " + i.db.Name + " OWNER app_owner TEMPLATE template0"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}
