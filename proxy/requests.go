package proxy

import (
	"io"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// requests relays the client's messages to the server in batches. A batch ends when the client requests an answer, by a
// Query, Sync or Flush, however the network divides the client's bytes.
//
// Only the goroutine that has the turn uses it (see [retryState]).
type requests struct {
	*session

	seal      sealState
	pooling   poolSession
	group     messageGroup
	snapshots snapshotState
	foreign   foreignReads

	settingsChanged bool // the transaction may have changed settings that affect how PostgreSQL parses or plans
	planHardened    bool // the proxy may have set the settings of a hardened plan in the transaction

	claimsUnknown bool  // the claims with which the current text's statements run are not known
	copyEntry     entry // a COPY FROM STDIN that is about to be sent
	barrier       entry // the entry that the server must answer before the proxy sends anything else
	batch         batch
}

// messageGroup describes the messages that the client has sent since its last Sync.
type messageGroup struct {
	number            uint64 // the number of Syncs before the group
	hasMessages       bool   // the group has at least one message
	isSingleQuery     bool   // the group is a Query without messages before it
	usesCache         bool   // messages may use cached statements: see [requests.beginGroup]
	executes          int    // number of Execute messages since the last Query in the group
	endsTx            bool   // the last message was an Execute that ends the transaction
	lastExecuteEndsTx bool   // the last Execute ends the transaction, and no portal was bound since
	dropsSeal         bool   // the last message removes the seal
}

func newRequests(s *session) *requests {
	return &requests{session: s, snapshots: snapshotState{ledger: s.ledger}}
}

// run reads the client's messages and relays them until the session is over. The caller has the turn (see
// [retryState]).
func (r *requests) run() error {
	in := newInput(r.client)
	in.budget = &r.server.largeBufferBytes
	in.maxText = r.maxText()
	defer func() { in.release(); _ = in.reserveBatch(0) }()
	var open openMessages
	for {
		if err := r.waitWhilePaused(in, open.moreFollow); err != nil {
			return err
		}
		if finished, err := r.stageInput(in, &open); finished || err != nil {
			return err
		}
		if open.moreFollow {
			if err := in.reserveBatch(len(r.batch.out)); err != nil {
				return err
			}
		} else {
			if err := r.flush(); err != nil {
				return err
			}
			r.snapshots.inputPart++
			_ = in.reserveBatch(0) // Reserving less never fails.
		}
		r.leaveTurn()
		err := in.fill()
		r.retry.takeTurn()
		if err == io.EOF {
			return r.finishBatch(nil)
		}
		if err != nil {
			return err
		}
	}
}

// stageInput handles the messages that have completely arrived. If finished is true, the session ends, with err as the
// reason.
func (r *requests) stageInput(in *input, unanswered *openMessages) (finished bool, err error) {
	for {
		typ, body, ok, err := in.next()
		if err != nil {
			return true, r.finishBatch(err) // The messages before this one are still sent.
		}
		if !ok {
			return false, nil
		}
		if len(r.batch.items) == 0 {
			r.retry.start(r.ledger)
			r.ledger.setStaging(true)
			r.batch.lastRead = in.lastRead
			if typ != 'X' {
				if err := r.takeConnection(); err != nil {
					return true, err
				}
			}
		}
		var isLast bool
		if in.oversizedLength > 0 {
			r.retry.forbidRetry()
			err = r.refuseTooLong(typ, in.oversizedLength)
		} else {
			r.retry.add(typ, body)
			isLast, err = r.handle(typ, body)
		}
		if err != nil {
			return true, err
		}
		if typ == 'Q' || typ == 'S' || typ == 'H' {
			r.endInputPart()
		}
		if isLast {
			return true, r.finishBatch(nil)
		}
		unanswered.add(typ)
		if r.copyEntry != nil {
			*unanswered = openMessages{}
			if err := r.startCopy(in); err != nil {
				return true, err
			}
		}
		if len(r.batch.out) >= maxBatch && !unanswered.isPortalUnrun() {
			if err := r.flush(); err != nil {
				return true, err
			}
		}
	}
}

// openMessages describes the messages since the client's last Query, Sync or Flush.
type openMessages struct {
	moreFollow bool // the client must send more before it can wait for an answer
	binds      int  // number of Bind messages since the last Execute
}

func (o *openMessages) add(typ byte) {
	switch typ {
	case 'P', 'D', 'C':
		o.moreFollow = true
	case 'B':
		o.moreFollow = true
		o.binds++
	case 'E':
		o.moreFollow, o.binds = true, 0
	default:
		*o = openMessages{}
	}
}

// isPortalUnrun reports whether an Execute for the last Bind is expected. A large batch is not divided between the two.
func (o *openMessages) isPortalUnrun() bool { return o.binds == 1 }

// finishBatch sends the messages that the client sent before it left or violated the protocol, and waits for the
// answers. PostgreSQL would also run these messages first. Then the session ends with err.
func (r *requests) finishBatch(err error) error {
	if err := r.flush(); err != nil {
		return err
	}
	r.ledger.waitOutsideTx()
	r.ledger.waitReady()
	if err == nil {
		r.returnAtEnd()
	}
	return err
}

// handle decides on one message of the client and adds it to the batch. It returns true for Terminate, the last
// message.
func (r *requests) handle(typ byte, body []byte) (isLast bool, err error) {
	r.snapshots.begin(len(r.batch.items) > 0)
	if isRefused, err := r.beginBehindEnd(typ); isRefused || err != nil {
		return false, err
	}
	if !r.group.hasMessages {
		r.beginGroup()
		r.group.isSingleQuery = typ == 'Q'
	}
	switch typ {
	case 'Q':
		err = r.query(body)
		r.ledger.dropUnnamedPortal()
		r.group.hasMessages, r.group.isSingleQuery = false, false
	case 'P':
		err = r.parse(body)
	case 'B':
		err = r.bind(body)
	case 'D':
		err = r.describe(body)
	case 'E':
		err = r.execute(body)
	case 'C':
		r.closeNamed(body)
	case 'H':
		if len(body) != 0 {
			r.invalid(&describeEntry{object: 'S'})
			break
		}
		r.stageFlush()
	case 'S':
		r.sync()
	case 'F':
		r.refuse(&queryEntry{}, sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonProtocol,
			"function calls of the fast path are not for agents").
			WithHint("Call the function in a SELECT."), nil, nil)
	case 'X':
		return true, nil
	case 'd', 'c', 'f':
		// The server ignores CopyData, CopyDone and CopyFail outside a COPY FROM STDIN.
	default:
		return false, invalidTypeError(typ)
	}
	return false, err
}

