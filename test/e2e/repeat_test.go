package e2e

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// TestNobodySeesARetryThatTheProxyMakes sends statements right after DDL that concerns agents, outside a transaction,
// by each protocol. The database refuses a statement that was decided before the DDL. The proxy then decides it again,
// and the agent gets the answer. A write happens once.
func TestNobodySeesARetryThatTheProxyMakes(t *testing.T) {
	in := start(t, options{})
	agent, owner := in.agent(t), in.superuserConn(t)
	ctx := t.Context()
	const insertSQL = "INSERT INTO people (user_id, name, consent_status) " +
		"VALUES ('11111111-1111-4111-8111-111111111111', 'Again', 'pending')"
	const countQuery = "SELECT count(*) FROM memories"
	want := harness.Ask(agent, countQuery).SortedString()
	if _, err := agent.Prepare(ctx, "counts", countQuery, nil); err != nil {
		t.Fatal(err)
	}
	checkAnswered := func(way string, err error) {
		t.Helper()
		var pg *pgconn.PgError
		if errors.As(err, &pg) {
			t.Errorf("%s: %s %s", way, pg.Code, pg.Message)
		} else if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
	}
	indexExists := false
	changeSchema := func() {
		t.Helper()
		ddl := "CREATE INDEX again ON public.memories (title)"
		if indexExists {
			ddl = "DROP INDEX public.again"
		}
		if _, err := owner.Exec(ctx, ddl).ReadAll(); err != nil {
			t.Fatal(err)
		}
		indexExists = !indexExists
	}
	statementNumber, rounds := 0, tier.Count(1, 4, 20)
	for range rounds {
		for way, ask := range map[string]func() error{
			"a Query": func() error {
				if got := harness.Ask(agent, countQuery); got.SortedString() != want {
					t.Errorf("%s, want %s", got, want)
				}
				return nil
			},
			"a statement without a name": func() error { return agent.ExecParams(ctx, countQuery, nil, nil, nil, nil).Read().Err },
			"a prepared statement":       func() error { return agent.ExecPrepared(ctx, "counts", nil, nil, nil).Read().Err },
			"a Parse in the same group": func() error {
				statementNumber++
				p := agent.StartPipeline(ctx)
				p.SendPrepare(fmt.Sprint("fresh", statementNumber), countQuery, nil)
				p.SendQueryPrepared(fmt.Sprint("fresh", statementNumber), nil, nil, nil)
				if err := p.Sync(); err != nil {
					return err
				}
				var joinedErr error
				for {
					results, err := p.GetResults()
					if reader, ok := results.(*pgconn.ResultReader); ok && err == nil {
						_, err = reader.Close()
					}
					joinedErr = errors.Join(joinedErr, err)
					if _, isEnd := results.(*pgconn.PipelineSync); isEnd || err != nil {
						return errors.Join(joinedErr, p.Close())
					}
				}
			},
			"the first of a transaction": func() error {
				beginAnswer := harness.Ask(agent, "BEGIN ISOLATION LEVEL REPEATABLE READ")
				resume := stopRefreshes(t, in)
				changeSchema()
				time.AfterFunc(30*time.Millisecond, resume)
				got := harness.Ask(agent, countQuery)
				isolationAnswer := harness.Ask(agent, "SHOW transaction_isolation")
				commitAnswer := harness.Ask(agent, "COMMIT")
				if beginAnswer.Code+got.Code+commitAnswer.Code != "" || got.SortedString() != want ||
					!strings.Contains(isolationAnswer.String(), "repeatable read") {
					t.Errorf("%s\n%s\n%s\n%s", beginAnswer, got, isolationAnswer, commitAnswer)
				}
				return nil
			},
			"BEGIN in the same group": func() error {
				p := agent.StartPipeline(ctx)
				p.SendQueryParams("BEGIN", nil, nil, nil, nil)
				p.SendQueryParams(countQuery, nil, nil, nil, nil)
				err := p.Sync()
				for err == nil {
					var results any
					if results, err = p.GetResults(); err != nil {
						break
					}
					if reader, ok := results.(*pgconn.ResultReader); ok {
						_, err = reader.Close()
					}
					if _, isEnd := results.(*pgconn.PipelineSync); isEnd {
						break
					}
				}
				err = errors.Join(err, p.Close())
				if agent.TxStatus() != 'T' {
					t.Errorf("the state of the transaction is %c", agent.TxStatus())
				}
				harness.Ask(agent, "COMMIT")
				return err
			},
			"a write": func() error {
				return agent.ExecParams(ctx, insertSQL, nil, nil, nil, nil).Read().Err
			},
			"a write in a Query of several statements": func() error {
				_, err := agent.Exec(ctx, "SELECT 1; "+insertSQL+"; "+countQuery).ReadAll()
				return err
			},
			"a transaction in one Query": func() error {
				_, err := agent.Exec(ctx, "BEGIN; "+countQuery+"; "+insertSQL+"; COMMIT").ReadAll()
				if agent.TxStatus() != 'I' {
					t.Errorf("the state of the transaction is %c", agent.TxStatus())
				}
				return err
			},
			"a Query that begins a transaction and reads": func() error {
				_, err := agent.Exec(ctx, "BEGIN; SELECT 1; "+countQuery).ReadAll()
				if agent.TxStatus() != 'T' {
					t.Errorf("the state of the transaction is %c", agent.TxStatus())
				}
				harness.Ask(agent, "COMMIT")
				return err
			},
		} {
			for range 2 {
				resume := stopRefreshes(t, in)
				changeSchema()
				time.AfterFunc(30*time.Millisecond, resume)
				checkAnswered(way, ask())
			}
		}
	}
	if got := firstColumnValues(t, in.db, "SELECT count(*)::text FROM people WHERE name = 'Again'"); got[0] != strconv.Itoa(6*rounds) {
		t.Errorf("%s rows were written, want %d", got[0], 6*rounds)
	}
	// In a transaction that has already read, the agent gets the error.
	harness.Ask(agent, "BEGIN")
	harness.Ask(agent, countQuery)
	changeSchema()
	// The text differs, because PostgreSQL may still use the plan of the earlier text.
	if got := harness.Ask(agent, countQuery+" -- again"); got.Code != "40001" {
		t.Errorf("in a transaction that has read: %s", got)
	}
	harness.Ask(agent, "ROLLBACK")
	// A lock of the session outlives the statement that failed, and is not taken a second time. If a refresh was on its
	// way when it was stopped, the statement may be a new one, and is asked again.
	const lockQuery, unlockQuery = "SELECT pg_advisory_lock(5); " + countQuery, "SELECT pg_advisory_unlock(5)"
	code, unlocked := "", ""
	for range 5 {
		resume := stopRefreshes(t, in)
		changeSchema()
		code = harness.Ask(agent, lockQuery).Code
		resume()
		unlocked = harness.Ask(agent, unlockQuery).String() + harness.Ask(agent, unlockQuery).String()
		if strings.Count(unlocked, "\nt") != 1 {
			t.Errorf("one lock was taken, and unlocked twice:\n%s", unlocked)
		}
		if code == "40001" {
			break
		}
	}
	if code != "40001" {
		t.Errorf("behind a lock: %q", code)
	}
}

// stopRefreshes stops the server's processes with which the proxy reads the catalogs, until resume is called or five
// seconds have passed. So the proxy does not know of DDL before the next statement of an agent.
func stopRefreshes(t *testing.T, in *instance) (resume func()) {
	t.Helper()
	var processes []int
	for _, text := range firstColumnValues(t, in.db, "SELECT pid::text FROM pg_stat_activity "+
		"WHERE datname = current_database() AND usename = 'pgconsent_control'") {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		processes = append(processes, pid)
	}
	if len(processes) == 0 {
		t.Fatal("the proxy has no connection with which it reads the catalogs")
	}
	for _, pid := range processes {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	resume = func() {
		for _, pid := range processes {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended
		}
	}
	time.AfterFunc(5*time.Second, resume)
	return resume
}
