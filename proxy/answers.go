package proxy

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// maxAnswer is the longest message that PostgreSQL sends, in bytes.
const maxAnswer = 1 << 30

// headerSize is the type byte and the length of a message.
const headerSize = 5

// answers relays the server's answers to the client. It reads the headers of messages and passes rows on as they
// arrive, with one write for each read. It reads whole only messages about the session's state, and rewrites errors and
// notices.
type answers struct {
	*session
	relay

	head entry // the message that the server is answering; nil: see [answers.current]
	tail messageTail

	serverEndsSession bool          // the server's last message has told the client why the session ends
	drained           bool          // the session is idle while the proxy shuts down, and so may end
	sealExpired       bool          // the server begins a transaction under a session identity (seal) that has expired
	sealCode          sqlstate.Code // the SQLSTATE of the server's error for messages that the proxy sent by itself

	endedResult   endedResult
	retriedAnswer retriedAnswer
	outcomes      outcomes
	partlySent    bool // the client has received only part of a message
}

// messageTail says how the rest of a server message whose header was handled is treated.
type messageTail struct {
	remaining   int
	columns     int    // how many columns of a RowDescription are still to be handled
	isSkipped   bool   // the message is not relayed
	replacement []byte // the bytes that the client gets in place of a skipped message; nil: none
}

// relayChunk handles the bytes that were read from the server, or the read error. It returns false if the session is
// over, or no longer has the connection.
func (o *answers) relayChunk(c *serverConn, err error) (goesOn bool) {
	defer func() {
		if !goesOn && o.retriedAnswer.answerIsRetried {
			o.retry.leaveTurn()
		}
	}()
	defer o.recoverPanic()
	reason, finished := o.relayOrGiveBack(c, err)
	if finished {
		o.end(reason)
	}
	return !finished
}

// relayOrGiveBack relays the bytes that were read, and returns the connection to its pool if the session no longer
// needs it. If finished is true, reason is the error for the client, or nil if the client already knows it.
func (o *answers) relayOrGiveBack(c *serverConn, err error) (reason *sqlstate.Error, finished bool) {
	if err != nil {
		switch {
		case o.serverEndsSession:
			return nil, true
		case errors.Is(err, os.ErrDeadlineExceeded) && o.wasOnlyWoken():
			o.giveBack(c)
			return nil, false
		case o.outlives(c):
			return nil, false
		case err == io.EOF:
			err = nil
		}
		return connectionLostError(err), true
	}
	o.outcomes.timeOfRead = time.Now()
	failure := o.scan()
	o.outcomes.reportReturned()
	writeErr := o.flush()
	o.outcomes.record(o.server.metrics)
	switch {
	case writeErr != nil:
		return nil, true // The client has closed its connection.
	case failure != nil:
		return failure, true
	case o.sealExpired && o.tail.remaining == 0:
		o.stop(sealExpiredError())
		return nil, true
	case o.drained:
		return shutdownError(), true
	}
	o.giveBack(c)
	return nil, false
}

// flush sends the client the part of the chunk that it may have.
func (o *answers) flush() error {
	var err error
	if b := o.passedBytes(); len(b) > 0 {
		o.retry.clientWrites.Add(1)
		err = o.clientSink.write(b)
	}
	o.retriedAnswer.hasOtherAnswers = false
	if isPartlySent := err != nil || o.tail.remaining > 0 && !o.tail.isSkipped; isPartlySent != o.partlySent {
		o.partlySent = isPartlySent
		o.setBroken(isPartlySent)
	}
	return err
}

var errUnexpectedAnswer = errors.New("an answer of the server belongs to no message")

// desyncError ends a session in which the proxy can no longer tell which message the server answers.
func desyncError(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.InternalError, sqlstate.ReasonInternal, "internal error in pgconsent").
		WithHint("The operator of pgconsent finds the cause in its log.").WithCause(cause)
}

// scan handles the messages in the chunk that was read. An error means that the session must end.
func (o *answers) scan() *sqlstate.Error {
	for o.unreadStart < o.unreadEnd && (!o.sealExpired || o.tail.remaining > 0) {
		var needsMore bool
		var err *sqlstate.Error
		switch {
		case o.tail.columns > 0 && !o.tail.isSkipped:
			needsMore, err = o.column()
		case o.tail.remaining > 0:
			o.passTail()
		default:
			needsMore, err = o.message()
		}
		if needsMore || err != nil {
			return err
		}
	}
	return nil
}

