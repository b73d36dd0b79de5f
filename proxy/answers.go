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

// answers relays the server's answers to the client: it looks at headers, and passes rows on as they arrive, one write
// for each read. Only messages that say something about the session are read whole; errors and notices are rewritten.
type answers struct {
	*session
	relay

	head entry // the entry that the answers belong to; nil: it must be looked up
	tail messageTail

	serverEndsSession bool          // the server has told the client why it ends the session
	drained           bool          // the session is idle, and the proxy drains
	sealExpired       bool          // the server goes on with a transaction that begins after the seal has expired
	sealCode          sqlstate.Code // the SQLSTATE of the server's error for a seal

	endedResult   endedResult
	retriedAnswer retriedAnswer
	outcomes      outcomes
	partlySent    bool // the client has received only a part of a message
}

// messageTail is the part of a message in progress that has not arrived yet.
type messageTail struct {
	remaining   int
	columns     int    // the number of columns of the last RowDescription
	isSkipped   bool   // the message is not relayed
	replacement []byte // what is relayed in its place; nil: nothing
}

// relayChunk handles what was read, or the error of reading. It returns false when the session is over, or has failed.
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

// relayOrGiveBack relays what was read, and gives the connection back where the session needs it no more. Where the
// session is over it returns the reason, and nil if the client was told already.
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

// flush sends the part of the chunk that passes to the client.
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

// desyncError is the end of a session in which the two sides no longer agree on which message is answered.
func desyncError(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.InternalError, sqlstate.ReasonInternal, "internal error in pgconsent").
		WithHint("The operator of pgconsent finds the cause in its log.").WithCause(cause)
}

// scan goes through the chunk. It returns the reason to end the session.
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

// passTail handles what has arrived of the message in progress.
func (a *answers) passTail() {
	n := min(a.tail.remaining, a.unreadEnd-a.unreadStart)
	a.tail.remaining -= n
	if a.tail.isSkipped {
		a.drop(n)
	} else {
		a.pass(n)
	}
}

// message handles the next message. It returns needsMore if too little of the message has arrived.
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

// isReadWhole reports whether messages of this type are read whole: they say something about the session.
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

// resultMessage handles a message that belongs to the result of a client's message, by its header. Its tail passes as
// it arrives, except for the columns of a RowDescription. Where keys of rows are recorded, it is read whole if it fits.
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

// current returns the entry that the answers belong to now.
func (a *answers) current() entry {
	if a.head == nil {
		a.head = a.ledger.head()
	}
	return a.head
}

// succeed ends the current entry with success.
func (a *answers) succeed() {
	a.outcomes.add(a.head)
	a.ledger.succeed()
	a.head = nil
}

// answer has the current entry take a message.
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
