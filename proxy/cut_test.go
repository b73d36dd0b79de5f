package proxy

import (
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
)

// cuts are the ways in which what clients send arrives: so many bytes are read at once.
var cuts = map[string]func(r *rand.Rand) int{
	"whole":        nil,
	"byte by byte": func(*rand.Rand) int { return 1 },
	"at random":    func(r *rand.Rand) int { return 1 + r.IntN(1<<r.IntN(8)) },
}

// cut has what clients send arrive in pieces.
func cut(size func(r *rand.Rand) int) func(*proxied, *Config) {
	return func(p *proxied, _ *Config) {
		if size != nil {
			p.listen = func(l net.Listener) net.Listener { return &cutting{Listener: l, size: size} }
		}
	}
}

type cutting struct {
	net.Listener
	size func(r *rand.Rand) int

	mu       sync.Mutex
	accepted uint64
}

func (l *cutting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted++
	return &pieces{Conn: conn, size: l.size, r: rand.New(rand.NewPCG(11, l.accepted))}, nil
}

// pieces is a connection that is read in pieces, by one goroutine.
type pieces struct {
	net.Conn
	size func(r *rand.Rand) int
	r    *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) { return p.Conn.Read(b[:min(len(b), p.size(p.r))]) }

// TestWhatWaitsForTheRestIsCounted: a client that sends much and does not ask for the answer holds no more memory
// than any other.
func TestWhatWaitsForTheRestIsCounted(t *testing.T) {
	p := start(t)
	c := p.raw(t)
	defer c.Close()
	c.send(t, pa("", "SELECT length($1)", 25), bi("", "", strings.Repeat("x", 8*maxBatch)))
	eventually(t, "what waits to be counted", func() bool { n := p.server.large.Load(); return n >= 8*maxBatch && n < 16*maxBatch })
	got := strings.Join(c.play(t, []round{upToReady(1, ex("", 0), sy)}), "\n")
	if !strings.Contains(got, `D ["524288"]`) {
		t.Error(got)
	}
	eventually(t, "nothing to be counted", func() bool { return p.server.large.Load() == 0 })
}
