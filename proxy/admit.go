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
	maxStartupBytes  = 10_000  // longest startup packet, as in PostgreSQL
	maxPasswordBytes = 10_000  // longest password message
	maxTokenBytes    = 8 << 10 // longest token in a password message, as package identity accepts it
	// how much of a password that is too long is read and thrown away, so that its sender reads the answer
	maxDiscardedBytes = 64 << 10
	maxCancelBytes    = 4 + 4 + 4 + 256
)

// admit reads the header of a load balancer, if there must be one, and up to and including the startup message. It
// returns nil and no error for a client that sent a cancel request instead.
//
// Every read takes exactly the bytes of one packet. So plain bytes that a client, or an attacker, sends before the TLS
// handshake cannot count as sent after it. They become part of the handshake, which then fails.
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

// readStartupHead reads a packet's head, of which the first byte was read already, and returns the packet's length.
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

// truncatedError is the error of a client that closed the connection in the middle of a packet.
func truncatedError(err error) error {
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "incomplete startup packet")
	}
	return err
}

// prefixedConn is a connection whose reader first gets bytes that were read too early.
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
