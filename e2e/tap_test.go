package e2e

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// marker is in the text, the JSON and the numbers of every row the default agents must not see.
const marker = "HIDDENMARK"

// tap is a TCP relay in front of a proxy that searches everything the server side sends for a needle.
type tap struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	found [][]byte // the surroundings of each hit
	bytes int64
}

func newTap(t testing.TB, target string) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tp := &tap{listener: l, target: target}
	t.Cleanup(func() { l.Close() })
	go tp.serve()
	return tp
}

func (tp *tap) addr() string { return tp.listener.Addr().String() }

func (tp *tap) serve() {
	for {
		c, err := tp.listener.Accept()
		if err != nil {
			return
		}
		go tp.relay(c)
	}
}

func (tp *tap) relay(client net.Conn) {
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
	search := &searcher{tap: tp}
	_, _ = io.Copy(io.MultiWriter(client, search), server)
}

// hits are the places where the needle came through, and how much was searched.
func (tp *tap) hits() ([][]byte, int64) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return tp.found, tp.bytes
}

// searcher finds the marker in a stream, also across the borders of its chunks.
type searcher struct {
	tap  *tap
	tail []byte
}

func (s *searcher) Write(p []byte) (int, error) {
	window := append(s.tail, p...)
	s.tap.mu.Lock()
	s.tap.bytes += int64(len(p))
	for rest := window; ; {
		i := bytes.Index(rest, []byte(marker))
		if i < 0 {
			break
		}
		s.tap.found = append(s.tap.found, bytes.Clone(rest[max(0, i-60):min(len(rest), i+60)]))
		rest = rest[i+len(marker):]
	}
	s.tap.mu.Unlock()
	keep := min(len(window), len(marker)-1)
	s.tail = bytes.Clone(window[len(window)-keep:])
	return len(p), nil
}
