package proxy

import "io"

// relay holds the chunk of bytes that was last read from the server, and tracks which of them the client gets.
type relay struct {
	source
	clientSink sink // connection to the client

	buf                    *[]byte
	unreadStart, unreadEnd int    // buf[unreadStart:unreadEnd] is not handled yet
	passStart              int    // buf[passStart:unreadStart] goes to the client unchanged
	inserted               []byte // bytes that the client gets before buf[passStart:unreadStart]
}

// fill reads the next chunk. Bytes of the last chunk that are not handled yet stay in front of it.
func (c *relay) fill() error {
	if c.unreadStart == c.unreadEnd {
		c.release()
		buf, n, err := c.take()
		if err != nil {
			return err
		}
		c.buf, c.unreadStart, c.unreadEnd = buf, 0, n
		return nil
	}
	b := *c.buf
	c.unreadEnd = copy(b, b[c.unreadStart:c.unreadEnd])
	c.unreadStart, c.passStart = 0, 0
	n, err := c.peer.Read(b[c.unreadEnd:]) // [answers.scan] always leaves room in the buffer.
	if n > 0 {
		c.unreadEnd += n
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

func (c *relay) release() {
	if c.buf != nil {
		putBuffer(c.buf)
		c.buf = nil
	}
	c.unreadStart, c.unreadEnd, c.passStart = 0, 0, 0
}

// pass marks the next n bytes for the client.
func (c *relay) pass(n int) { c.unreadStart += n }

// drop skips the next n bytes: the client does not get them.
func (c *relay) drop(n int) {
	c.inserted = append(c.inserted, (*c.buf)[c.passStart:c.unreadStart]...)
	c.unreadStart += n
	c.passStart = c.unreadStart
}

// insert adds bytes of the proxy behind those that are marked for the client so far.
func (c *relay) insert(b []byte) {
	c.drop(0)
	c.inserted = append(c.inserted, b...)
}

// retract discards the bytes that are marked for the client and not written yet.
func (c *relay) retract() {
	c.inserted = c.inserted[:0]
	c.passStart = c.unreadStart
}

// passedBytes returns the bytes that are marked for the client, to be written at once. They are valid until the next
// call.
func (c *relay) passedBytes() []byte {
	b := (*c.buf)[c.passStart:c.unreadStart]
	c.passStart = c.unreadStart
	if len(c.inserted) > 0 {
		c.inserted = append(c.inserted, b...)
		b = c.inserted
	}
	if cap(c.inserted) > maxKeptBuffer {
		c.inserted = nil
	}
	c.inserted = c.inserted[:0]
	return b
}
