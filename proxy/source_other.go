//go:build !unix

package proxy

import (
	"errors"
	"net"
)

const canReadRaw = false

func (s *source) takeRaw() (*[]byte, int, error) { return nil, 0, errors.ErrUnsupported }

func (s *source) pumpRaw(net.Conn) error { return errors.ErrUnsupported }
