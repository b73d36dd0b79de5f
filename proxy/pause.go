package proxy

import (
	"errors"
	"os"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// While an operator has paused a database, messages that its agents send outside a transaction wait here. They are
// neither decided nor sent to the server before the pause ends. An open transaction goes on, and so does a group of
// extended messages that has begun. If stopped, they would hold their locks for as long as the pause lasts.

// waitWhilePaused returns when the messages that have arrived may be handled, or with an error if the session is over.
// If the client leaves during the pause, none of its waiting messages is run. begun says that a group of messages has
// begun.
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
		} else { // The buffer is full, so nothing more is read.
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

// interruptReads makes reads from the client fail from when resumed is closed until stop is called.
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

// canceledInPauseError ends a session whose client sends a cancel request for a statement that waits during a pause.
// The server does not have that statement, so it cannot report the cancellation.
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
