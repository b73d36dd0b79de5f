package pgchain

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// probeChain is the name of a chain that no configuration can use.
const probeChain = "pgconsent doctor"

// TryAppend returns the reason why the database would not accept a record now, or nil. It appends a record to
// probeChain and rolls back.
func TryAppend(ctx context.Context, conn *pgx.Conn) error {
	var encoding string
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.current_setting('server_encoding')").Scan(&encoding); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("audit: its encoding is %s, and a record may hold any character", encoding)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '2s'"); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	_, err = tx.Exec(ctx, "SELECT pgconsent.audit_append($1, 1, ARRAY['{}'])", probeChain)
	if err == nil {
		var exists bool
		if err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pgconsent.audit_record WHERE chain = $1 AND seq = 1)",
			probeChain).Scan(&exists); err == nil && !exists {
			return errors.New("audit: a record that was added is missing: a trigger, a rule or another function has removed it")
		}
	}
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &pg) && pg.Code == "57014":
		return errors.New("audit: pgconsent.audit_record is locked, or the server does not answer: a record was " +
			"not taken within 2 s")
	default:
		return fmt.Errorf("audit: %w", err)
	}
}
