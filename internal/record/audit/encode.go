package audit

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// This file encodes the records of each execution without reflection, byte for byte as encoding/json does. A test
// compares both.

// appendMembers appends the members of a decision to dst.
func (d *Decision) appendMembers(dst []byte) []byte {
	dst = appendMember(dst, `"session":`, d.Session)
	dst = appendMember(dst, `,"agent":`, d.Agent)
	dst = appendMemberIf(dst, `,"accessed_by":`, d.AccessedBy)
	dst = appendMemberIf(dst, `,"on_behalf_of":`, d.OnBehalfOf)
	dst = appendMember(dst, `,"database":`, d.Database)
	if len(d.Attributes) > 0 {
		dst = appendMap(append(dst, `,"attributes":`...), d.Attributes)
	}
	dst = appendMemberIf(dst, `,"purpose":`, d.Purpose)
	dst = d.Encoding.appendStatement(dst, d)
	dst = strconv.AppendInt(append(dst, `,"epoch":`...), d.Epoch, 10)
	return strconv.AppendBool(append(dst, `,"signed":`...), d.Signed)
}

// appendStatement appends the members of a decision that are about the statement and the verdict on it.
func (d *Decision) appendStatement(dst []byte) []byte {
	dst = appendMember(dst, `,"protocol":`, d.Protocol)
	dst = appendMember(dst, `,"tag":`, d.Tag)
	dst = appendMemberIf(dst, `,"fingerprint":`, d.Fingerprint)
	for i := range d.Tables {
		dst = d.Tables[i].object(append(dst, elementPrefix(i, `,"tables":[`)...))
	}
	dst = listEnd(dst, len(d.Tables))
	dst = appendStringsIf(dst, `,"functions":[`, d.Functions)
	for i := range d.Contracts {
		dst = d.Contracts[i].object(append(dst, elementPrefix(i, `,"contracts":[`)...))
	}
	dst = listEnd(dst, len(d.Contracts))
	dst = appendMember(dst, `,"verdict":`, d.Verdict)
	dst = appendMemberIf(dst, `,"sqlstate":`, d.SQLState)
	dst = appendMemberIf(dst, `,"reason":`, d.Reason)
	dst = appendMemberIf(dst, `,"path":`, d.Path)
	dst = appendMember(dst, `,"policy":`, d.Policy)
	return appendMember(dst, `,"catalog":`, d.Catalog)
}

func (t *Table) object(dst []byte) []byte {
	dst = appendMember(dst, `{"name":`, t.Name)
	dst = appendStringsIf(dst, `,"columns":[`, t.Columns)
	dst = appendMemberIf(dst, `,"source":`, t.DataSource)
	if t.ByKey {
		dst = append(dst, `,"by_key":true`...)
	}
	if t.IsWritten {
		dst = append(dst, `,"written":true`...)
	}
	return append(dst, '}')
}

func (c *Contract) object(dst []byte) []byte {
	dst = appendMember(dst, `{"name":`, c.Name)
	dst = appendMemberIf(dst, `,"by":`, c.Attribute)
	dst = appendMemberIf(dst, `,"value":`, c.Value)
	return append(appendMember(dst, `,"verdict":`, c.Verdict), '}')
}

// appendMembers appends the members of an outcome to dst, without "decision" and "session", which the log adds.
func (o *Outcome) appendMembers(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `,"rows":`...), o.Rows, 10)
	dst = strconv.AppendInt(append(dst, `,"bytes":`...), o.Bytes, 10)
	dst = appendMember(dst, `,"sqlstate":`, o.SQLState)
	for i := range o.Keys {
		dst = o.Keys[i].object(append(dst, elementPrefix(i, `,"keys":[`)...))
	}
	return listEnd(dst, len(o.Keys))
}

func (k *Keys) object(dst []byte) []byte {
	dst = appendMember(dst, `{"table":`, k.Table)
	dst = strconv.AppendBool(append(dst, `,"exact":`...), k.AreComplete)
	return append(appendStringsIf(dst, `,"rows":[`, k.Commitments), '}')
}

// appendMembersOf appends the members of a record of a rare kind, encoded with encoding/json.
func appendMembersOf(dst []byte, record any) ([]byte, error) {
	body, err := json.Marshal(record)
	if err != nil {
		return dst, err
	}
	return append(dst, body[1:len(body)-1]...), nil
}

// elementPrefix returns the text that comes before the i-th element of a list. list is the text that opens the list.
func elementPrefix(i int, list string) string {
	if i == 0 {
		return list
	}
	return ","
}

// listEnd closes a list of n elements. A list without elements was never opened.
func listEnd(dst []byte, n int) []byte {
	if n == 0 {
		return dst
	}
	return append(dst, ']')
}

// appendMember appends a string member; name includes the punctuation around it.
func appendMember(dst []byte, name, value string) []byte {
	return appendString(append(dst, name...), value)
}

// appendMemberIf appends a string member unless it is empty.
func appendMemberIf(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendMember(dst, name, value)
}

func appendStringsIf(dst []byte, name string, values []string) []byte {
	for i, v := range values {
		dst = appendString(append(dst, elementPrefix(i, name)...), v)
	}
	return listEnd(dst, len(values))
}

// appendMap appends an object with its members sorted by name.
func appendMap(dst []byte, values map[string]string) []byte {
	var nameBuffer [8]string
	names := nameBuffer[:0]
	for name := range values {
		names = append(names, name)
	}
	if len(names) > 1 {
		slices.Sort(names)
	}
	for i, name := range names {
		dst = appendString(append(dst, elementPrefix(i, "{")...), name)
		dst = appendString(append(dst, ':'), values[name])
	}
	return append(dst, '}')
}

const hexDigits = "0123456789abcdef"

// plainBytes are the bytes below utf8.RuneSelf that need no escape.
var plainBytes = func() (plain [utf8.RuneSelf]bool) {
	for c := range plain {
		plain[c] = c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return plain
}()

// isPlain reports whether eight bytes are all plainBytes. It compares them at once: in a difference, a byte below the
// one that is subtracted borrows, which sets its highest bit; an equal byte becomes zero by ^, and borrows from one.
func isPlain(s string) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	_ = s[7]
	w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	found := w | (w - ones*' ') | ((w ^ ones*'"') - ones) | ((w ^ ones*'\\') - ones) | ((w ^ ones*'&') - ones) |
		((w ^ ones*'<') - ones) | ((w ^ ones*'>') - ones)
	return found&high == 0
}

// appendString appends a quoted string. Like encoding/json, it escapes <, >, &, U+2028 and U+2029, and replaces invalid
// UTF-8 by U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		if i+8 <= len(s) && isPlain(s[i:i+8]) {
			i += 8
			continue
		}
		c := s[i]
		if c < utf8.RuneSelf {
			if plainBytes[c] {
				i++
				continue
			}
			dst = append(dst, s[from:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
			}
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, s[from:i]...), `\ufffd`...)
			from = i + size
		case r == '\u2028', r == '\u2029':
			dst = append(append(dst, s[from:i]...), '\\', 'u', '2', '0', '2', hexDigits[r&0xf])
			from = i + size
		}
		i += size
	}
	return append(append(dst, s[from:]...), '"')
}
