package proxy

import (
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// maxBatch is the size in bytes from which a batch is sent before the client has asked for an answer.
const maxBatch = 64 << 10

// An idle session keeps at most maxKeptBuffer bytes of each of its buffers, and memory for at most maxKeptEntries
// entries.
const (
	maxKeptBuffer  = 2 << 10
	maxKeptEntries = 64
)

// batch has the client's messages that the proxy sends to the server in one write. The proxy sends none of them before
// the audit has recorded every decision on them.
type batch struct {
	server   sink // connection to the server
	out      []byte
	items    []item
	sent     int       // how many items were sent already; those are zero values
	lastRead time.Time // when the proxy read the batch's last byte from the client

	entries []entry // memory that startSending reuses for its list of entries
}

// item is a message in a batch; its bytes are batch.out[start:end].
type item struct {
	start, end int
	entry      entry // entry of the message; nil: the server sends no answer to the message
}

// add adds an item whose bytes are those of out from start on.
func (b *batch) add(start int, e entry) {
	b.items = append(b.items, item{start, len(b.out), e})
}

// unsent returns the items of the batch that the proxy has not sent yet.
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

// release waits until the audit has recorded every decision in the batch. A message whose record cannot be written is
// refused.
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

// releaseEntry waits until the audit has recorded the decision on e. An error says why e must be refused.
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

// replaceRefused rewrites the batch: messages that were refused after they were added are replaced by messages that
// fail on the server.
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

// flush sends the batch, in one write or in parts. It sends each part after the server has answered what came before
// it, where that is needed.
func (r *requests) flush() error {
	b := &r.batch
	if len(b.items) == 0 {
		r.ledger.setStaging(false)
		return nil
	}
	b.release()
	for b.sent < len(b.items) {
		end, now, err := r.waitToSend()
		if err != nil {
			return err
		}
		end = r.endOfLimitedResult(b.endOfSnapshotMessages(b.endOfSealMessages(end)))
		r.refuseOutdated(end)
		r.checkSnapshots(end)
		if err := r.forward(end, now); err != nil {
			return err
		}
	}
	b.reset()
	r.snapshots.batchSnapshot = nil
	return nil
}

// waitToSend waits for the answer to r.barrier and renews the session's seal (signed identity) if it is due. It returns
// the end of the items that may be sent then, and the time: the first group (messages up to a Sync) if the seal cannot
// be renewed now, and otherwise all.
func (r *requests) waitToSend() (end int, now time.Time, err error) {
	b := &r.batch
	end = len(b.items)
	start := time.Now()
	if r.barrier == nil && !r.seal.isDue(start) {
		return end, start, nil
	}
	if r.barrier != nil {
		if !r.ledger.waitFor(r.barrier) {
			return 0, start, errPeerGone
		}
		r.barrier = nil
	}
	if r.seal.isDue(time.Now()) {
		if r.ledger.waitOutsideTx() {
			if err := r.setSeal(); err != nil {
				return 0, start, err
			}
		}
		if r.seal.isDue(time.Now()) {
			end = b.endOfGroup()
		}
	}
	now = time.Now()
	b.lastRead = b.lastRead.Add(now.Sub(start)) // The proxy's own time does not include the wait.
	return end, now, nil
}

// endOfSealMessages returns the end of the first group (messages up to a Sync) with a message that removes the
// session's seal (signed identity), such as DISCARD ALL. It returns end if there is none before end.
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

// dropsSeal reports whether e removes the session's seal (signed identity) on the server, as DISCARD ALL does.
func dropsSeal(e entry) bool {
	x := e.asExecution()
	return x != nil && x.dropsSeal && x.refusal == nil
}

// endOfGroup returns the index behind the first Query or Sync among the unsent items.
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

// forward sends the unsent items before end to the server. now is the time.
func (r *requests) forward(end int, now time.Time) error {
	b := &r.batch
	items := b.items[b.sent:end]
	entries := r.startSending(items, now)
	skipped, ok := r.ledger.pushBatch(entries, end == len(b.items)) // The ledger copies the slice.
	clear(entries)
	b.entries = entries[:0]
	if !ok {
		return errPeerGone // [session.finish] records the outcomes of the batch's messages.
	}
	for _, e := range skipped {
		recordOutcome(e, now)
	}
	out := b.bytes(items)
	clear(items)
	b.sent = end
	if err := b.server.write(out); err != nil {
		// The server's last message, which may not have been read yet, says why the server has closed the connection.
		return r.awaitEnd(err)
	}
	return nil
}

// startSending returns the entries of the items and sets their send times.
func (r *requests) startSending(items []item, now time.Time) []entry {
	entries := r.batch.entries[:0]
	sentAt, requestTime := now.Sub(startTime), now.Sub(r.batch.lastRead)
	for _, last := range items {
		if last.entry == nil {
			continue
		}
		if dropsSeal(last.entry) {
			r.seal.noteDropped()
		}
		e := last.entry.base()
		e.sentAt, e.requestTime = sentAt, requestTime
		entries = append(entries, last.entry)
	}
	r.retry.noteSending(entries)
	return entries
}

// bytes returns the bytes to send for the items. If the last item is a message whose result is limited, it may be sent
// in another form than it has in the batch.
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
			// The Flush makes the server answer, since nothing behind this Execute is sent before.
			return appendMessage(out[:len(out):len(out)], 'H')
		}
	}
	return out
}

// awaitEnd waits after a failed write until the goroutine that reads the server's answers has ended the session, for
// two seconds at most. The server's last message may say why it closed the connection.
func (s *session) awaitEnd(err error) error {
	select {
	case <-s.ctx.Done():
		return errPeerGone
	case <-time.After(2 * time.Second):
		return connectionLostError(err)
	}
}
