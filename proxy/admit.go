package proxy

import (
	"encoding/binary"
	"io"
	"net"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// The codes that a cancel, TLS or GSS request carries where a startup message has the protocol version.
const (
	codeCancel = 1234<<16 | 5678
	codeSSL    = 1234<<16 | 5679
	codeGSS    = 1234<<16 | 5680
)

// The limits on what the proxy reads from a client before it has authenticated the client.
const (
	maxStartupBytes  = 10_000  // longest startup packet, as in PostgreSQL
	maxPasswordBytes = 10_000  // longest password message
	maxTokenBytes    = 8 << 10 // longest token in a password message, as package identity accepts it
	// how much of an overlong password the proxy still reads and discards, so that the client reads the error
	maxDiscardedBytes = 64 << 10
	maxCancelBytes    = 4 + 4 + 4 + 256
)

// admit reads the PROXY header, if the client's network requires one, and all packets up to and including the startup
// message. It returns nil and errPeerGone, or another error, for a client that sent a cancel request instead.
//
// Every read takes exactly the bytes of one packet. So plain bytes that an attacker injects before the TLS handshake
// never count as encrypted input: they reach the handshake, which then fails.
func (c *conn) admit() (*startup, error) {
	if err := c.readProxyHeader(); err != nil {
		return nil, err
	}
	var triedTLS, triedGSS bool
	for first := true; ; first = false {
		var head [8]byte
		if _, err := io.ReadFull(c.client, head[:1]); err != nil {
			return nil, errPeerGone
		}
		if head[0] == 0x16 && first { // A TLS ClientHello: the client starts with TLS without an SSLRequest.
			if err := c.startTLS(&prefixedConn{Conn: c.client, prefix: head[:1]}, true); err != nil {
				return nil, err
			}
			continue
		}
		length, err := c.readStartupHead(head[:])
		if err != nil {
			return nil, err
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
				return nil, errPeerGone
			}

		default:
			packet := make([]byte, length) // bounded by maxStartupBytes
			copy(packet, head[:])
			if _, err := io.ReadFull(c.client, packet[8:]); err != nil {
				return nil, truncatedError(err)
			}
			return parseStartup(packet)
		}
	}
}

// readStartupHead reads the length and code of a packet whose first byte is already in head, and returns the length.
func (c *conn) readStartupHead(head []byte) (length int, err error) {
	if _, err := io.ReadFull(c.client, head[1:4]); err != nil {
		return 0, truncatedError(err)
	}
	length = int(binary.BigEndian.Uint32(head))
	if length < 8 || length > maxStartupBytes {
		return 0, sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid length of startup packet").
			WithHint("This port speaks the PostgreSQL protocol.")
	}
	if _, err := io.ReadFull(c.client, head[4:8]); err != nil {
		return 0, truncatedError(err)
	}
	return length, nil
}

// truncatedError turns the end of the connection in the middle of a startup packet into a protocol error.
func truncatedError(err error) error {
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "incomplete startup packet")
	}
	return err
}

// prefixedConn is a connection whose first reads return prefix, the bytes that the proxy has already read from it.
type prefixedConn struct {
	net.Conn
	prefix []byte
}

func (p *prefixedConn) Read(b []byte) (int, error) {
	if len(p.prefix) > 0 {
		n := copy(b, p.prefix)
		p.prefix = p.prefix[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}
