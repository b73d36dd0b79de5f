package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/test/tier"
)

// withBalancers tells the proxy that load balancers in these networks send PROXY protocol headers.
func withBalancers(networks ...string) func(*testProxy, *Config) {
	return func(_ *testProxy, c *Config) {
		for _, n := range networks {
			c.BalancerNetworks = append(c.BalancerNetworks, netip.MustParsePrefix(n))
		}
	}
}

// headerV2 returns a PROXY protocol header of version 2.
func headerV2(command, family byte, payload ...byte) []byte {
	b := append([]byte("\r\n\r\n\x00\r\nQUIT\n"), command, family)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(payload))), payload...)
}

// tcp4 is the address part of a version 2 header, with 203.0.113.7:4711 and 192.0.2.1:7432.
var tcp4 = []byte{203, 0, 113, 7, 192, 0, 2, 1, 0x12, 0x67, 0x1d, 0x08}

// tcp6 is the same with 2001:db8::7.
var tcp6 = concatBytes(netip.MustParseAddr("2001:db8::7").AsSlice(), netip.MustParseAddr("2001:db8::1").AsSlice(), tcp4[8:])

func concatBytes(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// viaBalancer connects as an agent over a connection that starts with the header.
func (p *testProxy) viaBalancer(t testing.TB, header []byte, options string) (*pgx.Conn, error) {
	t.Helper()
	config, err := pgx.ParseConfig(p.agentDSN() + " " + options)
	if err != nil {
		t.Fatal(err)
	}
	if config.TLSConfig != nil {
		protos := config.TLSConfig.NextProtos
		config.TLSConfig = p.tlsConf.Clone()
		config.TLSConfig.NextProtos = protos
	}
	config.Fallbacks = nil
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			_, err = nc.Write(header)
		}
		return nc, err
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err == nil {
		t.Cleanup(func() { conn.Close(context.Background()) })
	}
	return conn, err
}

// The client's address is the one in the header, in both ways to begin TLS. If the header has none, it is the socket's.
func TestHeadersOfBalancers(t *testing.T) {
	p := startProxy(t, withTLS(t, "ecdsa", "list"), withBalancers("127.0.0.0/8"))
	const socketAddress = "the socket's"
	for name, c := range map[string]struct {
		header []byte
		want   string
	}{
		"version 1":                 {[]byte("PROXY TCP4 203.0.113.7 192.0.2.1 4711 7432\r\n"), "203.0.113.7:4711"},
		"version 1, IPv6":           {[]byte("PROXY TCP6 2001:db8::7 2001:db8::1 4711 7432\r\n"), "[2001:db8::7]:4711"},
		"version 1, longest":        {[]byte("PROXY UNKNOWN " + strings.Repeat("f", 91) + "\r\n"), socketAddress},
		"version 1, unknown":        {[]byte("PROXY UNKNOWN\r\n"), socketAddress},
		"version 2":                 {headerV2(0x21, 0x11, tcp4...), "203.0.113.7:4711"},
		"version 2, IPv6":           {headerV2(0x21, 0x21, tcp6...), "[2001:db8::7]:4711"},
		"version 2, more behind it": {headerV2(0x21, 0x11, append(bytes.Clone(tcp4), 4, 0, 1, 0)...), "203.0.113.7:4711"},
		"version 2, longest":        {headerV2(0x21, 0x11, append(append(bytes.Clone(tcp4), 4, 0x0f, 0xf1), make([]byte, 4081)...)...), "203.0.113.7:4711"},
		"version 2, local":          {headerV2(0x20, 0x00), socketAddress},
		"version 2, local, TCP":     {headerV2(0x20, 0x11, tcp4...), socketAddress},
		"version 2, unspecified":    {headerV2(0x21, 0x00), socketAddress},
		"version 2, unix":           {headerV2(0x21, 0x31, make([]byte, 216)...), socketAddress},
	} {
		for _, options := range []string{"sslmode=require", "sslmode=require sslnegotiation=direct"} {
			conn, err := p.viaBalancer(t, c.header, options)
			if err != nil {
				t.Errorf("%s, %s: %v", name, options, err)
				continue
			}
			if err := conn.Ping(t.Context()); err != nil {
				t.Errorf("%s, %s: %v", name, options, err)
			}
			want := c.want
			if want == socketAddress {
				want = conn.PgConn().Conn().LocalAddr().String()
			}
			if got := p.lastDecider().info.RemoteAddr; got != want {
				t.Errorf("%s, %s: the client is %s, want %s", name, options, got, want)
			}
			if sessions := p.server.Sessions(); sessions[len(sessions)-1].Remote != want {
				t.Errorf("%s, %s: the session is of %s", name, options, sessions[len(sessions)-1].Remote)
			}
		}
	}
}

