package instance

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Marker is a text in every row that is hidden from the agents of these tests.
const Marker = "HIDDENMARK"

// Tap is a TCP relay between agents and a proxy. It searches everything that the proxy sends for [Marker].
type Tap struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	found [][]byte // the bytes around each place where the marker was found
	bytes int64
}

// NewTap starts a relay to the proxy at target. The relay ends with the test.
func NewTap(t testing.TB, target string) *Tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tp := &Tap{listener: l, target: target}
	t.Cleanup(func() { l.Close() })
	go tp.serve()
	return tp
}

// Addr returns the address to which clients connect.
func (tp *Tap) Addr() string { return tp.listener.Addr().String() }

func (tp *Tap) serve() {
	for {
		c, err := tp.listener.Accept()
		if err != nil {
			return
		}
		go tp.relay(c)
	}
}

func (tp *Tap) relay(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", tp.target)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.(*net.TCPConn).CloseWrite()
	}()
	search := &searcher{tap: tp} // before the client, so that hits are known in time
	_, _ = io.Copy(io.MultiWriter(search, client), server)
}

// MarkerHits returns the bytes around each place where the marker was found, and how many bytes were searched.
func (tp *Tap) MarkerHits() ([][]byte, int64) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return tp.found, tp.bytes
}

// searcher searches a stream for the marker, even if the marker is split between two reads.
type searcher struct {
	tap  *Tap
	tail []byte
}

func (s *searcher) Write(p []byte) (int, error) {
	window := append(s.tail, p...)
	s.tap.mu.Lock()
	s.tap.bytes += int64(len(p))
	for rest := window; ; {
		i := bytes.Index(rest, []byte(Marker))
		if i < 0 {
			break
		}
		s.tap.found = append(s.tap.found, bytes.Clone(rest[max(0, i-60):min(len(rest), i+60)]))
		rest = rest[i+len(Marker):]
	}
	s.tap.mu.Unlock()
	keep := min(len(window), len(Marker)-1)
	s.tail = bytes.Clone(window[len(window)-keep:])
	return len(p), nil
}

// RequireNoMarker fails the test if the proxy has sent the marker, or nothing at all.
func (tp *Tap) RequireNoMarker(t testing.TB) {
	t.Helper()
	found, searched := tp.MarkerHits()
	if searched == 0 {
		t.Error("nothing went through the tap: the test proves nothing")
	}
	for i, around := range found {
		if i == 5 {
			t.Errorf("… and %d more", len(found)-i)
			break
		}
		t.Errorf("a hidden row's marker reached an agent: %q", strings.ToValidUTF8(string(around), "?"))
	}
}
