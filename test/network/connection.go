package network

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// connection is a client's connection through a relay, with the relay's connection to the server. Two goroutines pass
// its bytes on, one for each direction.
type connection struct {
	from [2]net.Conn   // connections from which bytes are read, by direction
	done chan struct{} // closed when the connection has ended

	mu         sync.Mutex
	fault      Fault
	passed     [2]int64
	dropping   [2]bool // bytes in this direction are discarded
	isEnded    bool
	resetTimer *time.Timer // resets the connection later; nil: never
}

func newConnection(client, server net.Conn) *connection {
	return &connection{from: [2]net.Conn{client, server}, done: make(chan struct{})}
}

// run passes bytes on until both directions have ended.
func (c *connection) run(f Fault) {
	var directions sync.WaitGroup
	c.setFault(f)
	for d := range c.from {
		directions.Go(func() { c.relay(Direction(d)) })
	}
	directions.Wait()
	c.end(Close, ToServer)
}

// setFault sets the fault of the connection. The fault counts bytes from now on.
func (c *connection) setFault(f Fault) {
	c.mu.Lock()
	c.fault, c.passed = f, [2]int64{}
	c.mu.Unlock()
	if f.CloseMode != Never && f.After == 0 {
		c.end(f.CloseMode, f.In)
	}
}

func (c *connection) passedBytes() [2]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passed
}

func (c *connection) relay(d Direction) {
	from, to := c.from[d], c.from[1-d]
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer[:c.maxRead(buffer)])
		if n > 0 {
			passing, closeMode, pause := c.admit(d, n)
			if _, writeErr := to.Write(buffer[:passing]); writeErr != nil {
				c.end(Reset, d)
				return
			}
			if closeMode != Never {
				c.end(closeMode, d)
			}
			c.wait(pause)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && !c.isDropping(d):
			closeWrite(to)
			return
		case errors.Is(err, syscall.ECONNRESET):
			c.end(Reset, d)
			return
		default:
			c.end(Close, d)
			return
		}
	}
}

func (c *connection) maxRead(buffer []byte) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault.MaxBytesAtOnce > 0 {
		return min(c.fault.MaxBytesAtOnce, len(buffer))
	}
	return len(buffer)
}

// admit returns how many of n bytes may pass, how the connection ends after them, and how long the relay then pauses.
func (c *connection) admit(d Direction, n int) (passing int, closeMode CloseMode, pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropping[d] {
		return 0, Never, 0
	}
	if c.fault.CloseMode != Never && c.fault.In == d && c.passed[d]+int64(n) >= c.fault.After {
		n, closeMode = int(c.fault.After-c.passed[d]), c.fault.CloseMode
	}
	c.passed[d] += int64(n)
	return n, closeMode, c.fault.Pause
}

func (c *connection) isDropping(d Direction) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropping[d]
}

// wait waits for the pause, or until the connection ends.
func (c *connection) wait(pause time.Duration) {
	if pause <= 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.done:
	}
}

// end ends the connection. For HalfClose, d is the direction that ends.
func (c *connection) end(mode CloseMode, d Direction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isEnded {
		return
	}
	switch mode {
	case Never:
	case Swallow:
		c.dropping = [2]bool{true, true}
		if after := c.fault.ResetAfter; after > 0 {
			c.resetTimer = time.AfterFunc(after, func() { c.end(Reset, d) })
		}
	case HalfClose:
		c.dropping[d] = true
		closeWrite(c.from[1-d])
	case Close, Reset:
		c.isEnded = true
		if c.resetTimer != nil {
			c.resetTimer.Stop()
		}
		close(c.done)
		for _, side := range c.from {
			if tcp, ok := side.(*net.TCPConn); ok && mode == Reset {
				_ = tcp.SetLinger(0)
			}
			side.Close()
		}
	}
}

func closeWrite(to net.Conn) {
	if w, ok := to.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	}
}
