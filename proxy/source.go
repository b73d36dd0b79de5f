package proxy

import (
	"io"
	"net"
	"sync"
	"syscall"
)

// bufferSize is the size in bytes of a read buffer, and so the most that one write relays.
const bufferSize = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}

func getBuffer() *[]byte  { return buffers.Get().(*[]byte) }
func putBuffer(b *[]byte) { buffers.Put(b) }

// source reads a connection into pooled buffers. For a socket it takes a buffer only when bytes have arrived, so that
// an idle connection holds none.
type source struct {
	peer io.Reader
	raw  *rawSource // nil: peer is no plain socket but, for example, TLS
}

func newSource(conn io.Reader) source {
	s := source{peer: conn}
	if raw := rawOf(conn); raw != nil {
		s.raw = newRawSource(raw)
	}
	return s
}

// rawOf returns the socket of a connection, which the poller can wait for before a buffer is taken. It returns nil if
// the connection is no plain socket.
func rawOf(conn any) syscall.RawConn {
	if !canReadRaw {
		return nil
	}
	var socket syscall.Conn
	switch c := conn.(type) {
	case *net.TCPConn:
		socket = c
	case *net.UnixConn:
		socket = c
	default:
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// take reads once, into a buffer that the caller then owns. With an error it returns no buffer.
func (s *source) take() (*[]byte, int, error) {
	if s.raw != nil {
		return s.raw.take()
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

// sink writes to a connection. Only one goroutine may use a sink, but others may write to the same connection.
type sink struct {
	peer net.Conn
	raw  *rawSink // nil: peer is no plain socket but, for example, TLS
}

func newSink(conn net.Conn) sink {
	s := sink{peer: conn}
	if raw := rawOf(conn); raw != nil {
		s.raw = newRawSink(raw)
	}
	return s
}

// write writes all bytes of b to the connection, and waits for room if necessary.
func (s *sink) write(b []byte) error {
	if s.raw != nil && len(b) <= maxQuickWrite {
		return s.raw.send(b)
	}
	_, err := s.peer.Write(b)
	return err
}

// maxQuickWrite is the most bytes that are written without telling Go's scheduler (see socket_linux.go).
const maxQuickWrite = 16 << 10
