package enforce

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// remember keeps in the database the catalogs that the installed policy fits, for proxies that start while it does not
// fit: they tell by it what has changed. The caller holds mu. Nothing depends on it while a proxy runs, so that an
// error is logged only.
func (d *database) remember(ctx context.Context, s *state, o observation) {
	if !s.suspended.none() || d.remembered == o.concerned {
		return
	}
	if err := d.write(ctx, s, o); err != nil {
		d.e.cfg.Log.Warn("the catalogs are not remembered: a proxy that starts after the next change of them may refuse "+
			"all agents until pgconsent migrate", "database", d.cfg.Name, "error", err)
	}
	d.remembered = o.concerned
}

func (d *database) write(ctx context.Context, s *state, o observation) error {
	var there bool
	if err := d.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pgconsent.installed_catalog AS c "+
		"WHERE c.hash OPERATOR(pg_catalog.=) $1 AND c.concerned OPERATOR(pg_catalog.=) $2)", s.plan.Hash(), o.concerned).
		Scan(&there); err != nil || there {
		return err
	}
	data, err := s.snapshot.Encode()
	if err != nil {
		return err
	}
	_, err = d.conn.Exec(ctx, "SELECT pgconsent.remember_catalog($1, $2, $3)", s.plan.Hash(), o.concerned, data)
	return err
}

// recall makes the state of the catalogs that were remembered for the policy that is installed; nil where there are
// none, or the policy that is configured is another one. The caller holds mu.
func (d *database) recall(ctx context.Context, o observation) (*state, error) {
	var data []byte
	err := d.conn.QueryRow(ctx, "SELECT c.snapshot FROM pgconsent.installed_catalog AS c "+
		"WHERE c.hash OPERATOR(pg_catalog.=) $1", o.installed.Hash).Scan(&data)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the catalogs that were remembered: %w", err)
	}
	snap, err := catalog.Decode(data)
	if err != nil {
		d.e.cfg.Log.Warn("the catalogs that were remembered cannot be read", "database", d.cfg.Name, "error", err)
		return nil, nil
	}
	c, err := d.compile(d.doc, snap)
	if err != nil || c.plan.Hash() != o.installed.Hash {
		return nil, nil // the error for the current catalogs is reported
	}
	return d.newState(c, snap, o.keys), nil
}
