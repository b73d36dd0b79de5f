//go:build !unix

package proxy

import (
	"errors"
	"net"
	"syscall"
)

const canReadRaw = false

type rawSource struct{}

func newRawSource(syscall.RawConn) *rawSource { return nil }

func (s *rawSource) take() (*[]byte, int, error) { return nil, 0, errors.ErrUnsupported }

func (s *rawSource) pump(net.Conn) error { return errors.ErrUnsupported }

type rawSink struct{}

func newRawSink(syscall.RawConn) *rawSink { return nil }

func (s *rawSink) send([]byte) error { return errors.ErrUnsupported }
