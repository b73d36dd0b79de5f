package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const (
	waitingSchema = `CREATE TABLE people (id int PRIMARY KEY, consent text);
CREATE TABLE notes (id int PRIMARY KEY, person int, body text);
CREATE TABLE parts (id int, person int, body text) PARTITION BY RANGE (id); CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
INSERT INTO people VALUES (1, 'granted'), (2, 'granted');
INSERT INTO notes VALUES (1, 1, 'old'), (2, 2, 'old'); INSERT INTO parts VALUES (1, 1, 'old'), (2, 2, 'old'); ANALYZE;
CREATE FUNCTION counted() RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN RETURN (SELECT count(*) FROM public.notes); END';`
	waitingPolicy = `version: 1
tables:
  people: { rows: [ { status: { column: consent, is: granted } } ] }
  notes:
    rows: [ { consent: { every: [ people: { id: person } ], status: consent, is: granted } } ]
    write: { commands: [insert, update, delete], columns: [id, person, body], accept: [conflicts, values] }
  parts:
    rows: [ { consent: { every: [ people: { id: person } ], status: consent, is: granted } } ]
    write: { commands: [update, delete], columns: [id, person, body] }
functions: { counted: {} }
`
)

func startWaiting(t *testing.T, mode harness.Mode) (*pgtest.DB, *harness.Proxy) {
	t.Helper()
	db := pgtest.Database(t)
	harness.Exec(t, db, waitingSchema)
	d := harness.Database{Name: "app", DB: db, Policy: waitingPolicy, SearchPath: []string{"public"}, Refresh: 5 * time.Second}
	return db, harness.Start(t, mode, d, nil)
}

// PostgreSQL may wait for another transaction to change a row. It then goes on with the changed row, but checks the
// rules by the older snapshot. If a consent was withdrawn meanwhile, the statement ends with 40001; otherwise it is
// answered.
func TestRowsAfterALockWaitShowNothingWithdrawn(t *testing.T) {
	for _, mode := range harness.Modes(harness.Auto, harness.Both, harness.RLS) {
		db, proxy := startWaiting(t, mode)
		owner, otherConn := harness.ConnectSuperuser(t, db), harness.ConnectSuperuser(t, db)
		for _, c := range []struct {
			sql          string
			isInQuickRun bool
		}{
			{"UPDATE notes SET body = body || '!' WHERE id = 1 RETURNING body", true},
			{"UPDATE notes SET body = 'x' WHERE body LIKE 'new%' OR body LIKE 'old%'", false},
			{"SELECT body FROM notes WHERE id = 1 FOR UPDATE", true},
			{"SELECT body FROM notes ORDER BY id FOR SHARE", false},
			{"DELETE FROM notes WHERE id = 1 RETURNING body", false},
			{"INSERT INTO notes VALUES (1, 1, 'mine') ON CONFLICT (id) DO UPDATE SET body = notes.body || excluded.body RETURNING body", false},
			{"UPDATE parts SET body = body || '!' WHERE id = 1 RETURNING body", false},
		} {
			if tier.Quick() && !c.isInQuickRun {
				continue
			}
			for _, isWithdrawn := range []bool{true, false} {
				harness.Exec(t, db, "UPDATE people SET consent = 'granted'; DELETE FROM notes WHERE id = 1; INSERT INTO notes VALUES (1, 1, 'old'); "+
					"UPDATE parts SET body = 'old'")
				agent := proxy.Agent(t, "agent", "app")
				harness.Ask(owner, "BEGIN")
				harness.Ask(owner, "UPDATE notes SET body = 'new SECRET' WHERE id = 1")
				harness.Ask(owner, "UPDATE parts SET body = 'new SECRET' WHERE id = 1")
				answer := make(chan harness.Answer, 1)
				go func() { answer <- harness.Ask(agent, c.sql) }()
				for isWaiting := false; !isWaiting; time.Sleep(5 * time.Millisecond) {
					isWaiting = harness.Ask(otherConn,
						"SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()").Results[0].Tag == "SELECT 1"
					if len(answer) > 0 {
						t.Fatalf("%s, %s does not wait: %s", mode.Name, c.sql, <-answer)
					}
				}
				if isWithdrawn {
					harness.Ask(otherConn, "UPDATE people SET consent = 'withdrawn' WHERE id = 1")
				}
				harness.Ask(owner, "COMMIT")
				got := <-answer
				if isWithdrawn && (got.Code != "40001" || strings.Contains(got.String(), "SECRET") || !strings.Contains(got.String(), "consent has changed")) {
					t.Errorf("%s, withdrawn: %s: %s", mode.Name, c.sql, got)
				} else if !isWithdrawn && got.Code != "" {
					t.Errorf("%s: %s: %s", mode.Name, c.sql, got)
				}
			}
		}
	}
}