// maxText returns the maximum length in bytes of the text of a Query or a Parse.
func (r *requests) maxText() int {
	if maximum := r.server.config.MaxText; maximum > 0 {
		return maximum
	}
	return defaultMaxText
}

// refuseTooLong refuses a message whose body was discarded because it is too long.
func (r *requests) refuseTooLong(typ byte, size int) error {
	r.snapshots.begin(len(r.batch.items) > 0)
	if isRefused, err := r.beginBehindEnd(typ); isRefused || err != nil {
		return err
	}
	if typ == 'Q' {
		r.refuse(&queryEntry{}, tooLongError(size, r.maxText()), nil, nil)
		r.ledger.dropUnnamedPortal()
		return nil
	}
	r.refuse(&describeEntry{object: 'S'}, tooLongError(size, r.maxText()), nil, nil)
	return nil
}

// stageFlush adds a Flush to the batch, which has no answer of its own.
func (r *requests) stageFlush() {
	start := len(r.batch.out)
	r.batch.out = appendMessage(r.batch.out, 'H')
	r.batch.add(start, nil)
}

// refuse adds the refused form of a message to the batch. t is the audit's ticket if the decider has refused the
// message; nil: the proxy itself refuses it.
func (r *requests) refuse(e entry, err *sqlstate.Error, v *verdict.Verdict, t verdict.Ticket) {
	b := e.base()
	b.refusal, b.verdict, b.ticket = newRefusal(err), v, t
	if t == nil {
		r.countDenied(err)
	}
	start := len(r.batch.out)
	r.batch.out = e.appendRefused(r.batch.out)
	r.batch.add(start, e)
}

// unrecordedRefusal counts and returns a refusal that the audit does not record as the decider's.
func (r *requests) unrecordedRefusal(err *sqlstate.Error) *refusal {
	r.countDenied(err)
	return newRefusal(err)
}

func (r *requests) countDenied(err *sqlstate.Error) {
	if err.Reason != sqlstate.ReasonNone {
		r.server.metrics.CountStatement("deny", string(err.Reason), "")
	}
}

// invalid refuses a malformed message.
func (r *requests) invalid(e entry) { r.refuse(e, invalidMessageError(), nil, nil) }

// recheck asks the decider whether v still holds, since the policy or the catalogs may have changed. A refusal by the
// decider comes with the audit's ticket.
func (r *requests) recheck(v *verdict.Verdict) (current *verdict.Verdict, refusal *sqlstate.Error, t verdict.Ticket) {
	current = r.decider.Recheck(r.ctx, v)
	switch {
	case !current.IsAllowed():
		return current, current.Refusal, r.decider.Record(current)
	case current.Text != v.Text:
		return current, planChanged(), nil
	default:
		return current, nil, nil
	}
}

// isUnusable reports whether an allowed text contains a NUL byte, at which the server would take the text to end.
func isUnusable(v *verdict.Verdict) bool { return v.IsAllowed() && strings.IndexByte(v.Text, 0) >= 0 }

// hasOnly reports whether all effects of a text are of these kinds.
func hasOnly(v *verdict.Verdict, kinds ...verdict.EffectKind) bool {
	for _, e := range v.Effects {
		found := false
		for _, k := range kinds {
			found = found || e.Kind == k
		}
		if !found {
			return false
		}
	}
	return true
}

// isTxControl reports whether a text only begins or ends transactions, or changes settings, so that PostgreSQL takes no
// snapshot for it.
func isTxControl(v *verdict.Verdict) bool {
	return hasOnly(v, verdict.EffectBegin, verdict.EffectEnd, verdict.EffectSet)
}

// onlyControlsSession reports whether a text shows no rows and only controls transactions, settings, prepared
// statements or cursors.
func onlyControlsSession(v *verdict.Verdict) bool {
	return hasOnly(v, verdict.EffectBegin, verdict.EffectEnd, verdict.EffectSet, verdict.EffectDeallocate,
		verdict.EffectClose)
}
