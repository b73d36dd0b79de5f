package audit

import "time"

// recordSink is the place to which the writing goroutine writes records: files or a database.
type recordSink interface {
	// open finds the end of the chain. After an error that isTransient accepts, reopen opens the sink again.
	open() error
	// append writes a group of records. If sync is true or the last sync was long ago, it makes all written records
	// durable, and returns the time of the oldest of them. After an error nothing has changed, unless the sink keeps
	// the group.
	append(group []*Ticket, sync bool) (time.Time, error)
	// holdsGroup tells whether the group of a failed append will be written before any other, since it may have been
	// written already.
	holdsGroup() bool
	// reopen recovers from an error, and opens a sink that could not be opened before.
	reopen() error
	// oldestUnsynced returns the time of the oldest record that is not durable yet; zero: there is none.
	oldestUnsynced() time.Time
	// findExpired returns the checkpoint for records whose retention is over; nil: there are none.
	findExpired() *Checkpoint
	// removeExpired removes the records of a durable checkpoint.
	removeExpired(Checkpoint)
	close()
	// mediumName names the sink in refusals: disk or database.
	mediumName() string
}
