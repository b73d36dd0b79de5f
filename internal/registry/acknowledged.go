package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// CheckAcknowledged tells whether the record in the anchor is in the database: an error says that it is not, as after an
// older dump was put in the place of the database. Withdrawals that were acknowledged may be gone with it. Without an
// anchor, or a registry, nothing is said.
func CheckAcknowledged(ctx context.Context, conn *pgx.Conn, k Keys, path, database string) error {
	// The anchor first: what it names was committed before.
	file, err := readAnchor(path)
	if err != nil {
		return nil // nothing is granted then, and "audit verify" says it
	}
	h, ok, err := file.head(database, k)
	if err != nil || !ok {
		return nil
	}
	var there bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pgconsent.consent_registry AS g WHERE g.id = $1)
		AND ($2::int8 = 0 OR EXISTS (SELECT FROM pgconsent.consent_record AS r WHERE r.number = $2 AND r.hash = $3))`, h.Registry, h.Number, h.Hash).Scan(&there)
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000"):
		return nil // nothing is installed, which is said elsewhere
	case err != nil:
		return fmt.Errorf("look for the consent record that was acknowledged: %w", err)
	case !there:
		return tampered(fmt.Sprintf(
			"record %d, which was acknowledged, is not in the database, and withdrawals may have gone with it", h.Number))
	}
	return nil
}
