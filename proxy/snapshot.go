package proxy

import "github.com/pgconsent/pgconsent/internal/enforce/verdict"

// Some things see one snapshot for longer than a statement. They are a transaction of REPEATABLE READ or SERIALIZABLE,
// a cursor, and a portal that is not run to its end at once. They could go on showing rows whose consent was withdrawn
// meanwhile. So the decider notes the moment before the first message of such a thing is sent. Before each later use
// the proxy asks whether anything has changed since, and then refuses the use.
//
// The proxy does not follow exactly which transactions are of such a kind, but errs on the safe side. A session that
// has asked for such a transaction counts as in one until the server is known to be outside any.

// heldSnapshot is a snapshot that the server holds for longer than a statement.
type heldSnapshot struct {
	inputPart uint64 // the part of the input that asked for the snapshot; messages of the same part need no check
	known     bool   // the decider has noted the moment of the snapshot
	verdict.Snapshot
}

// snapshotUse is a later use of a held snapshot.
type snapshotUse struct {
	*heldSnapshot
	portal bool // results of the snapshot's moment may wait in a portal
}

// snapshotState follows which snapshots the session holds.
type snapshotState struct {
	ledger        *ledger
	inputPart     uint64        // counts the parts of the client's input: one ends with a Query, Sync or Flush, and with each read
	mayBeHeld     bool          // the transaction may be one that holds its snapshot
	txSnapshot    *heldSnapshot // the snapshot of such a transaction
	batchSnapshot *heldSnapshot // the snapshot that the portals and transactions of the batch take; nil: none takes one
}

// snapshotHolds is whether the session's transactions hold their snapshots by default. The ledger keeps it, since a SET
// may be rolled back: it counts until all settings are reset.
type snapshotHolds struct {
	byDefault bool
	requests  uint64     // how often the session has asked for a transaction that holds its snapshot
	reset     *execution // execution that has reset all settings, in the transaction that is in progress
}

func holdsByDefault(e verdict.Effect) bool { return e.SnapshotHold == verdict.HoldForSession }

// ready applies a ReadyForQuery.
func (h *snapshotHolds) ready(status byte) {
	if h.reset == nil {
		return
	}
	// A message sent after the reset may have asked again for transactions that hold their snapshots.
	h.byDefault = h.byDefault && (status != 'I' || h.reset.holdRequests != h.requests)
	h.reset = nil
}

// newSnapshot returns the held snapshot that the messages of this batch take. Its moment is noted before the batch is
// sent.
func (s *snapshotState) newSnapshot() *heldSnapshot {
	if s.batchSnapshot == nil || s.batchSnapshot.inputPart != s.inputPart {
		s.batchSnapshot = &heldSnapshot{inputPart: s.inputPart}
	}
	return s.batchSnapshot
}

// begin begins a message: it forgets a transaction that is over. staged tells that messages are staged already.
func (s *snapshotState) begin(staged bool) {
	if s.mayBeHeld && !staged && s.ledger.outsideTx() {
		s.mayBeHeld, s.txSnapshot = s.ledger.holdsByDefault(), nil
	}
}

// noteHolds notes that a text which is about to run makes transactions hold their snapshots.
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

// noteNeed notes that e needs a snapshot: in a transaction that holds one, its first message takes it.
func (s *snapshotState) noteNeed(e entry) {
	b := e.base()
	if s.mayBeHeld && s.txSnapshot == nil && b.verdict != nil && !isTxControl(b.verdict) {
		s.txSnapshot = s.newSnapshot()
		b.snapshot = s.txSnapshot
	}
}

// noteUse notes that x shows rows of the transaction's snapshot, if it holds one.
func (s *snapshotState) noteUse(x *execution) {
	if s.mayBeHeld && s.txSnapshot != nil && x.verdict != nil && !onlyControlsSession(x.verdict) {
		s.addCheck(x, s.txSnapshot, false)
	}
}

// addCheck sets up that a held snapshot is checked before x is sent.
func (s *snapshotState) addCheck(x *execution, h *heldSnapshot, portal bool) {
	if h.inputPart != s.inputPart {
		x.snapshots = append(x.snapshots, snapshotUse{h, portal})
	}
}

// holdForPortal notes that e makes a portal which the same part of the input does not run to its end.
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

// addCursors notes the snapshots of the cursors that x declares, and has the snapshots of the cursors checked from
// which it fetches.
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

// resume sets up that the snapshot of a portal is checked before x runs it.
func (s *snapshotState) resume(x *execution, p *portal) {
	switch {
	case p.snapshot != nil:
		s.addCheck(x, p.snapshot, true)
	case p.inputPart == s.inputPart || s.ledger.hasRun(p.completeExecute) || isTxControl(p.verdict):
	default:
		s.addCheck(x, &heldSnapshot{}, true) // The moment of this snapshot is not known.
	}
}

// endInputPart ends what counts as sent together: a Query, or messages up to a Sync or a Flush. The message that comes
// next may be sent long after.
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

// endOfSnapshotMessages is where the first part of the batch ends that is to be answered before a held snapshot of the
// next message is checked. It is end where there is none.
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

// hasRun tells whether e has been answered, without an error. The server skips messages behind an error, and a portal
// that is older than the savepoint which the client goes back to is still there.
func (l *ledger) hasRun(e *executeEntry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e != nil && e.isAnswered && e.code == ""
}

// holdByDefault notes that the session's transactions hold their snapshots by default.
func (l *ledger) holdByDefault() {
	l.mu.Lock()
	l.snapshotHolds.byDefault = true
	l.snapshotHolds.requests++
	l.mu.Unlock()
}

// holdRequests is how often the session has asked so far to hold snapshots by default.
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
