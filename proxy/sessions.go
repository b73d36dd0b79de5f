package proxy

import (
	"cmp"
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// login says who a client is, from the end of its login on.
type login struct {
	kind           RouteKind
	user, database string
	since          time.Time
}

// Session describes a client's session for operators. It has nothing of what the client sends or gets.
type Session struct {
	ID             string // id as in [SessionInfo] and the log
	Kind           RouteKind
	User, Database string
	Remote         string // the client's address, or the name of the caller who dialed within the process
	Since          time.Time
	State          SessionState
}

// SessionState says what a session does at a moment.
type SessionState string

// The states of sessions. Those of agents are PostgreSQL's, and Waiting.
const (
	Idle                SessionState = "idle"
	Active              SessionState = "active"                        // a statement is under way
	InTransaction       SessionState = "idle in transaction"           // the client's next statement is waited for
	InFailedTransaction SessionState = "idle in transaction (aborted)" // like InTransaction, after an error
	Waiting             SessionState = "waiting"                       // a statement waits: see [Route].Paused
	Relayed             SessionState = "relayed"                       // an owner's bytes are not parsed
	Connected           SessionState = "connected"                     // an operator
)

// loggedIn notes that the client is logged in, which makes room for another login.
func (c *conn) loggedIn(kind RouteKind, st *startup) {
	c.login.Store(&login{kind: kind, user: st.user, database: st.database, since: time.Now()})
	c.server.loggedIn(c)
}

// Sessions returns the sessions of the clients that are logged in, the oldest first, without those that are ending.
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

// End ends a session with this error, and cancels the statement that the server runs for it. An owner's client is not
// told, since only the server sends it messages. It returns false if no client with this id is logged in.
func (s *Server) End(id string, reason *sqlstate.Error) bool {
	for _, c := range s.open() {
		if c.id == id && c.login.Load() != nil && c.ctx.Err() == nil {
			c.stop(reason)
			return true
		}
	}
	return false
}

// open returns the connections that are open.
func (s *Server) open() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		out = append(out, c)
	}
	return out
}

// state returns what the session does now.
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

// state returns what the session does, by what was sent and is answered.
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
