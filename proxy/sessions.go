package proxy

import (
	"cmp"
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// login says who a logged-in client is.
type login struct {
	kind           RouteKind
	user, database string
	since          time.Time
}

// Session describes a client's session for operators. It includes no statement and no data.
type Session struct {
	ID             string // id as in [SessionInfo] and the log
	Kind           RouteKind
	User, Database string
	Remote         string // the client's address, or the name of the caller who dialed within the process
	Since          time.Time
	State          SessionState
}

// SessionState says what a session is doing.
type SessionState string

// The states of sessions. For agents these are states of PostgreSQL's pg_stat_activity, and Waiting.
const (
	Idle                SessionState = "idle"
	Active              SessionState = "active"                        // a statement is decided or runs
	InTransaction       SessionState = "idle in transaction"           // a transaction is open, and no statement runs
	InFailedTransaction SessionState = "idle in transaction (aborted)" // a failed transaction is open
	Waiting             SessionState = "waiting"                       // a statement waits while the database is paused
	Relayed             SessionState = "relayed"                       // an owner's session, which is not parsed
	Connected           SessionState = "connected"                     // an operator's session
)

// loggedIn notes that the client is logged in, which makes room for another login.
func (c *conn) loggedIn(kind RouteKind, st *startup) {
	c.login.Store(&login{kind: kind, user: st.user, database: st.database, since: time.Now()})
	c.server.loggedIn(c)
}

// Sessions returns the sessions of logged-in clients, the oldest first, without sessions that are ending.
func (s *Server) Sessions() []Session {
	var out []Session
	for _, c := range s.open() {
		if l := c.login.Load(); l != nil && c.ctx.Err() == nil {
			out = append(out, Session{ID: c.id, Kind: l.kind, User: l.user, Database: l.database, Remote: c.remote(),
				Since: l.since, State: c.state(l.kind)})
		}
	}
	slices.SortFunc(out, func(a, b Session) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return out
}

// End ends the session with this id and cancels the statement that the server runs for it. The client gets reason as
// the error, except an owner, to whom only the server sends messages. End returns false if there is no such session.
func (s *Server) End(id string, reason *sqlstate.Error) bool {
	for _, c := range s.open() {
		if c.id == id && c.login.Load() != nil && c.ctx.Err() == nil {
			c.stop(reason)
			return true
		}
	}
	return false
}

// open returns all open connections of clients.
func (s *Server) open() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		out = append(out, c)
	}
	return out
}

// state returns the state of the client's session.
func (c *conn) state(kind RouteKind) SessionState {
	switch kind {
	case Owner:
		return Relayed
	case Operator:
		return Connected
	}
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	switch {
	case c.paused.Load():
		return Waiting
	case s == nil:
		return Idle
	default:
		return s.ledger.state()
	}
}

// state returns the session's state, as the unanswered messages and the last ReadyForQuery show it.
func (l *ledger) state() SessionState {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.staging || l.queue.len() > 0:
		return Active
	case l.status == 'E':
		return InFailedTransaction
	case l.txMayBeOpen || l.status == 'T':
		return InTransaction
	default:
		return Idle
	}
}
