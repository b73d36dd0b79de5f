package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// sessionMessage handles a message that is read whole (see [answers.isReadWhole]). missing is how many of its bytes did
// not fit into the buffer; they are discarded.
func (a *answers) sessionMessage(typ byte, body []byte, missing int) *sqlstate.Error {
	n := headerSize + len(body)
	var clientError []byte // bytes that the client gets in place of the message
	var mayPass bool
	var err *sqlstate.Error
	switch typ {
	case 'E': // The type is that of ErrorResponse.
		clientError, err = a.takeError(body)
	case 'N': // The type is that of NoticeResponse.
		clientError = a.notice(body)
		a.retriedAnswer.hasOtherAnswers = a.retriedAnswer.hasOtherAnswers || len(clientError) > 0
	case 'C': // The type is that of CommandComplete, where the client may get another message.
		if missing > 0 {
			return desyncError(errors.New("CommandComplete is too long"))
		}
		clientError, err = a.takeCommandComplete(bytes.Clone((*a.buf)[a.unreadStart : a.unreadStart+n]))
	case 'D': // The type is that of DataRow, here with the settings that the proxy reads.
		a.current().(*settingsEntry).takeRow(body, missing)
	case 'A': // The type is that of NotificationResponse.
		clientError = a.notification(body, missing)
		a.retriedAnswer.hasOtherAnswers = a.retriedAnswer.hasOtherAnswers || len(clientError) > 0
	case 'S': // The type is that of ParameterStatus.
		name, _, ok := readCString(body)
		// When a session gets another connection, the proxy itself sets values that the client already knows.
		isOwn := a.pooled() && a.current() != nil && a.current().base().fromProxy
		mayPass = ok && missing == 0 && isReported(name) && !isOwn
		if !settingsThatPlansIgnore[name] && !isOwn {
			a.ledger.dropAllCached()
		}
		a.retriedAnswer.hasOtherAnswers = a.retriedAnswer.hasOtherAnswers || mayPass
	case 'Z': // The type is that of ReadyForQuery.
		if len(body) != 1 || missing != 0 || bytes.IndexByte([]byte("ITE"), body[0]) < 0 {
			return desyncError(errors.New("invalid ReadyForQuery"))
		}
		mayPass, err = a.readyForQuery(body[0])
	}
	if err != nil {
		return err
	}
	if mayPass {
		a.pass(n)
		return nil
	}
	a.drop(n)
	a.inserted = append(a.inserted, clientError...)
	a.tail.remaining, a.tail.isSkipped = missing, true
	return nil
}

// notification returns the NotificationResponse for the client, or nil if the client has not sent LISTEN for the
// channel or may not. The process id is the client's own, or 0 if another session has sent the notification.
func (a *answers) notification(body []byte, missing int) []byte {
	if len(body) < 4 || missing > 0 { // PostgreSQL allows a payload of less than 8,000 bytes.
		return nil
	}
	channel, _, ok := readCString(body[4:])
	if !ok || !a.ledger.isListeningTo(channel) || a.channelFilter != nil && !a.channelFilter.AllowsChannel(channel) {
		return nil
	}
	var pid uint32
	if binary.BigEndian.Uint32(body) == a.backend.PID {
		pid = a.clientPID
	}
	return appendMessage(nil, 'A', binary.BigEndian.AppendUint32(nil, pid), body[4:])
}

// takeCommandComplete handles a CommandComplete that is read whole, and returns the message that the client gets for
// it.
func (a *answers) takeCommandComplete(message []byte) ([]byte, *sqlstate.Error) {
	length := len(message) - headerSize
	if other := a.current().asExecution().completion(); other != nil {
		message = other
	}
	if q, ok := a.current().(*queryEntry); ok && q.steps != nil {
		return a.completeStep(q, message)
	}
	q, _ := a.current().(*queryEntry)
	if err := a.answer('C', length); err != nil || a.tail.isSkipped {
		return nil, err
	}
	if q != nil && q.runsCached() { // a real Query is committed before its CommandComplete, so the message waits
		q.commandComplete, message = message, nil
	}
	return message, nil
}

// readyForQuery handles a ReadyForQuery, and inserts a held-back CommandComplete or a notice in front of it.
func (a *answers) readyForQuery(status byte) (mayPass bool, err *sqlstate.Error) {
	e := a.current()
	if mayPass, err = a.ready(status); err != nil || !mayPass {
		return false, err
	}
	if q, ok := e.(*queryEntry); ok && q.steps != nil && q.code == "" {
		a.insert(q.steps.lastAnswer)
	} else if ok && q.runsCached() && q.code == "" {
		a.insert(q.commandComplete)
	}
	if a.noticeSource != nil {
		if text := a.noticeSource.NextNotice(); text != "" {
			a.insert(appendNotice(nil, text))
		}
	}
	return true, nil
}

