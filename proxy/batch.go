package proxy

import (
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// maxBatch is the size in bytes from which a batch is sent without looking for more input.
const maxBatch = 64 << 10

// An idle session keeps no more than maxKeptBuffer of each of its own buffers, and room for no more than maxKeptEntries
// entries.
const (
	maxKeptBuffer  = 2 << 10
	maxKeptEntries = 64
)

// batch is what the client has sent and the server is to get, in one write. None of it is sent before every decision in
// it is recorded.
type batch struct {
	server   sink // connection to the server
	out      []byte
	items    []item
	sent     int       // the number of items that are sent; sent items are empty
	lastRead time.Time // when the last byte of the batch was read

	entries []entry // reused memory for the entries of sent messages
}

// item is one message in a batch; its bytes are batch.out[start:end].
type item struct {
	start, end int
	entry      entry // entry of the message; nil: the server sends no answer to the message
}

// add ends the item whose bytes begin at start.
func (b *batch) add(start int, e entry) {
	b.items = append(b.items, item{start, len(b.out), e})
}

// unsent returns the items that are not sent yet.
func (b *batch) unsent() []item { return b.items[b.sent:] }

func (b *batch) reset() {
	clear(b.items)
	b.items, b.sent = b.items[:0], 0
	if cap(b.out) > maxKeptBuffer {
		b.out = nil
	}
	if cap(b.entries) > maxKeptEntries {
		b.entries = nil
	}
	b.out = b.out[:0]
}

// release waits until every decision in the batch is recorded. An execution whose record cannot be written is replaced
// by its refused form.
func (b *batch) release() {
	isRefused := false
	for i := range b.items {
		e := b.items[i].entry
		if e == nil || e.base().ticket == nil {
			continue
		}
		if err := releaseEntry(e); err != nil {
			replaceByRefusal(e, newRefusal(err))
			isRefused = true
		}
	}
	if isRefused {
		b.replaceRefused()
	}
}

// releaseEntry waits until the decision on e is recorded. The error is the refusal of e.
func releaseEntry(e entry) *sqlstate.Error {
	ticket := e.base().ticket
	if err := ticket.Release(); err != nil {
		return err
	}
	bound := ticket.ResultBound()
	x := e.asExecution()
	if x == nil {
		return nil
	}
	x.limit.ResultBound = bound
	x.setKeyReader()
	if q, ok := e.(*queryEntry); ok && isLimited(q) {
		return q.divide()
	}
	return nil
}

// replaceRefused puts the refused forms in the place of messages that were refused after they were staged.
func (b *batch) replaceRefused() {
	oldBuffer := b.out
	b.out = make([]byte, 0, len(oldBuffer))
	for i := range b.items {
		item := &b.items[i]
		start := len(b.out)
		if item.entry != nil && item.entry.base().replaced {
			b.out = item.entry.appendRefused(b.out)
		} else {
			b.out = append(b.out, oldBuffer[item.start:item.end]...)
		}
		item.start, item.end = start, len(b.out)
	}
}

// flush sends the batch: all of it at once, or in parts that are answered one after the other.
func (r *requests) flush() error {
	b := &r.batch
	if len(b.items) == 0 {
		r.ledger.setStaging(false)
		return nil
	}
	b.release()
	for b.sent < len(b.items) {
		end, err := r.waitToSend()
		if err != nil {
			return err
		}
		end = r.endOfLimitedResult(b.endOfSnapshotMessages(b.endOfSealMessages(end)))
		r.refuseOutdated(end)
		r.checkSnapshots(end)
		if err := r.forward(end); err != nil {
			return err
		}
	}
	b.reset()
	r.snapshots.batchSnapshot = nil
	return nil
}

// waitToSend waits until the server has answered what must be answered before, and renews the seal if it is due. It
// returns the end of what can be sent then: where the seal cannot be renewed, the first group.
func (r *requests) waitToSend() (end int, err error) {
	b := &r.batch
	end = len(b.items)
	if r.barrier == nil && !r.seal.isDue() {
		return end, nil
	}
	start := time.Now()
	if r.barrier != nil {
		if !r.ledger.waitFor(r.barrier) {
			return 0, errPeerGone
		}
		r.barrier = nil
	}
	if r.seal.isDue() {
		if r.ledger.waitOutsideTx() {
			if err := r.setSeal(); err != nil {
				return 0, err
			}
		}
		if r.seal.isDue() {
			end = b.endOfGroup()
		}
	}
	b.lastRead = b.lastRead.Add(time.Since(start)) // The proxy's own time does not include the wait.
	return end, nil
}

// endOfSealMessages returns where the first group ends that takes the seal away, and end if none does before it.
func (b *batch) endOfSealMessages(end int) int {
	for i := b.sent; i < end; i++ {
		if e := b.items[i].entry; e == nil || !dropsSeal(e) {
			continue
		}
		for ; i < end; i++ {
			if e := b.items[i].entry; e != nil && e.endsWithReady() {
				return i + 1
			}
		}
	}
	return end
}

// dropsSeal reports whether e takes the seal away.
func dropsSeal(e entry) bool {
	x := e.asExecution()
	return x != nil && x.dropsSeal && x.refusal == nil
}

// endOfGroup returns where the first group of the unsent items ends.
func (b *batch) endOfGroup() int {
	for i := b.sent; i < len(b.items); i++ {
		if e := b.items[i].entry; e != nil && e.endsWithReady() {
			return i + 1
		}
	}
	return len(b.items)
}

// endsWithReady reports whether a Query or a Sync is among the unsent items.
func (b *batch) endsWithReady() bool {
	for _, last := range b.unsent() {
		if last.entry != nil && last.entry.endsWithReady() {
			return true
		}
	}
	return false
}

// forward sends the items up to end.
func (r *requests) forward(end int) error {
	b := &r.batch
	items := b.items[b.sent:end]
	entries := r.startSending(items)
	skipped, ok := r.ledger.push(entries) // The ledger keeps the entries, not the list.
	clear(entries)
	b.entries = entries[:0]
	if !ok {
		return errPeerGone // The session's end ends the entries of the batch.
	}
	for _, e := range skipped {
		recordOutcome(e)
	}
	out := b.bytes(items)
	clear(items)
	b.sent = end
	if b.sent == len(b.items) {
		r.ledger.setStaging(false)
	}
	if err := b.server.write(out); err != nil {
		// The server's last message says why it has closed the connection; it may not have been read yet.
		return r.awaitEnd(err)
	}
	return nil
}

// startSending lists the entries of the items and notes when they are sent.
func (r *requests) startSending(items []item) []entry {
	entries := r.batch.entries[:0]
	now := time.Now()
	for _, last := range items {
		if last.entry == nil {
			continue
		}
		if dropsSeal(last.entry) {
			r.seal.noteDropped()
		}
		e := last.entry.base()
		e.sentAt = now
		e.requestTime = now.Sub(r.batch.lastRead)
		entries = append(entries, last.entry)
	}
	r.retry.noteSending(entries)
	return entries
}

// bytes returns what is sent for the items. A message whose result is limited, the last of them, is not sent as it
// was staged.
func (b *batch) bytes(items []item) []byte {
	last := items[len(items)-1]
	out := b.out[items[0].start:last.end]
	switch e := last.entry.(type) {
	case *queryEntry:
		if e.steps != nil && e.refusal == nil {
			out = out[:last.start-items[0].start]
			return append(out[:len(out):len(out)], e.steps.step(0)...)
		}
	case *executeEntry:
		if isLimited(e) {
			// The answer to this message must come before anything behind it is sent.
			return appendMessage(out[:len(out):len(out)], 'H')
		}
	}
	return out
}

// awaitEnd gives the goroutine that reads the server's answers a moment to find out why the server has closed the
// connection.
func (s *session) awaitEnd(err error) error {
	select {
	case <-s.ctx.Done():
		return errPeerGone
	case <-time.After(2 * time.Second):
		return connectionLostError(err)
	}
}
