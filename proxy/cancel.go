package proxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"io"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// cancelKey is the key by which a CancelRequest names a session. Agents get a key that pgconsent has made, so that they
// learn neither the server's process id nor a key that the server accepts.
type cancelKey struct {
	pid    uint32
	secret []byte // 4 bytes, or 32 from protocol 3.2 on
}

// cancelKeys has the cancel keys of agents, and the servers to which keys of owners may belong.
type cancelKeys struct {
	mu      sync.Mutex
	agents  map[uint32]cancelTarget // the sessions of agents, by the process id of their keys
	servers map[serverAddr]ownerSessions
}

// cancelTarget is a session with the secret of its cancel key.
type cancelTarget struct {
	session *session
	secret  []byte
}

// serverAddr identifies a server.
type serverAddr struct{ network, address string }

// ownerSessions counts the sessions of owners on a server.
type ownerSessions struct {
	upstream Upstream
	sessions int
}

// add makes a key with a secret of this length. Its process id is above any that an operating system gives, so no
// owner's key can equal it.
func (c *cancelKeys) add(s *session, secretBytes int) cancelKey {
	key := cancelKey{secret: make([]byte, secretBytes)}
	_, _ = rand.Read(key.secret) // rand.Read never returns an error.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.agents == nil {
		c.agents = map[uint32]cancelTarget{}
	}
	for {
		var b [4]byte
		_, _ = rand.Read(b[:])
		key.pid = 1<<30 | binary.BigEndian.Uint32(b[:])>>2
		if _, isTaken := c.agents[key.pid]; !isTaken {
			c.agents[key.pid] = cancelTarget{s, key.secret}
			return key
		}
	}
}

// remove removes a key.
func (c *cancelKeys) remove(key cancelKey) {
	c.mu.Lock()
	delete(c.agents, key.pid)
	c.mu.Unlock()
}

// find returns the session of an agent with this key, or nil. How long it takes tells nothing of a secret.
func (c *cancelKeys) find(key cancelKey) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	target, ok := c.agents[key.pid]
	if !ok || subtle.ConstantTimeCompare(target.secret, key.secret) != 1 {
		return nil
	}
	return target.session
}

// addOwner notes that keys which the proxy does not know may belong to u's server, until the returned function is
// called.
func (c *cancelKeys) addOwner(u Upstream) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.servers == nil {
		c.servers = map[serverAddr]ownerSessions{}
	}
	addr := serverAddr{u.Network, u.Address}
	o := c.servers[addr]
	c.servers[addr] = ownerSessions{u, o.sessions + 1}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		o := c.servers[addr]
		if o.sessions--; o.sessions == 0 {
			delete(c.servers, addr)
		} else {
			c.servers[addr] = o
		}
	}
}

// ownerServers returns the servers on which owners have sessions.
func (c *cancelKeys) ownerServers() []Upstream {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Upstream
	for _, o := range c.servers {
		out = append(out, o.upstream)
	}
	return out
}

// serveCancel reads the rest of a CancelRequest of n bytes and forwards it. If it names an agent's session, the
// server's own key replaces the client's; otherwise it is forwarded unchanged. As in PostgreSQL there is no answer. The
// client's socket is closed after the server has closed its own, since clients wait for that.
func (c *conn) serveCancel(n int) error {
	if n < 8 || n > maxCancelBytes-8 {
		return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid length of cancel request")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(c.client, body); err != nil {
		return errPeerGone
	}
	if s := c.server.cancels.find(cancelKey{binary.BigEndian.Uint32(body), body[4:]}); s != nil {
		if s.paused.Load() {
			s.end(canceledInPauseError())
		} else {
			s.cancelUpstream()
		}
		return errPeerGone
	}
	for _, u := range c.server.cancels.ownerServers() {
		if err := u.cancel(body); err != nil {
			c.log.Warn("cancel request not delivered", "error", err)
		}
	}
	return errPeerGone
}

// cancel sends a CancelRequest with this process id and key, and waits until the server has closed the connection.
func (u Upstream) cancel(body []byte) error {
	ctx, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	nc, err := u.open(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(5 * time.Second))
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	b = binary.BigEndian.AppendUint32(b, codeCancel)
	if _, err := nc.Write(append(b, body...)); err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, nc, 1<<10)
	return nil
}
