package proxy

import (
	"encoding/binary"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// A signed text depends on the form of its parameters' values. A Bind of other values binds the same statement under
// row security alone. That is prepared for this Bind under a name of the proxy, and the client does not notice.

// rowSecurityName is the name of the statement that is read under row security alone.
const rowSecurityName = verdict.SealStatement + "_plain"

// valuesFit reports whether a Bind, after its names, has values of the forms that a text depends on. ok is false if the
// Bind is malformed.
func valuesFit(v *verdict.Verdict, rest []byte) (valuesFit, ok bool) {
	if len(v.Forms) == 0 {
		return true, true
	}
	values, _, ok := bindValues(rest)
	return ok && v.ParametersFit(values), ok
}

// bindValues reads the values of a Bind, behind its names, and returns the bytes that follow them. NULL is nil. A value
// of type text has the same bytes in both formats.
func bindValues(rest []byte) (values [][]byte, remaining []byte, ok bool) {
	formats, rest, ok := readCount(rest)
	if !ok || len(rest) < 2*formats {
		return nil, nil, false
	}
	n, rest, ok := readCount(rest[2*formats:])
	if !ok {
		return nil, nil, false
	}
	for range n {
		if len(rest) < 4 {
			return nil, nil, false
		}
		size := int64(int32(binary.BigEndian.Uint32(rest)))
		rest = rest[4:]
		switch {
		case size < 0: // The server refuses lengths below -1.
			values = append(values, nil)
		case size > int64(len(rest)):
			return nil, nil, false
		default:
			values, rest = append(values, rest[:size:size]), rest[size:]
		}
	}
	return values, rest, true
}

// withValues returns what a Bind says of parameters and results, with other values of the parameters in the same formats.
func withValues(rest []byte, values [][]byte) (out []byte, ok bool) {
	formats, _, ok := readCount(rest)
	oldValues, remaining, valid := bindValues(rest)
	if !ok || !valid || len(oldValues) != len(values) {
		return nil, false
	}
	return append(appendValues(append(out, rest[:2+2*formats]...), values), remaining...), true
}

// appendValues appends the number of values and the values.
func appendValues(out []byte, values [][]byte) []byte {
	out = binary.BigEndian.AppendUint16(out, uint16(len(values)))
	for _, value := range values {
		if value == nil {
			out = binary.BigEndian.AppendUint32(out, 1<<32-1)
			continue
		}
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(value))), value...)
	}
	return out
}

// textParameters returns what a Bind says of parameters and results that all have the text format.
func textParameters(values [][]byte) []byte {
	if len(values) == 0 {
		return noParameters
	}
	return append(appendValues([]byte{0, 0}, values), 0, 0)
}

// readCount reads the number of things that follow.
func readCount(b []byte) (n int, rest []byte, ok bool) {
	if len(b) < 2 {
		return 0, nil, false
	}
	return int(binary.BigEndian.Uint16(b)), b[2:], true
}
