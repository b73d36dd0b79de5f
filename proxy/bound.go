package proxy

import (
	"errors"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A result that grows beyond its bound ends with an error in the place of the row at hand, and leaves the session as
// that error of the server would have. So nothing that the client sent behind such an execution goes upstream before it
// is answered. The server is asked to cancel it. Where the server was through with it, it is given a message that is
// certain to fail, before anything else: this takes back what an error takes back, and leaves the transaction failed.
//
// For a Query this would come too late where the server commits as it answers: see steps.go.

// portalNotRunnable is PostgreSQL's for a portal that an error has met while it ran.
const portalNotRunnable sqlstate.Code = "55000"

func notRunnable(name string) *sqlstate.Error {
	return sqlstate.New(portalNotRunnable, sqlstate.ReasonNone, "portal \"%s\" cannot be run", name)
}

// limitable tells whether the result of e is bounded, or e goes in steps in any case.
func (e *entry) limitable() bool { return (e.bound.Exceeded != nil || e.apart()) && e.refusal == nil }

// exceeds tells whether one more row of this length is more than the execution may have relayed, and what it is too
// much of.
func (e *entry) exceeds(length int) (by verdict.Excess, yes bool) {
	switch b := &e.bound; {
	case b.Exceeded == nil:
		return 0, false
	case b.Rows > 0 && e.shown >= b.Rows:
		return verdict.TooManyRows, true
	case b.Bytes > 0 && e.shownBytes+int64(length) > b.Bytes:
		return verdict.TooManyBytes, true
	case b.More != nil && e.granted == 0:
		if e.granted = b.More(); e.granted <= 0 {
			e.granted = 0
			return verdict.RateSpent, true
		}
	}
	return 0, false
}

// show counts a row that is relayed.
func (e *entry) show(length int) {
	e.rows++
	e.bytes += int64(length)
	if e.bound.Exceeded != nil {
		e.shown++
		e.shownBytes += int64(length)
		if e.bound.More != nil {
			e.granted--
		}
	}
}

// mute ends a result before the row at hand: the client gets an error in its place, and nothing more until
// ReadyForQuery, as after any error.
func (o *answers) mute(e *entry, by verdict.Excess) {
	err := e.bound.Exceeded(by)
	e.limited = err.Code
	o.ledger.broke(e)
	o.muted, o.swallow = e, true
	o.end = encodeError(nil, "ERROR", err)
	o.cancelled = make(chan error, 1)
	go func(done chan<- error) { done <- o.cancelAt.cancel(o.key) }(o.cancelled)
}

// settleCancel waits until the server has got the cancel request, which otherwise could hit what comes next.
func (o *answers) settleCancel() *sqlstate.Error {
	if o.cancelled == nil {
		return nil
	}
	select {
	case err := <-o.cancelled:
		o.cancelled = nil
		if err != nil {
			return lost(err)
		}
	case <-o.ctx.Done():
	}
	return nil
}

// undo makes the server fail in the place of the execution whose result was ended, which it has completed.
func (o *answers) undo(kind message, syncs bool) *sqlstate.Error {
	if o.undone {
		return desync(errors.New("the server did not fail where it must"))
	}
	o.undone = true
	r := newRefusal(o.muted.bound.Exceeded(verdict.TooManyRows))
	b := r.append(nil, kind, "")
	if syncs {
		b = appendSync(b)
	}
	return o.send(b)
}

// send writes to the server. The inbound goroutine waits for what is being answered meanwhile.
func (o *answers) send(b []byte) *sqlstate.Error {
	if len(b) == 0 {
		return nil
	}
	if _, err := o.upstream.Write(b); err != nil {
		return lost(err)
	}
	return nil
}

// unmute goes on with what comes after ReadyForQuery.
func (o *answers) unmute() { o.muted, o.undone = nil, false }

// broke notes that the portal which e runs met an error. It cannot be run any more, should it outlive the transaction.
func (l *ledger) broke(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, effect := range e.verdict.Effects[:min(e.completed, len(e.verdict.Effects))] {
		if effect.Kind == verdict.Fetches {
			n++
		}
	}
	if n < len(e.running) {
		e.running[n].broken = true
	}
}

// usable tells whether a portal can be run.
func (l *ledger) usable(p *portal) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !p.broken
}

// limited is where the first part of the batch ends that is to be answered before anything else is sent, or end: behind
// an execution whose result is bounded. One that does nothing but show rows, and is alone up to its Sync, may have that
// with it: nothing is committed that an error would take back.
func (s *session) limited(end int) int {
	b := &s.batch
	for i := b.sent; i < end; i++ {
		e := b.items[i].entry
		if e == nil || !e.limitable() {
			continue
		}
		s.awaited = e
		if e.kind == execute && e.alone && !e.bound.Undoes && i+1 < end {
			if next := b.items[i+1].entry; next != nil && next.kind == syncs {
				e.synced, s.awaited = true, next
				return i + 2
			}
		}
		return i + 1
	}
	return end
}

// await waits until e is answered.
func (l *ledger) answered(e *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !e.over && !l.closed {
		l.change.Wait()
	}
	return !l.closed
}
