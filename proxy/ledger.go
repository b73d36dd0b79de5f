package proxy

import (
	"slices"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// maxInFlight is the number of entries in the ledger above which push waits. The answers to so many messages exceed the
// server's output buffer, so the server has sent some of them, even without a Sync or Flush.
const maxInFlight = 10_000

// ledger has the messages that were sent to the server and are not answered yet, in order. It also maps the session's
// names to statements and portals. The goroutine that handles the client's messages adds entries; the goroutine that
// reads the server's answers removes them.
//
// After an error in the extended protocol the server skips all messages up to the next Sync. The ledger likewise ends
// skipped entries when the error arrives, or when they are pushed after it.
type ledger struct {
	mu      sync.Mutex
	changed *sync.Cond
	closed  bool

	queue         entryQueue
	skipping      bool
	skipCode      sqlstate.Code // the SQLSTATE of the error after which the server skips messages
	txMayBeOpen   bool          // messages after the last Sync or Query may have begun a transaction
	status        byte          // the transaction status in the last ReadyForQuery
	txReadForeign bool          // the transaction has read foreign tables
	staging       bool          // messages of the client are being handled and are not in the queue yet
	draining      bool

	seal          sealTime
	snapshotHolds snapshotHolds
	timer         transactionTimer

	names
	claims   claims
	channels map[string]bool // the channels that the client listens to

	keepsConnection bool // a pooled session must not return its connection to the pool
}

// sealTime says when the session's seal (signed identity) expires. onExpired is called if the database finds the seal
// expired before that time: see [verdict.Seal].
type sealTime struct {
	expires   time.Time
	onExpired func()
}

func newLedger() *ledger {
	l := &ledger{status: 'I', names: names{cache: &statementCache{}}}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// close makes every method that waits return.
func (l *ledger) close() {
	l.mu.Lock()
	l.closed = true
	l.timer.stop()
	l.changed.Broadcast()
	l.mu.Unlock()
}

// setStaging notes whether messages of the client are being handled. Meanwhile the session does not count as idle.
func (l *ledger) setStaging(isStaging bool) {
	l.mu.Lock()
	l.staging = isStaging
	l.mu.Unlock()
}

// push adds entries that are about to be sent. It returns those that the server will skip because of an earlier error.
// ok is false if the session is over.
func (l *ledger) push(entries []entry) (skipped []entry, ok bool) { return l.pushBatch(entries, false) }

// pushBatch does what push does. If isLast is true, no further message of the client is being handled: see setStaging.
func (l *ledger) pushBatch(entries []entry, isLast bool) (skipped []entry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queue.len() > maxInFlight && !l.closed {
		l.changed.Wait()
	}
	if l.closed {
		return nil, false
	}
	l.timer.begin()
	for _, e := range entries {
		if q, ok := e.(*queryEntry); ok && q.cached != nil && !q.runsCached() {
			l.cache.fail(q.cached)
		}
		_, isSync := e.(*syncEntry)
		if l.skipping && !isSync {
			e.base().code, e.base().isAnswered = l.skipCode, true
			l.skip(e)
			skipped = append(skipped, e)
			continue
		}
		if isSync {
			l.skipping = false
		}
		if e.endsWithReady() {
			l.txMayBeOpen = false
		} else if e.beginsTransaction() {
			l.txMayBeOpen = true
		}
		l.queue.push(e)
	}
	l.staging = l.staging && !isLast
	return skipped, true
}

// head returns the entry that the next answer belongs to, or nil.
func (l *ledger) head() entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.head()
}

// pop removes and returns the head entry, which has been answered. The caller holds the lock.
func (l *ledger) pop() entry {
	e := l.queue.pop()
	b := e.base()
	b.isAnswered = true
	if x := e.asExecution(); x != nil {
		x.copying = false
	}
	l.txReadForeign = l.txReadForeign || b.readsForeign
	l.changed.Broadcast()
	return e
}

// succeed removes the head entry, which the server has answered without an error, and applies its effect on names. It
// returns the next head entry, or nil.
func (l *ledger) succeed() (next entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.confirm(l.pop())
	return l.queue.head()
}

// fail notes a server's error that answers the head entry, and returns the entries that need no more answers. These are
// the head entry and those that the server skips. A Query or Sync stays in the queue, since its ReadyForQuery is still
// to come.
func (l *ledger) fail(code sqlstate.Code) []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.queue.head()
	e.base().code = code
	if x := e.asExecution(); x != nil {
		x.copying = false
	}
	l.snapshotHolds.reset = nil // The error undoes the RESET ALL.
	l.claims.failed = true
	l.changed.Broadcast()
	if e.endsWithReady() {
		if q, isQuery := e.(*queryEntry); isQuery {
			l.dropStatement("")
			if q.cached != nil {
				l.cache.fail(q.cached)
			}
		}
		return nil
	}
	endedEntries := []entry{l.pop()}
	l.undo(e)
	l.skipping, l.skipCode = true, code
	for l.queue.len() > 0 {
		if _, isSync := l.queue.head().(*syncEntry); isSync {
			l.skipping = false
			break
		}
		s := l.pop()
		s.base().code = code
		l.skip(s)
		endedEntries = append(endedEntries, s)
	}
	return endedEntries
}

