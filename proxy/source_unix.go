//go:build unix

package proxy

import (
	"io"
	"net"
	"os"
	"syscall"
)

const canReadRaw = true

// takeRaw takes a buffer only when the descriptor may have bytes, and gives it back if it has none.
func (s *source) takeRaw() (*[]byte, int, error) {
	var buf *[]byte
	var n int
	var failed error
	err := s.raw.Read(func(fd uintptr) bool {
		buf = getBuffer()
		for {
			n, failed = syscall.Read(int(fd), *buf)
			if failed != syscall.EINTR {
				break
			}
		}
		if failed == syscall.EAGAIN {
			putBuffer(buf)
			buf, failed = nil, nil
			return false
		}
		return true
	})
	switch {
	case err == nil && failed == nil && n > 0:
		return buf, n, nil
	case buf != nil:
		putBuffer(buf)
	}
	switch {
	case err != nil:
		return nil, 0, err
	case failed != nil:
		return nil, 0, os.NewSyscallError("read", failed)
	default:
		return nil, 0, io.EOF
	}
}

// pumpRaw writes to dst whatever arrives. It stays inside one call of the poller for as long as the connection lives, so
// that a wake-up costs a read, a write and the read that finds nothing more.
func (s *source) pumpRaw(dst net.Conn) error {
	var failed error
	err := s.raw.Read(func(fd uintptr) bool {
		buf := getBuffer()
		defer putBuffer(buf)
		for {
			n, err := syscall.Read(int(fd), *buf)
			switch {
			case err == syscall.EINTR:
				continue
			case err == syscall.EAGAIN:
				return false
			case err != nil:
				failed = os.NewSyscallError("read", err)
				return true
			case n == 0:
				return true
			}
			if _, failed = dst.Write((*buf)[:n]); failed != nil {
				return true
			}
		}
	})
	if err != nil {
		return err
	}
	return failed
}
