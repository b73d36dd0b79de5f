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

// Metrics is what the proxy counts; [metrics.Metrics] implements it. Executions that a Decider records are counted by
// the Decider.
type Metrics interface {
	SessionOpened(metrics.SessionKind)
	SessionClosed(metrics.SessionKind)
	// Statement counts a message that the proxy refuses before any Decider has seen it.
	CountStatement(verdict, reason, tag string)
	RecordAddedTime(time.Duration)
	CountRows(rows, bytes int64)
}

// Config configures a server. Router is required.
type Config struct {
	// TLS returns the configuration for a client's handshake, asked anew for each one so that certificates can be
	// replaced. Nil, or a nil result: no TLS, and agents are served only on loopback and unix sockets.
	TLS func() *tls.Config

	// BalancerNetworks are the networks of load balancers: a connection from there must begin with a PROXY header, whose
	// source counts as the client's address. From elsewhere a header is refused, as any bytes that are no startup packet.
	BalancerNetworks []netip.Prefix

	Router  Router
	Log     *slog.Logger // nil: nothing is logged
	Metrics Metrics      // nil: nothing is counted

	LoginTimeout time.Duration // time from accepting a connection to the first ReadyForQuery; 0: 60 s
	DialTimeout  time.Duration // how long to wait for a connection to the server; 0: 10 s
	MaxLogins    int           // how many clients may be logging in at a time; 0: 512

	// MaxSessions is how many connections to the server all agents together may have at a time. It is called for each
	// new one; a result of 0, and nil, allow any number. Owners do not count. Sessions that do not share them have one
	// each.
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
	largeBufferBytes atomic.Int64 // bytes of the large buffers that hold agents' messages

	mu           sync.Mutex
	listeners    map[net.Listener]struct{}
	conns        map[*conn]struct{}
	logins       int // how many of the connections are not logged in yet
	draining     bool
	aborted      bool           // what was left at the end of a drain is closed
	runningConns sync.WaitGroup // counts the connections that are served, and the listeners that may have accepted one
}

// New checks the configuration.
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

// Serve accepts clients until the listener fails or Shutdown is called, and closes the listener. It may be called for
// several listeners.
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
			// Mostly no descriptors are left: sessions go on, and connections are accepted again once there is room.
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

// acceptPause is the pause after a failure to accept; each further failure doubles it.
const acceptPause = 5 * time.Millisecond

// start serves a connection, or rejects its login where there are too many already. It returns false if the server is
// closed. A connection that a listener accepted as the drain began is served: its client waits for an answer.
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

// keepAlive makes the system notice peers that disappear without closing the connection.
func keepAlive(nc net.Conn) {
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 60 * time.Second, Interval: 15 * time.Second, Count: 4})
	}
}

// add registers c, to be served or, if there are too many logins already, to be rejected. If both results are
// false, the server is closed.
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

// loggedIn counts a login as ended, which makes room for another one.
func (s *Server) loggedIn(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.loggingIn {
		c.loggingIn = false
		s.logins--
	}
}

// remove removes a connection that has ended.
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

// Shutdown drains: no client is accepted any more, idle sessions end at once with 57P01 and busy sessions as soon as
// they are idle. Logins in progress go on, and these sessions end when they have been answered once. When ctx ends, the
// other sessions are closed; the error is then ctx's. Idle sessions of owners cannot be told from busy ones, since their
// bytes are not parsed: they have until ctx ends.
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
