package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// sessionMessage handles a message that is read whole (see [answers.isReadWhole]). missing is how many of its bytes did
// not fit into the buffer; they are discarded.
func (o *answers) sessionMessage(typ byte, body []byte, missing int) *sqlstate.Error {
	n := headerSize + len(body)
	var clientError []byte // bytes that the client gets in place of the message
	var mayPass bool
	var err *sqlstate.Error
	switch typ {
	case 'E': // The type is that of ErrorResponse.
		clientError, err = o.takeError(body)
	case 'N': // The type is that of NoticeResponse.
		clientError = o.notice(body)
		o.retriedAnswer.hasOtherAnswers = o.retriedAnswer.hasOtherAnswers || len(clientError) > 0
	case 'C': // The type is that of CommandComplete, where the client may get another message.
		if missing > 0 {
			return desyncError(errors.New("CommandComplete is too long"))
		}
		clientError, err = o.takeCommandComplete(bytes.Clone((*o.buf)[o.unreadStart : o.unreadStart+n]))
	case 'D': // The type is that of DataRow, here with the settings that the proxy reads.
		o.current().(*settingsEntry).takeRow(body, missing)
	case 'A': // The type is that of NotificationResponse.
		clientError = o.notification(body, missing)
		o.retriedAnswer.hasOtherAnswers = o.retriedAnswer.hasOtherAnswers || len(clientError) > 0
	case 'S': // The type is that of ParameterStatus.
		name, _, ok := readCString(body)
		// When a session gets another connection, the proxy itself sets values that the client already knows.
		isOwn := o.pooled() && o.current() != nil && o.current().base().fromProxy
		mayPass = ok && missing == 0 && isReported(name) && !isOwn
		if !settingsThatPlansIgnore[name] && !isOwn {
			o.ledger.dropAllCached()
		}
		o.retriedAnswer.hasOtherAnswers = o.retriedAnswer.hasOtherAnswers || mayPass
	case 'Z': // The type is that of ReadyForQuery.
		if len(body) != 1 || missing != 0 || bytes.IndexByte([]byte("ITE"), body[0]) < 0 {
			return desyncError(errors.New("invalid ReadyForQuery"))
		}
		mayPass, err = o.readyForQuery(body[0])
	}
	if err != nil {
		return err
	}
	if mayPass {
		o.pass(n)
		return nil
	}
	o.drop(n)
	o.inserted = append(o.inserted, clientError...)
	o.tail.remaining, o.tail.isSkipped = missing, true
	return nil
}

// notification returns the NotificationResponse for the client, or nil if the client has not sent LISTEN for the
// channel or may not. The process id is the client's own, or 0 if another session has sent the notification.
func (o *answers) notification(body []byte, missing int) []byte {
	if len(body) < 4 || missing > 0 { // PostgreSQL allows a payload of less than 8,000 bytes.
		return nil
	}
	channel, _, ok := readCString(body[4:])
	if !ok || !o.ledger.isListeningTo(channel) || o.channelFilter != nil && !o.channelFilter.AllowsChannel(channel) {
		return nil
	}
	var pid uint32
	if binary.BigEndian.Uint32(body) == o.backend.PID {
		pid = o.clientPID
	}
	return appendMessage(nil, 'A', binary.BigEndian.AppendUint32(nil, pid), body[4:])
}

// takeCommandComplete handles a CommandComplete that is read whole, and returns the message that the client gets for
// it.
func (o *answers) takeCommandComplete(message []byte) ([]byte, *sqlstate.Error) {
	length := len(message) - headerSize
	if other := o.current().asExecution().completion(); other != nil {
		message = other
	}
	if q, ok := o.current().(*queryEntry); ok && q.steps != nil {
		return o.completeStep(q, message)
	}
	q, _ := o.current().(*queryEntry)
	if err := o.answer('C', length); err != nil || o.tail.isSkipped {
		return nil, err
	}
	if q != nil && q.runsCached() { // a real Query is committed before its CommandComplete, so the message waits
		q.commandComplete, message = message, nil
	}
	return message, nil
}

// readyForQuery handles a ReadyForQuery, and inserts a held-back CommandComplete or a notice in front of it.
func (o *answers) readyForQuery(status byte) (mayPass bool, err *sqlstate.Error) {
	e := o.current()
	if mayPass, err = o.ready(status); err != nil || !mayPass {
		return false, err
	}
	if q, ok := e.(*queryEntry); ok && q.steps != nil && q.code == "" {
		o.insert(q.steps.lastAnswer)
	} else if ok && q.runsCached() && q.code == "" {
		o.insert(q.commandComplete)
	}
	if o.noticeSource != nil {
		if text := o.noticeSource.NextNotice(); text != "" {
			o.insert(appendNotice(nil, text))
		}
	}
	return true, nil
}

