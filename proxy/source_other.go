//go:build !unix

package proxy

import "errors"

const canReadRaw = false

func (s *source) takeRaw() (*[]byte, int, error) { return nil, 0, errors.ErrUnsupported }
