package proxy

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// What was decided before a change of the catalogs that concerns agents is refused by the database, while it is
// planned. Where that was a Query of one statement, or messages up to a Sync, outside a transaction or as the first of
// one, and the client has nothing of the answer yet, it is decided and sent once more, and the client notices nothing:
// the database has undone what was done of it.
//
// Who handles the client's messages has the turn: inbound, but while it waits for more of them, or what sends some once
// more.

// changedCatalogs is what pgconsent_gate.current_catalog raises with 40001.
const changedCatalogs = "pgconsent: the catalogs have changed since this statement was decided"

// maxRepeated bounds what is kept to be sent once more; maxRepeats is how often it is.
const (
	maxRepeated = 16 << 10
	maxRepeats  = 5
)

// repeatable is what the client has sent last. It belongs to who has the turn.
type repeatable struct {
	turn     chan struct{} // holds a value while nobody has the turn
	written  atomic.Int64  // counts writes to the client
	messages []byte        // as the client sent them
	possible bool          // they may be sent once more
	whole    bool          // the last of them is a Query or a Sync
	since    int64         // of written, before they were sent
	times    int           // they were sent
	begun    bool          // they begin a transaction

	begin   *verdict.Verdict // they do nothing else
	opening *verdict.Verdict // what has begun the transaction in progress, right before them
}

func (r *repeatable) take() { <-r.turn }

func (r *repeatable) leave() { r.turn <- struct{}{} }

// takeSoon takes the turn of who is about to leave it.
func (r *repeatable) takeSoon() bool {
	select {
	case <-r.turn:
		return true
	case <-time.After(20 * time.Millisecond):
		return false
	}
}

// begins notes what comes next, which may be sent once more if the server is idle, outside a transaction or in one that
// the messages before have begun.
func (r *repeatable) begins(l *ledger) {
	if cap(r.messages) > keptBuffer {
		r.messages = nil
	}
	r.opening = nil
	status, idle := l.idle()
	if idle && status == 'T' && r.begin != nil {
		r.opening = r.begin
	}
	r.messages, r.possible, r.whole = r.messages[:0], idle && (status == 'I' || r.opening != nil), false
	r.since, r.times, r.begun, r.begin = r.written.Load(), 1, false, nil
}

// idle tells whether nothing is in flight, and what the last ReadyForQuery said.
func (l *ledger) idle() (status byte, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status, l.first == len(l.queue) && !l.open && !l.skipping
}

// sees keeps a message of the client's.
func (r *repeatable) sees(typ byte, body []byte) {
	switch typ {
	case 'Q', 'P', 'B', 'D', 'E', 'C', 'S':
	default:
		r.possible = false
	}
	if r.possible = r.possible && !r.whole && len(r.messages)+len(body)+5 <= maxRepeated; r.possible {
		r.messages = binary.BigEndian.AppendUint32(append(r.messages, typ), uint32(len(body)+4))
		r.messages = append(r.messages, body...)
	}
	r.whole = r.whole || typ == 'Q' || typ == 'S'
}

// sent notes what of the messages is sent: what does more than the transaction undoes is not sent once more.
func (r *repeatable) sent(entries []*entry) {
	for _, e := range entries {
		if e.steps != nil {
			r.possible = false
		}
		for _, v := range append([]*verdict.Verdict{e.verdict}, e.runs...) {
			if v != nil {
				r.does(v)
			}
		}
	}
}

func (r *repeatable) does(v *verdict.Verdict) {
	begins := len(v.Effects) == 1 && v.Effects[0].Kind == verdict.BeginsTx
	switch {
	case begins && !r.begun && r.opening == nil:
		r.begun, r.begin = true, v
	case begins && r.begin == v: // its Bind, its Execute
	case only(v, verdict.NoEffect, verdict.Executes) && len(v.Effects) <= 1:
		r.begin = nil
	default:
		r.begin, r.possible = nil, false
	}
}

