package enforce

import (
	"context"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// The server at the address of a database may change: a standby is promoted, a backup is restored in its place, the old
// primary comes back. A probe is valid for its server only: a session on another server begins after that server was
// probed, and the sessions on the old server end.

// serverStartSQL is an SQL expression for when the server was started, which tells servers apart.
const serverStartSQL = "EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time())::pg_catalog.text"

// servingStateForServer returns the current view for a session on this server, which it probes first if that was not
// done yet.
func (d *database) servingStateForServer(ctx context.Context, server string) (*servingState, *sqlstate.Error) {
	v, refused := d.current()
	if refused != nil || v.server == server {
		return v, refused
	}
	d.mu.Lock()
	if v = d.servingState.Load(); v.server != server && d.conn != nil {
		_ = d.conn.Close(ctx) // The probe makes a new connection, to the server that has the address now.
	}
	d.mu.Unlock()
	if v.server != server {
		_ = d.refresh(ctx) // refresh logs the error and publishes it in the view
	}
	v, refused = d.current()
	if refused == nil && v.server != server {
		return nil, serverChangedRefusal()
	}
	return v, refused
}

// endSessionsOnOtherServers ends the sessions on other servers than the one that was probed.
func (e *Enforcer) endSessionsOnOtherServers(d *database) {
	v, refused := d.current()
	if refused != nil {
		return
	}
	e.mu.Lock()
	var endedSessions []*session
	for s := range e.sessions {
		if s.db == d && s.info.Server != v.server {
			endedSessions = append(endedSessions, s)
		}
	}
	e.mu.Unlock()
	for _, s := range endedSessions {
		s.revoke(serverChangedRefusal())
	}
}

// serverChangedRefusal is the refusal of a statement on a server that was not probed.
func serverChangedRefusal() *sqlstate.Error {
	return sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonStale,
		"the database server is another one than before, or was started anew").
		WithHint("Connect again.")
}
