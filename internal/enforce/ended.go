package enforce

import "github.com/pgconsent/pgconsent/internal/sql/sqlstate"

// EndSession ends an open session with the error reason, and records this. Statements that have no answer yet are
// refused. It returns false if no session of an agent has this id, or if the session is ending already.
func (e *Enforcer) EndSession(id string, reason *sqlstate.Error) bool {
	e.mu.Lock()
	var found *session
	for s := range e.sessions {
		if s.info.ID == id && s.revocation.Load() == nil {
			found = s
		}
	}
	e.mu.Unlock()
	if found == nil {
		return false
	}
	found.revoke(reason)
	return true
}
