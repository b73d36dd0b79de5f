package serve

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// httpLimits bound what one client of the HTTP listener can hold. docs/reference/http.md has the values.
type httpLimits struct {
	header      time.Duration // until the header of a request has arrived
	request     time.Duration // until the whole request has arrived
	answer      time.Duration // from the header of a request until the client has taken the last byte of the answer
	idle        time.Duration // between two requests of a connection
	headerBytes int
	connections int // open connections at a time
}

var defaultLimits = httpLimits{header: 10 * time.Second, request: 30 * time.Second, answer: 90 * time.Second,
	idle: 2 * time.Minute, headerBytes: 64 << 10, connections: 1024}

func (l httpLimits) server(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: l.header, ReadTimeout: l.request, WriteTimeout: l.answer, IdleTimeout: l.idle,
		MaxHeaderBytes: l.headerBytes,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// listener lets so many connections be open at a time. One more is closed at once, so that no client waits for those who
// hold theirs.
func (l httpLimits) listener(listener net.Listener) net.Listener {
	return &limitedListener{Listener: listener, open: make(chan struct{}, l.connections)}
}

type limitedListener struct {
	net.Listener
	open chan struct{}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.open <- struct{}{}:
			return &countedConn{Conn: c, of: l.open}, nil
		default:
			_ = c.Close()
		}
	}
}

type countedConn struct {
	net.Conn
	of   chan struct{}
	once sync.Once
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.of })
	return err
}