// ready handles a ReadyForQuery and reports whether the client gets it.
func (o *answers) ready(status byte) (mayPass bool, err *sqlstate.Error) {
	e := o.current()
	if e == nil || !e.endsWithReady() || e.base().refusal != nil && e.base().code == "" {
		return false, desyncError(errUnexpectedAnswer)
	}
	if o.endedResult.execution != nil {
		if err := o.waitForCancel(); err != nil {
			return false, err
		}
	}
	if isStep, err := o.isStepReady(e, status); isStep || err != nil {
		return false, err
	}
	if o.endedResult.execution != nil {
		if status == 'T' { // The client got an error, so the transaction must fail.
			return false, o.undoReady(e)
		}
		o.endedResult.execution, o.endedResult.isUndoSent = nil, false
	}
	o.head = nil
	o.drained, o.sealExpired = o.ledger.ready(status)
	b := e.base()
	if b.fromProxy {
		b.code, o.sealCode = o.sealCode, ""
		close(b.answered)
		return false, nil
	}
	o.outcomes.add(e)
	if o.retriedAnswer.answerIsRetried && o.startRepeat(status) {
		return false, nil
	}
	o.outcomes.addRequest(b.requestTime)
	return true, nil
}

// undoReady makes the server fail in place of the Query or Sync e, which it has already answered, so that the
// transaction fails.
func (o *answers) undoReady(e entry) *sqlstate.Error {
	if _, isSync := e.(*syncEntry); isSync {
		return o.undoResult((*refusal).describe, true)
	}
	return o.undoResult((*refusal).query, false)
}

// startRepeat starts a goroutine that sends the client's last messages once more. If the state of the transaction does
// not allow that, the client gets their error.
func (o *answers) startRepeat(status byte) bool {
	o.retriedAnswer.answerIsRetried = false
	if status == 'I' || status == 'E' && (o.retry.beginsTx || o.retry.openingVerdict != nil) {
		o.outgoing.Go(o.requests.repeat)
		return true
	}
	o.insert(o.retriedAnswer.err)
	o.ledger.setStaging(false)
	o.retry.leaveTurn()
	return false
}

// takeError handles an ErrorResponse, and returns the message that the client gets for it.
func (o *answers) takeError(body []byte) ([]byte, *sqlstate.Error) {
	f := parseFields(body)
	e := o.current()
	if e == nil {
		return o.endedByServer(&f)
	}
	o.serverEndsSession = o.serverEndsSession || f.fatal()
	if e.base().fromProxy && !e.base().preparesNext {
		return o.takeOwnError(&f), nil
	}
	q, _ := e.(*queryEntry)
	if q != nil {
		q.asQueryError(&f)
	}
	if f.message == identityOutdated && f.code() == sqlstate.SerializationFailure {
		o.ledger.reportSealExpired()
	}
	isOfCache := isCacheError(e, &f)
	clientError, code := f.forClient(e)
	if isOfCache {
		o.ledger.dropAllCached()
		clientError, code = encodeError(nil, "ERROR", decidedBeforeError()), sqlstate.SerializationFailure
	}
	if (isOfCache || isStale(e, &f)) && o.repeats(&f) {
		o.retract()
		o.retriedAnswer.answerIsRetried, o.retriedAnswer.err, clientError = true, clientError, nil
	}
	if o.endedResult.execution != nil && !f.fatal() { // The client already has the error of the limit.
		clientError, code = nil, o.endedResult.execution.limit.code
		if err := o.waitForCancel(); err != nil {
			return nil, err
		}
	}
	if q != nil && q.steps != nil && !f.fatal() {
		if err := o.send(q.steps.bytesAfterError()); err != nil {
			return nil, err
		}
	}
	o.head = nil
	o.outcomes.add(o.ledger.fail(code)...)
	return clientError, nil
}

// endedByServer handles an error that answers no message, by which the server ends the session.
func (o *answers) endedByServer(f *errorFields) ([]byte, *sqlstate.Error) {
	if !f.fatal() {
		return nil, desyncError(errUnexpectedAnswer)
	}
	o.serverEndsSession = true
	b, _ := f.sanitisedMessage(nil)
	return b, nil
}

// takeOwnError handles the error of a message that the proxy sent by itself. If the error ends the session, it returns
// the message that tells the client why.
func (o *answers) takeOwnError(f *errorFields) []byte {
	o.sealCode = f.code()
	o.head = nil
	o.ledger.fail(o.sealCode)
	if !f.fatal() {
		return nil
	}
	b, _ := f.sanitisedMessage(nil)
	return b
}

// notice handles a NoticeResponse, and returns the message that the client gets for it, or nil.
func (o *answers) notice(body []byte) []byte {
	e := o.current()
	if e != nil && e.base().fromProxy || o.endedResult.execution != nil {
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
