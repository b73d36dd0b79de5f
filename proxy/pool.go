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

// With a pool, the sessions of one agent share connections to the server. A session has a connection while a
// transaction is open or a statement runs, and returns it when the server is idle outside a transaction (see
// pooled.go).
//
// Waiting sessions get connections in the order in which they came. One agent's waiting sessions do not hold up other
// agents', unless all agents together have reached their limit of connections. Then an idle connection of another agent
// is closed to make room.

// PoolSettings are the settings of an agent's pool.
type PoolSettings struct {
	Size int           // how many connections to the server the agent's sessions share; at least 1
	Wait time.Duration // how long a session waits for a connection before it fails
}

// poolIdle is how long a connection may be idle before the pool closes it.
const poolIdle = 5 * time.Minute

// PoolState is a snapshot of a pool's size, use and counters.
type PoolState struct {
	Agent, Database string
	Size            int           // how many connections the pool may have
	Used            int           // connections that sessions use, or that are being made
	Idle            int           // open connections that no session uses
	Waiting         int           // sessions that wait for a connection
	Taken           uint64        // how often a session got a connection
	Waited          time.Duration // how long all sessions together have waited for connections
	TimedOut        uint64        // how often a session waited for too long
}

// pools has the pools of all agents of a [Server]. mu guards them all.
type pools struct {
	server *Server

	mu         sync.Mutex
	pools      map[agentKey]*pool
	closed     bool
	sweepTimer *time.Timer // the timer that closes connections that have been idle for long; nil: it does not run
}

// pool has the connections to the server that the sessions of one agent share.
type pool struct {
	pools       *pools
	key         agentKey
	size        int
	idle        []*serverConn // idle connections, the most recently used one last
	openCount   int           // number of connections that are open or being made
	dialCount   int           // number of connections that are being made
	waiting     list.List     // the waiting sessions, the longest waiting first; each element is a chan *serverConn
	pausedUntil time.Time     // until when the pool makes no further connections; zero: it may make them

	taken, timedOut uint64
	waited          time.Duration
}

// poolFor returns the pool of an agent and sets its size.
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

// take returns a connection for the session of l: an idle one, preferably the most recently used, or a new one. It
// waits if there is none.
func (p *pool) take(ctx context.Context, l *connector) (*serverConn, error) {
	start := time.Now()
	for wait := l.wait; ; wait = l.wait - time.Since(start) {
		c, err := p.takeOrWait(ctx, l, wait)
		if err != nil || c != nil && c.startupSettings == l.startupSettings {
			return c, err
		}
		if c != nil {
			c.Close() // the new connection takes its place
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

// takeOrWait returns a connection of the pool, for which it may wait. If the result is nil, or began with other
// settings than those of l, the caller must make a new connection in its place.
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

// removeEnded removes an idle connection that the server has closed. If a session is just taking the connection, that
// session removes it.
func (p *pool) removeEnded(c *serverConn) {
	p.pools.mu.Lock()
	defer p.pools.mu.Unlock()
	if i := slices.Index(p.idle, c); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		p.drop(c)
	}
}

// takeNow returns an idle connection, or true for mayDial if the caller may make a new one. If it returns neither, the
// caller must wait. The caller holds the lock.
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
	if len(p.idle) > 0 { // all began with other settings: the caller replaces this one
		c := p.idle[0]
		p.idle = slices.Delete(p.idle, 0, 1)
		return c, false
	}
	return nil, false
}

// mayOpen reserves a place for one more connection, and returns false if there is none. If all agents together have
// reached their limit, it closes an idle connection of another pool. The caller holds the lock.
func (p *pool) mayOpen() bool {
	if p.openCount >= p.size || p.isPaused() || !p.pools.server.slots.takeConnection(p.pools.server.maxConnections()) &&
		!p.pools.closeIdleOf(p) {
		return false
	}
	p.openCount++
	return true
}

// await waits until another session offers a connection, or nil: then the caller may make a new one.
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
	case c := <-offer: // another session has made the offer just now
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

// passOn passes on the connection, or the place for one, that was offered to a session which has ended.
func (p *pool) passOn(c *serverConn) {
	if c == nil {
		p.freePlace()
	} else {
		p.put(c)
	}
}

// put returns a connection to the pool, which gives it to the first waiting session or keeps it idle. The fields of c
// must describe all state that the connection holds.
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

// offer gives the first waiting session a connection, or with nil the right to make one. It returns false if no session
// waits. The caller holds the lock.
func (p *pool) offer(c *serverConn) bool {
	first := p.waiting.Front()
	if first == nil {
		return false
	}
	p.waiting.Remove(first)
	first.Value.(chan *serverConn) <- c
	return true
}

// remove closes a connection and frees its place in the pool.
func (p *pool) remove(c *serverConn) {
	c.Close()
	p.freePlace()
}

// freePlace frees the place of a connection that was closed, or could not be made.
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

// releasePlace frees the place of a connection for all pools. The caller holds the lock.
func (p *pool) releasePlace() {
	p.openCount--
	p.pools.server.slots.releaseConnection()
	p.pools.offerPlace()
}

// drop closes a connection and frees its place. The caller holds the lock.
func (p *pool) drop(c *serverConn) {
	go closeServer(c)
	p.releasePlace()
}

// closeServer sends the server a Terminate and closes the connection.
func closeServer(c *serverConn) {
	sendTerminate(c)
	c.Close()
}

// offerPlace lets waiting sessions of any pool make connections, as far as the limits allow now. The caller holds the
// lock.
func (ps *pools) offerPlace() {
	for _, p := range ps.pools {
		if p.waiting.Len() > 0 && p.mayOpen() {
			p.offer(nil)
		}
	}
}

// isWaitingElsewhere reports whether a session of another pool waits only because all agents together have reached
// their limit of connections.
func (ps *pools) isWaitingElsewhere(except *pool) bool {
	for _, p := range ps.pools {
		if p != except && p.waiting.Len() > 0 && p.openCount < p.size && !p.isPaused() {
			return true
		}
	}
	return false
}

// closeIdleOf closes the connection that has been idle for longest, in any pool but except. It returns false if there
// is none. The caller gets the connection's place, and holds the lock.
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

// closeIdle closes the connection of any pool that has been idle for longest. The caller gets its place.
func (ps *pools) closeIdle() bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.closeIdleOf(nil)
}

// startSweep starts the timer that closes connections which have been idle for long, unless it runs. The caller holds
// the lock.
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

// close closes all idle connections. Connections that sessions return later are closed at that time.
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

// Pools returns the state of each agent's pool, sorted by database and agent.
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
