package enforce

import (
	"context"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Another server may get the address of a database: a standby is promoted, a backup is restored there, or the old
// primary comes back. A probe is valid only for the server that it probed. A session on another server begins only
// after a probe of that server, and the sessions on the old server end.

// serverStartSQL is an SQL expression for the time at which the server was started, which distinguishes servers.
const serverStartSQL = "EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time())::pg_catalog.text"

// servingStateForServer returns the serving state for a session on this server. If the last probe was of another
// server, it probes this one first.
func (d *database) servingStateForServer(ctx context.Context, server string) (*servingState, *sqlstate.Error) {
	v, refused := d.current()
	if refused != nil || v.server == server {
		return v, refused
	}
	d.mu.Lock()
	if v = d.servingState.Load(); v.server != server && d.conn != nil {
		_ = d.conn.Close(ctx) // The next probe opens a new connection, which is to the server that has the address now.
	}
	d.mu.Unlock()
	if v.server != server {
		_ = d.refresh(ctx) // refresh logs the error and stores the result in servingState
	}
	v, refused = d.current()
	if refused == nil && v.server != server {
		return nil, serverChangedRefusal()
	}
	return v, refused
}

// endSessionsOnOtherServers ends the sessions that are not on the server that was probed last.
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

// serverChangedRefusal is the refusal of a statement in a session on a server that was not probed.
func serverChangedRefusal() *sqlstate.Error {
	return sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonStale,
		"the database server is another one than before, or was started anew").
		WithHint("Connect again.")
}
