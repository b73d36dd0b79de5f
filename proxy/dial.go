package proxy

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Identity is the agent for which [Server.Dial] makes a connection. The code that calls Dial must have authenticated
// it.
type Identity struct {
	Agent, Database string // the startup message must name the same agent and database
	Remote          string // the caller's name, which the audit records in place of an address

	Claims map[string]string // attributes that a verified token gives; nil: none
	Until  time.Time         // when the token expires; zero: never
	Lists  bool              // hide columns that the policy shows only in reads by key
}

// Dial returns a connection to the server s within the process, already authenticated as the agent of id. It is
// enforced, recorded, limited and shut down as any agent's connection; only no password is requested. The caller uses
// it as a client uses a socket: it sends a startup message first, without TLS.
//
// If the agent may not log in, the caller reads an ErrorResponse (28000) from the connection. Dial itself fails if the
// server is shutting down.
func (s *Server) Dial(ctx context.Context, id Identity) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if id.Agent == "" || id.Database == "" {
		return nil, errors.New("proxy: an identity has an agent and a database")
	}
	clientEnd, serverEnd, err := connectedPair()
	if err != nil {
		return nil, err
	}
	c := newConn(s, serverEnd)
	c.identity = &id
	if !s.start(c, false) {
		clientEnd.Close()
		serverEnd.Close()
		return nil, shutdownError()
	}
	return clientEnd, nil
}

// connectedPair returns the two ends of a Unix socket pair. Like a client's socket, and unlike net.Pipe, it buffers and
// can be closed in one direction.
func connectedPair() (clientEnd, serverEnd net.Conn, err error) {
	fds, err := socketpair()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	pair := make([]net.Conn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pgconsent")
		pair[i], err = net.FileConn(f) // FileConn makes a duplicate of the descriptor.
		f.Close()
		if err != nil {
			if i == 0 {
				_ = syscall.Close(fds[1])
			} else {
				pair[0].Close()
			}
			return nil, nil, err
		}
	}
	return pair[0], pair[1], nil
}

// socketpair makes two connected sockets. It holds syscall.ForkLock, so that a process started meanwhile does not
// inherit them.
func socketpair() ([2]int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	return fds, err
}

// routeIdentity returns the agent's route for a connection that [Server.Dial] made, or an error if the agent has none.
func (c *conn) routeIdentity(st *startup) (Route, error) {
	if st.user != c.identity.Agent || st.database != c.identity.Database {
		return Route{}, sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity,
			"the startup message names another identity")
	}
	route := c.server.config.Router.Route(st.user, st.database)
	if route.Kind != Agent {
		return Route{}, sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity,
			"the agent %q cannot log in", st.user).
			WithHint("It was disabled, or has no login there yet: pgconsent agent list, pgconsent agent add.")
	}
	return route, nil
}

// remote returns the client's address, from the PROXY header if there was one, or the name of the caller of
// [Server.Dial].
func (c *conn) remote() string {
	if c.identity != nil {
		return c.identity.Remote
	}
	if c.source != nil {
		return c.source.String()
	}
	return c.client.RemoteAddr().String()
}
