package proxy

import (
	"encoding/binary"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// Some rewritten texts are right only for parameter values of certain forms, such as patterns
// ([verdict.Verdict].Forms). For a Bind with other values, the proxy prepares a text that relies on row security alone,
// under a name of the proxy. The client does not notice.

// rowSecurityName is the server's name of the statement that the proxy prepares for a single Bind, most often with a
// text that relies on row security alone.
const rowSecurityName = verdict.SealStatement + "_plain"

// valuesFit reports whether the parameter values of a Bind have the forms that the text of v relies on. rest is the
// Bind behind its names; ok is false if it is malformed.
func valuesFit(v *verdict.Verdict, rest []byte) (valuesFit, ok bool) {
	if len(v.Forms) == 0 {
		return true, true
	}
	values, _, ok := bindValues(rest)
	return ok && v.ParametersFit(values), ok
}

// bindValues returns the parameter values of a Bind and the bytes behind them; NULL is nil. rest is the Bind behind its
// names. Formats are ignored, since a value of type text has the same bytes in both.
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

// withValues returns rest, a Bind behind its names, with other parameter values in the same formats.
func withValues(rest []byte, values [][]byte) (out []byte, ok bool) {
	formats, _, ok := readCount(rest)
	oldValues, remaining, valid := bindValues(rest)
	if !ok || !valid || len(oldValues) != len(values) {
		return nil, false
	}
	return append(appendValues(append(out, rest[:2+2*formats]...), values), remaining...), true
}

// appendValues appends the number of parameter values and the values, as a Bind has them.
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

// textParameters returns the part of a Bind behind its names, for these parameter values, with all parameters and
// results in text format.
func textParameters(values [][]byte) []byte {
	if len(values) == 0 {
		return noParameters
	}
	return append(appendValues([]byte{0, 0}, values), 0, 0)
}

// readCount reads a 16-bit number of elements.
func readCount(b []byte) (n int, rest []byte, ok bool) {
	if len(b) < 2 {
		return 0, nil, false
	}
	return int(binary.BigEndian.Uint16(b)), b[2:], true
}
