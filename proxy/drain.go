package proxy

import "github.com/pgconsent/pgconsent/internal/sql/sqlstate"

func shutdownError() *sqlstate.Error {
	return sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonNone, "terminating connection due to administrator command").
		WithHint("pgconsent is shutting down; connect again.")
}

// drain ends the connection as soon as it is idle.
func (c *conn) drain() {
	c.mu.Lock()
	session, owner := c.session, c.owner
	c.mu.Unlock()
	switch {
	case session != nil:
		if session.ledger.drain() {
			c.end(shutdownError())
		}
	case owner: // The relay goes on until abort.
	default: // The client is not logged in yet.
		c.end(shutdownError())
	}
}

// abort ends the connection now.
func (c *conn) abort() {
	c.stop(shutdownError())
}

// stop ends the connection now, and cancels the statement that the server runs for it.
func (c *conn) stop(why *sqlstate.Error) {
	c.mu.Lock()
	if !c.ended {
		c.stopping = true
	}
	c.mu.Unlock()
	c.end(why)
}
