package e2e

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// TestMigrateRefusesNobody installs one policy after the other, some with a change of the schema. Meanwhile every
// statement is answered, also about the changed tables.
func TestMigrateRefusesNobody(t *testing.T) {
	mode := harness.Auto
	d, proxy := startGrowing(t, mode, "; CREATE SEQUENCE rounds")
	// The two policies write the rule of letters differently, and show the same row.
	policies := []string{
		strings.Replace(growingPolicy, "columns: { id: allow, subject: allow, owner: allow }",
			"columns: { id: allow, subject: allow }", 1),
		growingPolicy,
	}
	const unchangedQuery, changedQuery = "SELECT name FROM people ORDER BY id", "SELECT subject FROM letters"
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	var answers atomic.Int64
	startReader := func(ask func(*pgconn.PgConn) harness.Answer) {
		c := proxy.Agent(t, "agent", "app")
		want := ask(c).String()
		readers.Go(func() {
			for ctx.Err() == nil {
				if got := ask(c).String(); got != want {
					t.Errorf("%s\nwant %s", got, want)
					return
				}
				answers.Add(1)
				time.Sleep(time.Millisecond)
			}
		})
	}
	for _, sql := range []string{unchangedQuery, changedQuery} {
		startReader(func(c *pgconn.PgConn) harness.Answer { return harness.Ask(c, sql) })
		startReader(func(c *pgconn.PgConn) harness.Answer { return harness.AskExtended(c, sql) })
		startReader(func(c *pgconn.PgConn) harness.Answer {
			harness.Ask(c, "BEGIN")
			answer := harness.Ask(c, sql)
			harness.Ask(c, "COMMIT")
			return answer
		})
	}
	for round := range tier.Count(3, 6, 100) {
		if round%3 == 2 {
			harness.Exec(t, d.DB, "CREATE INDEX ON letters (subject); ALTER TABLE orgs ADD COLUMN more_"+
				string(rune('a'+round%26))+"_"+strings.Repeat("x", round/26)+" int")
		}
		d.Policy = policies[round%2]
		proxy.WritePolicy(t, "app", d.Policy)
		harness.Migrate(t, d, mode)
		answersBefore := answers.Load()
		for deadline := time.Now().Add(tier.Patience); answers.Load() < answersBefore+30 && !t.Failed(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no statement is answered any more")
			}
		}
	}
	cancel()
	readers.Wait()
}
