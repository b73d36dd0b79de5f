package e2e

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// TestNobodySeesARetryThatTheProxyMakes: a statement right after DDL that concerns agents, outside a transaction, is
// answered in every protocol. The database refuses it where it was decided before the DDL, and the proxy decides it
// again. A write happens once.
func TestNobodySeesARetryThatTheProxyMakes(t *testing.T) {
	in := start(t, options{})
	agent, owner := in.agent(t), in.direct(t)
	ctx := t.Context()
	const again = "INSERT INTO people (user_id, name, consent_status) " +
		"VALUES ('11111111-1111-4111-8111-111111111111', 'Again', 'pending')"
	const counts = "SELECT count(*) FROM memories"
	want := harness.Ask(agent, counts).SortedString()
	if _, err := agent.Prepare(ctx, "counts", counts, nil); err != nil {
		t.Fatal(err)
	}
	wantRetryRefused := func(how string, err error) {
		t.Helper()
		var pg *pgconn.PgError
		if errors.As(err, &pg) {
			t.Errorf("%s: %s %s", how, pg.Code, pg.Message)
		} else if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
	}
	exists := false
	changes := func() {
		t.Helper()
		ddl := "CREATE INDEX again ON public.memories (title)"
		if exists {
			ddl = "DROP INDEX public.again"
		}
		if _, err := owner.Exec(ctx, ddl).ReadAll(); err != nil {
			t.Fatal(err)
		}
		exists = !exists
	}
	newConnections, rounds := 0, tier.Count(1, 4, 20)
	for range rounds {
		for how, ask := range map[string]func() error{
			"a Query": func() error {
				if got := harness.Ask(agent, counts); got.SortedString() != want {
					t.Errorf("%s, want %s", got, want)
				}
				return nil
			},
			"a statement without a name": func() error { return agent.ExecParams(ctx, counts, nil, nil, nil, nil).Read().Err },
			"a prepared statement":       func() error { return agent.ExecPrepared(ctx, "counts", nil, nil, nil).Read().Err },
			"a Parse in the same group": func() error {
				newConnections++
				p := agent.StartPipeline(ctx)
				p.SendPrepare(fmt.Sprint("fresh", newConnections), counts, nil)
				p.SendQueryPrepared(fmt.Sprint("fresh", newConnections), nil, nil, nil)
				if err := p.Sync(); err != nil {
					return err
				}
				var failed error
				for {
					results, err := p.GetResults()
					if reader, ok := results.(*pgconn.ResultReader); ok && err == nil {
						_, err = reader.Close()
					}
					failed = errors.Join(failed, err)
					if _, isEnd := results.(*pgconn.PipelineSync); isEnd || err != nil {
						return errors.Join(failed, p.Close())
					}
				}
			},
			"the first of a transaction": func() error {
				begun := harness.Ask(agent, "BEGIN ISOLATION LEVEL REPEATABLE READ")
				changes()
				got := harness.Ask(agent, counts)
				level := harness.Ask(agent, "SHOW transaction_isolation")
				commitAnswer := harness.Ask(agent, "COMMIT")
				if begun.Code+got.Code+commitAnswer.Code != "" || got.SortedString() != want ||
					!strings.Contains(level.String(), "repeatable read") {
					t.Errorf("%s\n%s\n%s\n%s", begun, got, level, commitAnswer)
				}
				return nil
			},
			"BEGIN in the same group": func() error {
				p := agent.StartPipeline(ctx)
				p.SendQueryParams("BEGIN", nil, nil, nil, nil)
				p.SendQueryParams(counts, nil, nil, nil, nil)
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
				return agent.ExecParams(ctx, again, nil, nil, nil, nil).Read().Err
			},
		} {
			for range 2 {
				changes()
				wantRetryRefused(how, ask())
			}
		}
	}
	if got := firstColumnValues(t, in.db, "SELECT count(*)::text FROM people WHERE name = 'Again'"); got[0] != strconv.Itoa(2*rounds) {
		t.Errorf("%s rows were written, want %d", got[0], 2*rounds)
	}
	// A transaction that has read gets the error.
	harness.Ask(agent, "BEGIN")
	harness.Ask(agent, counts)
	changes()
	// Another text: a plan that the server keeps is good for as long as PostgreSQL keeps it.
	if got := harness.Ask(agent, counts+" -- again"); got.Code != "40001" {
		t.Errorf("in a transaction that has read: %s", got)
	}
}
