package verdict

import "time"

// TransactionLimiter is a [Decider] that bounds how long a transaction may last.
type TransactionLimiter interface {
	// TransactionTimeout returns how long a transaction may last; 0: without limit. It is called when the session begins.
	TransactionTimeout() time.Duration
	// TimeoutPassed is called when a transaction has lasted that long. It ends the session, may be called from any
	// goroutine and does not wait for anything.
	TimeoutPassed()
}
