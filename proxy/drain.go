package proxy

import "github.com/pgconsent/pgconsent/internal/sql/sqlstate"

func shutdownError() *sqlstate.Error {
	return sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonNone, "terminating connection due to administrator command").
		WithHint("pgconsent is shutting down; connect again.")
}

// drain makes an agent's session end as soon as it is idle. Owners' connections go on until abort. A client that is
// logging in still gets one answer: see [session.converse].
func (c *conn) drain() {
	c.mu.Lock()
	session := c.session
	c.mu.Unlock()
	if session != nil && session.ledger.drain() {
		c.end(shutdownError())
	}
}

// abort ends the connection at once, since the proxy shuts down.
func (c *conn) abort() {
	c.stop(shutdownError())
}

// stop ends the connection at once, and cancels the statement that the server runs for it.
func (c *conn) stop(reason *sqlstate.Error) {
	c.mu.Lock()
	if !c.ended {
		c.cancelsStatement = true
	}
	c.mu.Unlock()
	c.end(reason)
}
