package proxy

import (
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// transactionTimer follows how long the transaction in progress has lasted, where the decider bounds that. It lasts
// from the first message that the server gets until the ReadyForQuery that says it is over. It counts no matter who is
// waited for: the server, the client, or a Sync that never comes.
type transactionTimer struct {
	isBounded bool
	began     time.Time // zero: there is no transaction
	timer     *time.Timer
}

// stop ends the timer.
func (t *transactionTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// begin notes that the server is about to get a message.
func (t *transactionTimer) begin() {
	if t.isBounded && t.began.IsZero() {
		t.began = time.Now()
	}
}

// end notes that a transaction is over. Messages that were sent behind it may have begun another.
func (t *transactionTimer) end(another bool) {
	if !t.isBounded {
		return
	}
	if t.began = (time.Time{}); another {
		t.began = time.Now()
	}
}

// boundTransactions sets up that the decider is told of a transaction that lasts too long. The timer fires when a
// transaction that had begun with it would be overdue, and again when the transaction that it finds then would be.
func (s *session) boundTransactions() {
	timekeeper, ok := s.decider.(verdict.TransactionLimiter)
	if !ok {
		return
	}
	maximum := timekeeper.TransactionTimeout()
	if maximum == 0 {
		return
	}
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.isBounded = true
	l.timer.timer = time.AfterFunc(maximum, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		remaining := maximum
		if !l.timer.began.IsZero() {
			remaining -= time.Since(l.timer.began)
		}
		switch {
		case l.closed:
		case remaining <= 0:
			go timekeeper.TimeoutPassed() // This ends the session, which takes the ledger's lock.
		default:
			l.timer.timer.Reset(remaining)
		}
	})
}
