package proxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// A load balancer in front of the proxy sends the client's address in a header before the client's first byte. This is
// the PROXY protocol (https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt).
const (
	maxHeaderV1    = 107  // longest line of version 1, as the protocol has it
	headHeaderV2   = 16   // length of the fixed part of a version 2 header, which ends with the length of the rest
	maxRestV2      = 4096 // longest rest of a version 2 header that the proxy accepts
	beginsHeader   = 6    // number of first bytes that distinguish a header from a startup packet
	commandProxyV2 = 0x21
)

// isBehindBalancer reports whether connections from an address must begin with a PROXY header.
func (s *Server) isBehindBalancer(source net.Addr) bool {
	tcp, ok := source.(*net.TCPAddr)
	if !ok {
		return false
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	for _, network := range s.config.BalancerNetworks {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// readProxyHeader reads the PROXY header if the connection must begin with one, and stores the client's address. It
// reads no byte behind the header.
func (c *conn) readProxyHeader() error {
	if c.identity != nil || !c.server.isBehindBalancer(c.client.RemoteAddr()) {
		return nil
	}
	header, err := readHeader(c.client)
	switch {
	case err == nil:
		c.source, err = headerSource(header)
	case len(header) == 0 || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errPeerGone // This is a balancer's health check, which sends nothing.
	case !errors.Is(err, errNoHeader):
		return err
	}
	if err != nil {
		balancer := c.client.RemoteAddr().String()
		c.log().Info("a connection without a right PROXY header was refused", "from", balancer, "cause", err)
		return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol,
			"a connection from this network must begin with a PROXY header").
			WithHint("proxy_protocol.from in the configuration of pgconsent lists the network. " +
				"Connect by the load balancer, and have that send the header.")
	}
	return nil
}

// errNoHeader means that a connection does not begin with a PROXY header.
var errNoHeader = errors.New("the connection does not begin with a PROXY header")

// readHeader reads a PROXY header and nothing behind it. It fails at the first byte that no header could have.
func readHeader(r io.Reader) ([]byte, error) {
	header := make([]byte, 0, maxHeaderV1)
	more := func(n int) error {
		offset := len(header)
		header = append(header, make([]byte, n)...)
		count, err := io.ReadFull(r, header[offset:])
		header = header[:offset+count]
		return err
	}
	v1, v2 := []byte("PROXY "), proxyproto.SIGV2[:beginsHeader]
	for len(header) < beginsHeader {
		if err := more(1); err != nil {
			return header, err
		}
		if !bytes.HasPrefix(v1, header) && !bytes.HasPrefix(v2, header) {
			return header, errNoHeader
		}
	}
	if header[0] == v1[0] {
		for header[len(header)-1] != '\n' {
			if len(header) == maxHeaderV1 {
				return header, fmt.Errorf("%w: the line is too long", errNoHeader)
			}
			if err := more(1); err != nil {
				return header, err
			}
		}
		return header, nil
	}
	if err := more(headHeaderV2 - beginsHeader); err != nil {
		return header, err
	}
	restLength := int(binary.BigEndian.Uint16(header[headHeaderV2-2:]))
	if !bytes.HasPrefix(header, proxyproto.SIGV2) || restLength > maxRestV2 {
		return header, fmt.Errorf("%w: it is too long, or begins otherwise", errNoHeader)
	}
	return header, more(restLength)
}

// headerSource returns the client's address from a complete PROXY header. It returns nil if the balancer connects for
// itself, or sends no address.
func headerSource(header []byte) (net.Addr, error) {
	if bytes.HasPrefix(header, proxyproto.SIGV2) && header[12] == commandProxyV2 && header[13] == byte(proxyproto.UNSPEC) {
		return nil, nil // The balancer does not know the address; package proxyproto would fail.
	}
	in := bytes.NewReader(header)
	h, err := proxyproto.Read(bufio.NewReaderSize(in, headHeaderV2+maxRestV2))
	if err != nil {
		return nil, err
	}
	if h.Command.IsLocal() {
		return nil, nil
	}
	switch source := h.SourceAddr.(type) {
	case *net.TCPAddr:
		if _, ok := netip.AddrFromSlice(source.IP); !ok {
			return nil, errors.New("the header has no address of the client")
		}
		return source, nil
	case *net.UnixAddr:
		if h.TransportProtocol.IsStream() {
			return nil, nil // The path of a socket on the balancer's machine is of no use.
		}
	}
	return nil, errors.New("the header is not one of a TCP connection")
}
