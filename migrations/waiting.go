package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// WaitingColumns are the columns that were added to the policy's tables since the plan was installed, by the table's
// OID. Agents cannot use them before the next pgconsent migrate.
type WaitingColumns map[uint32][]string

// Querier reads from a database: a connection, or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// ReadWaitingColumns reads the columns that wait for the next pgconsent migrate, as the control role or the role that
// ran [Up]. For a database without pgconsent, or with an older version, it returns none.
func ReadWaitingColumns(ctx context.Context, q Querier) (WaitingColumns, error) {
	var (
		there   bool
		waiting = WaitingColumns{}
		table   uint32
		column  string
	)
	rows, err := q.Query(ctx, "SELECT pg_catalog.to_regclass('pgconsent.waiting') IS NOT NULL")
	if err == nil {
		there, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	}
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr) && pgErr.Code == "42501": // the role has no right on a schema with that name
		return waiting, nil
	case err != nil:
		return nil, fmt.Errorf("read which columns wait: %w", err)
	case !there:
		return waiting, nil
	}
	if rows, err = q.Query(ctx,
		"SELECT w.attrelid, w.attname::pg_catalog.text FROM pgconsent.waiting AS w ORDER BY w.attrelid, w.attnum"); err == nil {
		_, err = pgx.ForEachRow(rows, []any{&table, &column}, func() error {
			waiting[table] = append(waiting[table], column)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read which columns wait: %w", err)
	}
	return waiting, nil
}
