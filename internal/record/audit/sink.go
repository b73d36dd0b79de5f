package audit

import "time"

// sink is where the one writing goroutine puts records.
type sink interface {
	// open finds the end of the chain. An error that is a [passing] one leaves the sink to be opened again by reopen.
	open() error
	// append writes a group; with sync, or when the last one is long ago, it makes everything durable and returns when
	// the oldest record of that was made. After an error nothing has changed, unless it keeps the group.
	append(group []*Ticket, sync bool) (time.Time, error)
	// keeps tells whether the group of the append that failed will be written before any other: nobody knows whether it
	// is there already.
	keepsGroup() bool
	// reopen makes good after an error, and opens what could not be opened before.
	reopen() error
	// unsynced is when the oldest record was made that is written and not durable; zero: there is none.
	unsynced() time.Time
	// expired returns the checkpoint for records whose time is over; nil: there are none.
	expired() *Checkpoint
	// remove takes away what a durable checkpoint stands for.
	remove(Checkpoint)
	close()
	// medium names it to those who are refused: disk, database.
	medium() string
}
