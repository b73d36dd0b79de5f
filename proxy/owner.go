package proxy

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/metrics"
)

// serveOwner connects to the owner's server, forwards the startup message, and relays bytes until both sides have
// closed. It parses nothing after the startup message.
func (c *conn) serveOwner(st *startup, u Upstream) error {
	c.server.metrics.SessionOpened(metrics.Owner)
	defer c.server.metrics.SessionClosed(metrics.Owner)
	packet, err := st.replay(u.Database)
	if err != nil {
		return err
	}
	upstream, err := c.dialOwner(u, packet)
	if err != nil {
		return err
	}
	defer c.server.cancels.addOwner(u)()

	c.mu.Lock()
	c.isBroken = true // From here on only the server sends messages to the client.
	c.mu.Unlock()
	// From here on the server's own authentication_timeout limits the login.
	c.setDeadline(time.Time{})
	c.loggedIn(Owner, st)

	back := make(chan struct{})
	go func() {
		defer close(back)
		defer c.recoverPanic()
		_ = copyOneWay(c.client, upstream)
		halfClose(c.client)
		c.end(nil) // The server reads nothing more, and an idle client would not notice that for long.
	}()
	err = copyOneWay(upstream, c.client)
	halfClose(upstream)
	if err != nil {
		c.end(nil)
	}
	<-back
	linger(c.client)
	return nil
}

// dialOwner connects to the owner's server and sends it the startup message.
func (c *conn) dialOwner(u Upstream, startup []byte) (net.Conn, error) {
	dialing, cancel := context.WithTimeout(c.ctx, c.server.config.DialTimeout)
	upstream, err := u.open(dialing)
	cancel()
	if err != nil {
		return nil, unreachableError(err)
	}
	if err := c.setUpstream(upstream); err != nil {
		return nil, err
	}
	if _, err := upstream.Write(startup); err != nil {
		return nil, unreachableError(err)
	}
	return upstream, nil
}

// copyOneWay copies bytes from src to dst until src ends or an error occurs. It holds no buffer while nothing arrives.
func copyOneWay(dst net.Conn, src net.Conn) error {
	source := newSource(src)
	if source.raw != nil {
		return source.raw.pump(dst)
	}
	for {
		buf, n, err := source.take()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = dst.Write((*buf)[:n])
		putBuffer(buf)
		if err != nil {
			return err
		}
	}
}

func halfClose(nc net.Conn) {
	if w, ok := nc.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	}
}
