package proxy

import (
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// maxBatch is the size from which a batch is sent without looking for more input.
const maxBatch = 64 << 10

// keptBuffer is what an idle session keeps of each of its own buffers.
const keptBuffer = 2 << 10

// keptEntries is how many entries it keeps room for.
const keptEntries = 64

// batch is what the client has sent and the server is to get, in one write. Nothing of it goes before every decision in
// it is recorded.
type batch struct {
	to    sink // the server
	out   []byte
	items []item
	sent  int       // of the items; they are empty
	read  time.Time // when the last byte of it was read

	entries []*entry // room for those of what is sent

	moment *since // from when what it opens sees; nil: nothing asks
}

// item is one message in a batch; its bytes are batch.out[start:end].
type item struct {
	start, end int
	entry      *entry // nil: the server answers nothing to it
}

// add closes the item whose bytes are those from start on.
func (b *batch) add(start int, e *entry) {
	b.items = append(b.items, item{start, len(b.out), e})
}

func (b *batch) reset() {
	clear(b.items)
	b.items, b.sent, b.moment = b.items[:0], 0, nil
	if cap(b.out) > keptBuffer {
		b.out = nil
	}
	if cap(b.entries) > keptEntries {
		b.entries = nil
	}
	b.out = b.out[:0]
}

// hold waits until every decision in the batch is recorded. An execution whose record cannot be written is replaced by
// its refused form.
func (b *batch) hold() {
	refused := false
	for i := range b.items {
		e := b.items[i].entry
		if e == nil || e.ticket == nil {
			continue
		}
		if err := e.ticket.Release(); err != nil {
			e.replace(newRefusal(err))
			refused = true
			continue
		}
		e.bound = e.ticket.Bound()
		e.watches()
		if e.kind == query && e.limitable() {
			if err := e.inSteps(); err != nil {
				e.replace(newRefusal(err))
				refused = true
			}
		}
	}
	if refused {
		b.replace()
	}
}

// replace has the refused form go in the place of what was written: in one step, in whatever steps that would have gone.
func (e *entry) replace(r *refusal) { e.refusal, e.replaced, e.steps = r, true, nil }

// replace puts the refused forms in the place of what was refused after it was written.
func (b *batch) replace() {
	old := b.out
	b.out = make([]byte, 0, len(old))
	for i := range b.items {
		it := &b.items[i]
		start := len(b.out)
		if e := it.entry; e != nil && e.replaced {
			b.out = e.refusal.append(b.out, e.kind, e.upstream)
		} else {
			b.out = append(b.out, old[it.start:it.end]...)
		}
		it.start, it.end = start, len(b.out)
	}
}

// flush sends the batch: all of it, or, while the seal is due and cannot be renewed, group by group.
func (s *session) flush() error {
	b := &s.batch
	if len(b.items) == 0 {
		s.ledger.stage(false)
		return nil
	}
	b.hold()
	for b.sent < len(b.items) {
		if s.awaited != nil {
			began := time.Now()
			if !s.ledger.answered(s.awaited) {
				return errGone
			}
			s.awaited = nil
			b.read = b.read.Add(time.Since(began)) // not the proxy's time
		}
		end := len(b.items)
		if s.sealDue() {
			began := time.Now()
			if s.ledger.quiet() {
				if err := s.setSeal(); err != nil {
					return err
				}
			}
			if s.sealDue() {
				end = b.groupEnd()
			}
			b.read = b.read.Add(time.Since(began)) // not the proxy's time
		}
		end = s.limited(b.aged(b.unsealed(end)))
		s.outdated(end)
		s.freshen(end)
		if err := s.forward(end); err != nil {
			return err
		}
	}
	b.reset()
	return nil
}

// unsealed is the end of the first group that takes the seal away, or end where none does before it.
func (b *batch) unsealed(end int) int {
	for i := b.sent; i < end; i++ {
		if e := b.items[i].entry; e == nil || !e.unseals || e.refusal != nil {
			continue
		}
		for ; i < end; i++ {
			if e := b.items[i].entry; e != nil && (e.kind == syncs || e.kind == query) {
				return i + 1
			}
		}
	}
	return end
}

// groupEnd is where the first group of what is not sent yet ends.
func (b *batch) groupEnd() int {
	for i := b.sent; i < len(b.items); i++ {
		if e := b.items[i].entry; e != nil && (e.kind == syncs || e.kind == query) {
			return i + 1
		}
	}
	return len(b.items)
}

// ending tells whether a Query or a Sync is in what is not sent yet.
func (b *batch) ending() bool {
	for _, i := range b.items[b.sent:] {
		if e := i.entry; e != nil && (e.kind == query || e.kind == syncs) {
			return true
		}
	}
	return false
}

// forward sends the items up to end.
func (s *session) forward(end int) error {
	b := &s.batch
	items := b.items[b.sent:end]
	entries := b.entries[:0]
	now := time.Now()
	for _, i := range items {
		if e := i.entry; e != nil {
			if e.unseals && e.refusal == nil {
				s.unsealed()
			}
			e.sent = now
			e.requested = now.Sub(b.read)
			entries = append(entries, e)
		}
	}
	s.again.sent(entries)
	skipped, ok := s.ledger.push(entries) // which keeps them, not the list
	clear(entries)
	b.entries = entries[:0]
	if !ok {
		return errGone // finish settles the batch
	}
	for _, e := range skipped {
		e.record()
	}
	out := b.out[items[0].start:items[len(items)-1].end]
	if e := items[len(items)-1].entry; e != nil && e.refusal == nil {
		switch {
		case e.steps != nil:
			out = out[:items[len(items)-1].start-items[0].start]
			out = append(out[:len(out):len(out)], e.steps.step(0)...)
		case e.kind == execute && e.limitable():
			// The answer must come before what is behind it goes.
			out = appendMessage(out[:len(out):len(out)], 'H')
		}
	}
	clear(items)
	b.sent = end
	if b.sent == len(b.items) {
		s.ledger.stage(false)
	}
	if err := s.batch.to.write(out); err != nil {
		// Why the server is gone is said by its last message, which outbound may still be about to read.
		return s.awaitEnd(err)
	}
	return nil
}

// awaitEnd gives outbound a moment to find out why the server is gone.
func (s *session) awaitEnd(err error) error {
	select {
	case <-s.ctx.Done():
		return errGone
	case <-time.After(2 * time.Second):
		return lost(err)
	}
}

// denied is the refusal of a message that came without a decision.
func (s *session) denied(err *sqlstate.Error) *refusal {
	if err.Reason != sqlstate.ReasonNone {
		s.server.metrics.Statement("deny", string(err.Reason), "")
	}
	return newRefusal(err)
}
