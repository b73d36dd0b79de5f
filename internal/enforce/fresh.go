package enforce

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

const (
	// maxSnapshotAge is how long a transaction or cursor may use one snapshot. The database stores the records of changes
	// for an hour.
	maxSnapshotAge = 50 * time.Minute
	// maxTimeDependentAge is the limit for results that wait in a portal, if time alone can hide a row: the server may
	// have computed the row before the row expired.
	maxTimeDependentAge = 5 * time.Second
	// controlTimeout limits one query on a connection of the control pool.
	controlTimeout = 3 * time.Second
	// maxControlConns is how many connections the control pool has at most.
	maxControlConns = 4
	// pruneInterval is the time between two deletions of old records of changes.
	pruneInterval = 10 * time.Minute
)

// controlPool is a pool of control connections for short queries: snapshots, live attributes, audit references. These
// queries do not use the connection of the probes, which may be busy.
type controlPool struct {
	slots chan struct{}
	mu    sync.Mutex
	idle  []*pgx.Conn
}

func newControlPool() *controlPool { return &controlPool{slots: make(chan struct{}, maxControlConns)} }

// run calls f with a connection of the pool. If f fails on a connection that was idle before, run calls f again with
// another one.
func (a *controlPool) run(ctx context.Context, config *pgx.ConnConfig, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.slots }()
	for {
		a.mu.Lock()
		var conn *pgx.Conn
		if n := len(a.idle); n > 0 {
			conn, a.idle = a.idle[n-1], a.idle[:n-1]
		}
		a.mu.Unlock()
		used := conn != nil
		if !used {
			asking := config.Copy()
			asking.RuntimeParams["application_name"] = "pgconsent asker"
			var err error
			if conn, err = pgx.ConnectConfig(ctx, asking); err != nil {
				return err
			}
		}
		err := f(ctx, conn)
		if err == nil {
			a.mu.Lock()
			a.idle = append(a.idle, conn)
			a.mu.Unlock()
			return nil
		}
		_ = conn.Close(ctx)
		if !used || ctx.Err() != nil {
			return err
		}
	}
}

func (a *controlPool) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range a.idle {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = conn.Close(ctx)
		cancel()
	}
	a.idle = nil
}

// Snapshot takes a snapshot of the database as it is now. CheckSnapshot can tell later whether consent changed after
// the snapshot.
func (s *session) Snapshot(ctx context.Context) (verdict.Snapshot, *sqlstate.Error) {
	now, refused := s.currentServingState()
	if refused != nil {
		return verdict.Snapshot{}, refused
	}
	if table := now.state.untrackedTable; table != "" {
		return verdict.Snapshot{}, sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonTransaction,
			"cursors, row limits and transactions that keep a snapshot are not available to agents in this database").
			WithHint("Changes of %s cannot be noticed in time. Read in READ COMMITTED, each result to its end.", table)
	}
	shot := verdict.Snapshot{RulesVersion: now.state.rulesVersion(), TakenAt: time.Now()}
	var server string
	err := s.db.controlPool.run(ctx, s.db.control, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT pg_catalog.pg_current_snapshot()::pg_catalog.text, "+serverStartSQL).
			Scan(&shot.Value, &server)
	})
	switch {
	case err != nil:
		return verdict.Snapshot{}, unavailableRefusal(err)
	case server != s.info.Server:
		return verdict.Snapshot{}, serverChangedRefusal()
	}
	return shot, nil
}

// CheckSnapshot returns an error if rows that were read in the snapshot since may no longer be shown. portal says that
// the rows wait in a portal.
func (s *session) CheckSnapshot(ctx context.Context, since verdict.Snapshot, portal bool) *sqlstate.Error {
	now, refused := s.currentServingState()
	if refused != nil {
		return refused
	}
	age := time.Since(since.TakenAt)
	switch {
	case now.state.rulesVersion() != since.RulesVersion, age > maxSnapshotAge, portal && now.state.timeHidesRows &&
		age > maxTimeDependentAge:
		return consentChangedRefusal()
	}
	var is bool
	var server string
	err := s.db.controlPool.run(ctx, s.db.control, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT pgconsent.changed_since($1::pg_catalog.text::pg_catalog.pg_snapshot), "+
			serverStartSQL, since.Value).Scan(&is, &server)
	})
	switch {
	case err != nil:
		return unavailableRefusal(err)
	case is, server != s.info.Server:
		return consentChangedRefusal()
	}
	return nil
}

// CheckCatalogs returns an error if the catalogs have changed since v was decided. It queries the database, because the
// next probe may be two seconds away.
func (s *session) CheckCatalogs(ctx context.Context, v *verdict.Verdict) *sqlstate.Error {
	now, refused := s.currentServingState()
	switch {
	case refused != nil:
		return refused
	case now.state.versions != v.Versions:
		return schemaChangedRefusal()
	case !now.tracksDDL:
		return nil
	}
	var version int64
	var server string
	err := s.db.controlPool.run(ctx, s.db.control, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT pgconsent.catalog_version(), "+serverStartSQL).Scan(&version, &server)
	})
	switch {
	case err != nil:
		return unavailableRefusal(err)
	case server != s.info.Server:
		return serverChangedRefusal()
	case version != now.catalogVersion:
		s.db.requestProbe()
		return schemaChangedRefusal()
	}
	return nil
}

// schemaChangedRefusal is the refusal of a statement whose functions may have changed since it was decided.
func schemaChangedRefusal() *sqlstate.Error {
	return sqlstate.New(sqlstate.SerializationFailure, sqlstate.ReasonStale,
		"could not serialize access: the schema has changed").
		WithHint("The functions that the statement calls may have changed since it was decided. Try it again.")
}

// consentChangedRefusal is the refusal of reading on in a snapshot that could still show rows for which consent was
// withdrawn.
func consentChangedRefusal() *sqlstate.Error {
	return sqlstate.New(sqlstate.SerializationFailure, sqlstate.ReasonStale,
		"could not serialize access: consent has changed").
		WithHint("What this transaction or cursor sees is older than a change of consent or of the policy. Roll " +
			"back and begin again.")
}

// prune deletes records of changes that are older than any snapshot in use, and keys that no seal needs. On a standby
// it fails, which does no harm: nothing has to be deleted there.
func (d *database) prune(ctx context.Context, result probeResult) {
	if result.keys.Len() > 1 {
		if _, err := d.conn.Exec(ctx, "SELECT pgconsent.prune_keys()"); err != nil {
			d.enforcer.cfg.Log.Debug("keys are not pruned", "database", d.cfg.Name, "error", err)
		}
	}
	if time.Since(d.prunedAt) < pruneInterval {
		return
	}
	d.prunedAt = time.Now()
	if _, err := d.conn.Exec(ctx, "SELECT pgconsent.prune_changes(), pgconsent.add_catalog_changes()"); err != nil {
		d.enforcer.cfg.Log.Debug("changes are not pruned", "database", d.cfg.Name, "error", err)
	}
}
