package proxy

import (
	"errors"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Where no connection can be made, because the server or the proxy has no room for one, sessions wait. They get those
// that the pool has, as if it could have no more. A pool that has none says at once what is wrong.

// poolRetryPause is how long a pool that has connections makes no more after it could not make one.
const poolRetryPause = 250 * time.Millisecond

// noteDialed notes that a connection was made. Where sessions wait, the next may be made.
func (p *pool) noteDialed() {
	p.pools.mu.Lock()
	defer p.pools.mu.Unlock()
	p.dialCount--
	p.pools.offerPlace()
}

// noteNotDialed gives the place of a connection back that could not be made. It tells whether the session can wait for
// another one of the pool: then no more are made for a while.
func (p *pool) noteNotDialed(err error) (mustWait bool) {
	p.pools.mu.Lock()
	defer p.pools.mu.Unlock()
	p.dialCount--
	p.taken--
	if p.openCount-1 <= p.dialCount || !isNoRoomError(err) {
		p.freePlaceNow()
		return false
	}
	if !p.isPaused() {
		p.pausedUntil = time.Now().Add(poolRetryPause)
		time.AfterFunc(poolRetryPause, p.pools.endPause)
		p.pools.server.log.Warn("no further connection to the server could be made; sessions wait for those that there are",
			"agent", p.key.agent, "database", p.key.database, "cause", errors.Unwrap(err))
	}
	p.releasePlace()
	return true
}

// isNoRoomError tells whether an error says that no connection can be made now, and nothing of the session's own.
func isNoRoomError(err error) bool {
	var told *sqlstate.Error
	if !errors.As(err, &told) {
		return false
	}
	switch told.Code {
	case sqlstate.ConnectionFailure, sqlstate.TooManyConnections, sqlstate.CannotConnectNow:
		return true
	}
	return false
}

// isPaused tells whether the pool makes no more connections than it has. The caller holds the lock.
func (p *pool) isPaused() bool {
	return !p.pausedUntil.IsZero() && p.openCount > p.dialCount && time.Now().Before(p.pausedUntil)
}

// endPause lets sessions that wait make connections again.
func (ps *pools) endPause() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if !ps.closed {
		ps.offerPlace()
	}
}