// ready handles a ReadyForQuery and reports whether the client gets it.
func (a *answers) ready(status byte) (mayPass bool, err *sqlstate.Error) {
	e := a.current()
	if e == nil || !e.endsWithReady() || e.base().refusal != nil && e.base().code == "" {
		return false, desyncError(errUnexpectedAnswer)
	}
	if a.endedResult.execution != nil {
		if err := a.waitForCancel(); err != nil {
			return false, err
		}
	}
	if isStep, err := a.isStepReady(e, status); isStep || err != nil {
		return false, err
	}
	if a.endedResult.execution != nil {
		if status == 'T' { // The client got an error, so the transaction must fail.
			return false, a.undoReady(e)
		}
		a.endedResult.execution, a.endedResult.isUndoSent = nil, false
	}
	a.head = nil
	a.drained, a.sealExpired = a.ledger.ready(status)
	b := e.base()
	if b.fromProxy {
		b.code, a.sealCode = a.sealCode, ""
		close(b.answered)
		return false, nil
	}
	a.outcomes.add(e)
	if a.retriedAnswer.answerIsRetried && a.startRepeat(status) {
		return false, nil
	}
	a.outcomes.addRequest(b.requestTime)
	return true, nil
}

// undoReady makes the server fail in place of the Query or Sync e, which it has already answered, so that the
// transaction fails.
func (a *answers) undoReady(e entry) *sqlstate.Error {
	if _, isSync := e.(*syncEntry); isSync {
		return a.undoResult((*refusal).describe, true)
	}
	return a.undoResult((*refusal).query, false)
}

// startRepeat starts a goroutine that sends the client's last messages once more. If the state of the transaction does
// not allow that, the client gets their error.
func (a *answers) startRepeat(status byte) bool {
	a.retriedAnswer.answerIsRetried = false
	if status == 'I' || status == 'E' && (a.retry.beginsTx || a.retry.openingVerdict != nil) {
		a.outgoing.Go(a.requests.repeat)
		return true
	}
	a.insert(a.retriedAnswer.err)
	a.ledger.setStaging(false)
	a.retry.leaveTurn()
	return false
}

// takeError handles an ErrorResponse, and returns the message that the client gets for it.
func (a *answers) takeError(body []byte) ([]byte, *sqlstate.Error) {
	f := parseFields(body)
	e := a.current()
	if e == nil {
		return a.endedByServer(&f)
	}
	a.serverEndsSession = a.serverEndsSession || f.fatal()
	if e.base().fromProxy && !e.base().preparesNext {
		return a.takeOwnError(&f), nil
	}
	q, _ := e.(*queryEntry)
	if q != nil {
		q.asQueryError(&f)
	}
	if f.message == identityOutdated && f.code() == sqlstate.SerializationFailure {
		a.ledger.reportSealExpired()
	}
	isOfCache := isCacheError(e, &f)
	clientError, code := f.forClient(e)
	if isOfCache {
		a.ledger.dropAllCached()
		clientError, code = encodeError(nil, "ERROR", decidedBeforeError()), sqlstate.SerializationFailure
	}
	if (isOfCache || isStale(e, &f)) && a.repeats(&f) {
		a.retract()
		a.retriedAnswer.answerIsRetried, a.retriedAnswer.err, clientError = true, clientError, nil
	}
	if a.endedResult.execution != nil && !f.fatal() { // The client already has the error of the limit.
		clientError, code = nil, a.endedResult.execution.limit.code
		if err := a.waitForCancel(); err != nil {
			return nil, err
		}
	}
	if q != nil && q.steps != nil && !f.fatal() {
		if err := a.send(q.steps.bytesAfterError()); err != nil {
			return nil, err
		}
	}
	a.head = nil
	a.outcomes.add(a.ledger.fail(code)...)
	return clientError, nil
}

// endedByServer handles an error that answers no message, by which the server ends the session.
func (a *answers) endedByServer(f *errorFields) ([]byte, *sqlstate.Error) {
	if !f.fatal() {
		return nil, desyncError(errUnexpectedAnswer)
	}
	a.serverEndsSession = true
	b, _ := f.sanitisedMessage(nil)
	return b, nil
}

// takeOwnError handles the error of a message that the proxy sent by itself. If the error ends the session, it returns
// the message that tells the client why.
func (a *answers) takeOwnError(f *errorFields) []byte {
	a.sealCode = f.code()
	a.head = nil
	a.ledger.fail(a.sealCode)
	if !f.fatal() {
		return nil
	}
	b, _ := f.sanitisedMessage(nil)
	return b
}

// notice handles a NoticeResponse, and returns the message that the client gets for it, or nil.
func (a *answers) notice(body []byte) []byte {
	e := a.current()
	if e != nil && e.base().fromProxy || a.endedResult.execution != nil {
		return nil
	}
	f := parseFields(body)
	if q, ok := e.(*queryEntry); ok {
		if q.settingsToAnswer > 0 {
			return nil
		}
		if st := q.steps; st != nil && st.isOneTransaction && !st.begun && f.code() == "25001" {
			st.inBlock = true
			return nil
		}
	}
	if e != nil && e.asExecution() != nil && e.asExecution().raises(f.code(), f.message) {
		return f.plainNotice()
	}
	return f.notice()
}
