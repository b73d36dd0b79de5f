package network

import (
	"net"
	"sync"
	"testing"
)

// Relay accepts connections, and passes their bytes on to a server.
type Relay struct {
	listener        net.Listener
	network, target string
	running         sync.WaitGroup

	mu   sync.Mutex
	plan func() Fault // returns the fault of a new connection; nil: no faults
	open map[*connection]struct{}
	last [2]int64 // bytes that passed in each direction on the last ended connection
}

// New starts a relay to a server, whose network and address are given as for [net.Dial]. The relay ends with the test.
func New(t testing.TB, network, target string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{listener: l, network: network, target: target, open: map[*connection]struct{}{}}
	r.running.Go(r.accept)
	t.Cleanup(func() {
		l.Close()
		r.Break(Reset)
		r.running.Wait()
	})
	return r
}

// Address returns host:port, to which clients connect.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Plan sets the function that returns the fault of each new connection. Only one goroutine calls it. If it is nil,
// connections have no faults.
func (r *Relay) Plan(f func() Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plan = f
}

// Next sets the fault of the next connection. Connections after that have none.
func (r *Relay) Next(f Fault) {
	next := &f
	r.Plan(func() (fault Fault) {
		if next != nil {
			fault, next = *next, nil
		}
		return fault
	})
}

// SetFaultOfOpen sets the fault of every open connection. The fault counts time and bytes from now on.
func (r *Relay) SetFaultOfOpen(f Fault) {
	for _, c := range r.connections() {
		c.setFault(f)
	}
}

// Break ends all open connections at once.
func (r *Relay) Break(w CloseMode) {
	for _, c := range r.connections() {
		c.end(w, ToServer)
		if w == HalfClose {
			c.end(w, ToClient)
		}
	}
}

// Open returns the number of open connections.
func (r *Relay) Open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open)
}

// Last returns how many bytes have passed in each direction on the connection that ended last.
func (r *Relay) Last() [2]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// SoFar returns how many bytes have passed in each direction on the open connection, since its beginning or since the
// last SetFaultOfOpen. If several connections are open, it is one of them.
func (r *Relay) SoFar() (passed [2]int64) {
	for _, c := range r.connections() {
		passed = c.passedBytes()
	}
	return passed
}

func (r *Relay) connections() (all []*connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		all = append(all, c)
	}
	return all
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(r.network, r.target)
		if err != nil {
			client.Close()
			continue
		}
		c := newConnection(client, server)
		r.mu.Lock()
		var fault Fault
		if r.plan != nil {
			fault = r.plan()
		}
		r.open[c] = struct{}{}
		r.mu.Unlock()
		r.running.Go(func() {
			c.run(fault)
			r.mu.Lock()
			delete(r.open, c)
			r.last = c.passedBytes()
			r.mu.Unlock()
		})
	}
}
