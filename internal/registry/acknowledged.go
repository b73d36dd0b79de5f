package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// CheckAcknowledged returns an error if the record that the anchor names is not in the database. An older dump may have
// replaced the database, and then acknowledged withdrawals may be missing, too. Without an anchor or a registry there
// is nothing to check.
func CheckAcknowledged(ctx context.Context, conn *pgx.Conn, k Keys, path, database string) error {
	// The anchor is read first, because the record that it names was committed before the anchor was written.
	file, err := readAnchor(path)
	if err != nil {
		return nil // Execute grants nothing without a valid anchor, and "audit verify" reports it
	}
	h, ok, err := file.head(database, k)
	if err != nil || !ok {
		return nil
	}
	var exists bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pgconsent.consent_registry AS g WHERE g.id = $1)
		AND ($2::int8 = 0 OR EXISTS (SELECT FROM pgconsent.consent_record AS r WHERE r.number = $2 AND r.hash = $3))`,
		h.Registry, h.Number, h.Hash).Scan(&exists)
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000"):
		return nil // the registry is not installed, which other checks report
	case err != nil:
		return fmt.Errorf("look for the consent record that was acknowledged: %w", err)
	case !exists:
		return newTamperedError(fmt.Sprintf(
			"record %d, which was acknowledged, is not in the database; withdrawals may be missing, too", h.Number))
	}
	return nil
}
