package proxy

import (
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// message is what kind of message an entry stands for.
type message byte

// The messages that the server answers.
const (
	query message = iota + 1
	parse
	bind
	describeStatement
	describePortal
	closeStatement
	closePortal
	execute
	syncs
)

// entry is one message sent to the server that is still to be answered.
type entry struct {
	kind      message
	own       bool     // the proxy's, not the client's: its answers are swallowed
	forNext   bool     // own: it is for what comes behind it, which an error of it answers
	refusal   *refusal // a refused form was sent; its error is replaced
	verdict   *verdict.Verdict
	runs      []*verdict.Verdict // query, execute: what it runs by name
	ticket    verdict.Ticket
	statement *statement   // parse: what it makes
	prepared  []*statement // query, execute: what PREPARE makes, by the verdict's effects; nil where nothing, or no more
	declared  []*portal    // and what DECLARE makes
	takes     *since       // it begins to see from this moment
	uses      []use        // it shows what was seen since
	replaced  bool         // it was refused after its bytes were written
	unseals   bool         // query, execute: it takes the seal away
	keepers   uint64       // of the ledger, as it was staged
	foreign   bool         // query, bind, execute: the server asks a foreign one
	running   []*portal    // query, execute: what it runs, as Execute or by FETCH
	alone     bool         // query, execute: nothing was executed before it since the last Sync or Query
	synced    bool         // execute: the Sync behind it was sent with it
	steps     *divided     // query: it goes in steps
	portal    *portal      // bind: what it makes
	name      string       // of the statement or portal, as the client calls it
	upstream  string       // and as the server does
	source    string       // bind: of the statement, as the client calls it

	care     []bool     // query: which of its statements are planned with care
	inserted []inserted // where the settings for that stand in its text

	requested time.Duration // spent on the request before it was sent
	sent      time.Time

	// Set while the answers come, by the goroutine that reads them.
	described   bool // ParameterDescription has come
	completed   int  // statements of a query that have completed
	leading     int  // settings of care that are answered before the next of them
	rows        int64
	bytes       int64
	code        sqlstate.Code // of the error the client got
	bound       verdict.Bound
	keys        verdict.KeyReader // looks at the rows; nil: nobody does
	formats     []int16           // execute: of the results, as its Bind asked for them
	description []byte            // query: of the result in progress, where keys looks at it
	limited     sqlstate.Code     // of the error by which a limit ended the result
	shown       int64             // of rows, where they are bounded, those relayed to the client
	granted     int64             // rows that may be relayed before more are asked for

	shownBytes int64
	done       chan struct{} // own sync: closed with its ReadyForQuery

	// Of a COPY FROM STDIN, under the ledger's lock; rows and bytes are the client's while it copies.
	copying bool // the server takes rows
	over    bool // the entry is settled
}

// maxInFlight bounds the ledger. It is more than the answers that fit into the server's own output buffer, so waiting for
// room never waits for answers that the server keeps back.
const maxInFlight = 10_000

// ledger is what was sent to the server and is still to be answered, in order, and what the session's names of
// statements and portals stand for. The inbound goroutine pushes, the outbound one settles.
//
// After an error in the extended protocol the server skips everything up to the next Sync. The ledger does the same:
// entries that the server skips are settled when the error arrives, or when they are pushed after it.
type ledger struct {
	mu     sync.Mutex
	change *sync.Cond
	closed bool

	queue     []*entry
	first     int // of the queue
	skipping  bool
	skipCode  sqlstate.Code // of the error that began it
	open      bool          // a transaction may have begun by messages pushed after the last Sync or Query
	expires   time.Time     // of the seal
	outOfTime func()        // see [verdict.Seal]
	status    byte          // of the last ReadyForQuery
	keep      bool          // transactions keep their snapshots by default
	keepers   uint64        // counts what asked for that
	resets    *entry        // has reset all settings, in the transaction that is in progress
	foreign   bool          // the transaction has asked a foreign server
	staging   bool          // the inbound goroutine has messages that are not pushed yet
	draining  bool

	// See boundTransactions.
	bounded bool
	since   time.Time // the transaction, or what may have begun one; zero: there is none
	timer   *time.Timer

	names
	claims claims
}

func newLedger() *ledger {
	l := &ledger{status: 'I'}
	l.change = sync.NewCond(&l.mu)
	l.names.init()
	return l
}

// close makes every waiting method return.
func (l *ledger) close() {
	l.mu.Lock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.change.Broadcast()
	l.mu.Unlock()
}

// stage tells that messages are being handled, so that the session is not idle.
func (l *ledger) stage(on bool) {
	l.mu.Lock()
	l.staging = on
	l.mu.Unlock()
}

// push adds entries that are about to be sent. It returns those that the server will skip, and false if the session is
// over.
func (l *ledger) push(entries []*entry) (skipped []*entry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue)-l.first > maxInFlight && !l.closed {
		l.change.Wait()
	}
	if l.closed {
		return nil, false
	}
	l.busy()
	for _, e := range entries {
		if l.skipping && e.kind != syncs {
			e.code, e.over = l.skipCode, true
			l.dropped(e)
			skipped = append(skipped, e)
			continue
		}
		if e.kind == syncs {
			l.skipping = false
		}
		if e.kind == syncs || e.kind == query {
			l.open = false
		} else if e.begins() {
			l.open = true
		}
		l.queue = append(l.queue, e)
	}
	return skipped, true
}

