package serve

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/config"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/privacy"
)

// privacyDesk is what faces grant and look at grants with, in one database.
func (s *Service) privacyDesk(c *config.Config, name string) (*privacy.Desk, error) {
	found, err := targets(c)
	if err != nil {
		return nil, err
	}
	desk := &privacy.Desk{
		Policy:  func() *policy.Policy { return s.enforcer.Policy(name) },
		Connect: s.Connect,
		Logins: func() map[string]map[string]string {
			out := map[string]map[string]string{}
			for agent, a := range s.config.Load().Agents {
				if a.Database == name {
					out[agent] = a.Attributes
				}
			}
			return out
		},
	}
	for _, t := range found {
		if t.Name == name {
			desk.Control = func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, t.Control) }
			desk.Wall = func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, t.Agent) }
		}
	}
	return desk, nil
}
