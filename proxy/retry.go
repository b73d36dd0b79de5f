package proxy

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// If DDL that affects agents has run since a statement was decided, the database refuses the statement while planning
// it. The proxy then decides on the statement and sends it once more, and the client notices nothing. This requires
// that the client has no part of the answer yet. The statement must also have come as a Query, or as messages up to a
// Sync. It must be outside a transaction, or the first statement of one.
//
// Only the goroutine that has "the turn" may handle the client's messages. Mostly this is the goroutine that reads
// them. While it waits for more input, it leaves the turn, and a goroutine that sends messages once more can take it.

// changedCatalogs is the message of the error (40001) that the SQL function pgconsent_signed.current_catalog raises.
const changedCatalogs = "pgconsent: the catalogs have changed since this statement was decided"

const (
	maxRetryBytes = 16 << 10 // limit of the remembered messages, in bytes
	maxSent       = 5        // how often the proxy sends the same messages at most
	retryPause    = 50 * time.Millisecond
	turnPatience  = 20 * time.Millisecond // how long to wait until another goroutine leaves the turn
)

// retryState remembers the client's last messages, so that the proxy can send them once more. Only the goroutine that
// has the turn uses it.
type retryState struct {
	turn         chan struct{} // a channel with one value while no goroutine has the turn
	clientWrites atomic.Int64  // counts writes to the client

	messages           []byte // messages as the client sent them
	isPossible         bool   // the messages may be sent once more
	complete           bool   // the last of the messages is a Query or a Sync
	clientWritesBefore int64  // the value of clientWrites before the messages were sent
	sentCount          int    // how often the messages were sent
	beginsTx           bool   // the messages begin a transaction

	beginVerdict   *verdict.Verdict // the verdict on the messages if they only begin a transaction
	openingVerdict *verdict.Verdict // the verdict on the previous messages, if they have begun the open transaction

	// the verdict on a statement of the messages that uses state of the server process, such as a session's lock
	stateVerdict *verdict.Verdict
}

// takeTurn waits until no other goroutine has the turn, and takes it.
func (r *retryState) takeTurn() { <-r.turn }

// leaveTurn gives up the turn.
func (r *retryState) leaveTurn() { r.turn <- struct{}{} }

// tryTakeTurn takes the turn if it becomes free within turnPatience.
func (r *retryState) tryTakeTurn() bool {
	select {
	case <-r.turn:
		return true
	case <-time.After(turnPatience):
		return false
	}
}

// start begins to remember the client's next messages. They may be sent once more only if the server is idle, and
// outside a transaction or in one that the previous messages have begun.
func (r *retryState) start(l *ledger) {
	if cap(r.messages) > maxKeptBuffer {
		r.messages = nil
	}
	r.openingVerdict = nil
	status, idle := l.certainStatus()
	if idle && status == 'T' && r.beginVerdict != nil {
		r.openingVerdict = r.beginVerdict
	}
	r.messages, r.isPossible, r.complete = r.messages[:0], idle && (status == 'I' || r.openingVerdict != nil), false
	r.clientWritesBefore, r.sentCount = r.clientWrites.Load(), 1
	r.beginsTx, r.beginVerdict, r.stateVerdict = false, nil, nil
}

// add remembers a message of the client.
func (r *retryState) add(typ byte, body []byte) {
	switch typ {
	case 'Q', 'P', 'B', 'D', 'E', 'C', 'S':
	default:
		r.isPossible = false
	}
	if r.isPossible = r.isPossible && !r.complete && len(r.messages)+len(body)+5 <= maxRetryBytes; r.isPossible {
		r.messages = binary.BigEndian.AppendUint32(append(r.messages, typ), uint32(len(body)+4))
		r.messages = append(r.messages, body...)
	}
	r.complete = r.complete || typ == 'Q' || typ == 'S'
}

// forbidRetry notes a message that cannot be remembered, so that the messages are not sent once more.
func (r *retryState) forbidRetry() { r.isPossible = false }

// noteSending notes the entries that are about to be sent. It forbids a retry if a statement does something that a
// rollback does not undo.
func (r *retryState) noteSending(entries []entry) {
	for _, e := range entries {
		if q, ok := e.(*queryEntry); ok && q.steps != nil {
			r.isPossible = false
		}
		if v := e.base().verdict; v != nil {
			r.addVerdict(v)
		}
		if x := e.asExecution(); x != nil {
			for _, named := range x.namedVerdicts {
				r.addVerdict(named)
				if v := e.base().verdict; v != nil && len(v.Effects) > 1 && (named.KeepsSessionState || named.CallsSetConfig) {
					r.isPossible = false // a statement of this Query may stand behind that EXECUTE
				}
			}
		}
	}
}

func (r *retryState) addVerdict(v *verdict.Verdict) {
	beginsTx := len(v.Effects) > 0 && v.Effects[0].Kind == verdict.EffectBegin
	isBegin := beginsTx && len(v.Effects) == 1
	switch {
	case isBegin && r.beginVerdict == v: // This entry is the Bind or the Execute of the BEGIN noted before.
	case !rollbackUndoes(v.Effects) || beginsTx && (r.beginsTx || r.openingVerdict != nil):
		r.beginVerdict, r.isPossible = nil, false
	case isBegin:
		r.beginsTx, r.beginVerdict = true, v
	default:
		r.beginsTx, r.beginVerdict = r.beginsTx || beginsTx, nil
	}
	// A rollback does not give back a session's lock. If it were taken again, one unlock would not be enough.
	switch {
	case r.stateVerdict != nil && r.stateVerdict != v, len(v.Effects) > 1 && (v.KeepsSessionState || v.CallsSetConfig):
		r.isPossible = false
	case v.KeepsSessionState:
		r.stateVerdict = v
	}
}

