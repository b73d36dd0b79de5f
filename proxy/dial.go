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

// Identity is whom a connection of [Server.Dial] speaks for. Who dials has verified it.
type Identity struct {
	Agent, Database string // as in the startup message, which must say the same
	Remote          string // who it is, for the audit, in the place of an address

	Claims map[string]string // attributes that a verified token gives; nil: none
	Until  time.Time         // when that expires; zero: never
	Lists  bool              // columns that exist by key only do not exist for it, by key neither
}

// Dial makes a connection within the process that is treated as that of an authenticated agent: what enforces, records,
// limits, drains and ends the sessions of agents does so with this one. Only the password is not asked for. What comes
// out of the connection are the bytes that a client would receive over a socket, and the caller sends its startup
// message first, without TLS.
//
// Who is no agent that could log in is told so in a message of the protocol (28000). The error here is that the server
// takes no connection.
func (s *Server) Dial(ctx context.Context, id Identity) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if id.Agent == "" || id.Database == "" {
		return nil, errors.New("proxy: an identity has an agent and a database")
	}
	near, far, err := pair()
	if err != nil {
		return nil, err
	}
	c := newConn(s, far)
	c.inside = &id
	switch serve, full := s.add(c); {
	case full:
		go c.turnAway()
	case serve:
		go c.serve()
	default:
		near.Close()
		far.Close()
		return nil, errShutdown()
	}
	return near, nil
}

// pair makes two ends of one connection. It is the kernel's, so that it buffers, has deadlines and closes by halves as
// a client's.
func pair() (near, far net.Conn, err error) {
	fds, err := socketpair()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ends := make([]net.Conn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pgconsent")
		ends[i], err = net.FileConn(f) // a duplicate
		f.Close()
		if err != nil {
			if i == 0 {
				_ = syscall.Close(fds[1])
			} else {
				ends[0].Close()
			}
			return nil, nil, err
		}
	}
	return ends[0], ends[1], nil
}

// socketpair gives none of its descriptors to a program that is started meanwhile.
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

// routeInside is the route of a connection that [Server.Dial] made: an agent's, or none.
func (c *conn) routeInside(st *startup) (Route, error) {
	if st.user != c.inside.Agent || st.database != c.inside.Database {
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

// remote says where the client is.
func (c *conn) remote() string {
	if c.inside != nil {
		return c.inside.Remote
	}
	return c.client.RemoteAddr().String()
}