// A frozen row keeps the number of the transaction that wrote it, though numbers are reused. Such a row must not be
// taken for one that was changed meanwhile.
func TestFrozenRowsAreNotTakenForMoved(t *testing.T) {
	db, _ := startWaiting(t, harness.Auto)
	super := harness.ConnectSuperuser(t, db)
	for _, offset := range []string{"-5", "-2000000000", "-2147483653", "-3000000000", "500000000"} {
		got := harness.Ask(super, `SELECT bool_and(pgconsent_signed.row_is_current(((pg_snapshot_xmax(pg_current_snapshot())::text::bigint + `+offset+
			` + 4294967296) & 4294967295)::text::xid, noted)) FROM (VALUES (true), (false)) AS n (noted)`)
		if got.Code != "" || got.Results[0].Rows[0] != "t" {
			t.Errorf("%s: %s", offset, got)
		}
	}
}

// A SECURITY DEFINER function may be replaced after a statement was decided. The statement must not call the new
// function, even if no table in its text has a row policy.
func TestAReplacedFunctionIsNotCalled(t *testing.T) {
	for _, mode := range harness.Modes(harness.Auto, harness.Both, harness.RLS) {
		db, proxy := startWaiting(t, mode)
		harness.Exec(t, db, "UPDATE people SET consent = 'withdrawn' WHERE id = 1")
		const callQuery = "SELECT counted()"
		agent := proxy.Agent(t, "agent", "app")
		if got := harness.Ask(agent, callQuery); got.Code != "" {
			t.Fatalf("%s: %s", mode.Name, got)
		}
		if _, err := agent.Prepare(t.Context(), "calls", callQuery, nil); err != nil {
			t.Fatal(err)
		}
		harness.Ask(agent, "PREPARE beside AS "+callQuery+"; SELECT count(*) FROM notes")
		for way, ask := range map[string]func() harness.Answer{
			"a Query":                 func() harness.Answer { return harness.Ask(agent, callQuery) },
			"several":                 func() harness.Answer { return harness.Ask(agent, "SELECT 1; "+callQuery) },
			"EXECUTE":                 func() harness.Answer { return harness.Ask(agent, "EXECUTE calls") },
			"extended protocol":       func() harness.Answer { return harness.AskBinary(agent, callQuery) },
			"prepared beside a table": func() harness.Answer { return harness.Ask(agent, "EXECUTE beside") },
			"in FROM":                 func() harness.Answer { return harness.Ask(agent, "SELECT * FROM counted() AS c (n)") },
		} {
			if tier.Quick() && way != "a Query" && way != "EXECUTE" {
				continue
			}
			harness.Ask(agent, callQuery)
			harness.Exec(t, db, "ALTER FUNCTION counted() SECURITY DEFINER")
			if got := ask(); got.Code == "" {
				t.Errorf("%s, %s: %s", mode.Name, way, got)
			}
			for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
				got := harness.Ask(agent, callQuery)
				if got.Code == "55000" && strings.Contains(got.String(), "public.counted is suspended") {
					break
				} else if time.Since(start) > tier.Patience {
					t.Fatalf("%s: %s", mode.Name, got)
				}
			}
			if got := harness.Ask(agent, "SELECT count(*) FROM notes"); got.Code != "" || got.Results[0].Rows[0] != "1" {
				t.Errorf("%s: a table beside it: %s", mode.Name, got)
			}
			harness.Exec(t, db, "ALTER FUNCTION counted() SECURITY INVOKER")
			for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
				if got := harness.Ask(agent, callQuery); got.Code == "" {
					break
				} else if time.Since(start) > tier.Patience {
					t.Fatalf("%s: %s is not served again: %s", mode.Name, way, got)
				}
			}
		}
		// DDL that does not change the function causes no error, neither at first nor later.
		harness.Exec(t, db, "CREATE INDEX ON notes (person)")
		for range 2 {
			if got := harness.Ask(agent, "EXECUTE calls"); got.Code != "" {
				t.Errorf("%s: EXECUTE behind an index: %s", mode.Name, got)
			}
			if err := agent.ExecPrepared(t.Context(), "calls", nil, nil, nil).Read().Err; err != nil {
				t.Errorf("%s: prepared, behind an index: %v", mode.Name, err)
			}
		}
	}
}
