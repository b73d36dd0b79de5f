package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Fill is a table of answers that a plan stores beside the rows of a table, with the queries that fill it.
type Fill struct {
	Name      string
	Relation  string
	CountLeft string // the query of the number of rows that have no answer yet
	// returns the query that notes the next n rows and counts them; their answers are stored when the transaction commits
	NextRows   func(n int) string
	CountWrong string // the query of the number of rows whose stored answer is wrong
}

// fillBatch is the number of rows that one transaction fills in. It locks the rows, so that a change of their subjects
// waits.
const fillBatch = 2000

// FillAll fills in the stored answers that are not complete. Each batch is a transaction of its own, so FillAll can be
// interrupted at any time, and continues where it was. Until it is done, rules read the subjects of rows, as if nothing
// were stored.
func FillAll(ctx context.Context, conn *pgx.Conn, fills []Fill, progress func(f Fill, left int64)) error {
	for _, f := range fills {
		if err := fill(ctx, conn, f, progress); err != nil {
			return fmt.Errorf("fill in the materialized answers of %s: %w", f.Relation, err)
		}
	}
	return nil
}

// fill computes stored values of rows, and reports its progress.
func fill(ctx context.Context, conn *pgx.Conn, f Fill, progress func(Fill, int64)) error {
	for {
		// Delete the note of a committed change that no transaction will settle any more.
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
		// The filling begins anew and so includes changes that were never settled; their notes may go.
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
		// If a change could not be settled meanwhile, the filling begins anew.
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

// isRetryable tells whether an error is caused by concurrent transactions, so that trying again may succeed.
func isRetryable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40P01" || pg.Code == "40001")
}
