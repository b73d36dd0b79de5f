package serve

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// httpLimits limits what one client of the HTTP listener can use. docs/reference/http.md lists the values.
type httpLimits struct {
	headerTime  time.Duration // within this time, the header of a request must arrive
	requestTime time.Duration // within this time, the whole request must arrive
	answerTime  time.Duration // from a request's header until the client has received the whole answer
	idleTime    time.Duration // how long a connection may be idle between two requests
	headerBytes int
	connections int // largest number of open connections
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

// limitListener returns a listener that limits the number of open connections. It closes further connections at once,
// so that their clients do not wait.
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
