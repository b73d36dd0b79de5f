package proxy

import "io"

// relay has the server's bytes on their way to the client: the chunk that was read last, and how much of it passes.
type relay struct {
	source
	clientSink sink // connection to the client

	buf                    *[]byte
	unreadStart, unreadEnd int    // buf[unreadStart:unreadEnd] is still to be read
	passStart              int    // buf[passStart:unreadStart] passes unchanged
	inserted               []byte // bytes that are sent before buf[passStart:unreadStart]
}

// fill reads the next chunk behind the rest of the last one.
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
	n, err := c.peer.Read(b[c.unreadEnd:]) // The scan before leaves room in the buffer.
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

// pass lets the next n bytes pass to the client.
func (c *relay) pass(n int) { c.unreadStart += n }

// drop leaves the next n bytes out.
func (c *relay) drop(n int) {
	c.inserted = append(c.inserted, (*c.buf)[c.passStart:c.unreadStart]...)
	c.unreadStart += n
	c.passStart = c.unreadStart
}

// insert adds bytes of the proxy behind the bytes that pass so far.
func (c *relay) insert(b []byte) {
	c.drop(0)
	c.inserted = append(c.inserted, b...)
}

// retract removes the bytes that pass so far.
func (c *relay) retract() {
	c.inserted = c.inserted[:0]
	c.passStart = c.unreadStart
}

// passedBytes returns the bytes that pass, for one write. They are valid until the next call.
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