// rollbackUndoes reports whether a rollback undoes all that these statements of a message have done when one of them
// fails. A BEGIN must be the first of them, and what ends its transaction the last.
func rollbackUndoes(statements []verdict.Effect) bool {
	for i, e := range statements {
		switch e.Kind {
		case verdict.EffectNone, verdict.EffectExecute:
		case verdict.EffectBegin:
			if i > 0 {
				return false
			}
		case verdict.EffectEnd:
			if i < len(statements)-1 || statements[0].Kind != verdict.EffectBegin {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// canRepeat reports whether the remembered messages may be sent once more. The caller has the turn.
func (r *retryState) canRepeat() bool {
	return r.isPossible && r.complete && r.sentCount < maxSent && r.clientWrites.Load() == r.clientWritesBefore
}

// retriedAnswer is the state of the server's answer to messages that may be sent once more.
type retriedAnswer struct {
	hasOtherAnswers bool   // the current chunk also has other messages for the client
	answerIsRetried bool   // the client does not get the current answer: the messages are sent once more when it ends
	err             []byte // the error that the client gets if the messages cannot be sent once more
}

// repeats reports whether the messages that the error f answers can be sent once more. If so, the caller has the turn.
func (a *answers) repeats(f *errorFields) bool {
	if f.fatal() || a.retriedAnswer.hasOtherAnswers || a.endedResult.execution != nil || !a.retry.tryTakeTurn() {
		return false
	}
	if !a.retry.canRepeat() || !a.ledger.startRetry() {
		a.retry.leaveTurn()
		return false
	}
	return true
}

// isStale reports whether the error f means that e was decided before a change of the catalogs or of the agent's
// rights.
func isStale(e entry, f *errorFields) bool {
	if f.code() == sqlstate.SerializationFailure && f.message == changedCatalogs {
		return true
	}
	r := e.base().refusal
	return r != nil && r.retry && r.err.Code == sqlstate.SerializationFailure && r.err.Reason == sqlstate.ReasonStale
}

// startRetry reports whether the messages in flight are exactly one Query, or one group that ends with its Sync. If so,
// the session counts as busy until they are sent once more.
func (l *ledger) startRetry() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.staging || !l.queue.isOneGroup() {
		return false
	}
	l.staging = true
	return true
}

// repeat decides on the remembered messages once more and sends them again. The goroutine that runs it has the turn,
// and leaves it at the end.
func (r *requests) repeat() {
	defer r.leaveTurn()
	defer r.recoverPanic()
	if err := r.sendAgain(); err != nil {
		r.conclude(err)
	}
}

func (r *requests) sendAgain() error {
	state := &r.retry
	if state.sentCount++; state.sentCount > 2 { // The proxy may not have read the changed catalogs yet.
		select {
		case <-time.After(time.Duration(state.sentCount) * retryPause):
		case <-r.ctx.Done():
			return errPeerGone
		}
	}
	r.ledger.reportSealExpired() // The next seal carries the catalog version that the proxy has read.
	if err := r.openAgain(); err != nil {
		return err
	}
	state.beginsTx, state.beginVerdict, state.stateVerdict = false, nil, nil
	r.batch.lastRead = time.Now()
	for m := state.messages; len(m) > 0; {
		typ, size := m[0], binary.BigEndian.Uint32(m[1:5])
		body := m[5 : size+1]
		m = m[size+1:]
		if err := r.handleAgain(typ, body); err != nil {
			return err
		}
	}
	if err := r.flush(); err != nil {
		return err
	}
	r.snapshots.inputPart++
	return nil
}

// handleAgain adds one of the remembered messages to the batch once more.
func (r *requests) handleAgain(typ byte, body []byte) error {
	if name, _, ok := readCString(body); typ == 'P' && ok && name != "" {
		// The first attempt may have prepared the statement.
		upstream := verdict.UpstreamName(name)
		r.stageProxyMessage(&closeEntry{object: 'S'}, upstream, appendClose(nil, 'S', upstream))
		r.ledger.dropCachedName(name)
	}
	if _, err := r.handle(typ, body); err != nil {
		return err
	}
	if typ == 'Q' || typ == 'S' {
		r.endInputPart()
	}
	return nil
}

// openAgain rolls back a transaction whose first statement has failed, and begins it once more. Without such a
// transaction it does nothing.
func (r *requests) openAgain() error {
	if status, _ := r.ledger.certainStatus(); status != 'E' {
		return nil
	}
	if err := r.runProxyQuery("ROLLBACK", nil); err != nil || r.retry.openingVerdict == nil {
		return err
	}
	if r.seal.isDue(time.Now()) {
		if err := r.setSeal(); err != nil {
			return err
		}
	}
	return r.runProxyQuery(r.retry.openingVerdict.Text, r.retry.openingVerdict)
}

// runProxyQuery sends a Query that the client did not send, and waits for its answer.
func (r *requests) runProxyQuery(text string, v *verdict.Verdict) error {
	e := &queryEntry{}
	e.fromProxy, e.verdict, e.answered = true, v, make(chan struct{})
	if skipped, ok := r.ledger.push([]entry{e}); !ok || len(skipped) > 0 {
		return errPeerGone
	}
	if err := r.batch.server.write(appendQuery(nil, text)); err != nil {
		return r.awaitEnd(err)
	}
	select {
	case <-e.answered:
	case <-r.ctx.Done():
		return errPeerGone
	}
	if e.code != "" {
		return connectionLostError(fmt.Errorf("the server answered %s to %s", e.code, text))
	}
	return nil
}