// statementCompleted applies the effect of the i-th statement of x. It reports whether the server begins another
// transaction behind it although the session's seal (signed identity) has expired.
func (l *ledger) statementCompleted(x *execution, i int) (isTooLate bool) {
	effects := x.verdict.Effects
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims.apply(effects[i])
	switch effects[i].Kind {
	case verdict.EffectEnd:
		l.dropPortals(false)
		return i+1 < len(effects) && time.Now().After(l.seal.expires) || l.beginsAfterSealExpiry(l.queue.waiting()[1:])
	case verdict.EffectDeallocate:
		l.deallocate(effects[i].Name)
	case verdict.EffectPrepare:
		l.confirmPrepared(x, i)
	case verdict.EffectDeclare:
		l.confirmDeclared(x, i)
	case verdict.EffectClose:
		l.closePortal(effects[i].Name)
	case verdict.EffectListen:
		if l.channels == nil {
			l.channels = map[string]bool{}
		}
		l.channels[effects[i].Name] = true
	case verdict.EffectResetAll:
		if !slices.ContainsFunc(effects, holdsByDefault) {
			l.snapshotHolds.reset = x
		}
	case verdict.EffectDiscard:
		l.deallocate("")
		l.dropPortals(true)
		l.snapshotHolds.reset = x
	}
	return false
}

// isListeningTo reports whether the client itself has sent LISTEN for a channel. A function may also have executed
// LISTEN, which does not count.
func (l *ledger) isListeningTo(channel string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.channels[channel]
}

// beginsAfterSealExpiry reports whether the seal (signed identity) has expired and one of these entries begins a
// transaction, if none is open before them. The caller holds the lock.
func (l *ledger) beginsAfterSealExpiry(entries []entry) bool {
	if len(entries) == 0 || !time.Now().After(l.seal.expires) {
		return false
	}
	isSkipped := false
	for _, e := range entries {
		_, isSync := e.(*syncEntry)
		_, isQuery := e.(*queryEntry)
		switch {
		case isSync:
			isSkipped = false
		case isSkipped:
		case e.base().refusal != nil: // A refused message reads nothing.
			isSkipped = !isQuery
		case e.beginsTransaction():
			return true
		}
	}
	return false
}

// noteSeal notes the expiry of the session's new seal (signed identity).
func (l *ledger) noteSeal(s verdict.Seal) {
	l.mu.Lock()
	l.seal = sealTime{s.Expires, s.ReportExpired}
	l.mu.Unlock()
}

// reportSealExpired tells enforcement that the database found the seal (signed identity) expired too early, because a
// clock was moved.
func (l *ledger) reportSealExpired() {
	l.mu.Lock()
	onExpired := l.seal.onExpired
	l.mu.Unlock()
	if onExpired != nil {
		onExpired()
	}
}

// ready handles a ReadyForQuery, which ends the answers to the head entry, a Query or a Sync. drained says that the
// session is idle and the proxy is shutting down. isTooLate says that the next transaction begins after the session's
// seal (signed identity) has expired. Either ends the session.
func (l *ledger) ready(status byte) (drained, isTooLate bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.pop()
	l.removePending(e)
	if _, isQuery := e.(*queryEntry); isQuery && e.base().code == "" {
		l.dropUnnamed()
	}
	l.status = status
	l.claims.ended = false
	l.snapshotHolds.ready(status)
	if status == 'I' {
		l.txReadForeign = false
		l.timer.end(l.queue.len() > 0 || l.txMayBeOpen || l.skipping)
		l.dropPortals(false)
		l.claims.endTx(false)
	}
	return l.draining && l.isIdle(), status == 'I' && l.beginsAfterSealExpiry(l.queue.waiting())
}

// removeAll removes and returns all unanswered entries, at the end of a session.
func (l *ledger) removeAll() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.clear()
}

// isIdle reports whether no message is being handled or in flight, and no transaction is open. The caller holds the
// lock.
func (l *ledger) isIdle() bool { return !l.staging && l.isBetweenTransactions() }

// isBetweenTransactions reports whether no message is in flight and no transaction is open. The caller holds the lock.
func (l *ledger) isBetweenTransactions() bool {
	return l.queue.len() == 0 && !l.txMayBeOpen && !l.skipping && l.status == 'I'
}

// outsideTx is isBetweenTransactions for callers without the lock.
func (l *ledger) outsideTx() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isBetweenTransactions()
}

// certainStatus returns the transaction status in the last ReadyForQuery. ok is false while messages in flight may
// change it.
func (l *ledger) certainStatus() (status byte, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status, l.queue.len() == 0 && !l.txMayBeOpen && !l.skipping
}

// drain reports whether the session is idle and may end now. If not, ready reports later when it is.
func (l *ledger) drain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	return l.isIdle()
}
