package proxy

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A statement that was decided before a change of the catalogs which concerns agents is refused by the database while
// it is planned. It is decided and sent once more where the client has no part of the answer yet. It must have come as
// a Query of one statement, or as messages up to a Sync. It must also stand outside a transaction, or be the first of
// one. The client notices nothing: the database has undone what was done of it.
//
// The goroutine that handles the client's messages has the turn: mostly the one that reads them. While that waits for
// more of them, or for the answers, the goroutine that sends some once more can have it.

// changedCatalogs is the message that pgconsent_signed.current_catalog raises with 40001.
const changedCatalogs = "pgconsent: the catalogs have changed since this statement was decided"

const (
	maxRetryBytes = 16 << 10 // bytes of the messages that are kept to be sent again
	maxSent       = 5        // how often messages are sent at most
	retryPause    = 50 * time.Millisecond
	turnPatience  = 20 * time.Millisecond // how long to wait for the turn of a goroutine that is about to leave it
)

// retryState has the messages that the client has sent last, so that they can be sent once more. It belongs to the
// goroutine that has the turn.
type retryState struct {
	turn         chan struct{} // holds a value while no goroutine has the turn
	clientWrites atomic.Int64  // counts writes to the client

	messages           []byte // messages as the client sent them
	isPossible         bool   // the messages may be sent once more
	complete           bool   // the last of the messages is a Query or a Sync
	clientWritesBefore int64  // the number of writes before the messages were sent
	sentCount          int    // how often the messages were sent
	beginsTx           bool   // the messages begin a transaction

	beginVerdict   *verdict.Verdict // verdict on the messages if they do nothing but begin a transaction
	openingVerdict *verdict.Verdict // the verdict on the messages right before, which have begun the transaction in progress
}

// takeTurn waits for the turn.
func (r *retryState) takeTurn() { <-r.turn }

// leaveTurn gives the turn up.
func (r *retryState) leaveTurn() { r.turn <- struct{}{} }

// tryTakeTurn takes the turn from a goroutine that is about to give it up.
func (r *retryState) tryTakeTurn() bool {
	select {
	case <-r.turn:
		return true
	case <-time.After(turnPatience):
		return false
	}
}

// start notes the messages that come next. They may be sent once more if the server is idle, outside a transaction or
// in one that the messages before have begun.
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
	r.clientWritesBefore, r.sentCount, r.beginsTx, r.beginVerdict = r.clientWrites.Load(), 1, false, nil
}

// add keeps a message of the client.
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

// forbidRetry notes a message that is not kept: no message is sent once more.
func (r *retryState) forbidRetry() { r.isPossible = false }

// noteSending notes the entries that are about to be sent. Statements that do more than the transaction undoes are not
// sent once more.
func (r *retryState) noteSending(entries []entry) {
	for _, e := range entries {
		if q, ok := e.(*queryEntry); ok && q.steps != nil {
			r.isPossible = false
		}
		if v := e.base().verdict; v != nil {
			r.addVerdict(v)
		}
		if x := e.asExecution(); x != nil {
			for _, v := range x.namedVerdicts {
				r.addVerdict(v)
			}
		}
	}
}

func (r *retryState) addVerdict(v *verdict.Verdict) {
	isBegin := len(v.Effects) == 1 && v.Effects[0].Kind == verdict.EffectBegin
	switch {
	case isBegin && !r.beginsTx && r.openingVerdict == nil:
		r.beginsTx, r.beginVerdict = true, v
	case isBegin && r.beginVerdict == v: // The entry is the Bind or the Execute of that statement.
	case hasOnly(v, verdict.EffectNone, verdict.EffectExecute) && len(v.Effects) <= 1:
		r.beginVerdict = nil
	default:
		r.beginVerdict, r.isPossible = nil, false
	}
}

// canRepeat reports whether the messages may be sent once more by what is known of them. The caller has the turn.
func (r *retryState) canRepeat() bool {
	return r.isPossible && r.complete && r.sentCount < maxSent && r.clientWrites.Load() == r.clientWritesBefore
}

// retriedAnswer is the state of the answer to messages that are sent once more.
type retriedAnswer struct {
	hasOtherAnswers bool   // the chunk has more to relay than these answers
	answerIsRetried bool   // the answer in progress is not relayed: the messages are sent once more when it ends
	err             []byte // the error that the answer in progress would be
}

// repeats tells whether the messages whose error f is can be sent once more. Then the caller has the turn.
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

// isStale reports whether an error says that e was decided before a change of the catalogs.
func isStale(e entry, f *errorFields) bool {
	if f.code() == sqlstate.SerializationFailure && f.message == changedCatalogs {
		return true
	}
	r := e.base().refusal
	return r != nil && r.retry && r.err.Code == sqlstate.SerializationFailure && r.err.Reason == sqlstate.ReasonStale
}

// startRetry reports whether the messages in flight are one Query, or end with the one Sync among them. Then the
// session is not idle before they are sent once more.
func (l *ledger) startRetry() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.staging || !l.queue.isOneGroup() {
		return false
	}
	l.staging = true
	return true
}

// repeat decides the messages that the client has sent last once more and sends them again. It has the turn.
func (r *requests) repeat() {
	defer r.leaveTurn()
	defer r.recoverPanic()
	if err := r.sendAgain(); err != nil {
		r.conclude(err)
	}
}

func (r *requests) sendAgain() error {
	state := &r.retry
	if state.sentCount++; state.sentCount > 2 { // The catalog refresh may not have noticed the change yet.
		select {
		case <-time.After(time.Duration(state.sentCount) * retryPause):
		case <-r.ctx.Done():
			return errPeerGone
		}
	}
	r.ledger.reportSealExpired() // A new seal says which catalogs are known.
	if err := r.openAgain(); err != nil {
		return err
	}
	state.beginsTx, state.beginVerdict = false, nil
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

// handleAgain stages one of the messages once more.
func (r *requests) handleAgain(typ byte, body []byte) error {
	if name, _, ok := readCString(body); typ == 'P' && ok && name != "" {
		// The statement may exist since the first time.
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

// openAgain rolls back the transaction that has failed with its first statement, if there is one, and begins it once
// more.
func (r *requests) openAgain() error {
	if status, _ := r.ledger.certainStatus(); status != 'E' {
		return nil
	}
	if err := r.runProxyQuery("ROLLBACK", nil); err != nil || r.retry.openingVerdict == nil {
		return err
	}
	if r.seal.isDue() {
		if err := r.setSeal(); err != nil {
			return err
		}
	}
	return r.runProxyQuery(r.retry.openingVerdict.Text, r.retry.openingVerdict)
}

// runProxyQuery sends a Query of the proxy and waits for its answer.
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
