package serve

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// privacyDesk is what faces grant and look at grants with, in one database.
func (s *Service) privacyDesk(c *config.Config, name string) (*privacy.Service, error) {
	found, err := targets(c)
	if err != nil {
		return nil, err
	}
	desk := &privacy.Service{
		Policy:        func() *policy.Policy { return s.enforcer.Policy(name) },
		ConnectCaller: s.Connect,
		AgentAttributes: func() map[string]map[string]string {
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
			desk.ConnectControl, desk.ConnectAgentRole = logsIn(t.Control), logsIn(t.Agent)
		}
	}
	return desk, nil
}

// logsIn connects with a connection string of ours.
func logsIn(dsn string) func(context.Context) (*pgx.Conn, error) {
	return func(ctx context.Context) (*pgx.Conn, error) {
		c, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		conn, err := pgx.ConnectConfig(ctx, c)
		if err != nil {
			return nil, sqlstate.LoginFailed(c.User, err)
		}
		return conn, nil
	}
}
