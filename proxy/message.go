package proxy

import (
	"encoding/binary"

	"github.com/jackc/pgproto3/v2"
)

// The maximum lengths in bytes of an agent's messages after login, without type byte and length field.
const (
	defaultMaxText  = 1 << 20   // the text of a Query or a Parse, unless the configuration allows more
	maxParseRest    = 320 << 10 // size of a Parse without its text: a name and 65,535 parameter types
	maxBindBytes    = 64 << 20
	maxOtherBytes   = 10_000  // limit of all other messages, as in PostgreSQL
	maxDroppedBytes = 1 << 30 // limit of messages that are read and discarded, as in PostgreSQL
)

// maxBody returns the longest body of a message of this type, and whether the body is discarded unread. The limit is -1
// for types that an agent may not send after login. maxText limits the text of a Query or a Parse.
func maxBody(typ byte, maxText int) (limit int, drop bool) {
	switch typ {
	case 'Q':
		return maxText + 1, false // The text ends with a zero byte.
	case 'P':
		return maxText + 1 + maxParseRest, false
	case 'B':
		return maxBindBytes, false
	case 'D', 'C', 'E', 'H', 'S', 'X':
		return maxOtherBytes, false
	case 'd', 'F':
		return maxDroppedBytes, true
	case 'c':
		return maxOtherBytes, true
	case 'f':
		return maxOtherBytes, false
	default:
		return -1, false
	}
}

// Each of the decoders below takes the body of one complete message whose length was checked. They allocate no more
// memory than the body has, and ok is false for every body that PostgreSQL would call invalid.

func decodeQuery(body []byte) (text string, ok bool) {
	text, rest, ok := readCString(body)
	return text, ok && len(rest) == 0
}

// decodeParse decodes a Parse. It returns the parameter types undecoded, with their number in front.
func decodeParse(body []byte) (name, text string, types []byte, ok bool) {
	name, rest, ok := readCString(body)
	if !ok {
		return "", "", nil, false
	}
	text, rest, ok = readCString(rest)
	if !ok || len(rest) < 2 || len(rest) != 2+4*int(binary.BigEndian.Uint16(rest)) {
		return "", "", nil, false
	}
	return name, text, rest, true
}

// parameterTypes returns the OIDs of the types in a Parse whose body decodeParse has checked.
func parameterTypes(types []byte) []uint32 {
	var oids []uint32
	for types = types[2:]; len(types) >= 4; types = types[4:] {
		oids = append(oids, binary.BigEndian.Uint32(types))
	}
	return oids
}

// decodeBind decodes the names in a Bind. It returns the formats and parameters undecoded, since the server checks
// them.
func decodeBind(body []byte) (portal, statement string, rest []byte, ok bool) {
	portal, rest, ok = readCString(body)
	if !ok {
		return "", "", nil, false
	}
	statement, rest, ok = readCString(rest)
	return portal, statement, rest, ok
}

// decodeNamed reads the body of a Describe or a Close.
func decodeNamed(body []byte) (object byte, name string, ok bool) {
	if len(body) == 0 || body[0] != 'S' && body[0] != 'P' {
		return 0, "", false
	}
	name, rest, ok := readCString(body[1:])
	return body[0], name, ok && len(rest) == 0
}

func decodeExecute(body []byte) (portal string, rows uint32, ok bool) {
	portal, rest, ok := readCString(body)
	if !ok || len(rest) != 4 {
		return "", 0, false
	}
	return portal, binary.BigEndian.Uint32(rest), true
}

// appendMessage appends a message whose body is made of parts.
func appendMessage(dst []byte, typ byte, parts ...[]byte) []byte {
	n := 4
	for _, p := range parts {
		n += len(p)
	}
	dst = binary.BigEndian.AppendUint32(append(dst, typ), uint32(n))
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return dst
}

// encoder is a message of pgproto3, which is used only to encode messages.
type encoder interface {
	Encode(dst []byte) ([]byte, error)
}

// appendTyped appends m to dst. If m cannot be encoded, dst stays unchanged, and the session later ends because the
// server's answers do not match. This does not happen with messages within their maximum lengths.
func appendTyped(dst []byte, m encoder) []byte {
	b, err := m.Encode(dst)
	if err != nil {
		return dst
	}
	return b
}

func appendQuery(dst []byte, text string) []byte {
	return appendTyped(dst, &pgproto3.Query{String: text})
}

func appendSync(dst []byte) []byte { return appendTyped(dst, &pgproto3.Sync{}) }

func appendParse(dst []byte, name, text string, types []byte) []byte {
	return appendMessage(dst, 'P', []byte(name), zeroByte, []byte(text), zeroByte, types)
}

func appendBind(dst []byte, portal, statement string, rest []byte) []byte {
	return appendMessage(dst, 'B', []byte(portal), zeroByte, []byte(statement), zeroByte, rest)
}

func appendDescribe(dst []byte, object byte, name string) []byte {
	return appendTyped(dst, &pgproto3.Describe{ObjectType: object, Name: name})
}

func appendClose(dst []byte, object byte, name string) []byte {
	return appendTyped(dst, &pgproto3.Close{ObjectType: object, Name: name})
}

func appendExecute(dst []byte, portal string, rows uint32) []byte {
	return appendTyped(dst, &pgproto3.Execute{Portal: portal, MaxRows: rows})
}

var zeroByte = []byte{0}

func appendCommandComplete(dst []byte, tag string) []byte {
	return appendMessage(dst, 'C', []byte(tag), []byte{0})
}
