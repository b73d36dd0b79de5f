package enforce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
)

// readCatalogs reads the catalogs if they may have changed since they were last read, and finds out whether the changes
// concern agents. Otherwise the result of the last reading counts. The caller holds mu.
func (d *database) readCatalogs(ctx context.Context, o *probeResult, writes int64) error {
	before := d.lastFingerprints
	if v := d.servingState.Load(); o.tracksDDL && v != nil && v.refusal == nil && before.areCurrent(o.catalogVersion,
		writes) {
		o.fingerprint, o.agentChanges = before.fingerprint, before.agentChanges
		return nil
	}
	if err := d.readSnapshot(ctx); err != nil {
		return err
	}
	o.catalogsRead = true
	now := fingerprints{fingerprint: d.catalogs.Version(), agentChanges: before.agentChanges, server: o.server,
		readerChanges: d.reader.AgentChanges(), catalogVersion: o.catalogVersion, writeCount: writes, readAt: time.Now()}
	concern, err := d.mayConcernAgents(ctx, o.tracksDDL, before, &now)
	if err != nil {
		return err
	}
	if concern {
		now.agentChanges++
	}
	d.lastFingerprints = now
	o.fingerprint, o.agentChanges = now.fingerprint, now.agentChanges
	return nil
}

// mayConcernAgents reports whether the changes of the catalogs since the fingerprints in before may concern agents. The
// snapshots alone do not show this: they do not contain which columns wait for pgconsent migrate, nor everything that
// Config.Check examines.
func (d *database) mayConcernAgents(ctx context.Context, tracksDDL bool, before fingerprints,
	now *fingerprints) (bool, error) {
	sameServer, sameSnapshot := now.server == before.server, now.fingerprint == before.fingerprint
	counted := tracksDDL && now.catalogVersion != before.catalogVersion
	unwritten := now.readerChanges == before.readerChanges
	if before.readerChanges == unknownChanges {
		unwritten = tracksDDL && !counted
	}
	now.agentHash = ""
	switch {
	case sameServer && sameSnapshot && unwritten:
		now.agentHash = before.agentHash
		return false, nil
	case tracksDDL && (!sameServer || !sameSnapshot && counted):
		return true, nil
	}
	// The database also counts changes that concern no agent, and does not count changes that its event triggers do not
	// report.
	var err error
	if _, now.agentHash, err = pgcatalog.Fingerprints(ctx, d.conn); err != nil {
		return false, fmt.Errorf("catalog: %w", err)
	}
	return !sameServer || now.agentHash != before.agentHash, nil
}

// readSnapshot reads the catalogs. When PostgreSQL prints the definition of a view, it locks the tables that the view
// reads. pgconsent waits for such a lock for less than deadlock_timeout. Otherwise DDL of the owner over several tables
// could be aborted as the victim of a deadlock.
func (d *database) readSnapshot(ctx context.Context) error {
	snap, err := d.tryReadSnapshot(ctx)
	var refused *pgconn.PgError
	switch {
	case isLockTimeout(err):
		return fmt.Errorf(
			"%w: DDL that is not committed yet has locked a table that a view reads; reading begins anew until "+
				"it is: %w", errCatalogsChanging, err)
	case errors.As(err, &refused): // an object that the query names may have been dropped meanwhile
		before, failed := pgcatalog.Fingerprint(ctx, d.conn)
		if failed != nil {
			return fmt.Errorf("catalog: %w", failed)
		}
		if snap, err = d.tryReadSnapshot(ctx); err == nil || !errors.As(err, &refused) {
			break
		}
		after, failed := pgcatalog.Fingerprint(ctx, d.conn)
		if failed != nil {
			return fmt.Errorf("catalog: %w", failed)
		}
		if before != after || isLockTimeout(err) {
			return fmt.Errorf("%w: %w", errCatalogsChanging, err)
		}
	}
	if err != nil {
		return fmt.Errorf("catalog: %w", err)
	}
	d.catalogs = snap
	return nil
}

func (d *database) tryReadSnapshot(ctx context.Context) (*catalog.Snapshot, error) {
	if _, err := d.conn.Exec(ctx, "SET lock_timeout = '500ms'"); err != nil {
		return nil, err
	}
	snap, failed := d.reader.Read(ctx, d.conn)
	var refused *pgconn.PgError
	if failed != nil && !errors.As(failed, &refused) {
		return nil, failed
	}
	if _, err := d.conn.Exec(ctx, "RESET lock_timeout"); err != nil {
		return nil, err
	}
	return snap, failed
}

// unchangedCatalogs returns the catalogs without the columns that wait for pgconsent migrate. tablesWithNewColumns are
// the tables whose new columns cannot be left out. If unchanged is true, nothing that concerns agents changed while the
// catalogs were read.
func (d *database) unchangedCatalogs(ctx context.Context, o probeResult) (snap *catalog.Snapshot,
	tablesWithNewColumns []catalog.Name,
	unchanged bool, err error) {
	if !o.catalogsRead { // the probe took the known catalogs as current
		if err := d.readSnapshot(ctx); err != nil {
			return nil, nil, false, err
		}
	}
	waiting, err := migrations.ReadWaitingColumns(ctx, d.conn)
	if err != nil {
		return nil, nil, false, err
	}
	if o.tracksDDL { // the version of the catalogs tells at less cost whether they changed meanwhile
		version, told, err := catalogVersion(ctx, d.conn)
		if err != nil {
			return nil, nil, false, fmt.Errorf("catalog: %w", err)
		}
		unchanged = told && version == o.catalogVersion
	}
	if !unchanged {
		if unchanged, err = d.readUntilUnchanged(ctx); err != nil {
			return nil, nil, false, err
		}
	}
	d.catalogsReadAt = time.Now()
	snap, tablesWithNewColumns = d.catalogs.WithoutColumns(waiting)
	return snap, tablesWithNewColumns, unchanged, nil
}

// readUntilUnchanged reads the catalogs again. It reports whether they are as before, or have changed only in parts
// that concern no agent.
func (d *database) readUntilUnchanged(ctx context.Context) (bool, error) {
	before := d.catalogs
	if err := d.readSnapshot(ctx); err != nil || d.catalogs.Version() == before.Version() {
		return err == nil, err
	}
	_, concerned, err := pgcatalog.Fingerprints(ctx, d.conn)
	if err != nil {
		return false, fmt.Errorf("catalog: %w", err)
	}
	if err := d.readSnapshot(ctx); err != nil {
		return false, err
	}
	_, now, err := pgcatalog.Fingerprints(ctx, d.conn)
	if err != nil {
		return false, fmt.Errorf("catalog: %w", err)
	}
	return now == concerned, nil
}
