package proxy

import (
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// transactionTimer measures how long the current transaction has lasted, if the decider limits that. A transaction
// lasts from its first message to the ReadyForQuery outside a transaction, whether the server works or the client lets
// it wait.
type transactionTimer struct {
	isBounded bool
	began     time.Time // zero: there is no transaction
	timer     *time.Timer
}

// stop stops the timer, if there is one.
func (t *transactionTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// begin notes that the proxy is about to send a message, which may begin a transaction.
func (t *transactionTimer) begin() {
	if t.isBounded && t.began.IsZero() {
		t.began = time.Now()
	}
}

// end notes that a transaction is over. another says that messages already sent may have begun the next one.
func (t *transactionTimer) end(another bool) {
	if !t.isBounded {
		return
	}
	if t.began = (time.Time{}); another {
		t.began = time.Now()
	}
}

// boundTransactions starts a timer that tells the decider when a transaction lasts too long. When the timer fires
// before the current transaction's limit, it is set again for that limit.
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
			go timekeeper.TimeoutPassed() // It runs in a goroutine, since ending the session takes the ledger's lock.
		default:
			l.timer.timer.Reset(remaining)
		}
	})
}
