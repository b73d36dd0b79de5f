package enforce

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// storeCatalogs stores in the database the catalogs for which the installed policy was compiled. A proxy that starts
// after a change of the schema compares these with the present catalogs to find the changed tables. A running proxy
// does not need them, so an error is only logged. The caller holds mu.
func (d *database) storeCatalogs(ctx context.Context, s *state) {
	if !s.suspension.isEmpty() || d.storedVersions == s.versions {
		return
	}
	if err := d.insertCatalogs(ctx, s); err != nil {
		d.enforcer.cfg.Log.Warn("the catalogs are not remembered: a proxy that starts after the next change of them may refuse "+
			"all agents until pgconsent migrate", "database", d.cfg.Name, "error", err)
	}
	d.storedVersions = s.versions
}

func (d *database) insertCatalogs(ctx context.Context, s *state) error {
	var exists bool
	if err := d.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pgconsent.installed_catalog AS c "+
		"WHERE c.hash OPERATOR(pg_catalog.=) $1 AND c.concerned OPERATOR(pg_catalog.=) $2)", s.plan.Hash(),
		s.versions.Catalog).Scan(&exists); err != nil || exists {
		return err
	}
	data, err := s.snapshot.Encode()
	if err != nil {
		return err
	}
	_, err = d.conn.Exec(ctx, "SELECT pgconsent.remember_catalog($1, $2, $3)", s.plan.Hash(), s.versions.Catalog, data)
	return err
}

// stateFromStoredCatalogs makes a state from the catalogs that the database has stored for the installed policy. It
// returns nil if none are stored, or if another policy is configured. The caller holds mu.
func (d *database) stateFromStoredCatalogs(ctx context.Context, o probeResult) (*state, error) {
	var data []byte
	err := d.conn.QueryRow(ctx, "SELECT c.snapshot FROM pgconsent.installed_catalog AS c "+
		"WHERE c.hash OPERATOR(pg_catalog.=) $1", o.installedPolicy.Hash).Scan(&data)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the catalogs that were remembered: %w", err)
	}
	snap, err := catalog.Decode(data)
	if err != nil {
		d.enforcer.cfg.Log.Warn("the catalogs that were remembered cannot be read", "database", d.cfg.Name, "error", err)
		return nil, nil
	}
	c, err := d.compile(d.document, snap)
	if err != nil || c.plan.Hash() != o.installedPolicy.Hash {
		return nil, nil // The caller reports its error for the present catalogs instead.
	}
	return d.newState(c, snap, o.keys), nil
}
