package audit

import "time"

// recordSink is where the writing goroutine writes records: files or a database.
type recordSink interface {
	// open finds the end of the chain. If it fails with an error that isTransient accepts, reopen is called later.
	open() error
	// append writes a group of records. If sync is true, or the oldest record has waited long, it makes all written
	// records durable and returns the time of the oldest. After an error nothing has changed, unless holdsGroup returns
	// true.
	append(group []*Ticket, sync bool) (time.Time, error)
	// holdsGroup reports whether the sink will write the group of a failed append before any other group, because it may
	// have written the group already.
	holdsGroup() bool
	// reopen recovers from an error of append or open.
	reopen() error
	// oldestUnsynced returns when the oldest record was made that is not durable yet; zero: there is none.
	oldestUnsynced() time.Time
	// findExpired returns a checkpoint that names the records whose retention is over, or nil if there are none.
	findExpired() *Checkpoint
	// removeExpired removes the records that a durable checkpoint names.
	removeExpired(Checkpoint)
	close()
	// mediumName returns the word for the sink in refusals: disk or database.
	mediumName() string
}
