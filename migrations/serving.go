package migrations

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ControlName is the application name of a proxy's connection that looks at a database, and Serves what is added to it:
// the proxy says there which database half it serves, so that everybody sees it in pg_stat_activity.
const ControlName = "pgconsent control"

// Serves is the application name of a proxy that serves the database half of that hash; "": it serves none yet.
func Serves(hash string) string {
	if hash == "" {
		return ControlName
	}
	return ControlName + " serves " + hash[:min(len(hash), 12)]
}

// ReadServing returns how many proxies look at the database, and how many of them serve the database half of that hash.
func ReadServing(ctx context.Context, conn *pgx.Conn, hash string) (serving, all int, err error) {
	rows, err := conn.Query(ctx, `SELECT a.application_name FROM pg_catalog.pg_stat_activity AS a
		WHERE a.datname = pg_catalog.current_database() AND a.application_name LIKE $1 || '%'`, ControlName)
	if err != nil {
		return 0, 0, fmt.Errorf("read which proxies there are: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		if name == Serves(hash) {
			serving++
		}
	}
	return serving, len(names), err
}

// AwaitServing waits until all proxies that look at the database serve that database half, or for so long, and returns
// how many do.
func AwaitServing(ctx context.Context, conn *pgx.Conn, hash string, wait time.Duration) (serving, all int, err error) {
	for until := time.Now().Add(wait); ; {
		if serving, all, err = ReadServing(ctx, conn, hash); err != nil || serving == all || time.Now().After(until) {
			return serving, all, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return serving, all, ctx.Err()
		}
	}
}
