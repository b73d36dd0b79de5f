package verdict

import "time"

// Timekeeper is a [Decider] that bounds how long a transaction may last.
type Timekeeper interface {
	// TransactionTimeout is asked when the session begins; 0: as long as it likes.
	TransactionTimeout() time.Duration
	// Overdue is told that a transaction has lasted that long. It ends the session, may be called from any goroutine and
	// does not wait for anything.
	Overdue()
}
