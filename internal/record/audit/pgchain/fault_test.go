package pgchain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// reportAtOnce makes the log report at once that the database does not answer.
func reportAtOnce(c *audit.Config) { c.ReleaseTimeout = 0 }

// runUntilAnswered runs a statement until it is answered.
func runUntilAnswered(t *testing.T, log *audit.Log, session string) {
	t.Helper()
	for end := time.Now().Add(tier.Patience); run(log, session) != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not go on: %v", log.WriteFailure())
		}
	}
}

// However the database fails, statements are refused, the log goes on when the database works again, and every answered
// statement has its record.
func TestDatabaseFails(t *testing.T) {
	for name, failure := range map[string]struct {
		begin, end     func(t *testing.T, b *bench)
		isWrittenLater bool // the batch that was interrupted is written later
	}{
		"silent": {
			begin:          func(_ *testing.T, b *bench) { b.isMuted.Store(true) },
			end:            func(_ *testing.T, b *bench) { b.isMuted.Store(false) },
			isWrittenLater: true,
		},
		"the answer to a commit is lost": {
			begin:          func(_ *testing.T, b *bench) { b.isLost.Store(true) },
			end:            func(_ *testing.T, b *bench) { b.isLost.Store(false) },
			isWrittenLater: true,
		},
		"locked": {
			begin:          func(t *testing.T, b *bench) { exec(t, b, "BEGIN; LOCK TABLE pgconsent.audit_record") },
			end:            func(t *testing.T, b *bench) { exec(t, b, "ROLLBACK") },
			isWrittenLater: true,
		},
		"read only": {
			begin: func(t *testing.T, b *bench) {
				exec(t, b, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
				exec(t, b, terminateBackends)
			},
			end: func(t *testing.T, b *bench) {
				exec(t, b,
					`SET transaction_read_only = off; DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$`)
			},
			isWrittenLater: true,
		},
		"connections are cut": {
			begin: func(t *testing.T, b *bench) {
				exec(t, b, "ALTER ROLE pgconsent_control NOLOGIN")
				exec(t, b, terminateBackends)
			},
			end:            func(t *testing.T, b *bench) { exec(t, b, "ALTER ROLE pgconsent_control LOGIN") },
			isWrittenLater: true,
		},
		"the right is gone": {
			begin: func(t *testing.T, b *bench) {
				exec(t, b, "REVOKE EXECUTE ON FUNCTION pgconsent.audit_append FROM pgconsent_control")
			},
			end: func(t *testing.T, b *bench) {
				exec(t, b, "GRANT EXECUTE ON FUNCTION pgconsent.audit_append TO pgconsent_control")
			},
			isWrittenLater: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := begin(t)
			log := b.log(reportAtOnce)
			for i := range 5 {
				runUntilAnswered(t, log, fmt.Sprint("before ", i))
			}
			time.Sleep(200 * time.Millisecond) // until the last outcome is written
			failure.begin(t, b)
			for i := range 4 {
				if err := run(log, fmt.Sprint("during ", i)); err == nil || err.Code != sqlstate.IOError {
					t.Errorf("statement %d: %v", i, err)
				} else if !strings.Contains(err.Hint, "database of the audit") {
					t.Errorf("hint %q", err.Hint)
				}
			}
			if log.WriteFailure() == nil {
				t.Error("the log does not say that it is broken")
			}
			failure.end(t, b)
			runUntilAnswered(t, log, "after")
			closed(t, log)
			report, kinds, sessions := b.records()
			for i := range 5 {
				if !sessions[fmt.Sprint("before ", i)] {
					t.Errorf("answer %d has no record", i)
				}
			}
			if !sessions["after"] || report.Recoveries == 0 || kinds["outcome"] != kinds["decision"] {
				t.Errorf("%+v %v %v", report, kinds, sessions)
			}
			if sessions["during 0"] != failure.isWrittenLater {
				t.Errorf("the record that met the failure is there: %t", sessions["during 0"])
			}
		})
	}
}

// terminateBackends ends all other sessions of the database.
const terminateBackends = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

func exec(t *testing.T, b *bench, sql string) {
	t.Helper()
	if _, err := b.dba.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// If the database does not exist yet, the log waits for it, and refuses statements meanwhile.
func TestDatabaseComesLater(t *testing.T) {
	b := begin(t)
	log := b.log(nil)
	if err := run(log, "before"); err != nil {
		t.Fatal(err)
	}
	closed(t, log)
	b.isLost.Store(true)
	log = b.log(reportAtOnce)
	if err := run(log, "too early"); err == nil || err.Code != sqlstate.IOError {
		t.Errorf("without a database: %v", err)
	}
	b.isLost.Store(false)
	runUntilAnswered(t, log, "after")
	closed(t, log)
	report, _, sessions := b.records()
	if !sessions["before"] || !sessions["after"] || sessions["too early"] || report.Recoveries == 0 {
		t.Errorf("%+v %v", report, sessions)
	}
	// A database that was never migrated is an error at once.
	neverMigrated := begin(t)
	exec(t, neverMigrated, "DROP FUNCTION pgconsent.audit_append; DROP TABLE pgconsent.audit_record")
	if _, err := neverMigrated.open(nil); err == nil || !strings.Contains(err.Error(), "pgconsent migrate") {
		t.Errorf("not migrated: %v", err)
	}
}

// If the server has no free connection, the log waits, and goes on when it gets one.
func TestServerWithoutFreeConnections(t *testing.T) {
	b := begin(t)
	exec(t, b, "ALTER DATABASE "+b.db.Name+" CONNECTION LIMIT 0")
	log := b.log(reportAtOnce)
	if err := run(log, "too early"); err == nil || err.Code != sqlstate.IOError {
		t.Errorf("on a full server: %v", err)
	}
	exec(t, b, "ALTER DATABASE "+b.db.Name+" CONNECTION LIMIT -1")
	runUntilAnswered(t, log, "after")
	closed(t, log)
	if _, _, sessions := b.records(); sessions["too early"] || !sessions["after"] {
		t.Errorf("%v", sessions)
	}
}

// In buffered mode statements do not wait for the database. They are refused when too many records wait.
func TestBuffered(t *testing.T) {
	tier.All(t)
	b := begin(t)
	log := b.log(func(c *audit.Config) { c.Mode, c.ReleaseTimeout = audit.ModeBuffered, 0 })
	for i := range 100 {
		runUntilAnswered(t, log, fmt.Sprint(i))
	}
	b.isMuted.Store(true)
	for begin := time.Now(); run(log, "during") == nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > tier.Patience {
			t.Fatal("answers go on")
		}
	}
	b.isMuted.Store(false)
	runUntilAnswered(t, log, "after")
	closed(t, log)
	if _, kinds, sessions := b.records(); !sessions["99"] || !sessions["after"] || kinds["outcome"] != kinds["decision"] {
		t.Errorf("%v", kinds)
	}
}