// head is the entry that the next answer belongs to, or nil.
func (l *ledger) head() *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == len(l.queue) {
		return nil
	}
	return l.queue[l.first]
}

// pop takes the head off; the caller holds the lock.
func (l *ledger) pop() *entry {
	e := l.queue[l.first]
	e.over, e.copying = true, false
	l.foreign = l.foreign || e.foreign
	l.queue[l.first] = nil
	l.first++
	if l.first == len(l.queue) {
		l.queue, l.first = l.queue[:0], 0
		if cap(l.queue) > 64 {
			l.queue = nil
		}
	} else if l.first > 1024 {
		l.queue = append(l.queue[:0:0], l.queue[l.first:]...)
		l.first = 0
	}
	l.change.Broadcast()
	return e
}

// settle ends the head with success.
func (l *ledger) settle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.succeeded(l.pop())
}

// fail ends the head with an error of the server and returns what is settled by it: the head, unless it is a Query or a
// Sync, whose ReadyForQuery still comes, and the entries that the server skips.
func (l *ledger) fail(code sqlstate.Code) []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.queue[l.first]
	e.code, e.copying = code, false
	l.resets = nil // and so is what it reset
	l.claims.failed = true
	l.change.Broadcast()
	if e.kind == query || e.kind == syncs {
		if e.kind == query {
			l.forget("")
		}
		return nil
	}
	settled := []*entry{l.pop()}
	l.failed(e)
	l.skipping, l.skipCode = true, code
	for l.first < len(l.queue) {
		if l.queue[l.first].kind == syncs {
			l.skipping = false
			break
		}
		s := l.pop()
		s.code = code
		l.dropped(s)
		settled = append(settled, s)
	}
	return settled
}

// begins tells whether the server begins a transaction with e if there is none.
func (e *entry) begins() bool {
	switch e.kind {
	case query, parse, bind, describeStatement, describePortal, execute:
		return true
	}
	return false
}

// completed applies the effect of the i-th statement of e, which has completed. It tells whether the server goes on
// with a transaction that begins too late for the seal.
func (l *ledger) completed(e *entry, i int) (late bool) {
	effects := e.verdict.Effects
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims.apply(effects[i])
	switch effects[i].Kind {
	case verdict.EndsTx:
		l.portalsGone(false)
		return i+1 < len(effects) && time.Now().After(l.expires) || l.late(l.first+1)
	case verdict.Deallocates:
		l.deallocated(effects[i].Name)
	case verdict.Prepares:
		l.prepared(e, i)
	case verdict.Declares:
		l.declared(e, i)
	case verdict.Closes:
		l.portalClosed(effects[i].Name)
	case verdict.Unseals:
		if len(effects) == 1 {
			l.resets = e
		}
	case verdict.Discards:
		l.deallocated("")
		l.portalsGone(true)
		l.resets = e
	}
	return false
}

