package proxy

import (
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
)

// readSizes are ways to choose how many bytes of a client one Read returns.
var readSizes = map[string]func(r *rand.Rand) int{
	"whole":        nil,
	"byte by byte": func(*rand.Rand) int { return 1 },
	"at random":    func(r *rand.Rand) int { return 1 + r.IntN(1<<r.IntN(8)) },
}

// splitReads makes the proxy read a client's bytes in pieces.
func splitReads(size func(r *rand.Rand) int) func(*testProxy, *Config) {
	return func(p *testProxy, _ *Config) {
		if size != nil {
			p.listen = func(l net.Listener) net.Listener { return &splittingListener{Listener: l, size: size} }
		}
	}
}

type splittingListener struct {
	net.Listener
	size func(r *rand.Rand) int

	mu       sync.Mutex
	accepted uint64
}

func (l *splittingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted++
	return &splittingConn{Conn: conn, size: l.size, random: rand.New(rand.NewPCG(11, l.accepted))}, nil
}

// splittingConn is a connection that returns bytes in pieces. Only one goroutine may read it.
type splittingConn struct {
	net.Conn
	size   func(r *rand.Rand) int
	random *rand.Rand
}

func (p *splittingConn) Read(b []byte) (int, error) {
	return p.Conn.Read(b[:min(len(b), p.size(p.random))])
}

// TestWaitingMessagesAreCounted: the bytes of messages that wait for a Sync count against the limit of memory for large
// messages.
func TestWaitingMessagesAreCounted(t *testing.T) {
	p := startProxy(t)
	c := p.connectRaw(t)
	defer c.Close()
	c.send(t, pa("", "SELECT length($1)", 25), bi("", "", strings.Repeat("x", 8*maxBatch)))
	eventually(t, "what waits to be counted", func() bool { n := p.server.largeBufferBytes.Load(); return n >= 8*maxBatch && n < 16*maxBatch })
	got := strings.Join(c.play(t, []round{upToReady(1, ex("", 0), sy)}), "\n")
	if !strings.Contains(got, `D ["524288"]`) {
		t.Error(got)
	}
	eventually(t, "nothing to be counted", func() bool { return p.server.largeBufferBytes.Load() == 0 })
}
