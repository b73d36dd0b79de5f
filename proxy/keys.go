package proxy

import (
	"bytes"
	"encoding/binary"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// Where the policy has keys of rows recorded, the rows of such results are looked at, and the descriptions of their
// columns kept: what is prepared once and executed often is described once.

// maxDescribed is how many descriptions a session keeps.
const maxDescribed = 256

// watches makes an execution one whose rows are looked at, if its record wants them.
func (e *entry) watches() {
	if k, ok := e.ticket.(verdict.KeyReader); ok && k.ReadsKeys() {
		e.keys = k
	}
}

// wanted tells whether a message is looked at whole.
func (o *answers) wanted(typ byte) bool {
	if typ != 'T' && typ != 'D' {
		return false
	}
	e := o.current()
	switch {
	case e == nil || e.own || o.muted != nil:
		return false
	case typ == 'D':
		return e.keys != nil
	default:
		return e.keys != nil || e.verdict != nil && e.verdict.RecordsKeys &&
			(e.kind == describeStatement || e.kind == describePortal)
	}
}

// look takes a message; nil: it is too long.
func (o *answers) look(e *entry, typ byte, body []byte) {
	switch {
	case typ == 'D' && e.kind == execute:
		formats := e.formats
		if formats == nil {
			formats = []int16{}
		}
		e.keys.Row(o.described[e.verdict.Text], formats, body)
	case typ == 'D':
		e.keys.Row(e.description, nil, body)
	case e.kind == query:
		e.description = bytes.Clone(body)
	default:
		if o.described == nil || len(o.described) >= maxDescribed {
			o.described = map[string][]byte{}
		}
		o.described[e.verdict.Text] = bytes.Clone(body)
	}
}

// resultFormats reads the result formats at the end of a Bind, behind its names; nil: it is none.
func resultFormats(rest []byte) []int16 {
	_, rest, ok := bindValues(rest)
	if !ok {
		return nil
	}
	n, rest, ok := count(rest)
	if !ok || len(rest) < 2*n {
		return nil
	}
	formats := make([]int16, n)
	for i := range formats {
		formats[i] = int16(binary.BigEndian.Uint16(rest[2*i:]))
	}
	return formats
}
