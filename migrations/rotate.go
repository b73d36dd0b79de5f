package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// RotateKey makes a new seal key and returns its number. The connection is that of the role that ran [Up]. Proxies sign
// with the new key within seconds. The key before still verifies older seals for two seal lifetimes; then proxies have
// it dropped.
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
