package enforce

import (
	"context"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// What stands at the address of a database may change: a standby takes over, an older copy is put in its place, the old
// primary comes back. What was looked at is good for that server alone: a session on another one begins when that was
// examined, and none outlives the change.

// serverStarted is an expression that tells servers apart.
const serverStarted = "EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time())::pg_catalog.text"

// known returns the state in force for a session on this server. One that was not examined yet is, first.
func (d *database) known(ctx context.Context, server string) (*view, *sqlstate.Error) {
	v, refused := d.current()
	if refused != nil || v.server == server {
		return v, refused
	}
	d.mu.Lock()
	if v = d.view.Load(); v.server != server && d.conn != nil {
		_ = d.conn.Close(ctx) // the look makes another, to what stands there now
	}
	d.mu.Unlock()
	if v.server != server {
		_ = d.refresh(ctx) // logged, and seen in the view
	}
	v, refused = d.current()
	if refused == nil && v.server != server {
		return nil, another()
	}
	return v, refused
}

// leave ends the sessions on other servers than the one that was looked at.
func (e *Enforcer) leave(d *database) {
	v, refused := d.current()
	if refused != nil {
		return
	}
	e.mu.Lock()
	var ended []*session
	for s := range e.sessions {
		if s.db == d && s.info.Server != v.server {
			ended = append(ended, s)
		}
	}
	e.mu.Unlock()
	for _, s := range ended {
		s.revoke(another())
	}
}

// another is the refusal of what would be read on a server that nobody has examined.
func another() *sqlstate.Error {
	return sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonStale,
		"the database server is another one than before, or was started anew").
		WithHint("Connect again.")
}
