package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// errPeerGone means that the client or the server has closed the connection. The proxy then sends the client no error
// and logs none.
var errPeerGone = errors.New("peer is gone")

// conn is a client's connection, from accept to close.
type conn struct {
	server *Server
	id     string
	ctx    context.Context // canceled when the connection ends
	cancel context.CancelFunc

	loggingIn bool // the connection counts in Server.logins; guarded by the server's lock

	login  atomic.Pointer[login] // who the client is; nil until the client is logged in
	paused atomic.Bool           // an agent's statement waits until its database is no longer paused

	token         TokenGrant // attributes of the agent's token or certificate, if the agent logged in with one
	byCertificate bool       // the agent logged in with its certificate
	// the caller of [Server.Dial], which made the connection; nil: the client connected to a listener
	identity *Identity
	client   net.Conn        // the plain connection, or the TLS connection once negotiated
	source   net.Addr        // the client's address in the PROXY header; nil: use the socket's
	binding  *channelBinding // data for SCRAM channel binding; nil without TLS

	mu               sync.Mutex
	upstream         net.Conn
	session          *session // set when an agent's session is opened
	ended            bool
	reason           *sqlstate.Error // the error that the client gets at the end
	cancelsStatement bool            // the statement that the server runs must be canceled
	// no error can be sent to the client: it has received only part of a message, or a write has failed
	isBroken bool
}

func newConn(s *Server, nc net.Conn) *conn {
	id := make([]byte, 8)
	_, _ = rand.Read(id)
	c := &conn{server: s, id: hex.EncodeToString(id), client: nc}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// log returns the logger for lines about this connection.
func (c *conn) log() *slog.Logger { return c.server.log.With("session", c.id) }

// serve handles the connection until both sides are closed. It runs in a goroutine of its own.
func (c *conn) serve() {
	defer c.server.remove(c)
	defer c.close()
	defer c.recoverPanic()
	c.setDeadline(time.Now().Add(c.server.config.LoginTimeout))
	serveSession, err := c.run()
	if serveSession != nil {
		err = serveSession()
	}
	c.conclude(err)
}

// rejectLogin closes a new connection with the error that too many clients are logging in.
func (c *conn) rejectLogin() {
	defer c.server.remove(c)
	defer c.close()
	c.end(sqlstate.New(sqlstate.TooManyConnections, sqlstate.ReasonNone, "sorry, too many clients are logging in").
		WithHint("Try again in a moment."))
}

// recoverPanic makes a panic end this connection instead of the process. It logs only the type of the panic's value and
// the stack, since the value may quote data. It must be deferred directly.
func (c *conn) recoverPanic() {
	if r := recover(); r != nil {
		c.log().Error("panic in a session", "kind", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
		c.end(sqlstate.AsError(errors.New("panic")))
	}
}

// run reads the startup message and serves the client by its route. The client gets errors of type *sqlstate.Error. For
// an agent that has logged in, it returns the function that serves the session. The caller runs it, so that a session
// that waits for its client does not keep the large stack frames of the login.
func (c *conn) run() (serveSession func() error, err error) {
	st, err := c.admit()
	if err != nil || st == nil {
		return nil, err
	}
	if c.identity != nil {
		route, err := c.routeIdentity(st)
		if err != nil {
			c.server.metrics.SessionOpened(metrics.Refused)
			c.server.metrics.SessionClosed(metrics.Refused)
			return nil, err
		}
		return c.logInAgent(st, route)
	}
	route := c.server.config.Router.Route(st.user, st.database)
	switch route.Kind {
	case Owner:
		return nil, c.serveOwner(st, route.Upstream)
	case Agent:
		return c.logInAgent(st, route)
	case Operator:
		return nil, c.serveOperator(st, route)
	default:
		return nil, c.refuse(st, route)
	}
}

// conclude ends the connection after err, and decides which error the client gets.
func (c *conn) conclude(err error) {
	var told *sqlstate.Error
	switch {
	case err == nil, errors.Is(err, errPeerGone), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.end(nil)
	case errors.As(err, &told):
		c.end(told)
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.end(sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonIdentity, "canceling authentication due to timeout"))
	default:
		c.log().Debug("connection lost", "error", err)
		c.end(nil)
	}
}

// end makes every goroutine of the connection return; only the first call has an effect. Once no other goroutine writes
// to the client, [conn.close] sends it the reason.
func (c *conn) end(reason *sqlstate.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	c.reason = reason
	c.cancel()
	longAgo := time.Unix(1, 0)
	_ = c.client.SetReadDeadline(longAgo)
	_ = c.client.SetWriteDeadline(time.Now().Add(time.Second))
	if c.upstream != nil {
		_ = c.upstream.SetDeadline(longAgo)
	}
	if c.session != nil {
		c.session.ledger.close()
	}
}

// close sends the client the reason for the end, if there is one, and closes both sockets.
func (c *conn) close() {
	c.end(nil)
	c.mu.Lock()
	reason, broken, upstream := c.reason, c.isBroken, c.upstream
	c.mu.Unlock()
	if upstream != nil {
		upstream.Close()
	}
	if reason != nil {
		if reason.Cause != nil {
			c.log().Warn("session ended", "code", reason.Code, "message", reason.Message, "cause", reason.Cause)
		}
		if !broken {
			_ = c.client.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := c.client.Write(encodeError(nil, "FATAL", reason)); err == nil {
				linger(c.client)
			}
		}
	}
	c.client.Close()
}

// linger reads the client's remaining input for a moment. Closing a socket with unread input resets the connection, and
// the client could lose the last message.
func linger(nc net.Conn) {
	if w, ok := nc.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	}
	_ = nc.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	b := make([]byte, 4096)
	for range 64 {
		if _, err := nc.Read(b); err != nil {
			return
		}
	}
}

// setDeadline sets the deadline of the client's connection, unless the connection has ended, for which end sets its
// own.
func (c *conn) setDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		_ = c.client.SetDeadline(t)
	}
}

// setReadDeadline sets the deadline for reads from the client, unless the connection has ended, for which end sets its
// own.
func (c *conn) setReadDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		_ = c.client.SetReadDeadline(t)
	}
}

// setUpstream stores the connection to the server, so that end and close can end it.
func (c *conn) setUpstream(nc net.Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.upstream = nc
	if c.ended {
		return errPeerGone
	}
	return nil
}

// setClient replaces the client's connection by the TLS connection over it.
func (c *conn) setClient(nc net.Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return errPeerGone
	}
	c.client = nc
	return nil
}

// setBroken notes whether the client has received only part of a message, so that the proxy cannot send it an error
// now.
func (c *conn) setBroken(isSet bool) {
	c.mu.Lock()
	c.isBroken = isSet
	c.mu.Unlock()
}

// write sends bytes to the client in the login phase.
func (c *conn) write(b []byte) error {
	_, err := c.client.Write(b)
	if err != nil {
		c.setBroken(true)
	}
	return err
}

// isLoopback reports whether the client, and the load balancer if there is one, are on this machine.
func (c *conn) isLoopback() bool {
	return isLocal(c.client.RemoteAddr()) && (c.source == nil || isLocal(c.source))
}

// isLocal reports whether an address is a loopback address or a Unix socket.
func isLocal(a net.Addr) bool {
	switch a := a.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	default:
		return false
	}
}