// Without TLS, the balancer and the client must both be on the same machine as the proxy.
func TestPlainBehindABalancer(t *testing.T) {
	p := startProxy(t, withBalancers("127.0.0.0/8"))
	for header, want := range map[string]string{
		"PROXY TCP4 127.0.0.9 127.0.0.1 4711 7432\r\n":   "",
		"PROXY UNKNOWN\r\n":                              "",
		"PROXY TCP4 203.0.113.7 127.0.0.1 4711 7432\r\n": "an encrypted connection is required",
	} {
		_, err := p.viaBalancer(t, []byte(header), "sslmode=disable")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", header, err)
		}
	}
}

// A client outside a balancer's network cannot forge an address by a header. A connection from inside it must send
// exactly one header.
func TestForgedHeaders(t *testing.T) {
	line := []byte("PROXY TCP4 203.0.113.7 192.0.2.1 4711 7432\r\n")
	hello, _ := (&pgx3.StartupMessage{ProtocolVersion: protocol30, Parameters: map[string]string{"user": agentName}}).Encode(nil)
	const missingHeaderError, length = "a connection from this network must begin with a PROXY header", "invalid length of startup packet"
	proxyForOtherNetworks := startProxy(t, withBalancers("10.0.0.0/8", "::1/128"))
	proxyForThisNetwork := startProxy(t, withBalancers("10.0.0.0/8", "127.0.0.0/8"))
	withoutBalancer := startProxy(t)
	for name, c := range map[string]struct {
		p     *testProxy
		input []byte
		want  string
	}{
		"from outside":               {proxyForOtherNetworks, line, length},
		"from outside, version 2":    {proxyForOtherNetworks, headerV2(0x21, 0x11, tcp4...), length},
		"without the protocol":       {withoutBalancer, line, length},
		"without it, version 2":      {withoutBalancer, headerV2(0x21, 0x11, tcp4...), length},
		"none":                       {proxyForThisNetwork, hello, missingHeaderError},
		"none, and TLS":              {proxyForThisNetwork, []byte{0, 0, 0, 8, 4, 210, 22, 47}, missingHeaderError},
		"none, and direct TLS":       {proxyForThisNetwork, []byte{0x16, 3, 1, 0, 0}, missingHeaderError},
		"none, and a cancel request": {proxyForThisNetwork, []byte{0, 0, 0, 16, 4, 210, 22, 46, 1, 2, 3, 4, 5, 6, 7, 8}, missingHeaderError},
		"two":                        {proxyForThisNetwork, concatBytes(line, line), length},
		"two, version 2":             {proxyForThisNetwork, concatBytes(headerV2(0x20, 0), headerV2(0x21, 0x11, tcp4...)), length},
		"another protocol":           {proxyForThisNetwork, []byte("GET / HTTP/1.1\r\n\r\n"), missingHeaderError},
		"another word":               {proxyForThisNetwork, []byte("PROXX TCP4 203.0.113.7 192.0.2.1 4711 7432\r\n"), missingHeaderError},
		"no family":                  {proxyForThisNetwork, []byte("PROXY \r\n"), missingHeaderError},
		"another family":             {proxyForThisNetwork, []byte("PROXY UDP4 203.0.113.7 192.0.2.1 4711 7432\r\n"), missingHeaderError},
		"a name":                     {proxyForThisNetwork, []byte("PROXY TCP4 localhost 192.0.2.1 4711 7432\r\n"), missingHeaderError},
		"IPv6 as IPv4":               {proxyForThisNetwork, []byte("PROXY TCP4 2001:db8::7 192.0.2.1 4711 7432\r\n"), missingHeaderError},
		"a port too large":           {proxyForThisNetwork, []byte("PROXY TCP4 203.0.113.7 192.0.2.1 65536 7432\r\n"), missingHeaderError},
		"no carriage return":         {proxyForThisNetwork, []byte("PROXY TCP4 203.0.113.7 192.0.2.1 4711 7432\n"), missingHeaderError},
		"a line too long": {proxyForThisNetwork, append([]byte("PROXY UNKNOWN "), bytes.Repeat([]byte("f"), 200)...),
			missingHeaderError},
		"another signature":         {proxyForThisNetwork, []byte("\r\n\r\n\x00\r\nEXIT\n\x21\x11\x00\x00"), missingHeaderError},
		"another version":           {proxyForThisNetwork, headerV2(0x31, 0x11, tcp4...), missingHeaderError},
		"another command":           {proxyForThisNetwork, headerV2(0x22, 0x11, tcp4...), missingHeaderError},
		"another family, version 2": {proxyForThisNetwork, headerV2(0x21, 0x41, tcp4...), missingHeaderError},
		"another transport":         {proxyForThisNetwork, headerV2(0x21, 0x13, tcp4...), missingHeaderError},
		"datagrams":                 {proxyForThisNetwork, headerV2(0x21, 0x12, tcp4...), missingHeaderError},
		"datagrams, unix":           {proxyForThisNetwork, headerV2(0x21, 0x32, make([]byte, 216)...), missingHeaderError},
		"addresses too short":       {proxyForThisNetwork, headerV2(0x21, 0x11, tcp4[:11]...), missingHeaderError},
		"a rest too long":           {proxyForThisNetwork, append(headerV2(0x21, 0x11)[:14], 0xff, 0xff), missingHeaderError},
	} {
		nc := c.p.dial(t)
		if _, err := nc.Write(c.input); err != nil {
			t.Fatal(err)
		}
		if e := readLastError(t, nc); e == nil || e.Code != "08P01" || e.Severity != "FATAL" || e.Message != c.want {
			t.Errorf("%s: %+v", name, e)
		}
		if c.p.deciders != nil {
			t.Fatalf("%s: a session began", name)
		}
	}
	// A client outside of the networks logs in without a header.
	if err := proxyForOtherNetworks.connect(t, "sslmode=disable").Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if got := proxyForOtherNetworks.lastDecider().info.RemoteAddr; !strings.HasPrefix(got, "127.0.0.1:") {
		t.Errorf("the client is %s", got)
	}
}

