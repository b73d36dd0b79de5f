package proxy

import (
	"errors"
	"os"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// While a database is paused, the messages that its agents send outside a transaction wait here. Nothing of them is
// decided or reaches the server before the pause ends. A transaction that is open goes on, and so does a group of
// extended messages that has begun. If stopped in the middle, it would hold its locks for as long as the pause lasts.

// waitWhilePaused returns when the messages that have arrived may be handled, or with an error if the session is over.
// A client that leaves meanwhile is noticed: what it has sent is not run.
func (r *requests) waitWhilePaused(in *input, begun bool) error {
	if r.whilePaused == nil || begun || in.unreadStart == in.unreadEnd {
		return nil
	}
	resumed := r.whilePaused()
	if resumed == nil || !r.ledger.waitOutsideTx() {
		return nil
	}
	r.paused.Store(true)
	defer r.paused.Store(false)
	defer r.interruptReads(resumed)()
	for {
		if len(in.bytes()) > in.unreadEnd-in.unreadStart {
			if err := in.fill(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
		} else { // The client has sent as much as is read in advance.
			select {
			case <-resumed:
			case <-r.ctx.Done():
			}
		}
		switch {
		case r.ctx.Err() != nil:
			return errPeerGone
		case isClosed(resumed):
			return nil
		}
	}
}

// interruptReads makes reads from the client fail once resumed is closed, until the returned function is called.
func (c *conn) interruptReads(resumed <-chan struct{}) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-resumed:
			c.setReadDeadline(time.Unix(1, 0))
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-done
		c.setReadDeadline(time.Time{})
	}
}

// canceledInPauseError ends a session whose client cancels what waits: nothing of it has reached the server, which would
// otherwise answer that it is canceled.
func canceledInPauseError() *sqlstate.Error {
	return sqlstate.New(sqlstate.QueryCanceled, sqlstate.ReasonNone, "canceling statement due to user request").
		WithHint("Statements wait because the database is paused by an operator. Nothing was run; connect again.")
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
