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

// cancelKey is the key by which a CancelRequest names a session. Agents get keys that the proxy has made, so that they
// learn neither the server's process id nor a key that the server accepts.
type cancelKey struct {
	pid    uint32
	secret []byte // 4 bytes, or 32 from protocol 3.2 on
}

// cancelKeys has the cancel keys of agents' sessions, and the servers to which the proxy forwards all other keys, which
// may be owners'.
type cancelKeys struct {
	mu      sync.Mutex
	agents  map[uint32]cancelTarget // the sessions of agents, by the process id of their keys
	servers map[serverAddr]ownerSessions
}

// cancelTarget is an agent's session and the secret of its cancel key.
type cancelTarget struct {
	session *session
	secret  []byte
}

// serverAddr identifies a PostgreSQL server by its address.
type serverAddr struct{ network, address string }

// ownerSessions counts the owners' sessions on a server.
type ownerSessions struct {
	upstream Upstream
	sessions int
}

// add makes a cancel key for s, with a secret of secretBytes bytes. The key's process id is higher than any that an
// operating system assigns, so it cannot equal an owner's.
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

// remove removes an agent's cancel key.
func (c *cancelKeys) remove(key cancelKey) {
	c.mu.Lock()
	delete(c.agents, key.pid)
	c.mu.Unlock()
}

// find returns the agent's session with this cancel key, or nil. It compares secrets in constant time.
func (c *cancelKeys) find(key cancelKey) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	target, ok := c.agents[key.pid]
	if !ok || subtle.ConstantTimeCompare(target.secret, key.secret) != 1 {
		return nil
	}
	return target.session
}

// addOwner counts an owner's session on u's server until remove is called. Meanwhile the proxy forwards cancel keys
// that it does not know to that server.
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

// serveCancel reads the last n bytes of a CancelRequest and forwards the request. For an agent's session the proxy
// sends the server's own key; other keys go unchanged to the servers of owners. As in PostgreSQL the client gets no
// answer. The proxy closes the client's socket after the server has closed its own, since clients wait for that.
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
			c.log().Warn("cancel request not delivered", "error", err)
		}
	}
	return errPeerGone
}

// cancel sends the server a CancelRequest with this body (process id and key), and waits until the server has closed
// the connection.
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