// repeats tells whether what fails now is to be sent once more. Then the caller has the turn.
func (o *answers) repeats(e *entry, f *fields) bool {
	stale := f.code() == sqlstate.SerializationFailure && f.message == changedCatalogs ||
		e.refusal != nil && e.refusal.err.Code == sqlstate.SerializationFailure &&
			e.refusal.err.Reason == sqlstate.ReasonStale && e.refusal.again
	if !stale || f.fatal() || o.passed || o.muted != nil || !o.again.takeSoon() {
		return false
	}
	r := &o.again
	if !r.possible || !r.whole || r.times >= maxRepeats || r.written.Load() != r.since || !o.ledger.lastGroup() {
		r.leave()
		return false
	}
	return true
}

// retract takes back what the client was to get of the answer.
func (o *answers) retract() {
	o.out = o.out[:0]
	o.from = o.r
}

// lastGroup tells whether what is in flight is one Query, or ends with the one Sync in it. Then the session is not idle
// before more is sent.
func (l *ledger) lastGroup() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range l.queue[l.first:] {
		if (e.kind == query || e.kind == syncs) != (l.first+i+1 == len(l.queue)) {
			return false
		}
	}
	if l.staging || l.first == len(l.queue) {
		return false
	}
	l.staging = true
	return true
}

// repeat decides and sends once more what the client has sent last. It has the turn.
func (s *session) repeat() {
	defer s.recovered()
	if err := s.sendAgain(); err != nil {
		s.conclude(err)
		return
	}
	s.again.leave()
}

func (s *session) sendAgain() error {
	r := &s.again
	if r.times++; r.times > 2 { // whoever looks at the catalogs may not have heard of the change yet
		select {
		case <-time.After(time.Duration(r.times) * 50 * time.Millisecond):
		case <-s.ctx.Done():
			return errGone
		}
	}
	s.ledger.moved() // the seal says which catalogs are known
	if err := s.openAgain(); err != nil {
		return err
	}
	r.begun, r.begin = false, nil
	s.batch.read = time.Now()
	for m := r.messages; len(m) > 0; {
		typ, size := m[0], binary.BigEndian.Uint32(m[1:5])
		body := m[5 : size+1]
		m = m[size+1:]
		if name, _, ok := cString(body); typ == 'P' && ok && name != "" {
			// It may be there since the first time.
			s.addOwn(closeStatement, verdict.UpstreamName(name), appendClose(nil, 'S', verdict.UpstreamName(name)))
		}
		if _, err := s.message(typ, body); err != nil {
			return err
		}
		if typ == 'Q' || typ == 'S' {
			s.together()
		}
	}
	if err := s.flush(); err != nil {
		return err
	}
	s.fill++
	return nil
}

// openAgain rolls back the transaction that has failed with its first statement, if there is one, and begins it once
// more.
func (s *session) openAgain() error {
	if status, _ := s.ledger.idle(); status != 'E' {
		return nil
	}
	if err := s.queryOwn("ROLLBACK", nil); err != nil || s.again.opening == nil {
		return err
	}
	if s.sealDue() {
		if err := s.setSeal(); err != nil {
			return err
		}
	}
	return s.queryOwn(s.again.opening.Text, s.again.opening)
}

// queryOwn sends a Query of ours and waits for its answer.
func (s *session) queryOwn(text string, v *verdict.Verdict) error {
	e := &entry{kind: query, own: true, verdict: v, done: make(chan struct{})}
	if skipped, ok := s.ledger.push([]*entry{e}); !ok || len(skipped) > 0 {
		return errGone
	}
	if err := s.batch.to.write(appendQuery(nil, text)); err != nil {
		return s.awaitEnd(err)
	}
	select {
	case <-e.done:
	case <-s.ctx.Done():
		return errGone
	}
	if e.code != "" {
		return lost(fmt.Errorf("the server answered %s to %s", e.code, text))
	}
	return nil
}
