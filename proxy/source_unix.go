//go:build unix

package proxy

import (
	"io"
	"net"
	"os"
	"syscall"
)

const canReadRaw = true

// maxAtOnce is how often a goroutine reads without waiting before it uses system calls that tell Go's scheduler.
const maxAtOnce = 4

// rawSource reads a socket. Only one goroutine may use it.
type rawSource struct {
	socket  syscall.RawConn
	attempt func(fd uintptr) bool // the method value for the poller, made once

	buf              *[]byte
	readBytes        int
	readErr          error
	readsWithoutWait int // number of reads since the goroutine last waited
}

func newRawSource(socket syscall.RawConn) *rawSource {
	s := &rawSource{socket: socket}
	s.attempt = s.read
	return s
}

// take reads once. It takes a buffer only when the descriptor may have bytes, and returns it to the pool if there are
// none.
func (s *rawSource) take() (*[]byte, int, error) {
	s.readsWithoutWait++
	err := s.socket.Read(s.attempt)
	buf, n, failure := s.buf, s.readBytes, s.readErr
	s.buf, s.readBytes, s.readErr = nil, 0, nil
	if err == nil && failure == nil && n > 0 {
		return buf, n, nil
	}
	if buf != nil {
		putBuffer(buf)
	}
	switch {
	case err != nil:
		return nil, 0, err
	case failure != nil:
		return nil, 0, os.NewSyscallError("read", failure)
	default:
		return nil, 0, io.EOF
	}
}

// read tries to read once, and returns false if the poller must wait for bytes.
func (s *rawSource) read(fd uintptr) bool {
	s.buf = getBuffer()
	s.readBytes, s.readErr = s.readOnce(fd, *s.buf)
	if s.readErr != syscall.EAGAIN {
		return true
	}
	putBuffer(s.buf)
	s.buf, s.readErr, s.readsWithoutWait = nil, nil, 0
	return false
}

func (s *rawSource) readOnce(fd uintptr, b []byte) (n int, err error) {
	for {
		if s.readsWithoutWait < maxAtOnce {
			n, err = receive(fd, b)
		} else {
			n, err = syscall.Read(int(fd), b)
		}
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// pump writes all bytes that arrive to dst, until the source ends. All of it happens in one call of the poller, so each
// wake-up costs only a read, a write and a read that finds nothing more.
func (s *rawSource) pump(dst net.Conn) error {
	target := newSink(dst)
	var failure error
	err := s.socket.Read(func(fd uintptr) bool {
		buf := getBuffer()
		defer putBuffer(buf)
		for s.readsWithoutWait = 0; ; s.readsWithoutWait++ {
			n, err := s.readOnce(fd, *buf)
			switch {
			case err == syscall.EAGAIN:
				return false
			case err != nil:
				failure = os.NewSyscallError("read", err)
				return true
			case n == 0:
				return true
			}
			if failure = target.write((*buf)[:n]); failure != nil {
				return true
			}
		}
	})
	if err != nil {
		return err
	}
	return failure
}

// rawSink writes to a socket. Only one goroutine may use it.
type rawSink struct {
	socket  syscall.RawConn
	attempt func(fd uintptr) bool // the method value for the poller, made once

	rest     []byte
	writeErr error
}

func newRawSink(socket syscall.RawConn) *rawSink {
	s := &rawSink{socket: socket}
	s.attempt = s.write
	return s
}

// send writes all bytes of b to the socket, and waits for room if necessary.
func (s *rawSink) send(b []byte) error {
	s.rest, s.writeErr = b, nil
	err := s.socket.Write(s.attempt)
	s.rest = nil
	if err != nil {
		return err
	}
	return s.writeErr
}

// write writes as much of s.rest as possible, and returns false if the poller must wait for room.
func (s *rawSink) write(fd uintptr) bool {
	for len(s.rest) > 0 {
		n, err := send(fd, s.rest)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return false
		case err != nil:
			s.writeErr = os.NewSyscallError("write", err)
			return true
		}
		s.rest = s.rest[n:]
	}
	return true
}
