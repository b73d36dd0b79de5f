// Package pgcatalog reads a catalog snapshot from a server.
package pgcatalog

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/catalog"
)

// Load reads what the database contains, resolved along searchPath. Any role may do so: only public catalogs are read.
func Load(ctx context.Context, conn *pgx.Conn, searchPath []string) (*catalog.Snapshot, error) {
	return nil, errors.New("not built yet")
}

// Fingerprint returns a hash that changes when what Load would return changes. It is cheap enough to be polled.
func Fingerprint(ctx context.Context, conn *pgx.Conn) (string, error) {
	return "", errors.New("not built yet")
}
