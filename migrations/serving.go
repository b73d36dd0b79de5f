package migrations

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ControlName is the application_name of the connection by which a proxy reads the state of a database. A proxy adds
// the hash of the plan that it serves, so that pg_stat_activity shows the hash.
const ControlName = "pgconsent control"

// ServingName returns the application_name for a proxy that serves the plan with this hash, or that serves none yet if
// hash is "".
func ServingName(hash string) string {
	if hash == "" {
		return ControlName
	}
	return ControlName + " serves " + hash[:min(len(hash), 12)]
}

// ReadServing returns how many proxies are connected to the database (all), and how many of these serve the plan with
// this hash (serving).
func ReadServing(ctx context.Context, conn *pgx.Conn, hash string) (serving, all int, err error) {
	rows, err := conn.Query(ctx, `SELECT a.application_name FROM pg_catalog.pg_stat_activity AS a
		WHERE a.datname = pg_catalog.current_database() AND a.application_name LIKE $1 || '%'`, ControlName)
	if err != nil {
		return 0, 0, fmt.Errorf("read which proxies there are: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		if name == ServingName(hash) {
			serving++
		}
	}
	return serving, len(names), err
}

// AwaitServing waits until all connected proxies serve the plan with this hash, but no longer than wait. It returns
// what ReadServing returned last.
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
