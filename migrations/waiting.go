package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// WaitingColumns are the columns that the policy's tables have got since the plan was installed, by the OID of the
// table. They do not exist for agents until the next pgconsent migrate.
type WaitingColumns map[uint32][]string

// Querier reads from a database: a connection, or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// ReadWaitingColumns reads the columns that wait for pgconsent migrate. The connection is that of the control role or
// the owner. A database without pgconsent, or with an older version, has none.
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
	case errors.As(err, &pgErr) && pgErr.Code == "42501": // a schema of that name exists, and the role has no right on it
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
