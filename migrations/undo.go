package migrations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// undoStatements reads what the last Up left to be undone.
func (r *run) undoStatements(ctx context.Context) ([]Statement, error) {
	rows, err := r.tx.Query(ctx, "SELECT u.sql, u.why FROM pgconsent.installed_undo AS u ORDER BY u.seq")
	if err != nil {
		return nil, fmt.Errorf("migrate: read how to undo: %w", err)
	}
	statements, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Statement])
	if err != nil {
		return nil, fmt.Errorf("migrate: read how to undo: %w", err)
	}
	return statements, nil
}
