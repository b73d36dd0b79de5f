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

// The HTTP listener disconnects a client that is too slow, or that has too many connections. The limits are so low here
// that the speed of the machine does not matter.
func TestHTTPLimits(t *testing.T) {
	shortTimeout, longTimeout := 50*time.Millisecond, time.Hour
	serve := func(l httpLimits, h http.HandlerFunc) (dial func() net.Conn) {
		t.Helper()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := l.newServer(h, slog.New(slog.DiscardHandler))
		result := make(chan error, 1)
		go func() { result <- server.Serve(l.limitListener(listener)) }()
		t.Cleanup(func() {
			_ = server.Close()
			if err := <-result; !errors.Is(err, http.ErrServerClosed) {
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
	patientServer := httpLimits{headerTime: longTimeout, requestTime: longTimeout, answerTime: longTimeout, idleTime: longTimeout,
		headerBytes: 4096,
		connections: 100}
	emptyHandler := func(http.ResponseWriter, *http.Request) {}
	// awaitClose waits until the server closes the connection, and returns what the server sent before.
	awaitClose := func(description string, c net.Conn) string {
		t.Helper()
		text, err := io.ReadAll(c)
		if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			t.Errorf("%s: the connection stays", description)
		}
		return string(text)
	}
	sendText := func(c net.Conn, text string) {
		t.Helper()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}

	l := patientServer
	l.headerTime = shortTimeout
	c := serve(l, emptyHandler)()
	sendText(c, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	if text := awaitClose("a slow header", c); strings.Contains(text, "200") {
		t.Errorf("a slow header: %q", text)
	}

	l = patientServer
	l.requestTime = shortTimeout
	readResult := make(chan error, 1)
	c = serve(l, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		readResult <- err
	})()
	sendText(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nslow")
	if err := <-readResult; err == nil {
		t.Error("a slow body is read to its end")
	}
	awaitClose("a slow body", c)

	l = patientServer
	l.answerTime = shortTimeout
	writeResult := make(chan error, 1)
	c = serve(l, func(w http.ResponseWriter, _ *http.Request) {
		for block := make([]byte, 64<<10); ; {
			if _, err := w.Write(block); err != nil {
				writeResult <- err
				return
			}
		}
	})()
	sendText(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	select {
	case <-writeResult: // the handler may return
	case <-time.After(tier.Patience):
		t.Error("a slow reader holds its handler")
	}

	l = patientServer
	l.idleTime = shortTimeout
	c = serve(l, emptyHandler)()
	sendText(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if text := awaitClose("an idle connection", c); !strings.HasPrefix(text, "HTTP/1.1 200") {
		t.Errorf("an idle connection: %q", text)
	}

	c = serve(patientServer, emptyHandler)()
	sendText(c, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: "+strings.Repeat("x", 3*patientServer.headerBytes)+"\r\n\r\n")
	buffer := make([]byte, 100)
	if n, err := c.Read(buffer); err != nil || !strings.HasPrefix(string(buffer[:n]), "HTTP/1.1 431") {
		t.Errorf("a long header: %q, %v", buffer[:n], err)
	}

	l = patientServer
	l.connections = 2
	dial := serve(l, emptyHandler)
	isServed := func(c net.Conn) bool {
		_, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		n := 0
		if err == nil {
			n, err = c.Read(buffer)
		}
		return err == nil && strings.HasPrefix(string(buffer[:n]), "HTTP/1.1 200")
	}
	first, second := dial(), dial()
	if !isServed(first) || !isServed(second) {
		t.Fatal("two connections are not served")
	}
	if isServed(dial()) {
		t.Error("a third connection is served")
	}
	if !isServed(first) {
		t.Error("who was there first is not served any more")
	}
	second.Close()
	for deadline := time.Now().Add(tier.Patience); !isServed(dial()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("there is no room after one has gone")
		}
	}
}
