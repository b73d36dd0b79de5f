//go:build unix

package proxy

import (
	"io"
	"net"
	"os"
	"syscall"
)

const canReadRaw = true

// maxAtOnce is how often a relay reads without having waited before it uses the calls that tell the scheduler.
const maxAtOnce = 4

// rawSource reads a socket, for one goroutine.
type rawSource struct {
	socket  syscall.RawConn
	attempt func(fd uintptr) bool // function for the poller, made once

	buf              *[]byte
	readBytes        int
	readErr          error
	readsWithoutWait int // number of reads without having waited
}

func newRawSource(socket syscall.RawConn) *rawSource {
	s := &rawSource{socket: socket}
	s.attempt = s.read
	return s
}

// take takes a buffer only when the descriptor may have bytes, and gives it back if it has none.
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

// read reports whether there were bytes, the end or an error.
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

// pump writes all bytes that arrive to dst. It stays inside one call of the poller for as long as the connection lives.
// So a wake-up costs a read, a write and the read that finds nothing more.
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

// rawSink writes to a socket, for one goroutine.
type rawSink struct {
	socket  syscall.RawConn
	attempt func(fd uintptr) bool // function for the poller, made once

	rest     []byte
	writeErr error
}

func newRawSink(socket syscall.RawConn) *rawSink {
	s := &rawSink{socket: socket}
	s.attempt = s.write
	return s
}

// send writes all of b.
func (s *rawSink) send(b []byte) error {
	s.rest, s.writeErr = b, nil
	err := s.socket.Write(s.attempt)
	s.rest = nil
	if err != nil {
		return err
	}
	return s.writeErr
}

// write reports whether everything is written, or writing has failed.
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
