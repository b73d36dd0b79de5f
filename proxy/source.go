package proxy

import (
	"io"
	"sync"
	"syscall"
)

// bufferSize is the size of a read buffer, and so of most writes.
const bufferSize = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}

func getBuffer() *[]byte  { return buffers.Get().(*[]byte) }
func putBuffer(b *[]byte) { buffers.Put(b) }

// source reads a connection into pooled buffers. Where the operating system lets it wait for bytes without a buffer, an
// idle connection holds none.
type source struct {
	peer io.Reader
	raw  syscall.RawConn // nil: TLS and the like
}

func newSource(conn io.Reader) source {
	s := source{peer: conn}
	if sc, ok := conn.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			s.raw = raw
		}
	}
	return s
}

// take reads once, into a buffer that the caller owns. An error comes without a buffer.
func (s *source) take() (*[]byte, int, error) {
	if s.raw != nil && canReadRaw {
		return s.takeRaw()
	}
	buf := getBuffer()
	n, err := s.peer.Read(*buf)
	if n > 0 {
		return buf, n, nil
	}
	putBuffer(buf)
	if err == nil {
		err = io.ErrNoProgress
	}
	return nil, 0, err
}
