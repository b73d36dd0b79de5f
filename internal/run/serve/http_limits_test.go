package serve

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/tier"
)

// A client that is too slow, or has too many connections, is disconnected. The limits are low here, so that the test
// does not depend on the machine's speed.
func TestHTTPLimits(t *testing.T) {
	short, long := 50*time.Millisecond, time.Hour
	serve := func(l httpLimits, h http.HandlerFunc) (dial func() net.Conn) {
		t.Helper()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := l.newServer(h, slog.New(slog.DiscardHandler))
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l.limitListener(listener)) }()
		t.Cleanup(func() {
			_ = server.Close()
			if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		})
		return func() net.Conn {
			c, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			_ = c.SetDeadline(time.Now().Add(tier.Patience))
			return c
		}
	}
	patient := httpLimits{headerTime: long, requestTime: long, answerTime: long, idleTime: long, headerBytes: 4096,
		connections: 100}
	nothing := func(http.ResponseWriter, *http.Request) {}
	// closes waits until the server has closed the connection, and returns what it has sent before.
	closes := func(what string, c net.Conn) string {
		t.Helper()
		text, err := io.ReadAll(c)
		if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			t.Errorf("%s: the connection stays", what)
		}
		return string(text)
	}
	send := func(c net.Conn, text string) {
		t.Helper()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}

	l := patient
	l.headerTime = short
	c := serve(l, nothing)()
	send(c, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	if text := closes("a slow header", c); strings.Contains(text, "200") {
		t.Errorf("a slow header: %q", text)
	}

	l = patient
	l.requestTime = short
	read := make(chan error, 1)
	c = serve(l, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
	})()
	send(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nslow")
	if err := <-read; err == nil {
		t.Error("a slow body is read to its end")
	}
	closes("a slow body", c)

	l = patient
	l.answerTime = short
	written := make(chan error, 1)
	c = serve(l, func(w http.ResponseWriter, _ *http.Request) {
		for block := make([]byte, 64<<10); ; {
			if _, err := w.Write(block); err != nil {
				written <- err
				return
			}
		}
	})()
	send(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	select {
	case <-written: // the handler may return
	case <-time.After(tier.Patience):
		t.Error("a slow reader holds its handler")
	}

	l = patient
	l.idleTime = short
	c = serve(l, nothing)()
	send(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if text := closes("an idle connection", c); !strings.HasPrefix(text, "HTTP/1.1 200") {
		t.Errorf("an idle connection: %q", text)
	}

	c = serve(patient, nothing)()
	send(c, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: "+strings.Repeat("x", 3*patient.headerBytes)+"\r\n\r\n")
	buffer := make([]byte, 100)
	if n, err := c.Read(buffer); err != nil || !strings.HasPrefix(string(buffer[:n]), "HTTP/1.1 431") {
		t.Errorf("a long header: %q, %v", buffer[:n], err)
	}

	l = patient
	l.connections = 2
	dial := serve(l, nothing)
	served := func(c net.Conn) bool {
		_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		n := 0
		if err == nil {
			n, err = c.Read(buffer)
		}
		return err == nil && strings.HasPrefix(string(buffer[:n]), "HTTP/1.1 200")
	}
	first, second := dial(), dial()
	if !served(first) || !served(second) {
		t.Fatal("two connections are not served")
	}
	if served(dial()) {
		t.Error("a third connection is served")
	}
	if !served(first) {
		t.Error("who was there first is not served any more")
	}
	second.Close()
	for deadline := time.Now().Add(tier.Patience); !served(dial()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("there is no room after one has gone")
		}
	}
}