// passTail relays or drops the bytes that have arrived of a message whose header was handled before.
func (o *answers) passTail() {
	n := min(o.tail.remaining, o.unreadEnd-o.unreadStart)
	o.tail.remaining -= n
	if o.tail.isSkipped {
		o.drop(n)
	} else {
		o.pass(n)
	}
}

// message handles the next message of the server. needsMore says that more of the message must arrive first.
func (o *answers) message() (needsMore bool, _ *sqlstate.Error) {
	b := (*o.buf)[o.unreadStart:o.unreadEnd]
	o.tail.isSkipped = false
	if len(b) < headerSize {
		return true, nil
	}
	typ := b[0]
	size := int64(binary.BigEndian.Uint32(b[1:]))
	if size < 4 || size > maxAnswer {
		return false, desyncError(errors.New("invalid length of a server's message"))
	}
	length := int(size) + 1
	if !o.isReadWhole(typ) {
		return o.resultMessage(typ, length)
	}
	n := min(length, len(*o.buf))
	if len(b) < n {
		return true, nil // The rest of the message fits into the buffer.
	}
	return false, o.sessionMessage(typ, b[headerSize:n], length-n)
}

// isReadWhole reports whether the proxy must read a message of this type completely before it decides what the client
// gets.
func (o *answers) isReadWhole(typ byte) bool {
	switch typ {
	case 'E', 'N', 'S', 'Z', 'A':
		return true
	case 'D':
		_, ok := o.current().(*settingsEntry)
		return ok
	case 'C':
		e := o.current()
		if e == nil || e.asExecution() == nil {
			return false
		}
		q, ok := e.(*queryEntry)
		return ok && (q.steps != nil || q.runsCached()) || e.asExecution().completion() != nil
	}
	return false
}

// resultMessage handles a message of a result, such as a row, by its header. The rest of the message passes as it
// arrives, except for the columns of a RowDescription. If the audit records keys of rows, the message is read whole if
// it fits into the buffer.
func (o *answers) resultMessage(typ byte, length int) (needsMore bool, _ *sqlstate.Error) {
	b := (*o.buf)[o.unreadStart:o.unreadEnd]
	if typ == 'T' {
		switch {
		case length < descriptionHeader:
			return false, desyncError(errDescription)
		case len(b) < descriptionHeader:
			return true, nil // The rest of the message fits into the buffer.
		}
	}
	readsKeys := o.readsKeys(typ)
	answered, body := o.head, []byte(nil)
	if readsKeys && length <= len(*o.buf) {
		if len(b) < length {
			return true, nil // The rest of the message fits into the buffer.
		}
		body = b[headerSize:length]
	}
	if err := o.answer(typ, length-headerSize); err != nil {
		return false, err
	}
	if readsKeys && !o.tail.isSkipped {
		o.readKeys(answered, typ, body)
	}
	n := min(length, len(b))
	if o.tail.columns = 0; typ == 'T' && !o.tail.isSkipped {
		n = descriptionHeader
		o.tail.columns = int(binary.BigEndian.Uint16(b[headerSize:]))
		if o.tail.columns == 0 && length > n {
			return false, desyncError(errDescription)
		}
	}
	o.tail.remaining = length - n
	if o.tail.isSkipped {
		o.drop(n)
		o.inserted, o.endedResult.clientError = append(o.inserted, o.endedResult.clientError...), nil
		o.inserted, o.tail.replacement = append(o.inserted, o.tail.replacement...), nil
	} else {
		o.pass(n)
	}
	return false, nil
}

// current returns the entry of the message that the server is answering now, or nil.
func (o *answers) current() entry {
	if o.head == nil {
		o.head = o.ledger.head()
	}
	return o.head
}

// succeed notes that the server has answered the current entry without an error.
func (o *answers) succeed() {
	o.outcomes.add(o.head)
	o.ledger.succeed()
	o.head = nil
}

// answer passes a server message of this type and body length to the current entry.
func (o *answers) answer(typ byte, length int) *sqlstate.Error {
	e := o.current()
	if e == nil || e.base().refusal != nil {
		return desyncError(errUnexpectedAnswer)
	}
	o.tail.isSkipped = e.base().fromProxy || o.endedResult.execution != nil
	isExpected, err := e.handleAnswer(o, typ, length)
	if err == nil && !isExpected {
		return desyncError(errUnexpectedAnswer)
	}
	return err
}
