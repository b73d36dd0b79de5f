package proxy

import "github.com/pgconsent/pgconsent/internal/enforce/verdict"

// PostgreSQL sometimes reads by one snapshot for longer than a statement (a held snapshot). That happens in a
// REPEATABLE READ or SERIALIZABLE transaction, with a cursor, and with a portal that is not run to its end at once.
// Such reads could still show rows whose consent was withdrawn meanwhile. So before the server takes such a snapshot,
// the decider notes the time. Before each later use, the proxy asks the decider whether a change has hidden rows since;
// if so, it refuses the use.
//
// The proxy does not track the isolation level exactly, but errs on the safe side. After a session has asked for such a
// transaction, it counts as being in one until the server is known to be outside any transaction.

// heldSnapshot is a snapshot that PostgreSQL uses for longer than a statement.
type heldSnapshot struct {
	inputPart uint64 // the input part in which the server takes the snapshot; its messages need no check
	known     bool   // the decider has noted when the snapshot was taken
	verdict.Snapshot
}

// snapshotUse is a use of a held snapshot (used for longer than a statement) by a message that the client sent later.
type snapshotUse struct {
	*heldSnapshot
	portal bool // the use runs a portal, in which older results may wait
}

// snapshotState tracks the held snapshots (used for longer than a statement) of a session.
type snapshotState struct {
	ledger        *ledger
	inputPart     uint64        // number of the current input part; a Query, Sync, Flush or a read ends a part
	mayBeHeld     bool          // the transaction may be REPEATABLE READ or SERIALIZABLE
	txSnapshot    *heldSnapshot // the held snapshot of that transaction; nil: none yet
	batchSnapshot *heldSnapshot // the held snapshot that messages of the batch take; nil: none
}

// snapshotHolds says whether the session's transactions are REPEATABLE READ or SERIALIZABLE by default. Once set, this
// remains until all settings are reset, since the proxy does not track whether the SET is rolled back.
type snapshotHolds struct {
	byDefault bool
	requests  uint64     // how often the client has set such a default
	reset     *execution // the execution that has reset all settings in the current transaction; nil: none
}

func holdsByDefault(e verdict.Effect) bool { return e.SnapshotHold == verdict.HoldForSession }

// ready applies a reset of all settings, when ReadyForQuery shows that it was committed.
func (h *snapshotHolds) ready(status byte) {
	if h.reset == nil {
		return
	}
	// A message behind the reset may have set such a default again.
	h.byDefault = h.byDefault && (status != 'I' || h.reset.holdRequests != h.requests)
	h.reset = nil
}

// newSnapshot returns the held snapshot (used for longer than a statement) that messages which the client has sent
// together take. The decider notes its time before the batch is sent.
func (s *snapshotState) newSnapshot() *heldSnapshot {
	if s.batchSnapshot == nil || s.batchSnapshot.inputPart != s.inputPart {
		s.batchSnapshot = &heldSnapshot{inputPart: s.inputPart}
	}
	return s.batchSnapshot
}

// begin runs before each message. It forgets the snapshot of a transaction that is over; staged says that the batch
// already has messages.
func (s *snapshotState) begin(staged bool) {
	if s.mayBeHeld && !staged && s.ledger.outsideTx() {
		s.mayBeHeld, s.txSnapshot = s.ledger.holdsByDefault(), nil
	}
}

// noteHolds notes if a text that is about to run makes this or later transactions REPEATABLE READ or SERIALIZABLE.
func (s *snapshotState) noteHolds(v *verdict.Verdict) {
	for _, e := range v.Effects {
		switch e.SnapshotHold {
		case verdict.HoldForTransaction:
			s.mayBeHeld = true
		case verdict.HoldForSession:
			s.mayBeHeld = true
			s.ledger.holdByDefault()
		}
	}
}

// noteNeed notes that e makes the server take the transaction's held snapshot (used for longer than a statement), if e
// is the first message that needs one.
func (s *snapshotState) noteNeed(e entry) {
	b := e.base()
	if s.mayBeHeld && s.txSnapshot == nil && b.verdict != nil && !isTxControl(b.verdict) {
		s.txSnapshot = s.newSnapshot()
		b.snapshot = s.txSnapshot
	}
}

