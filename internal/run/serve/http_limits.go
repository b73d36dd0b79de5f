package serve

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// httpLimits bound how much one client of the HTTP listener can use. docs/reference/http.md has the values.
type httpLimits struct {
	headerTime  time.Duration // how long a request's header may take to arrive
	requestTime time.Duration // how long the whole request may take to arrive
	answerTime  time.Duration // the time from a request's header until the client has taken the last byte of the answer
	idleTime    time.Duration // how long a connection may wait for the next request
	headerBytes int
	connections int // the largest number of open connections
}

var defaultLimits = httpLimits{headerTime: 10 * time.Second, requestTime: 30 * time.Second,
	answerTime: 90 * time.Second,
	idleTime:   2 * time.Minute, headerBytes: 64 << 10, connections: 1024}

func (l httpLimits) newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: l.headerTime, ReadTimeout: l.requestTime, WriteTimeout: l.answerTime,
		IdleTimeout:    l.idleTime,
		MaxHeaderBytes: l.headerBytes,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// limitListener returns a listener with a limited number of open connections. A further connection is closed at once,
// so that no client waits for another one to leave.
func (l httpLimits) limitListener(limit net.Listener) net.Listener {
	return &limitedListener{Listener: limit, slots: make(chan struct{}, l.connections)}
}

type limitedListener struct {
	net.Listener
	slots chan struct{}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &countedConn{Conn: c, slots: l.slots}, nil
		default:
			_ = c.Close()
		}
	}
}

type countedConn struct {
	net.Conn
	slots chan struct{}
	once  sync.Once
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.slots })
	return err
}
