package proxy

import "io"

// relay has the server's bytes on their way to the client: the chunk that was read last, and how much of it passes.
type relay struct {
	source
	clientSink sink // connection to the client

	buf  *[]byte
	r, w int    // buf[r:w] is still to be looked at
	from int    // buf[from:r] passes as it is
	out  []byte // bytes that are sent before buf[from:r]
}

// fill reads the next chunk behind the rest of the last one.
func (c *relay) fill() error {
	if c.r == c.w {
		c.release()
		buf, n, err := c.take()
		if err != nil {
			return err
		}
		c.buf, c.r, c.w = buf, 0, n
		return nil
	}
	b := *c.buf
	c.w = copy(b, b[c.r:c.w])
	c.r, c.from = 0, 0
	n, err := c.peer.Read(b[c.w:]) // The scan before leaves room in the buffer.
	if n > 0 {
		c.w += n
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
	c.r, c.w, c.from = 0, 0, 0
}

// pass lets the next n bytes pass to the client.
func (c *relay) pass(n int) { c.r += n }

// drop leaves the next n bytes out.
func (c *relay) drop(n int) {
	c.out = append(c.out, (*c.buf)[c.from:c.r]...)
	c.r += n
	c.from = c.r
}

// insert adds bytes of the proxy behind the bytes that pass so far.
func (c *relay) insert(b []byte) {
	c.drop(0)
	c.out = append(c.out, b...)
}

// retract removes the bytes that pass so far.
func (c *relay) retract() {
	c.out = c.out[:0]
	c.from = c.r
}

// passedBytes returns the bytes that pass, for one write. They are valid until the next call.
func (c *relay) passedBytes() []byte {
	b := (*c.buf)[c.from:c.r]
	c.from = c.r
	if len(c.out) > 0 {
		c.out = append(c.out, b...)
		b = c.out
	}
	if cap(c.out) > maxKeptBuffer {
		c.out = nil
	}
	c.out = c.out[:0]
	return b
}
