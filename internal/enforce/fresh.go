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
	// maxSnapshotAge is how long what sees one snapshot may do so. Changes are kept for an hour.
	maxSnapshotAge = 50 * time.Minute
	// maxTimedAge is the same for results that wait in a portal, where time alone can hide a row: they may have been worked
	// out before it did.
	maxTimedAge = 5 * time.Second
	// askTimeout bounds one question about a snapshot.
	askTimeout = 3 * time.Second
	// maxAskers is how many connections ask at once.
	maxAskers = 4
	// pruneEvery is the time between two prunings of changes.
	pruneEvery = 10 * time.Minute
)

// askers are control connections on which questions about snapshots are asked, apart from the one that looks at the
// database, which may be busy.
type askers struct {
	places chan struct{}
	mu     sync.Mutex
	idle   []*pgx.Conn
}

func newAskers() *askers { return &askers{places: make(chan struct{}, maxAskers)} }

// ask runs f with a connection. Where an idle one turns out to be lost, it is run again with a new one.
func (a *askers) ask(ctx context.Context, config *pgx.ConnConfig, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	select {
	case a.places <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.places }()
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

func (a *askers) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range a.idle {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = conn.Close(ctx)
		cancel()
	}
	a.idle = nil
}

// Snapshot takes the present moment.
func (s *session) Snapshot(ctx context.Context) (verdict.Snapshot, *sqlstate.Error) {
	now, refused := s.standing()
	if refused != nil {
		return verdict.Snapshot{}, refused
	}
	if table := now.state.unwatched; table != "" {
		return verdict.Snapshot{}, sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonTransaction,
			"cursors, row limits and transactions that keep a snapshot are not available to agents in this database").
			WithHint("Changes of %s cannot be noticed in time. Read in READ COMMITTED, each result to its end.", table)
	}
	shot := verdict.Snapshot{Rules: now.state.rules(), Taken: time.Now()}
	var server string
	err := s.db.askers.ask(ctx, s.db.control, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT pg_catalog.pg_current_snapshot()::pg_catalog.text, "+serverStarted).
			Scan(&shot.Value, &server)
	})
	switch {
	case err != nil:
		return verdict.Snapshot{}, lost(err)
	case server != s.info.Server:
		return verdict.Snapshot{}, another()
	}
	return shot, nil
}

// Fresh tells whether what is seen since then may still be shown.
func (s *session) Fresh(ctx context.Context, since verdict.Snapshot, portal bool) *sqlstate.Error {
	now, refused := s.standing()
	if refused != nil {
		return refused
	}
	age := time.Since(since.Taken)
	switch {
	case now.state.rules() != since.Rules, age > maxSnapshotAge, portal && now.state.timed && age > maxTimedAge:
		return changed()
	}
	var is bool
	var server string
	err := s.db.askers.ask(ctx, s.db.control, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT pgconsent.changed_since($1::pg_catalog.text::pg_catalog.pg_snapshot), "+
			serverStarted, since.Value).Scan(&is, &server)
	})
	switch {
	case err != nil:
		return lost(err)
	case is, server != s.info.Server:
		return changed()
	}
	return nil
}

// Unchanged asks the database itself: the next look may be two seconds away.
func (s *session) Unchanged(ctx context.Context, v *verdict.Verdict) *sqlstate.Error {
	now, refused := s.standing()
	switch {
	case refused != nil:
		return refused
	case now.state.versions != v.Versions:
		return redefined()
	case !now.told:
		return nil
	}
	var version int64
	var server string
	err := s.db.askers.ask(ctx, s.db.control, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT pgconsent.catalog_version(), "+serverStarted).Scan(&version, &server)
	})
	switch {
	case err != nil:
		return lost(err)
	case server != s.info.Server:
		return another()
	case version != now.catalog:
		s.db.notice()
		return redefined()
	}
	return nil
}

// redefined is the refusal of what was decided by functions that may not be there any more.
func redefined() *sqlstate.Error {
	return sqlstate.New(sqlstate.SerializationFailure, sqlstate.ReasonStale,
		"could not serialize access: the schema has changed").
		WithHint("The functions that the statement calls may have changed since it was decided. Try it again.")
}

// changed is the refusal of what could show what was withdrawn.
func changed() *sqlstate.Error {
	return sqlstate.New(sqlstate.SerializationFailure, sqlstate.ReasonStale,
		"could not serialize access: consent has changed").
		WithHint("What this transaction or cursor sees is older than a change of consent or of the policy. Roll " +
			"back and begin again.")
}

// prune drops changes that nobody asks about any more, and keys that no seal needs. Where the server takes no writes
// there is nothing to prune.
func (d *database) prune(ctx context.Context, seen observation) {
	if seen.keys.Len() > 1 {
		if _, err := d.conn.Exec(ctx, "SELECT pgconsent.prune_keys()"); err != nil {
			d.e.cfg.Log.Debug("keys are not pruned", "database", d.cfg.Name, "error", err)
		}
	}
	if time.Since(d.pruned) < pruneEvery {
		return
	}
	d.pruned = time.Now()
	if _, err := d.conn.Exec(ctx, "SELECT pgconsent.prune_changes(), pgconsent.add_catalog_changes()"); err != nil {
		d.e.cfg.Log.Debug("changes are not pruned", "database", d.cfg.Name, "error", err)
	}
}