// noteUse notes that x reads by the transaction's held snapshot (used for longer than a statement), if there is one.
func (s *snapshotState) noteUse(x *execution) {
	if s.mayBeHeld && s.txSnapshot != nil && x.verdict != nil && !onlyControlsSession(x.verdict) {
		s.addCheck(x, s.txSnapshot, false)
	}
}

// addCheck makes the proxy check a held snapshot (used for longer than a statement) before x is sent. No check is
// needed if the client has sent the messages together.
func (s *snapshotState) addCheck(x *execution, h *heldSnapshot, portal bool) {
	if h.inputPart != s.inputPart {
		x.snapshots = append(x.snapshots, snapshotUse{h, portal})
	}
}

// holdForPortal notes that e opens a portal whose snapshot is held: the same input part (messages that the client sends
// together) does not run it to its end.
func (s *snapshotState) holdForPortal(e entry, p *portal) {
	if p.snapshot != nil || p.completeExecute != nil || isTxControl(p.verdict) {
		return
	}
	if s.txSnapshot != nil {
		p.snapshot = s.txSnapshot
		return
	}
	p.snapshot = s.newSnapshot()
	e.base().snapshot = p.snapshot
}

// addCursors notes the held snapshots (used for longer than a statement) of the cursors that e declares. For the
// cursors from which e fetches, it requests a check of their snapshots.
func (s *snapshotState) addCursors(e entry, n *nameUses) {
	for _, p := range n.declaredPortals {
		if p != nil {
			s.holdForPortal(e, p)
		}
	}
	for _, p := range n.fetchedPortals {
		s.resume(e.asExecution(), p)
	}
}

// resume makes the proxy check the snapshot of a portal before x runs the portal.
func (s *snapshotState) resume(x *execution, p *portal) {
	switch {
	case p.snapshot != nil:
		s.addCheck(x, p.snapshot, true)
	case p.inputPart == s.inputPart || s.ledger.hasRun(p.completeExecute) || isTxControl(p.verdict):
	default:
		s.addCheck(x, &heldSnapshot{}, true) // When this snapshot was taken is not known.
	}
}

// endInputPart ends the current input part, behind a Query, Sync or Flush. The client may send the next message much
// later, so portals of this part that are not run to their ends hold their snapshots.
func (r *requests) endInputPart() {
	unsent := r.batch.unsent()
	for i := len(unsent) - 1; i >= 0; i-- {
		b, ok := unsent[i].entry.(*bindEntry)
		if !ok || b.portal == nil {
			continue
		}
		if b.portal.inputPart != r.snapshots.inputPart {
			break
		}
		if b.refusal == nil {
			r.snapshots.holdForPortal(b, b.portal)
		}
	}
	r.snapshots.inputPart++
}

// endOfSnapshotMessages returns where to divide the batch, or end if no division is needed. A held snapshot (used for
// longer than a statement) must be checked after the server has answered the messages before.
func (b *batch) endOfSnapshotMessages(end int) int {
	boundary := end
	for i := b.sent; i < end; i++ {
		e := b.items[i].entry
		if e == nil {
			continue
		}
		if boundary < end && e.base().refusal == nil && (showsHeldSnapshot(e) || unguardedVerdict(e) != nil) {
			return boundary
		}
		if e.endsWithReady() {
			boundary = i + 1
		}
	}
	return end
}

func showsHeldSnapshot(e entry) bool {
	x := e.asExecution()
	return x != nil && len(x.snapshots) > 0
}

// hasRun reports whether the server has run e without an error. If e was skipped, its portal may still hold its
// snapshot, since a rollback to a savepoint leaves older portals.
func (l *ledger) hasRun(e *executeEntry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e != nil && e.isAnswered && e.code == ""
}

// holdByDefault notes that the client makes transactions REPEATABLE READ or SERIALIZABLE by default.
func (l *ledger) holdByDefault() {
	l.mu.Lock()
	l.snapshotHolds.byDefault = true
	l.snapshotHolds.requests++
	l.mu.Unlock()
}

// holdRequests returns how often holdByDefault was called.
func (l *ledger) holdRequests() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.snapshotHolds.requests
}

func (l *ledger) holdsByDefault() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.snapshotHolds.byDefault
}
