package proxy

// entryQueue has the entries that are sent and still to be answered, the oldest first.
type entryQueue struct {
	entries []entry
	first   int // the first entry that still waits
}

// The queue of an idle session has no more room than maxKeptQueue entries. A queue that never becomes empty is moved to
// the front of its memory after moveThreshold entries.
const (
	maxKeptQueue  = 64
	moveThreshold = 1024
)

func (q *entryQueue) len() int { return len(q.entries) - q.first }

// waiting returns the entries that are not answered yet.
func (q *entryQueue) waiting() []entry { return q.entries[q.first:] }

// push adds an entry.
func (q *entryQueue) push(e entry) { q.entries = append(q.entries, e) }

// head returns the entry that has waited longest, or nil.
func (q *entryQueue) head() entry {
	if q.len() == 0 {
		return nil
	}
	return q.entries[q.first]
}

// pop removes the head entry, which must exist, and returns it.
func (q *entryQueue) pop() entry {
	e := q.entries[q.first]
	q.entries[q.first] = nil
	q.first++
	if q.first == len(q.entries) {
		q.entries, q.first = q.entries[:0], 0
		if cap(q.entries) > maxKeptQueue {
			q.entries = nil
		}
	} else if q.first > moveThreshold {
		q.entries = append(q.entries[:0:0], q.entries[q.first:]...)
		q.first = 0
	}
	return e
}

// clear removes and returns all entries.
func (q *entryQueue) clear() []entry {
	all := q.waiting()
	q.entries, q.first = nil, 0
	return all
}

// endsWithReady reports whether an answer is to come that ends with ReadyForQuery.
func (q *entryQueue) endsWithReady() bool {
	for _, e := range q.waiting() {
		if e.endsWithReady() {
			return true
		}
	}
	return false
}

// mayChangeTxStatus reports whether an answer is to come that may report another state of the transaction.
func (q *entryQueue) mayChangeTxStatus() bool {
	for _, e := range q.waiting() {
		// An Execute of the proxy for the message behind it changes nothing, and the server keeps its answer back.
		_, isExecute := e.(*executeEntry)
		if e.endsWithReady() || isExecute && !e.base().preparesNext {
			return true
		}
	}
	return false
}

// isAwaited reports whether an answer is to come that the server does not keep back.
func (q *entryQueue) isAwaited() bool {
	for _, e := range q.waiting() {
		if _, isClose := e.(*closeEntry); !isClose {
			return true
		}
	}
	return false
}

// isOneGroup reports whether the queue has just one Query, or messages up to the only Sync among them.
func (q *entryQueue) isOneGroup() bool {
	for i, e := range q.waiting() {
		if e.endsWithReady() != (i+1 == q.len()) {
			return false
		}
	}
	return q.len() > 0
}
