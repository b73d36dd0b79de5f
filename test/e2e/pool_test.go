package e2e

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// TestUsersOfOnePool checks that sessions that share a pool of connections see their own rows only, however their
// transactions interleave. They belong to agents with different attributes, or to one agent that changes the settings
// for its attributes.
func TestUsersOfOnePool(t *testing.T) {
	t.Setenv("PGCONSENT_POOL", "transaction")
	in := start(t, options{
		beforeMigrate: "CREATE TABLE notes (owner text, tenant text, body text); INSERT INTO notes " +
			"SELECT 'u' || u, 't' || t, 'u' || u || ' t' || t FROM generate_series(1, 5) u, generate_series(1, 5) t",
		policy: "version: 1\nattributes: { user: { type: text, source: credential }, tenant: { type: text, source: set, setting: app.tenant, " +
			"within: { values: [t1, t2, t3, t4, t5] }, optional: true } }\n" +
			"tables: { notes: { rows: [ { own: { column: owner, is: user } }, { own: { column: tenant, is: tenant } } ] } }\n",
		attributes: map[string]string{"user": "u3"}, // the agents differ in their attributes
	})
	const text = "SELECT body FROM notes ORDER BY body"
	var workers sync.WaitGroup
	for user := 1; user <= 5; user++ {
		c := in.agent(t)
		random := rand.New(rand.NewPCG(tier.Seed(), uint64(user)))
		workers.Go(func() {
			tenant := ""
			for range 40 {
				switch random.IntN(4) {
				case 0:
					tenant = fmt.Sprint("t", 1+random.IntN(5))
					harness.Ask(c, "SET app.tenant = '"+tenant+"'")
				case 1:
					harness.Ask(c, "RESET app.tenant")
					tenant = ""
				}
				want := ""
				if tenant != "" {
					want = "u3 " + tenant
				}
				a := harness.Ask(c, text)
				if random.IntN(2) == 0 {
					a = harness.AskExtended(c, text)
				}
				var rows []string
				if len(a.Results) == 1 {
					rows = a.Results[0].Rows
				}
				if got := fmt.Sprint(rows); a.Err != "" || got != "["+want+"]" {
					t.Errorf("tenant %q: %s %s", tenant, got, a.Err)
				}
			}
		})
	}
	workers.Wait()
}
