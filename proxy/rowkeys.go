package proxy

import (
	"bytes"
	"encoding/binary"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// Where the policy has the keys of rows recorded, the rows of such results are read. The descriptions of their columns
// are kept, since a statement that is prepared once and executed often is described once.

// maxDescriptions is how many descriptions a session keeps.
const maxDescriptions = 256

// setKeyReader sets up that the keys in the rows of an execution are read, if its audit record has them.
func (x *execution) setKeyReader() {
	if k, ok := x.ticket.(verdict.KeyReader); ok && k.ReadsKeys() {
		x.keyReader = k
	}
}

// readsKeys reports whether a message is read whole for the keys in it, or for what it says of them.
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

// readKeys reads a DataRow or a RowDescription that answers e; the body is nil if the message is too long.
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

// resultFormats reads the result formats at the end of a Bind, behind its names, and returns nil if they are not valid.
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
