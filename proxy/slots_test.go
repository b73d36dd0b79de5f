package proxy

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/test/tier"
)

// TestSessionCountsAreLimited: the number of sessions is limited for each agent, and for all agents together. A session
// above a limit is refused, with the limit as the reason, until another session ends. Owners' sessions are not counted.
func TestSessionCountsAreLimited(t *testing.T) {
	for name, c := range map[string]struct {
		sessionsPerAgent, maximum int
		message                   string
	}{
		"of one":  {sessionsPerAgent: 2, message: `too many connections for agent "` + agentName + `"`},
		"of all":  {maximum: 2, message: "sorry, too many clients already"},
		"of both": {sessionsPerAgent: 2, maximum: 3, message: `too many connections for agent "` + agentName + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, func(p *testProxy, cfg *Config) {
				p.editRoute = func(r *Route) { r.Sessions = c.sessionsPerAgent }
				cfg.MaxSessions = func() int { return c.maximum }
			})
			first, second := p.connect(t), p.connect(t)
			_, err := pgx.Connect(t.Context(), p.agentDSN())
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || refused.Code != "53300" || refused.Message != c.message || refused.Hint == "" {
				t.Fatalf("one more: %v", err)
			}
			owner, err := pgx.Connect(t.Context(), p.dsn("wire_owner", "owner"))
			if err != nil {
				t.Fatalf("the owner: %v", err)
			}
			defer owner.Close(t.Context())
			if _, err := second.Exec(t.Context(), "SELECT 1"); err != nil {
				t.Errorf("a session that was there: %v", err)
			}
			if err := first.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for expiry := time.Now().Add(tier.Patience); ; time.Sleep(10 * time.Millisecond) {
				newConn, err := pgx.Connect(t.Context(), p.agentDSN())
				if err == nil {
					_ = newConn.Close(t.Context())
					break
				}
				if time.Now().After(expiry) {
					t.Fatalf("a place that was given back: %v", err)
				}
			}
		})
	}
}
