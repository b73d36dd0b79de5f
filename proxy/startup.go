package proxy

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/jackc/pgproto3/v2"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// The protocol versions in which the proxy answers clients. Version 3.2, of PostgreSQL 18, has longer cancel keys; a
// client that asks for 3.1 is treated as one of 3.0.
const (
	protocol30 = 3 << 16
	protocol32 = protocol30 + 2
)

// startup is a decoded startup message of a client.
type startup struct {
	packet     []byte // the startup packet as the client sent it
	minor      uint32
	user       string
	database   string    // name of the database; by default the user's name
	options    string    // the parameter options: command-line options
	settings   []setting // all other settings, in their order
	extensions []string  // names of protocol options "_pq_.…", none of which the proxy supports
}

// setting is a setting in a startup message; origin is "startup" or "options".
type setting struct{ name, value, origin string }

// parseStartup decodes a complete startup packet as PostgreSQL does.
func parseStartup(packet []byte) (*startup, error) {
	version := binary.BigEndian.Uint32(packet[4:8])
	if version>>16 != 3 {
		return nil, sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonProtocol,
			"unsupported frontend protocol %d.%d: server supports 3.0 to 3.2", version>>16, version&0xffff)
	}
	st := &startup{packet: packet, minor: version & 0xffff}
	rest := packet[8:]
	for {
		key, remaining, ok := readCString(rest)
		if !ok {
			return nil, invalidStartupError()
		}
		if key == "" {
			if len(remaining) != 0 {
				return nil, invalidStartupError()
			}
			break
		}
		value, remaining, ok := readCString(remaining)
		if !ok {
			return nil, invalidStartupError()
		}
		rest = remaining
		st.add(key, value)
	}
	if st.user == "" {
		return nil, sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity,
			"no PostgreSQL user name specified in startup packet")
	}
	if st.database == "" {
		st.database = st.user
	}
	return st, nil
}

// add adds one parameter of the startup message.
func (st *startup) add(key, value string) {
	switch {
	case key == "user":
		st.user = value
	case key == "database":
		st.database = value
	case key == "options":
		st.options = value
	case strings.HasPrefix(key, "_pq_."):
		st.extensions = append(st.extensions, key)
	default:
		st.settings = append(st.settings, setting{key, value, "startup"})
	}
}

func invalidStartupError() error {
	return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol,
		"invalid startup packet layout: expected terminator as last byte")
}

// readCString returns the zero-terminated string at the beginning of b, and the bytes behind it.
func readCString(b []byte) (s string, rest []byte, ok bool) {
	i := bytes.IndexByte(b, 0)
	if i < 0 {
		return "", nil, false
	}
	return string(b[:i]), b[i+1:], true
}

// version returns the protocol version in which the proxy answers: the client's, but at most the newest that the proxy
// supports.
func (st *startup) version() uint32 { return min(protocol30+st.minor, protocol32) }

// negotiation returns the NegotiateProtocolVersion message for a client that requests a newer minor version or protocol
// options. It returns nil for other clients.
func (st *startup) negotiation() []byte {
	if protocol30+st.minor <= protocol32 && len(st.extensions) == 0 {
		return nil
	}
	b, _ := (&pgx3.NegotiateProtocolVersion{NewestMinorProtocol: st.version(), UnrecognizedOptions: st.extensions}).Encode(nil)
	return b
}

// cancelSecretBytes returns the length of the secret in the client's cancel key.
func (st *startup) cancelSecretBytes() int {
	if st.version() < protocol32 {
		return 4
	}
	return 32
}

// replay returns the startup packet for the owner's server. It is the client's packet, with the database's name
// replaced if the server has another one.
func (st *startup) replay(database string) ([]byte, error) {
	if database == "" || database == st.database {
		return st.packet, nil
	}
	out := append([]byte(nil), st.packet[:8]...)
	out = appendCString(appendCString(out, "database"), database)
	for rest := st.packet[8:]; ; {
		key, remaining, ok := readCString(rest)
		if !ok || key == "" {
			break
		}
		value, remaining, _ := readCString(remaining)
		rest = remaining
		if key != "database" {
			out = appendCString(appendCString(out, key), value)
		}
	}
	out = append(out, 0)
	if len(out) > maxStartupBytes {
		return nil, invalidStartupError()
	}
	binary.BigEndian.PutUint32(out, uint32(len(out)))
	return out, nil
}

func appendCString(b []byte, s string) []byte { return append(append(b, s...), 0) }

// encodeError appends e to dst as an ErrorResponse; severity is "ERROR" or "FATAL".
func encodeError(dst []byte, severity string, e *sqlstate.Error) []byte {
	b, err := (&pgproto3.ErrorResponse{
		Severity:            severity,
		SeverityUnlocalized: severity,
		Code:                string(e.Code),
		Message:             withoutNULs(e.Message),
		Detail:              withoutNULs(e.Detail),
		Hint:                withoutNULs(e.Hint),
		Position:            int32(e.Position),
	}).Encode(dst)
	if err != nil { // The message would exceed the protocol's maximum length.
		return dst
	}
	return b
}

// appendNotice appends a NoticeResponse with this text to dst.
func appendNotice(dst []byte, text string) []byte {
	b, err := (&pgproto3.NoticeResponse{
		Severity: "NOTICE", SeverityUnlocalized: "NOTICE", Code: string(sqlstate.SuccessfulCompletion), Message: withoutNULs(text),
	}).Encode(dst)
	if err != nil {
		return dst
	}
	return b
}

// withoutNULs removes NUL bytes from a text that quotes a client's input: they would end a field of the message early.
func withoutNULs(s string) string { return strings.ReplaceAll(s, "\x00", "") }
