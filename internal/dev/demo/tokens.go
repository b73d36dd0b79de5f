package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// makeTokens makes a token for each agent, for the persons that the world names, and for the other roles. Tokens are
// not stored, so that each start makes new ones.
func (f demoFolder) makeTokens(ctx context.Context, cfg *config.Config) (map[string]string, error) {
	if err := os.Remove(cfg.HTTP.Tokens); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[string]string{}
	add := func(key string, t identity.Token) error {
		token, sum, err := identity.NewToken()
		if err != nil {
			return err
		}
		t.SHA256 = sum
		if err := identity.AddToken(cfg.HTTP.Tokens, cfg, t, false); err != nil {
			return fmt.Errorf("world %s: a token for %s: %w", f.world.Name, key, err)
		}
		out[key] = token
		return nil
	}
	for _, role := range []identity.Role{identity.Admin, identity.System, identity.Operator} {
		if err := add(string(role), identity.Token{Name: string(role), Role: role}); err != nil {
			return nil, err
		}
	}
	for _, a := range f.world.Agents {
		if err := add("agent:"+a.Name, identity.Token{Name: "agent:" + a.Name, Role: identity.Agent, Agent: a.Name}); err != nil {
			return nil, err
		}
	}
	persons, err := f.personIDs(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("world %s: world.yaml: subjects: %w", f.world.Name, err)
	}
	for i, id := range persons {
		if err := add("subject:"+id, identity.Token{
			Name: fmt.Sprintf("subject-%d", i+1), Role: identity.Subject, Subject: id}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// personIDs returns the ids of the people for whom the demo makes tokens. It runs the query `subjects` of world.yaml
// with the owner's role.
func (f demoFolder) personIDs(ctx context.Context, c *config.Config) ([]string, error) {
	return queryWorld(ctx, c, f.world.Name, f.world.Subjects, pgx.RowTo[string])
}

// queryWorld runs a query of a world with the owner's role. An empty query returns no rows.
func queryWorld[T any](ctx context.Context, cfg *config.Config, database, query string, row pgx.RowToFunc[T]) ([]T,
	error) {
	if query == "" {
		return nil, nil
	}
	db := cfg.Databases[database]
	dsn, err := cfg.ConnString(db, db.Roles.Migrate, db.Secrets.Migrate)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, row)
}
