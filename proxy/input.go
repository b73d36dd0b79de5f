package proxy

import (
	"encoding/binary"
	"io"
	"sync/atomic"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// maxLarge limits the memory, in bytes, of all large messages that the proxy is reading. Buffers smaller than
// largeBuffer do not count, so small statements never fail for lack of memory.
const (
	maxLarge    = 512 << 20
	largeBuffer = 4 << 20
)

// input divides the client's bytes into messages. It takes its buffer from a pool when bytes arrive, and returns the
// buffer when all bytes are used. The buffer grows only as bytes arrive, whatever length a message announces.
type input struct {
	source
	buf                    *[]byte
	largeBuffer            []byte // the buffer in place of buf for a message that does not fit into buf
	unreadStart, unreadEnd int
	bytesToDrop            int       // how many bytes of the current message are still to be discarded
	oversizedLength        int       // the length of the last message if it was too long and is discarded; 0: it was read
	bytesToRelay           int       // how many bytes of the current CopyData are still to be relayed
	lastRead               time.Time // when the last bytes were read

	maxText int // longest text of a Query or a Parse, in bytes

	// These fields count memory, whose limit is maxLarge.
	budget            *atomic.Int64 // bytes in the large buffers of all clients; nil: memory is not counted
	reservedForBuffer int           // bytes that are reserved for the buffer
	reservedForBatch  int           // bytes that are reserved for the batch while more of its group is to come
}

// newInput makes an input that reads the client's bytes from conn.
func newInput(conn io.Reader) *input { return &input{source: newSource(conn), maxText: defaultMaxText} }

// reserveInput reserves memory for a buffer of this size. It fails if all clients together would exceed maxLarge.
func (in *input) reserveInput(size int) error {
	if size < largeBuffer && in.reservedForBuffer == 0 {
		return nil
	}
	return in.reserve(&in.reservedForBuffer, size)
}

// reserveBatch reserves memory for a batch of this size that waits for the rest of its group (messages up to a Sync). A
// small batch is not counted.
func (in *input) reserveBatch(size int) error {
	if size < maxBatch {
		size = 0
	}
	return in.reserve(&in.reservedForBatch, size)
}

// reserve changes a reservation to this size, and fails if maxLarge would be exceeded. A smaller size never fails.
func (in *input) reserve(reserved *int, size int) error {
	if in.budget == nil || size == *reserved {
		return nil
	}
	needed := int64(size - *reserved)
	if in.budget.Add(needed) > maxLarge && needed > 0 {
		in.budget.Add(-needed)
		return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds, "too many large messages are being received").
			WithHint("Try again in a moment, or send smaller parameters.")
	}
	*reserved = size
	return nil
}

func (in *input) bytes() []byte {
	if in.largeBuffer != nil {
		return in.largeBuffer
	}
	if in.buf == nil {
		return nil
	}
	return *in.buf
}

// next returns the next complete message; its body is valid until the next call. ok is false if more bytes must be read
// first. For a Query, Parse or Bind that is too long, body is nil and oversizedLength is set.
func (in *input) next() (typ byte, body []byte, ok bool, err error) {
	in.oversizedLength = 0
	in.dropArrived()
	b := in.bytes()[in.unreadStart:in.unreadEnd]
	if len(b) < 5 {
		return 0, nil, false, nil
	}
	typ = b[0]
	size := int64(binary.BigEndian.Uint32(b[1:5]))
	limit, drop := maxBody(typ, in.maxText)
	switch {
	case limit < 0:
		return 0, nil, false, invalidTypeError(typ)
	case size < 4 || size > 1<<31-1:
		return 0, nil, false, invalidLengthError()
	case size-4 > int64(limit) && (!carriesText(typ) || size-4 > maxDroppedBytes):
		return 0, nil, false, invalidLengthError()
	case size-4 > int64(limit):
		in.oversizedLength, drop = int(size), true
	}
	switch {
	case drop:
		in.unreadStart += 5
		in.bytesToDrop = int(size) - 4
		in.dropArrived()
		return typ, nil, true, nil
	}
	if int64(len(b)) < size+1 {
		return 0, nil, false, nil
	}
	in.unreadStart += int(size) + 1
	return typ, b[5 : size+1], true, nil
}

// dropArrived discards the bytes that have arrived of a message that is to be discarded.
func (in *input) dropArrived() {
	n := min(in.bytesToDrop, in.unreadEnd-in.unreadStart)
	in.bytesToDrop -= n
	in.unreadStart += n
}

func invalidTypeError(typ byte) *sqlstate.Error {
	return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid frontend message type %d", typ)
}

func invalidLengthError() *sqlstate.Error {
	return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid message length")
}

// carriesText reports whether messages of this type hold a text or parameters, and so may be long. If such a message is
// too long, the client gets an error and the session goes on. A wrong length of any other message ends the session,
// since the proxy then cannot know where the message ends.
func carriesText(typ byte) bool { return typ == 'Q' || typ == 'P' || typ == 'B' }

func tooLongError(size, maxText int) *sqlstate.Error {
	return sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds, "message of %d bytes is too long", size).
		WithHint("A statement may have %d MiB of text and 64 MiB of parameters: send long values as parameters, or divide it.", maxText>>20)
}

// fill reads once from the client, and waits for bytes if none have arrived.
func (in *input) fill() error {
	if in.unreadStart == in.unreadEnd {
		in.release()
		in.unreadStart, in.unreadEnd = 0, 0
		buf, n, err := in.take()
		if err != nil {
			return err
		}
		in.buf, in.unreadEnd = buf, n
		in.lastRead = time.Now()
		return nil
	}
	b := in.bytes()
	if in.unreadStart > 0 {
		in.unreadEnd = copy(b, b[in.unreadStart:in.unreadEnd])
		in.unreadStart = 0
	}
	if in.unreadEnd == len(b) {
		if err := in.grow(2 * len(b)); err != nil {
			return err
		}
		b = in.largeBuffer
	}
	n, err := in.peer.Read(b[in.unreadEnd:])
	if n > 0 {
		in.unreadEnd += n
		in.lastRead = time.Now()
		return nil
	}
	return err
}

// grow moves the bytes that have arrived into a buffer of this size.
func (in *input) grow(size int) error {
	if err := in.reserveInput(size); err != nil {
		return err
	}
	grown := make([]byte, size)
	copy(grown, in.bytes())
	if in.buf != nil {
		putBuffer(in.buf)
		in.buf = nil
	}
	in.largeBuffer = grown
	return nil
}

// release returns the buffer to its pool.
func (in *input) release() {
	if in.buf != nil {
		putBuffer(in.buf)
		in.buf = nil
	}
	in.largeBuffer = nil
	_ = in.reserveInput(0) // Reserving less never fails.
}