// A header that arrives slowly, or never, delays no other client, and is limited by the login timeout.
func TestSlowHeaders(t *testing.T) {
	p := startProxy(t, withBalancers("127.0.0.0/8"), func(_ *testProxy, c *Config) { c.LoginTimeout = 8 * time.Second }) // enough for a slow machine
	line := "PROXY TCP4 127.0.0.9 127.0.0.1 4711 7432\r\n"
	var slowConns []net.Conn
	for n := range 8 {
		nc := p.dial(t)
		if _, err := nc.Write([]byte(line)[:6*n]); err != nil {
			t.Fatal(err)
		}
		slowConns = append(slowConns, nc)
	}
	eventually(t, "accepted", func() bool { p.server.mu.Lock(); defer p.server.mu.Unlock(); return p.server.logins == len(slowConns) })
	if _, err := p.viaBalancer(t, []byte(line), "sslmode=disable"); err != nil {
		t.Errorf("a login beside slow headers: %v", err)
	}
	// A header that arrives byte by byte is accepted in the end.
	lastConn := slowConns[len(slowConns)-1]
	slowReader := iotest.OneByteReader(strings.NewReader(line[6*(len(slowConns)-1):]))
	if _, err := io.Copy(lastConn, slowReader); err != nil {
		t.Fatal(err)
	}
	if conn := p.loginOver(t, lastConn); conn == nil || p.lastDecider().info.RemoteAddr != "127.0.0.9:4711" {
		t.Error("a header in parts is not read")
	}
	for n, nc := range slowConns[:len(slowConns)-1] {
		_ = nc.SetReadDeadline(time.Now().Add(tier.Patience))
		if e := readLastError(t, nc); n > 0 && (e == nil || e.Message != "canceling authentication due to timeout") {
			t.Errorf("%d bytes of a header: %+v", 6*n, e)
		}
	}
}

// A balancer that only checks whether the port is open causes no log line.
func TestProbesOfBalancers(t *testing.T) {
	p := startProxy(t, withBalancers("127.0.0.0/8"))
	for _, sentText := range []string{"", "PROXY "} {
		nc := p.dial(t)
		if _, err := io.WriteString(nc, sentText); err != nil {
			t.Fatal(err)
		}
		nc.Close()
	}
	eventually(t, "gone", func() bool { return len(p.server.open()) == 0 })
	if logText := p.log.String(); strings.Contains(logText, "level=INFO") || strings.Contains(logText, "level=WARN") {
		t.Errorf("the log has %s", logText)
	}
}

// An IPv4 address on a dual-stack socket, which Go shows as IPv6, is compared with the IPv4 networks.
func TestNetworksOfBalancers(t *testing.T) {
	s := &Server{config: Config{BalancerNetworks: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("192.0.2.7/32")}}}
	for address, want := range map[string]bool{
		"10.1.2.3": true, "11.1.2.3": false, "192.0.2.7": true, "192.0.2.8": false, "::ffff:10.1.2.3": true, "fe80::1": true, "fd00::1": false,
	} {
		if got := s.isBehindBalancer(&net.TCPAddr{IP: net.ParseIP(address), Port: 1, Zone: ""}); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
	if !s.isBehindBalancer(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}) {
		t.Error("a zone hides the network")
	}
	if s.isBehindBalancer(&net.UnixAddr{Name: "10.1.2.3", Net: "unix"}) || s.isBehindBalancer(&net.TCPAddr{}) {
		t.Error("a socket without an address is in a network")
	}
}

// FuzzProxyHeader: any header is read exactly to its end, or refused.
func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 203.0.113.7 192.0.2.1 4711 7432\r\nmore"))
	f.Add(append(headerV2(0x21, 0x11, tcp4...), "more"...))
	f.Add(headerV2(0x20, 0))
	f.Add(headerV2(0x21, 0x31, make([]byte, 216)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.NewReader(b)
		header, err := readHeader(in)
		if !bytes.HasPrefix(b, header) || in.Len() != len(b)-len(header) {
			t.Fatalf("%d bytes were read, and %d are left of %d", len(header), in.Len(), len(b))
		}
		if err != nil {
			if !errors.Is(err, errNoHeader) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
			return
		}
		if source, err := headerSource(header); err == nil && source != nil {
			if _, err := netip.ParseAddrPort(fmt.Sprint(source)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
