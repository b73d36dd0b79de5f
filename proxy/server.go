package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/metrics"
)

// Metrics receives the proxy's measurements; [metrics.Metrics] implements it. The Decider counts the executions that it
// records, and the proxy does not.
type Metrics interface {
	SessionOpened(metrics.SessionKind)
	SessionClosed(metrics.SessionKind)
	// CountStatement counts a message that the proxy itself refuses, without a record by the Decider.
	CountStatement(verdict, reason, tag string)
	RecordAddedTime(time.Duration)
	CountRows(rows, bytes int64)
}

// Config configures a server. Router is required.
type Config struct {
	// TLS returns the configuration for a client's handshake. The proxy calls it for each handshake, so certificates can
	// be replaced. If TLS or its result is nil, there is no TLS, and the proxy serves agents only over loopback and Unix
	// sockets.
	TLS func() *tls.Config

	// BalancerNetworks are the networks of load balancers. A connection from there must begin with a PROXY header, whose
	// source address counts as the client's. From other addresses the proxy refuses such a header.
	BalancerNetworks []netip.Prefix

	Router  Router
	Log     *slog.Logger // nil: nothing is logged
	Metrics Metrics      // nil: nothing is counted

	LoginTimeout time.Duration // time from accepting a connection to the first ReadyForQuery; 0: 60 s
	DialTimeout  time.Duration // how long to wait for a connection to the server; 0: 10 s
	MaxLogins    int           // how many clients may be logging in at a time; 0: 512

	// MaxSessions returns how many connections to the server all agents together may have at a time; 0, or nil in place of
	// the function: any number. The proxy calls it for each new connection. Connections of owners do not count. An agent's
	// session without a pool has one connection.
	MaxSessions func() int

	MaxText int // longest text of an agent's Query or Parse, in bytes; 0: 1 MiB
}

// ErrClosed is returned by Serve after Shutdown.
var ErrClosed = errors.New("proxy: server closed")

// Server serves clients. Make one with [New].
type Server struct {
	config           Config
	log              *slog.Logger
	metrics          Metrics
	cancels          cancelKeys
	slots            sessionSlots
	pools            pools
	settings         sharedSettings
	largeBufferBytes atomic.Int64 // bytes of the large buffers that hold agents' messages

	mu           sync.Mutex
	listeners    map[net.Listener]struct{}
	conns        map[*conn]struct{}
	logins       int // number of connections that are not logged in yet
	draining     bool
	aborted      bool           // Shutdown has closed the connections that were still open when its context ended
	runningConns sync.WaitGroup // counts open connections, and running calls of Serve
}

// New returns a server with this configuration, or an error if Router is missing.
func New(c Config) (*Server, error) {
	if c.Router == nil {
		return nil, errors.New("proxy: Config.Router is missing")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = (*metrics.Metrics)(nil)
	}
	if c.LoginTimeout == 0 {
		c.LoginTimeout = 60 * time.Second
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = 10 * time.Second
	}
	if c.MaxLogins == 0 {
		c.MaxLogins = 512
	}
	s := &Server{
		config:    c,
		log:       c.Log,
		metrics:   c.Metrics,
		listeners: map[net.Listener]struct{}{},
		conns:     map[*conn]struct{}{},
	}
	s.pools.server = s
	return s, nil
}

// Serve accepts clients until l fails or Shutdown is called, and then closes l. It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		return ErrClosed
	}
	s.listeners[l] = struct{}{}
	s.runningConns.Add(1)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
		s.runningConns.Done()
	}()

	pause := acceptPause
	for {
		nc, err := l.Accept()
		if err != nil {
			if s.isDraining() {
				return ErrClosed
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			// Most often the process has no file descriptors left. Open sessions go on, and Serve tries again after a pause.
			s.log.Warn("accept failed", "error", err)
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
			continue
		}
		pause = acceptPause
		keepAlive(nc)
		if !s.start(newConn(s, nc), true) {
			nc.Close()
			return ErrClosed
		}
	}
}

// acceptPause is the first pause after Accept has failed; each further failure doubles the pause, up to a second.
const acceptPause = 5 * time.Millisecond

// start serves a connection, or rejects it if too many clients are logging in. It returns false if the server is shut
// down. A connection that a listener accepted just as Shutdown began is still served, since its client waits for an
// answer.
func (s *Server) start(c *conn, wasAccepted bool) bool {
	switch isServed, isFull := s.add(c, wasAccepted); {
	case isFull:
		go c.rejectLogin()
	case isServed:
		go c.serve()
	default:
		return false
	}
	return true
}

// keepAlive turns on TCP keepalive, so that clients which disappear without closing the connection are noticed.
func keepAlive(nc net.Conn) {
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 60 * time.Second, Interval: 15 * time.Second, Count: 4})
	}
}

// add registers the connection c. isServed says that the caller must serve it, isFull that it must reject the login,
// since too many clients are logging in. If both are false, the server is shut down.
func (s *Server) add(c *conn, wasAccepted bool) (isServed, isFull bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.aborted || s.draining && !wasAccepted {
		return false, false
	}
	s.conns[c] = struct{}{}
	s.runningConns.Add(1)
	if s.logins >= s.config.MaxLogins {
		return false, true
	}
	s.logins++
	c.loggingIn = true
	return true, false
}

// loggedIn notes that c is no longer logging in, so that another client may log in.
func (s *Server) loggedIn(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.loggingIn {
		c.loggingIn = false
		s.logins--
	}
}

// remove unregisters a connection that has ended.
func (s *Server) remove(c *conn) {
	s.loggedIn(c)
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.runningConns.Done()
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// Shutdown accepts no more clients and ends agents' sessions with 57P01, as soon as each is idle. Logins in progress go
// on, and their sessions end after the first answer. When ctx ends, Shutdown closes the remaining sessions and returns
// ctx's error. Owners' sessions stay open until then, since the proxy does not parse their bytes and cannot tell idle
// ones.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.pools.close()
	s.mu.Lock()
	s.draining = true
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.drain()
	}
	s.mu.Unlock()

	done := make(chan struct{})
	go func() { s.runningConns.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.aborted = true
	for c := range s.conns {
		c.abort()
	}
	s.mu.Unlock()
	<-done
	return ctx.Err()
}
