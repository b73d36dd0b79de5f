package proxy

import (
	"bytes"
	"encoding/binary"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// If the policy requires the audit to record the keys of rows, the proxy reads the rows of such results. It remembers
// the RowDescription of each text, since a client may describe a statement once and execute it often.

// maxDescriptions is how many RowDescriptions a session remembers at most.
const maxDescriptions = 256

// setKeyReader makes the proxy read the keys in the rows of an execution, if its audit record includes them.
func (x *execution) setKeyReader() {
	if k, ok := x.ticket.(verdict.KeyReader); ok && k.ReadsKeys() {
		x.keyReader = k
	}
}

// readsKeys reports whether the proxy must read the whole of a message of this type: a DataRow with keys for the audit,
// or the RowDescription that describes such rows.
func (a *answers) readsKeys(typ byte) bool {
	if typ != 'T' && typ != 'D' {
		return false
	}
	e := a.current()
	if e == nil || e.base().fromProxy || a.endedResult.execution != nil {
		return false
	}
	if x := e.asExecution(); x != nil && x.keyReader != nil {
		return true
	}
	_, isDescribe := e.(*describeEntry)
	return typ == 'T' && isDescribe && e.base().verdict != nil && e.base().verdict.RecordsKeys
}

// readKeys passes the keys in a DataRow to the audit, or remembers a RowDescription. The message answers e; body is nil
// if it is too long.
func (a *answers) readKeys(e entry, typ byte, body []byte) {
	switch e := e.(type) {
	case *executeEntry:
		if typ == 'D' {
			formats := e.formats
			if formats == nil {
				formats = []int16{}
			}
			e.keyReader.Row(a.descriptions[e.verdict.Text], formats, body)
			return
		}
	case *queryEntry:
		if typ == 'D' {
			e.keyReader.Row(e.description, nil, body)
		} else {
			e.description = bytes.Clone(body)
		}
		return
	}
	if a.descriptions == nil || len(a.descriptions) >= maxDescriptions {
		a.descriptions = map[string][]byte{}
	}
	a.descriptions[e.base().verdict.Text] = bytes.Clone(body)
}

// resultFormats returns the formats that a Bind requests for the result columns, or nil if they are malformed. rest is
// the Bind behind its names.
func resultFormats(rest []byte) []int16 {
	_, rest, ok := bindValues(rest)
	if !ok {
		return nil
	}
	n, rest, ok := readCount(rest)
	if !ok || len(rest) < 2*n {
		return nil
	}
	formats := make([]int16, n)
	for i := range formats {
		formats[i] = int16(binary.BigEndian.Uint16(rest[2*i:]))
	}
	return formats
}
