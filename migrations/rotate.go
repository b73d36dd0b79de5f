package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// RotateKey makes a new key for signing sessions' seals, and returns its number. conn must be a connection of the role
// that ran [Up]. Proxies sign with the new key within seconds. The previous key still verifies older seals for two seal
// lifetimes; then a proxy deletes it.
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
