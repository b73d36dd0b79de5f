package proxy

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// In a pool, sessions share connections to the server. A session has a connection while a transaction is open or a
// statement runs. It gives it back when the server is idle outside a transaction (see pooled.go). Connections of one
// agent do not serve another.
//
// Sessions that wait get connections in the order in which they came. An agent whose sessions wait does not keep
// connections from other agents, except where the number for all agents together is reached. Then an agent with idle
// connections loses one.

// PoolSettings are the settings of an agent's pool.
type PoolSettings struct {
	Size int           // how many connections to the server the agent's sessions share; at least 1
	Wait time.Duration // how long a session waits for one of them before it ends
}

// poolIdle is how long an idle connection is kept.
const poolIdle = 5 * time.Minute

// PoolState is what a pool has and does at a moment.
type PoolState struct {
	Agent, Database string
	Size            int           // how many connections it may have
	Used            int           // connections that sessions have, or that are being made
	Idle            int           // connections that no session has
	Waiting         int           // sessions that wait for a connection
	Taken           uint64        // how often a session got a connection
	Waited          time.Duration // how long sessions have waited for them in all
	TimedOut        uint64        // how often a session waited for too long
}

// pools are the pools of a server. Its lock guards them all.
type pools struct {
	server *Server

	mu         sync.Mutex
	pools      map[agentKey]*pool
	closed     bool
	sweepTimer *time.Timer // closes connections that are idle for long; nil: none is idle
}

// pool has the connections of one agent.
type pool struct {
	pools       *pools
	key         agentKey
	size        int
	idle        []*serverConn // the one that was used last at the end
	openCount   int           // connections that there are, or that are being made
	dialCount   int           // those that are being made
	waiting     list.List     // a list of chan *serverConn; the session that came first is in front
	pausedUntil time.Time     // when the pool may make further connections again; zero: it may

	taken, timedOut uint64
	waited          time.Duration
}

// poolFor returns the pool of an agent, which has this size from now on.
func (ps *pools) poolFor(key agentKey, size int) *pool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.pools[key]
	if p == nil {
		p = &pool{pools: ps, key: key}
		if ps.pools == nil {
			ps.pools = map[agentKey]*pool{}
		}
		ps.pools[key] = p
	}
	p.size = max(size, 1)
	return p
}

// take returns a connection for the session of l. It prefers the one that was used last.
func (p *pool) take(ctx context.Context, l *connector) (*serverConn, error) {
	start := time.Now()
	for wait := l.wait; ; wait = l.wait - time.Since(start) {
		c, err := p.takeOrWait(ctx, l, wait)
		if err != nil || c != nil && c.startupSettings == l.startupSettings {
			return c, err
		}
		if c != nil {
			c.Close() // the new one has its place
		}
		if c, err = l.dial(ctx); err == nil {
			c.pool = p
			p.noteDialed()
			return c, nil
		}
		if !p.noteNotDialed(err) || time.Since(start) >= l.wait {
			return nil, err
		}
	}
}

// takeOrWait returns a connection. If it is none, or began with other settings, the caller is to make one in its place.
func (p *pool) takeOrWait(ctx context.Context, l *connector, wait time.Duration) (*serverConn, error) {
	start := time.Now()
	p.pools.mu.Lock()
	defer p.pools.mu.Unlock()
	c, mayDial := p.takeNow(l)
	if c == nil && !mayDial {
		offer := make(chan *serverConn, 1)
		waiter := p.waiting.PushBack(offer)
		p.pools.mu.Unlock()
		var err error
		c, err = p.await(ctx, wait, offer, waiter)
		p.pools.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	p.taken++
	p.waited += time.Since(start)
	if c == nil || c.startupSettings != l.startupSettings {
		p.dialCount++
	}
	return c, nil
}

// removeEnded takes a connection out that has ended. A connection that a session is about to have is that session's to
// remove.
func (p *pool) removeEnded(c *serverConn) {
	p.pools.mu.Lock()
	defer p.pools.mu.Unlock()
	if i := slices.Index(p.idle, c); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		p.drop(c)
	}
}

