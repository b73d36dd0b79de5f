package proxy

import (
	"errors"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// serveOperator authenticates an operator as it would an agent: over TLS, or from this machine. It then passes the
// connection to [Route].Serve.
func (c *conn) serveOperator(st *startup, route Route) error {
	if err := c.identify(st, route); err != nil {
		c.server.metrics.SessionOpened(metrics.Refused)
		c.server.metrics.SessionClosed(metrics.Refused)
		return err
	}
	c.server.metrics.SessionOpened(metrics.Operator)
	defer c.server.metrics.SessionClosed(metrics.Operator)
	if route.Serve == nil {
		return sqlstate.AsError(errors.New("the route serves no operator"))
	}
	c.setDeadline(time.Time{})
	c.loggedIn(Operator, st)
	if c.server.isDraining() {
		return shutdownError()
	}
	return route.Serve(c.ctx, c.client, OperatorInfo{ID: c.id, User: st.user, RemoteAddr: c.remote()})
}
