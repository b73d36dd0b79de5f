package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/serve"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// createConsentKey creates the key of the consent registry. If the registry is empty, it also creates its anchor.
func (s *session) createConsentKey(c *config.Config, t targetDatabase) error {
	isNew, err := serve.InitRegistry(s.ctx, c, t.conn, t.name)
	if isNew {
		fmt.Fprintf(s.err, "made %s: keep a copy, apart from the database's backups\n", c.Consent.Key)
	}
	return err
}

// endConsent removes the registry's entry from the anchor file.
func endConsent(ctx context.Context, c *config.Config, t targetDatabase) error {
	if c.Consent == nil {
		return nil
	}
	if _, err := os.Stat(c.Consent.Anchor); err != nil {
		return nil
	}
	keys, err := registry.LoadKeys(c.Consent.Key)
	if err != nil {
		return err
	}
	return registry.RemoveAnchor(ctx, keys, c.Consent.Anchor, t.name)
}

// withHint returns an error of PostgreSQL together with its hint, which pgconsent's own SQL has raised.
func withHint(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Hint != "" {
		return sqlstate.New(sqlstate.Code(pgErr.Code), sqlstate.ReasonInternal, "%s", pgErr.Message).WithHint("%s", pgErr.Hint)
	}
	return err
}