// late tells whether something that was sent, from this place in the queue on, begins a transaction after the seal has
// expired, given that none is in progress before it. The caller holds the lock.
func (l *ledger) late(from int) bool {
	if !time.Now().After(l.expires) {
		return false
	}
	skipped := false
	for _, e := range l.queue[from:] {
		switch {
		case e.kind == syncs:
			skipped = false
		case skipped:
		case e.refusal != nil: // reads nothing
			skipped = e.kind != query
		case e.begins():
			return true
		}
	}
	return false
}

// sealed notes until when transactions may begin, and whom to tell that the database says otherwise.
func (l *ledger) sealed(s verdict.Seal) {
	l.mu.Lock()
	l.expires, l.outOfTime = s.Expires, s.Late
	l.mu.Unlock()
}

// moved tells that the database found the seal out of its time: its clock was moved.
func (l *ledger) moved() {
	l.mu.Lock()
	told := l.outOfTime
	l.mu.Unlock()
	if told != nil {
		told()
	}
}

// ready ends the head, a Query or a Sync, with ReadyForQuery. It tells whether the session is to be ended now because it
// is idle and the server drains, or because what comes next begins too late for the seal.
func (l *ledger) ready(status byte) (drained, late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.pop()
	l.settled(e)
	if e.kind == query && e.code == "" {
		l.queried()
	}
	l.status = status
	l.claims.ended = false
	if r := l.resets; r != nil {
		l.resets = nil
		// What was sent since may have asked for it again.
		l.keep = l.keep && (status != 'I' || r.keepers != l.keepers)
	}
	if status == 'I' {
		l.foreign = false
		l.over()
		l.portalsGone(false)
		l.claims.ends(false)
	}
	return l.draining && l.isIdle(), status == 'I' && l.late(l.first)
}

// rest takes everything off at the end of a session.
func (l *ledger) rest() []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.queue[l.first:]
	l.queue, l.first = nil, 0
	return out
}

func (l *ledger) isIdle() bool {
	return !l.staging && l.first == len(l.queue) && !l.open && !l.skipping && l.status == 'I'
}

// drain tells whether the session is idle; if not, ready will.
func (l *ledger) drain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	return l.isIdle()
}

// quiet waits until nothing is in flight and tells whether the server is then outside a transaction. While a group of
// extended messages is open it does not wait, since the server may keep its answers back, and says no. A group of which
// only Close has been sent has begun nothing; its answers come with the next Sync, whosever it is.
func (l *ledger) quiet() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open || l.skipping {
		return false
	}
	for l.awaited() && !l.closed {
		l.change.Wait()
	}
	return !l.closed && !l.skipping && l.status == 'I' // what was waited for may have failed, and a Query behind it is skipped
}

// outside waits for the answers to all that may have changed the state of the transaction, and tells whether the server
// is outside one.
func (l *ledger) outside() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.deciding() && !l.closed {
		l.change.Wait()
	}
	return !l.closed && l.status == 'I'
}

// groups waits for the answers to each Query, and to each group that has its Sync. What comes behind the last of these
// the server may keep back.
func (l *ledger) groups() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.ending() && !l.closed {
		l.change.Wait()
	}
}

// between tells whether such an answer is to come.
func (l *ledger) between() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ending()
}

// ending tells whether an answer is in flight that ends a Query or a group.
func (l *ledger) ending() bool {
	for _, e := range l.queue[l.first:] {
		if e.kind == query || e.kind == syncs {
			return true
		}
	}
	return false
}

// deciding tells whether an answer is in flight that may tell of another state of the transaction.
func (l *ledger) deciding() bool {
	for _, e := range l.queue[l.first:] {
		// An Execute of ours that is for a message behind it changes nothing, and the server keeps its answer back.
		if e.kind == query || e.kind == syncs || e.kind == execute && !e.forNext {
			return true
		}
	}
	return false
}

// awaited tells whether an answer is in flight that the server does not keep back.
func (l *ledger) awaited() bool {
	for _, e := range l.queue[l.first:] {
		if e.kind != closeStatement && e.kind != closePortal {
			return true
		}
	}
	return false
}
