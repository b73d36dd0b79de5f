package proxy

// entryQueue has the entries that were sent and are not answered yet, the oldest first.
type entryQueue struct {
	entries []entry
	first   int // the index of the oldest entry
}

// An empty queue keeps memory for at most maxKeptQueue entries. A queue that never becomes empty is copied to new
// memory after moveThreshold entries were answered.
const (
	maxKeptQueue  = 64
	moveThreshold = 1024
)

func (q *entryQueue) len() int { return len(q.entries) - q.first }

// waiting returns the entries that are not answered yet.
func (q *entryQueue) waiting() []entry { return q.entries[q.first:] }

// push adds an entry behind the others.
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

// endsWithReady reports whether the queue has a Query or a Sync, whose answers end with ReadyForQuery.
func (q *entryQueue) endsWithReady() bool {
	for _, e := range q.waiting() {
		if e.endsWithReady() {
			return true
		}
	}
	return false
}

// mayChangeTxStatus reports whether the queue has a message whose answer may change the known state of the transaction.
func (q *entryQueue) mayChangeTxStatus() bool {
	for _, e := range q.waiting() {
		// An Execute that the proxy sends ahead of a client's message changes nothing, and the server may not answer it
		// before a Sync.
		_, isExecute := e.(*executeEntry)
		if e.endsWithReady() || isExecute && !e.base().preparesNext {
			return true
		}
	}
	return false
}

// isAwaited reports whether waiting for answers makes sense: the queue has an entry other than a Close, whose answer
// may come only with the next Sync.
func (q *entryQueue) isAwaited() bool {
	for _, e := range q.waiting() {
		if _, isClose := e.(*closeEntry); !isClose {
			return true
		}
	}
	return false
}

// isOneGroup reports whether the queue has exactly one Query, or one group of messages that ends with its Sync.
func (q *entryQueue) isOneGroup() bool {
	for i, e := range q.waiting() {
		if e.endsWithReady() != (i+1 == q.len()) {
			return false
		}
	}
	return q.len() > 0
}
