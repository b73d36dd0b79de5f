package proxy

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/network"
)

// checkDescriptors checks at the end of the test that the process has no more file descriptors open than now.
func checkDescriptors(t *testing.T) {
	t.Helper()
	pgtest.Database(t) // the first call opens a connection of its own
	countBefore := countDescriptors(t)
	t.Cleanup(func() {
		eventually(t, "all descriptors are closed", func() bool { return countDescriptors(t) <= countBefore })
	})
}

// countDescriptors returns how many file descriptors this process has open.
func countDescriptors(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(descriptors)
}

// starvingListener is a listener whose Accept fails while hasNoDescriptors is set, as if the process had no file
// descriptors left.
type starvingListener struct {
	net.Listener
	hasNoDescriptors *atomic.Bool
}

func (s starvingListener) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err == nil && s.hasNoDescriptors.Load() {
		conn.Close()
		return nil, noDescriptorError("accept")
	}
	return conn, err
}

func noDescriptorError(description string) error {
	return &net.OpError{Op: description, Net: "tcp", Err: os.NewSyscallError(description, syscall.EMFILE)}
}

// refuseConnections makes new connections to the server fail while the returned flag is set, as if the process had no
// file descriptors left.
func refuseConnections(t *testing.T) *atomic.Bool {
	t.Helper()
	var hasNoDescriptors atomic.Bool
	realDial := dialServer
	dialServer = func(ctx context.Context, network, address string) (net.Conn, error) {
		if hasNoDescriptors.Load() {
			return nil, noDescriptorError("socket")
		}
		return realDial(ctx, network, address)
	}
	t.Cleanup(func() { dialServer = realDial })
	return &hasNoDescriptors
}

// TestNoDescriptors: while no file descriptor is left, for clients or for connections to the server, existing sessions
// go on. Later clients are served again, and nothing remains of those that were not.
func TestNoDescriptors(t *testing.T) {
	noConnections := refuseConnections(t)
	var noClients atomic.Bool
	for mode, isPooled := range faultModes {
		t.Run(mode, func(t *testing.T) {
			f := startFaultyProxy(t, isPooled, func(p *testProxy, _ *Config) {
				p.listen = func(l net.Listener) net.Listener { return starvingListener{l, &noClients} }
			})
			f.learnAnswers(t, false)
			for range 3 {
				noClients.Store(true)
				f.playWithFault(t, "no descriptor for the client", func() {}, false)
				if !strings.Contains(f.log.String(), "accept failed") {
					t.Error("nobody is told that clients are not accepted")
				}
				noClients.Store(false)
				if f.partialCount+f.completeCount > 0 {
					t.Error("a session was served without a descriptor")
				}
			}
			for range 3 {
				f.breakIdle(t) // so that the witness needs a new connection, too, and gets it
				noConnections.Store(true)
				if e := connectError(t, f.agentDSN()); e.Code != "08006" || e.Hint == "" {
					t.Errorf("a client was told %+v", e)
				}
				noConnections.Store(false)
				f.playWithFault(t, "no descriptor for a connection to the server", func() {}, false)
			}
			if f.checkRows(t); f.completeCount != 3 {
				t.Errorf("%d sessions of 3 were served later", f.completeCount)
			}
		})
	}
}

// TestNoDescriptorsWhileOthersWait: if the proxy cannot connect to the server for a session, because no descriptor is
// left, the next waiting session gets its chance.
func TestNoDescriptorsWhileOthersWait(t *testing.T) {
	noConnections := refuseConnections(t)
	f := startFaultyProxy(t, true)
	f.learnAnswers(t, false)
	var waitingPeers []*peer
	for range 5 {
		waitingPeers = append(waitingPeers, f.connectRaw(t))
	}
	f.witness.play(t, []round{upToReady(1, q("BEGIN"))})
	for i, c := range waitingPeers {
		c.send(t, q(fmt.Sprintf("SELECT 'mark %d'", i)))
	}
	eventually(t, "all wait", func() bool { return f.server.Pools()[0].Waiting == len(waitingPeers) })
	noConnections.Store(true)
	f.serverNetwork.Break(network.Reset)
	for _, c := range waitingPeers {
		if e := c.readLastError(); e == nil || e.Code != "08006" {
			t.Errorf("a session that waits was told %+v", e)
		}
	}
	noConnections.Store(false)
	f.witness.Close()
	f.witness = f.connectRaw(t)
	f.playWithFault(t, "no descriptor", func() {}, false)
}

// TestNoDescriptorForOneMore: a pool that cannot open another connection shares those that it has. It opens more when
// it can.
func TestNoDescriptorForOneMore(t *testing.T) {
	noConnections := refuseConnections(t)
	const size, sessions = 3, 6
	p := startProxy(t, withPool(size))
	peerInTransaction := p.connectRaw(t)
	peerInTransaction.play(t, []round{upToReady(1, q("BEGIN"))})
	noConnections.Store(true)
	var otherPeers []*peer
	logins := make(chan *peer, sessions)
	for range sessions {
		go func() { logins <- p.connectRaw(t) }()
	}
	awaitWaiting := func(n int) {
		t.Helper()
		eventually(t, "sessions wait", func() bool { return p.server.Pools()[0].Waiting == n })
	}
	awaitWaiting(sessions)
	peerInTransaction.play(t, []round{upToReady(1, q("COMMIT"))})
	for range sessions {
		otherPeers = append(otherPeers, <-logins)
	}
	peerInTransaction.play(t, []round{upToReady(1, q("BEGIN"))})
	for i, c := range otherPeers {
		c.send(t, q(fmt.Sprintf("SELECT 'mark %d'", i)))
	}
	awaitWaiting(sessions)
	peerInTransaction.play(t, []round{upToReady(1, q("COMMIT"))})
	for i, c := range otherPeers {
		if got := c.play(t, []round{{nil, 'Z', 1}}); len(got) != 4 || got[1] != fmt.Sprintf(`D ["mark %d"]`, i) {
			t.Errorf("session %d was told %q", i, got)
		}
	}
	if s := p.server.Pools()[0]; s.Used+s.Idle != 1 {
		t.Errorf("pool: %+v", s)
	}
	if !strings.Contains(p.log.String(), "no further connection to the server could be made") {
		t.Error("nobody is told that connections cannot be made")
	}

	peerInTransaction.play(t, []round{upToReady(1, q("BEGIN"))})
	for _, c := range otherPeers {
		c.send(t, q("BEGIN"))
	}
	awaitWaiting(sessions)
	noConnections.Store(false)
	eventually(t, "the pool has all of its connections", func() bool {
		p.server.pools.mu.Lock()
		defer p.server.pools.mu.Unlock()
		for _, agentPool := range p.server.pools.pools {
			if agentPool.openCount != size || agentPool.dialCount > 0 {
				return false
			}
		}
		return true
	})
	awaitWaiting(sessions - (size - 1))
}
