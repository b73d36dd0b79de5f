package serve

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// privacyService returns the service by which HTTP and MCP read and change memories and their grants in one database.
func (s *Service) privacyService(cfg *config.Config, name string) (*privacy.Service, error) {
	found, err := enforcedDatabases(cfg)
	if err != nil {
		return nil, err
	}
	service := &privacy.Service{
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
			service.ConnectControl, service.ConnectAgentRole = newConnector(t.ControlConnection), newConnector(t.AgentConnection)
		}
	}
	return service, nil
}

// newConnector returns a function that connects to a database with a connection string.
func newConnector(dsn string) func(context.Context) (*pgx.Conn, error) {
	return func(ctx context.Context) (*pgx.Conn, error) {
		c, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, err
		}
		conn, err := pgx.ConnectConfig(ctx, c)
		if err != nil {
			return nil, sqlstate.LoginFailedError(c.User, err)
		}
		return conn, nil
	}
}