// takeNow returns an idle connection, or whether the caller may make one; neither where it has to wait. The caller
// holds the lock.
func (p *pool) takeNow(l *connector) (c *serverConn, mayDial bool) {
	if p.waiting.Len() > 0 {
		return nil, false
	}
	for i := len(p.idle) - 1; i >= 0; i-- {
		if p.idle[i].startupSettings == l.startupSettings {
			c := p.idle[i]
			p.idle = slices.Delete(p.idle, i, i+1)
			return c, false
		}
	}
	if p.mayOpen() {
		return nil, true
	}
	if len(p.idle) > 0 { // the idle connections began with other settings: the caller makes a new one in place of one of them
		c := p.idle[0]
		p.idle = slices.Delete(p.idle, 0, 1)
		return c, false
	}
	return nil, false
}

// mayOpen reserves the place of one more connection. Where all agents together have as many as they may, an idle one of
// another pool is closed. The caller holds the lock.
func (p *pool) mayOpen() bool {
	if p.openCount >= p.size || p.isPaused() || !p.pools.server.slots.takeConnection(p.pools.server.maxConnections()) &&
		!p.pools.closeIdleOf(p) {
		return false
	}
	p.openCount++
	return true
}

// await waits for a connection, or for the place of one: then it returns nil.
func (p *pool) await(ctx context.Context, wait time.Duration, offer chan *serverConn,
	waiter *list.Element) (*serverConn, error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	isRemoved := false
	select {
	case c := <-offer:
		return c, nil
	case <-ctx.Done():
		isRemoved = true
	case <-timeout.C:
	}
	p.pools.mu.Lock()
	defer p.pools.mu.Unlock()
	select {
	case c := <-offer: // the offer came in time after all
		if isRemoved {
			go p.passOn(c)
			return nil, errPeerGone
		}
		return c, nil
	default:
	}
	p.waiting.Remove(waiter)
	if isRemoved {
		return nil, errPeerGone
	}
	p.timedOut++
	return nil, poolFullError(p.size)
}

// passOn passes on what a session that has ended was given.
func (p *pool) passOn(c *serverConn) {
	if c == nil {
		p.freePlace()
	} else {
		p.put(c)
	}
}

// put gives a connection back, to the session that waits first or to the idle ones. Nothing may be left in it that its
// fields do not tell.
func (p *pool) put(c *serverConn) {
	p.pools.mu.Lock()
	defer p.pools.mu.Unlock()
	switch {
	case p.pools.closed || p.openCount > p.size:
		p.drop(c)
	case p.offer(c):
	case p.pools.isWaitingElsewhere(p):
		p.drop(c)
	default:
		c.idleSince = time.Now()
		p.idle = append(p.idle, c)
		p.pools.startSweep()
	}
}

// offer gives a connection, or the place of one, to the session that waits first. The caller holds the lock.
func (p *pool) offer(c *serverConn) bool {
	first := p.waiting.Front()
	if first == nil {
		return false
	}
	p.waiting.Remove(first)
	first.Value.(chan *serverConn) <- c
	return true
}

// remove closes a connection that is not to be used any more.
func (p *pool) remove(c *serverConn) {
	c.Close()
	p.freePlace()
}

// freePlace gives the place of a connection back that is closed, or was not made.
func (p *pool) freePlace() {
	p.pools.mu.Lock()
	defer p.pools.mu.Unlock()
	p.freePlaceNow()
}

// freePlaceNow is freePlace for a caller who holds the lock.
func (p *pool) freePlaceNow() {
	if p.openCount > p.size || p.pools.closed || !p.offer(nil) {
		p.releasePlace()
	}
}

// releasePlace gives the place of a connection back to all pools. The caller holds the lock.
func (p *pool) releasePlace() {
	p.openCount--
	p.pools.server.slots.releaseConnection()
	p.pools.offerPlace()
}

