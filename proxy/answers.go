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
func (a *answers) relayChunk(c *serverConn, err error) (goesOn bool) {
	defer func() {
		if !goesOn && a.retriedAnswer.answerIsRetried {
			a.retry.leaveTurn()
		}
	}()
	defer a.recoverPanic()
	reason, finished := a.relayOrGiveBack(c, err)
	if finished {
		a.end(reason)
	}
	return !finished
}

// relayOrGiveBack relays the bytes that were read, and returns the connection to its pool if the session no longer
// needs it. If finished is true, reason is the error for the client, or nil if the client already knows it.
func (a *answers) relayOrGiveBack(c *serverConn, err error) (reason *sqlstate.Error, finished bool) {
	if err != nil {
		switch {
		case a.serverEndsSession:
			return nil, true
		case errors.Is(err, os.ErrDeadlineExceeded) && a.wasOnlyWoken():
			a.giveBack(c)
			return nil, false
		case a.outlives(c):
			return nil, false
		case err == io.EOF:
			err = nil
		}
		return connectionLostError(err), true
	}
	a.outcomes.timeOfRead = time.Now()
	failure := a.scan()
	a.outcomes.reportReturned()
	writeErr := a.flush()
	a.outcomes.record(a.server.metrics)
	switch {
	case writeErr != nil:
		return nil, true // The client has closed its connection.
	case failure != nil:
		return failure, true
	case a.sealExpired && a.tail.remaining == 0:
		a.stop(sealExpiredError())
		return nil, true
	case a.drained:
		return shutdownError(), true
	}
	a.giveBack(c)
	return nil, false
}

// flush sends the client the part of the chunk that it may have.
func (a *answers) flush() error {
	var err error
	if b := a.passedBytes(); len(b) > 0 {
		a.retry.clientWrites.Add(1)
		err = a.clientSink.write(b)
	}
	a.retriedAnswer.hasOtherAnswers = false
	if isPartlySent := err != nil || a.tail.remaining > 0 && !a.tail.isSkipped; isPartlySent != a.partlySent {
		a.partlySent = isPartlySent
		a.setBroken(isPartlySent)
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
func (a *answers) scan() *sqlstate.Error {
	for a.unreadStart < a.unreadEnd && (!a.sealExpired || a.tail.remaining > 0) {
		var needsMore bool
		var err *sqlstate.Error
		switch {
		case a.tail.columns > 0 && !a.tail.isSkipped:
			needsMore, err = a.column()
		case a.tail.remaining > 0:
			a.passTail()
		default:
			needsMore, err = a.message()
		}
		if needsMore || err != nil {
			return err
		}
	}
	return nil
}

// passTail relays or drops the bytes that have arrived of a message whose header was handled before.
func (a *answers) passTail() {
	n := min(a.tail.remaining, a.unreadEnd-a.unreadStart)
	a.tail.remaining -= n
	if a.tail.isSkipped {
		a.drop(n)
	} else {
		a.pass(n)
	}
}

// message handles the next message of the server. needsMore says that more of the message must arrive first.
func (a *answers) message() (needsMore bool, _ *sqlstate.Error) {
	b := (*a.buf)[a.unreadStart:a.unreadEnd]
	a.tail.isSkipped = false
	if len(b) < headerSize {
		return true, nil
	}
	typ := b[0]
	size := int64(binary.BigEndian.Uint32(b[1:]))
	if size < 4 || size > maxAnswer {
		return false, desyncError(errors.New("invalid length of a server's message"))
	}
	length := int(size) + 1
	if !a.isReadWhole(typ) {
		return a.resultMessage(typ, length)
	}
	n := min(length, len(*a.buf))
	if len(b) < n {
		return true, nil // The rest of the message fits into the buffer.
	}
	return false, a.sessionMessage(typ, b[headerSize:n], length-n)
}

// isReadWhole reports whether the proxy must read a message of this type completely before it decides what the client
// gets.
func (a *answers) isReadWhole(typ byte) bool {
	switch typ {
	case 'E', 'N', 'S', 'Z', 'A':
		return true
	case 'D':
		_, ok := a.current().(*settingsEntry)
		return ok
	case 'C':
		e := a.current()
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
func (a *answers) resultMessage(typ byte, length int) (needsMore bool, _ *sqlstate.Error) {
	b := (*a.buf)[a.unreadStart:a.unreadEnd]
	if typ == 'T' {
		switch {
		case length < descriptionHeader:
			return false, desyncError(errDescription)
		case len(b) < descriptionHeader:
			return true, nil // The rest of the message fits into the buffer.
		}
	}
	readsKeys := a.readsKeys(typ)
	answered, body := a.head, []byte(nil)
	if readsKeys && length <= len(*a.buf) {
		if len(b) < length {
			return true, nil // The rest of the message fits into the buffer.
		}
		body = b[headerSize:length]
	}
	if err := a.answer(typ, length-headerSize); err != nil {
		return false, err
	}
	if readsKeys && !a.tail.isSkipped {
		a.readKeys(answered, typ, body)
	}
	n := min(length, len(b))
	if a.tail.columns = 0; typ == 'T' && !a.tail.isSkipped {
		n = descriptionHeader
		a.tail.columns = int(binary.BigEndian.Uint16(b[headerSize:]))
		if a.tail.columns == 0 && length > n {
			return false, desyncError(errDescription)
		}
	}
	a.tail.remaining = length - n
	if a.tail.isSkipped {
		a.drop(n)
		a.inserted, a.endedResult.clientError = append(a.inserted, a.endedResult.clientError...), nil
		a.inserted, a.tail.replacement = append(a.inserted, a.tail.replacement...), nil
	} else {
		a.pass(n)
	}
	return false, nil
}

// current returns the entry of the message that the server is answering now, or nil.
func (a *answers) current() entry {
	if a.head == nil {
		a.head = a.ledger.head()
	}
	return a.head
}

// succeed notes that the server has answered the current entry without an error.
func (a *answers) succeed() {
	a.outcomes.add(a.head)
	a.head = a.ledger.succeed()
}

// answer passes a server message of this type and body length to the current entry.
func (a *answers) answer(typ byte, length int) *sqlstate.Error {
	e := a.current()
	if e == nil || e.base().refusal != nil {
		return desyncError(errUnexpectedAnswer)
	}
	a.tail.isSkipped = e.base().fromProxy || a.endedResult.execution != nil
	isExpected, err := e.handleAnswer(a, typ, length)
	if err == nil && !isExpected {
		return desyncError(errUnexpectedAnswer)
	}
	return err
}
