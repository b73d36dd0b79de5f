package verdict

import "time"

// TransactionLimiter is a [Decider] that bounds how long a transaction may last.
type TransactionLimiter interface {
	// TransactionTimeout returns how long a transaction may last; 0: without limit. The proxy calls it when the session
	// begins.
	TransactionTimeout() time.Duration
	// TimeoutPassed ends the session. The proxy calls it when a transaction has lasted longer than TransactionTimeout. It
	// may be called from any goroutine and does not wait for anything.
	TimeoutPassed()
}
