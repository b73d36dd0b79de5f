package proxy

import (
	"errors"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// When a result exceeds its limit, the client gets an error in place of the next row. The session must then be in the
// state in which such an error from the server would leave it. So the proxy sends nothing behind a limited execution
// before the server has answered it. To end the result, the proxy sends the server a cancel request. If the server has
// already completed the execution, the proxy sends a message that is certain to fail, which fails the transaction.
//
// The server commits a Query before it reports the last statement complete, so for a Query the failing message could
// come too late: see steps.go.

// portalNotRunnable is PostgreSQL's SQLSTATE for running a portal whose earlier run failed.
const portalNotRunnable sqlstate.Code = "55000"

func notRunnableError(name string) *sqlstate.Error {
	return sqlstate.New(portalNotRunnable, sqlstate.ReasonNone, "portal \"%s\" cannot be run", name)
}

// resultLimit is the limit of a result, and how much of the result was relayed.
type resultLimit struct {
	verdict.ResultBound

	code        sqlstate.Code // the SQLSTATE of the error by which the limit ended the result
	rows        int64         // number of rows that were relayed, if the result is limited
	bytes       int64         // bytes of the rows that were relayed
	grantedRows int64         // number of rows that may still be relayed before MoreRows is asked again
}

// isLimited reports whether e must be answered before anything behind it is sent: its result is limited, or its
// statements must be sent one by one for another reason.
func isLimited(e entry) bool {
	x := e.asExecution()
	return x != nil && x.refusal == nil && (x.limit.Exceeded != nil || needsOneByOne(e))
}

// exceededBy reports whether one more row of this length would exceed a limit, and which limit that is.
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

// count adds a relayed row of this length to the counts.
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
	// the execution whose result a limit has ended, until its ReadyForQuery; nil: none
	execution   *execution
	isUndoSent  bool       // a message that must fail was sent to the server, see [answers.undoResult]
	clientError []byte     // the error that the client gets in place of the row, until it is sent
	cancelDone  chan error // receives the result of the cancel request; nil: no request is being sent
}

// cutResult ends a result before the current row. The client gets an error in its place, and nothing more until
// ReadyForQuery, as after any error. Meanwhile the proxy requests the server to cancel the execution.
func (a *answers) cutResult(x *execution, bound verdict.ExceededBound) {
	err := x.limit.Exceeded(bound)
	x.limit.code = err.Code
	a.ledger.failPortal(x)
	a.tail.isSkipped = true
	a.endedResult = endedResult{execution: x, clientError: encodeError(nil, "ERROR", err), cancelDone: make(chan error, 1)}
	server, key := a.connector.upstream, a.connection.key
	go func(canceled chan<- error) { canceled <- server.cancel(key) }(a.endedResult.cancelDone)
}

// waitForCancel waits until the cancel request has reached the server. Otherwise it could cancel the next statement.
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

// endExecute handles the completion of an Execute. If a limit has ended its result, and no Sync was sent behind it, the
// proxy makes the server fail.
func (a *answers) endExecute(e *executeEntry) *sqlstate.Error {
	if a.endedResult.execution != nil && !e.synced {
		return a.undoResult((*refusal).execute, false)
	}
	a.succeed()
	return nil
}

// undoResult makes the server fail after it has completed an execution whose result a limit has ended. form appends the
// message that fails; sync adds a Sync, if the server has already answered the client's.
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

// send sends bytes to the server. No other goroutine writes at that time, since the one that handles the client's
// messages waits for answers.
func (a *answers) send(b []byte) *sqlstate.Error {
	if len(b) == 0 {
		return nil
	}
	if _, err := a.upstream.Write(b); err != nil {
		return connectionLostError(err)
	}
	return nil
}

// failPortal notes that a limit has ended the portal that x runs. Even if the portal outlives the transaction, it
// cannot be run again.
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
		x.portals[n].hasFailed.Store(true)
	}
}

// endOfLimitedResult returns the index behind the first execution whose result is limited, or end if there is none. The
// server must answer that part of the batch before the proxy sends more. If the execution is the first Execute of its
// group and only reads, a Sync right behind it is sent with it, since that Sync commits nothing.
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
