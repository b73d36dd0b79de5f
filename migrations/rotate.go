package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// RotateKey makes a new seal key, as the role that ran Up, and returns its number. Proxies sign with it within seconds;
// the one before verifies what it has signed for two seal lifetimes more, after which proxies have it dropped.
func RotateKey(ctx context.Context, conn *pgx.Conn) (int, error) {
	var kid int
	err := conn.QueryRow(ctx, "SELECT pgconsent.make_key()").Scan(&kid)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "3F000" || pg.Code == "42883") {
		return 0, ErrNotInstalled
	}
	if err != nil {
		return 0, fmt.Errorf("rotate the key: %w", err)
	}
	return kid, nil
}
