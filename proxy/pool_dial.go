package proxy

import (
	"errors"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// If the pool cannot make a connection, because the server cannot be reached or has no room, sessions wait for those
// that the pool has. If the pool has none, the session gets the error at once.

// poolRetryPause is how long a pool with open connections makes no new ones after it failed to make one.
const poolRetryPause = 250 * time.Millisecond

// noteDialed notes that a connection was made, and lets waiting sessions make further ones.
func (p *pool) noteDialed() {
	p.pools.mu.Lock()
	defer p.pools.mu.Unlock()
	p.dialCount--
	p.pools.offerPlace()
}

// noteNotDialed frees the place of a connection that could not be made. It reports whether the session should wait for
// one of the pool's other connections; then the pool makes no new ones for a while.
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

// isNoRoomError reports whether an error means that no session can get a new connection now, rather than only this one.
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

// isPaused reports whether the pool makes no new connections for now. The caller holds the lock.
func (p *pool) isPaused() bool {
	return !p.pausedUntil.IsZero() && p.openCount > p.dialCount && time.Now().Before(p.pausedUntil)
}

// endPause lets waiting sessions make connections again.
func (ps *pools) endPause() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if !ps.closed {
		ps.offerPlace()
	}
}