// drop closes a connection and gives its place back. The caller holds the lock.
func (p *pool) drop(c *serverConn) {
	go closeServer(c)
	p.releasePlace()
}

// closeServer tells the server that a connection ends, and closes it.
func closeServer(c *serverConn) {
	sendTerminate(c)
	c.Close()
}

// offerPlace lets a pool make a connection whose sessions wait because all agents together had as many as they may. The
// caller holds the lock.
func (ps *pools) offerPlace() {
	for _, p := range ps.pools {
		if p.waiting.Len() > 0 && p.mayOpen() {
			p.offer(nil)
		}
	}
}

// isWaitingElsewhere tells whether a session of another pool waits for the number of all connections to go down.
func (ps *pools) isWaitingElsewhere(except *pool) bool {
	for _, p := range ps.pools {
		if p != except && p.waiting.Len() > 0 && p.openCount < p.size && !p.isPaused() {
			return true
		}
	}
	return false
}

// closeIdleOf closes an idle connection of another pool than this one, the one that is idle for longest. Its place is
// the caller's then. The caller holds the lock.
func (ps *pools) closeIdleOf(except *pool) bool {
	var from *pool
	for _, p := range ps.pools {
		if p != except && len(p.idle) > 0 && (from == nil || p.idle[0].idleSince.Before(from.idle[0].idleSince)) {
			from = p
		}
	}
	if from == nil {
		return false
	}
	go closeServer(from.idle[0])
	from.idle = slices.Delete(from.idle, 0, 1)
	from.openCount--
	return true
}

// closeIdle closes an idle connection, whose place is the caller's then.
func (ps *pools) closeIdle() bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.closeIdleOf(nil)
}

// startSweep starts the timer that closes connections which are idle for long. The caller holds the lock.
func (ps *pools) startSweep() {
	if ps.sweepTimer == nil {
		ps.sweepTimer = time.AfterFunc(poolIdle, ps.closeLongIdle)
	}
}

func (ps *pools) closeLongIdle() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.sweepTimer = nil
	if ps.closed {
		return
	}
	hasIdle := false
	for _, p := range ps.pools {
		for len(p.idle) > 0 && time.Since(p.idle[0].idleSince) >= poolIdle {
			c := p.idle[0]
			p.idle = slices.Delete(p.idle, 0, 1)
			p.drop(c)
		}
		hasIdle = hasIdle || len(p.idle) > 0
	}
	if hasIdle {
		ps.startSweep()
	}
}

// close closes all idle connections. Those that sessions give back later are closed then.
func (ps *pools) close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.closed = true
	if ps.sweepTimer != nil {
		ps.sweepTimer.Stop()
	}
	for _, p := range ps.pools {
		for _, c := range p.idle {
			sendTerminate(c)
			c.Close()
			p.openCount--
			ps.server.slots.releaseConnection()
		}
		p.idle = nil
	}
}

// Pools returns the state of each agent's pool, by database and agent.
func (s *Server) Pools() []PoolState {
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	var out []PoolState
	for _, p := range s.pools.pools {
		out = append(out, PoolState{
			Agent: p.key.agent, Database: p.key.database, Size: p.size, Used: p.openCount - len(p.idle), Idle: len(p.idle),
			Waiting: p.waiting.Len(), Taken: p.taken, Waited: p.waited, TimedOut: p.timedOut,
		})
	}
	slices.SortFunc(out, func(a, b PoolState) int {
		return cmp.Or(strings.Compare(a.Database, b.Database), strings.Compare(a.Agent, b.Agent))
	})
	return out
}

func poolFullError(size int) *sqlstate.Error {
	return sqlstate.New(sqlstate.TooManyConnections, sqlstate.ReasonLimit,
		"no connection to the database server came free in time").
		WithHint("The agent's sessions share %d. End transactions before waiting for somebody, and try again in a "+
			"moment; or ask the operator for a larger pool.", size)
}
