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

// relayOrGiveBack relays what was read, and gives the connection back where the session needs it no more. Where the
// session is over it returns the reason, and nil if the client was told already.
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

// flush sends the part of the chunk that passes to the client.
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

// desyncError is the end of a session in which the two sides no longer agree on which message is answered.
func desyncError(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.InternalError, sqlstate.ReasonInternal, "internal error in pgconsent").
		WithHint("The operator of pgconsent finds the cause in its log.").WithCause(cause)
}

// scan goes through the chunk. It returns the reason to end the session.
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

// passTail handles what has arrived of the message in progress.
func (o *answers) passTail() {
	n := min(o.tail.remaining, o.unreadEnd-o.unreadStart)
	o.tail.remaining -= n
	if o.tail.isSkipped {
		o.drop(n)
	} else {
		o.pass(n)
	}
}

// message handles the next message. It returns needsMore if too little of the message has arrived.
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

// isReadWhole reports whether messages of this type are read whole: they say something about the session.
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

// resultMessage handles a message that belongs to the result of a client's message, by its header. Its tail passes as
// it arrives, except for the columns of a RowDescription. Where keys of rows are recorded, it is read whole if it fits.
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

// current returns the entry that the answers belong to now.
func (o *answers) current() entry {
	if o.head == nil {
		o.head = o.ledger.head()
	}
	return o.head
}

// succeed ends the current entry with success.
func (o *answers) succeed() {
	o.outcomes.add(o.head)
	o.ledger.succeed()
	o.head = nil
}

// answer has the current entry take a message.
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
