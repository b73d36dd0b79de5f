package proxy

import (
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// boundTransactions has the decider told of a transaction that lasts too long. It lasts from the first message that the
// server gets until the ReadyForQuery that says it is over, whoever is waited for: the server, the client, or the Sync
// that never comes.
//
// The timer looks when a transaction that had begun with it would be overdue, and again when the one that it finds
// would be.
func (s *session) boundTransactions() {
	keeper, is := s.decider.(verdict.Timekeeper)
	if !is {
		return
	}
	most := keeper.TransactionTimeout()
	if most == 0 {
		return
	}
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bounded = true
	l.timer = time.AfterFunc(most, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		left := most
		if !l.since.IsZero() {
			left -= time.Since(l.since)
		}
		switch {
		case l.closed:
		case left <= 0:
			go keeper.Overdue() // it ends the session, which takes the ledger's lock
		default:
			l.timer.Reset(left)
		}
	})
}

// busy notes that the server is about to get something; the caller holds the lock.
func (l *ledger) busy() {
	if l.bounded && l.since.IsZero() {
		l.since = time.Now()
	}
}

// over notes that a transaction is over. What was sent behind it may have begun another; the caller holds the lock.
func (l *ledger) over() {
	if !l.bounded {
		return
	}
	if l.since = (time.Time{}); l.first < len(l.queue) || l.open || l.skipping {
		l.since = time.Now()
	}
}
