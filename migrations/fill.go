package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Fill describes a table of stored results of a consent rule, one for each row of Relation, and the queries that fill
// it.
type Fill struct {
	Name      string
	Relation  string
	CountLeft string // the query that counts the rows without a stored result
	// returns the query that records and counts the next n rows; a trigger stores their results at the commit
	NextRows   func(n int) string
	CountWrong string // the query that counts the rows whose stored result is wrong
}

// fillBatch is the number of rows that FillAll handles in one transaction. The transaction locks them, so that changes
// of their subjects wait for it.
const fillBatch = 2000

// FillAll computes the stored results that are missing. Each batch has a transaction of its own, so an interrupted
// FillAll can be continued by another call. Until a table is complete, rules do not use its stored results, but read
// the tables with the consents.
func FillAll(ctx context.Context, conn *pgx.Conn, fills []Fill, progress func(f Fill, left int64)) error {
	for _, f := range fills {
		if err := fill(ctx, conn, f, progress); err != nil {
			return fmt.Errorf("fill in the materialized answers of %s: %w", f.Relation, err)
		}
	}
	return nil
}

// fill computes the missing results of f, and calls progress with the number of rows that are left.
func fill(ctx context.Context, conn *pgx.Conn, f Fill, progress func(Fill, int64)) error {
	for {
		// A committed note of a change means that the change was never settled: declare all stored results invalid.
		if _, err := conn.Exec(ctx,
			`SELECT pgconsent.materialized_invalidate($1)
			WHERE EXISTS (SELECT FROM pgconsent.materialized_change AS c WHERE c.name = $1)`, f.Name); err != nil {
			return err
		}
		var ready bool
		if err := conn.QueryRow(ctx, `SELECT k.ready FROM pgconsent.materialized AS k WHERE k.name = $1`,
			f.Name).Scan(&ready); err != nil || ready {
			return err
		}
		// After an invalidation the filling begins again with the first row. This covers the changes that were never settled,
		// so their notes are deleted.
		if _, err := conn.Exec(ctx, `WITH begun AS (UPDATE pgconsent.materialized SET filled_of = stale, filled_to = NULL
			WHERE name = $1 AND filled_of IS DISTINCT FROM stale RETURNING name)
			DELETE FROM pgconsent.materialized_change AS c USING begun AS b WHERE c.name = b.name`, f.Name); err != nil {
			return err
		}
		var left int64
		if err := conn.QueryRow(ctx, f.CountLeft).Scan(&left); err != nil {
			return err
		}
		progress(f, left)
		for {
			n, err := fillNext(ctx, conn, f)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			left = max(0, left-n)
			progress(f, left)
		}
		// If the results were invalidated meanwhile, this sets nothing, and the loop begins anew.
		if _, err := conn.Exec(ctx, `UPDATE pgconsent.materialized SET ready = true WHERE name = $1 AND stale = filled_of`,
			f.Name); err != nil {
			return err
		}
	}
}

func fillNext(ctx context.Context, conn *pgx.Conn, f Fill) (n int64, err error) {
	for try := range 10 {
		err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, f.NextRows(fillBatch/(1+try))).Scan(&n)
		})
		if err == nil || !isRetryable(err) {
			break
		}
	}
	return n, err
}

// isRetryable reports whether an error is a deadlock or a serialization failure, so that trying again may succeed.
func isRetryable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40P01" || pg.Code == "40001")
}
