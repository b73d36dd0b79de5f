package proxy

import (
	"errors"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A result that grows beyond its limit ends with an error in place of the row at hand. The session is then in the state
// in which such an error of the server would leave it. So nothing that the client sent behind such an execution is sent
// before it is answered. The proxy requests the server to cancel the execution. If the server had completed it already,
// it is given a message that is certain to fail before anything else. This undoes what an error undoes, and leaves the
// transaction failed.
//
// For a Query this would come too late where the server commits as it answers: see steps.go.

// portalNotRunnable is PostgreSQL's SQLSTATE for a portal that an error has ended while it ran.
const portalNotRunnable sqlstate.Code = "55000"

func notRunnableError(name string) *sqlstate.Error {
	return sqlstate.New(portalNotRunnable, sqlstate.ReasonNone, "portal \"%s\" cannot be run", name)
}

// resultLimit is the limit of a result, and how much of the result the client has.
type resultLimit struct {
	verdict.ResultBound

	code        sqlstate.Code // the SQLSTATE of the error by which the limit ended the result
	rows        int64         // number of rows that were relayed, if rows are limited
	bytes       int64         // bytes of rows that may be relayed before the limit must grant more
	grantedRows int64         // number of rows that may be relayed before the limit must grant more
}

// isLimited reports whether the result of e is limited, or the proxy must send its statements one by one for another
// reason.
func isLimited(e entry) bool {
	x := e.asExecution()
	return x != nil && x.refusal == nil && (x.limit.Exceeded != nil || needsOneByOne(e))
}

// exceededBy reports whether one more row of this length is more than may be relayed, and which limit it exceeds.
func (l *resultLimit) exceededBy(length int) (bound verdict.ExceededBound, isSet bool) {
	switch {
	case l.Exceeded == nil:
		return 0, false
	case l.Rows > 0 && l.rows >= l.Rows:
		return verdict.TooManyRows, true
	case l.Bytes > 0 && l.bytes+int64(length) > l.Bytes:
		return verdict.TooManyBytes, true
	case l.MoreRows != nil && l.grantedRows == 0:
		if l.grantedRows = l.MoreRows(); l.grantedRows <= 0 {
			l.grantedRows = 0
			return verdict.RateExhausted, true
		}
	}
	return 0, false
}

// count counts a row that is relayed.
func (l *resultLimit) count(length int) {
	if l.Exceeded == nil {
		return
	}
	l.rows++
	l.bytes += int64(length)
	if l.MoreRows != nil {
		l.grantedRows--
	}
}

// endedResult is the state of a result that a limit has ended.
type endedResult struct {
	// execution whose result has ended: the client gets nothing more before ReadyForQuery; nil: no limit has ended a
	// result
	execution   *execution
	isUndoSent  bool       // the server was given a message that fails in place of the execution
	clientError []byte     // the error for the client, not sent yet
	cancelDone  chan error // receives the result of the cancel request; nil: no request is being sent
}

// cutResult ends a result before the row at hand. The client gets an error in its place, and nothing more until
// ReadyForQuery, as after any error.
func (a *answers) cutResult(x *execution, bound verdict.ExceededBound) {
	err := x.limit.Exceeded(bound)
	x.limit.code = err.Code
	a.ledger.failPortal(x)
	a.tail.isSkipped = true
	a.endedResult = endedResult{execution: x, clientError: encodeError(nil, "ERROR", err), cancelDone: make(chan error, 1)}
	server, key := a.cancelUpstreamAt, a.connection.key
	go func(canceled chan<- error) { canceled <- server.cancel(key) }(a.endedResult.cancelDone)
}

// waitForCancel waits until the server has got the cancel request, which otherwise could hit the next statement.
func (a *answers) waitForCancel() *sqlstate.Error {
	if a.endedResult.cancelDone == nil {
		return nil
	}
	select {
	case err := <-a.endedResult.cancelDone:
		a.endedResult.cancelDone = nil
		if err != nil {
			return connectionLostError(err)
		}
	case <-a.ctx.Done():
	}
	return nil
}

// endExecute ends an Execute that the server has completed. Where a limit has ended its result, and nothing was sent
// behind it, the server is made to fail in its place.
func (a *answers) endExecute(e *executeEntry) *sqlstate.Error {
	if a.endedResult.execution != nil && !e.synced {
		return a.undoResult((*refusal).execute, false)
	}
	a.succeed()
	return nil
}

// undoResult makes the server fail in place of an execution that it has completed and whose result was ended. It sends
// the refused form of a message, and a Sync after it where the client's was answered already.
func (a *answers) undoResult(form func(*refusal, []byte) []byte, sync bool) *sqlstate.Error {
	if a.endedResult.isUndoSent {
		return desyncError(errors.New("the server did not fail where it must"))
	}
	a.endedResult.isUndoSent = true
	b := form(newRefusal(a.endedResult.execution.limit.Exceeded(verdict.TooManyRows)), nil)
	if sync {
		b = appendSync(b)
	}
	return a.send(b)
}

// send sends bytes to the server. The goroutine that handles the client's messages waits meanwhile for the answers.
func (a *answers) send(b []byte) *sqlstate.Error {
	if len(b) == 0 {
		return nil
	}
	if _, err := a.upstream.Write(b); err != nil {
		return connectionLostError(err)
	}
	return nil
}

// failPortal notes that an error has ended the portal which x runs. It cannot be run any more, should it outlive the
// transaction.
func (l *ledger) failPortal(x *execution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, effect := range x.verdict.Effects[:min(x.completedStatements, len(x.verdict.Effects))] {
		if effect.Kind == verdict.EffectFetch {
			n++
		}
	}
	if n < len(x.portals) {
		x.portals[n].hasFailed = true
	}
}

// endOfLimitedResult returns where to divide the batch: after the first execution whose result is limited. The server
// must answer that part before the proxy sends more. Without such an execution it returns end. An Execute that only
// reads, and is the only one before its Sync, goes with the Sync. That Sync commits nothing that an error would undo.
func (r *requests) endOfLimitedResult(end int) int {
	b := &r.batch
	for i := b.sent; i < end; i++ {
		e := b.items[i].entry
		if e == nil || !isLimited(e) {
			continue
		}
		r.barrier = e
		if x, ok := e.(*executeEntry); ok && x.isFirstInGroup && !x.limit.MustRollBack && i+1 < end {
			if sync, ok := b.items[i+1].entry.(*syncEntry); ok {
				x.synced, r.barrier = true, sync
				return i + 2
			}
		}
		return i + 1
	}
	return end
}
