package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Fill is what a plan stores beside the rows of a table, and how it is filled in.
type Fill struct {
	Name     string
	Relation string
	Left     string // the query of how many rows are left
	// notes the next n rows, whose answers are worked out as the transaction commits; and counts them
	Next    func(n int) string
	Differs string // the query of how many rows have another answer than they should
}

// fillBatch is how many rows one transaction fills in: it locks them, and whoever changes their people waits for it.
const fillBatch = 2000

// FillAll fills in what does not count yet. Each batch is a transaction of its own, so that it can be interrupted at
// any time, and goes on where it was. Until it is done the subjects of rows are looked at, as if nothing were stored.
func FillAll(ctx context.Context, conn *pgx.Conn, fills []Fill, progress func(f Fill, left int64)) error {
	for _, f := range fills {
		if err := fill(ctx, conn, f, progress); err != nil {
			return fmt.Errorf("fill in the materialized answers of %s: %w", f.Relation, err)
		}
	}
	return nil
}

func fill(ctx context.Context, conn *pgx.Conn, f Fill, progress func(Fill, int64)) error {
	for {
		// A change that nobody settles any more: one that is committed and still noted.
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
		// Filling in anew sees what was never settled, which may go.
		if _, err := conn.Exec(ctx, `WITH begun AS (UPDATE pgconsent.materialized SET filled_of = stale, filled_to = NULL
			WHERE name = $1 AND filled_of IS DISTINCT FROM stale RETURNING name)
			DELETE FROM pgconsent.materialized_change AS c USING begun AS b WHERE c.name = b.name`, f.Name); err != nil {
			return err
		}
		var left int64
		if err := conn.QueryRow(ctx, f.Left).Scan(&left); err != nil {
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
		// What changed meanwhile and could not be settled begins it anew.
		if _, err := conn.Exec(ctx, `UPDATE pgconsent.materialized SET ready = true WHERE name = $1 AND stale = filled_of`,
			f.Name); err != nil {
			return err
		}
	}
}

func fillNext(ctx context.Context, conn *pgx.Conn, f Fill) (n int64, err error) {
	for try := range 10 {
		err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, f.Next(fillBatch/(1+try))).Scan(&n)
		})
		if err == nil || !again(err) {
			break
		}
	}
	return n, err
}

// again tells whether others were in the way.
func again(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40P01" || pg.Code == "40001")
}
