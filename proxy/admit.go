package proxy

import (
	"encoding/binary"
	"io"
	"net"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// The codes in the place of a protocol version.
const (
	codeCancel = 1234<<16 | 5678
	codeSSL    = 1234<<16 | 5679
	codeGSS    = 1234<<16 | 5680
)

// The bounds of what is read before a client is known.
const (
	maxStartup = 10_000  // as in PostgreSQL
	maxLogin   = 10_000  // a password message
	maxToken   = 8 << 10 // of it, a token: what identity takes
	// what is read past and forgotten of a password that is too long, so that its sender reads the answer
	maxWasted = 64 << 10
	maxCancel = 4 + 4 + 4 + 256
)

// admit reads up to and including the startup message. It returns nil and no error for a client that wanted something
// else and got it (a cancel request).
//
// Every read takes exactly the bytes of one packet, so nothing that came before a TLS handshake can be taken for
// something said after it: it becomes part of the handshake, which then fails.
func (c *conn) admit() (*startup, error) {
	var triedTLS, triedGSS bool
	for first := true; ; first = false {
		var head [8]byte
		if _, err := io.ReadFull(c.client, head[:1]); err != nil {
			return nil, errGone
		}
		if head[0] == 0x16 && first { // a TLS ClientHello: TLS without being asked for
			if err := c.startTLS(&prefixed{Conn: c.client, prefix: head[:1]}, true); err != nil {
				return nil, err
			}
			continue
		}
		if _, err := io.ReadFull(c.client, head[1:4]); err != nil {
			return nil, truncated(err)
		}
		length := int(binary.BigEndian.Uint32(head[:4]))
		if length < 8 || length > maxStartup {
			return nil, sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid length of startup packet").
				WithHint("This port speaks the PostgreSQL protocol.")
		}
		if _, err := io.ReadFull(c.client, head[4:]); err != nil {
			return nil, truncated(err)
		}
		code := binary.BigEndian.Uint32(head[4:])
		switch {
		case code == codeCancel:
			return nil, c.serveCancel(length - 8)

		case code == codeSSL && length == 8 && !triedTLS && c.binding == nil:
			triedTLS = true
			if err := c.offerTLS(); err != nil {
				return nil, err
			}

		case code == codeGSS && length == 8 && !triedGSS && c.binding == nil:
			triedGSS = true
			if err := c.write([]byte{'N'}); err != nil {
				return nil, errGone
			}

		default:
			packet := make([]byte, length) // bounded by maxStartup
			copy(packet, head[:])
			if _, err := io.ReadFull(c.client, packet[8:]); err != nil {
				return nil, truncated(err)
			}
			return parseStartup(packet)
		}
	}
}

func truncated(err error) error {
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "incomplete startup packet")
	}
	return err
}

// prefixed gives back bytes that were read too early.
type prefixed struct {
	net.Conn
	prefix []byte
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.prefix) > 0 {
		n := copy(b, p.prefix)
		p.prefix = p.prefix[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}
