package proxy

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// connectError connects, and returns the server's error.
func connectError(t testing.TB, dsn string) *pgconn.PgError {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err == nil {
		conn.Close(t.Context())
		t.Fatal("connected")
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		t.Fatalf("no error of the server: %v", err)
	}
	return pg
}

func TestLogin(t *testing.T) {
	p := startProxy(t)
	conn := p.connect(t, "application_name=app")
	var user, app, path, seal string
	if err := conn.QueryRow(t.Context(),
		"SELECT current_user, current_setting('application_name'), current_setting('search_path'), "+
			"current_setting('pgconsent.seal')").Scan(&user, &app, &path, &seal); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(user, app, path, seal); got != "wire_agent"+"app"+"public"+"seal 1" {
		t.Error(got)
	}
	if v := conn.PgConn().ParameterStatus("standard_conforming_strings"); v != "on" {
		t.Errorf("standard_conforming_strings = %q", v)
	}
	if pid := conn.PgConn().PID(); pid < 1<<30 {
		t.Errorf("the client learns the server's process id %d", pid)
	}
	info := p.lastDecider().info
	if info.Agent != agentName || info.Database != p.db.Name || info.BackendPID == 0 || info.ID == "" ||
		!strings.HasPrefix(info.RemoteAddr, "127.0.0.1:") {
		t.Errorf("info: %+v", info)
	}
}

// TestWrongPassword: the answer to a wrong password is the same as to a user that does not exist.
func TestWrongPassword(t *testing.T) {
	p := startProxy(t)
	var errs []string
	for _, c := range [][2]string{{agentName, "wrong"}, {agentName, ""}, {"nobody", "wrong"}, {"nobody", agentPassword}} {
		if c[1] == "" {
			continue // pgx does not support it
		}
		e := connectError(t, p.dsn(c[0], c[1])+" replication=no")
		errs = append(errs, strings.ReplaceAll(fmt.Sprint(e.Severity, e.Code, e.Message, e.Detail, e.Hint), c[0], "USER"))
	}
	for _, e := range errs {
		if e != `FATAL28P01password authentication failed for user "USER"` {
			t.Error(e)
		}
	}
	// Startup settings that are not allowed do not change that answer.
	if e := connectError(t, p.dsn(agentName, "wrong")+" search_path=x"); e.Code != "28P01" {
		t.Error(e)
	}
}

// TestRoutesThatServeNobody: nobody can log in by a route of an unknown kind, by an agent's route without a credential,
// or by a route that refuses, even with the right password.
func TestRoutesThatServeNobody(t *testing.T) {
	credentials := agentCredentials()
	for name, edit := range map[string]func(*Route){
		"refused":                        func(r *Route) { r.Kind = Refused },
		"no kind":                        func(r *Route) { r.Kind = Operator + 1 },
		"an operator that nobody serves": func(r *Route) { r.Kind = Operator },
		"an agent without credential":    func(r *Route) { r.Credential = nil },
		"refused, without credential":    func(r *Route) { r.Kind, r.Credential = Refused, nil },
		"an agent that nobody decides":   func(r *Route) { r.Open = nil },
	} {
		p := startProxy(t, func(p *testProxy, _ *Config) {
			p.editRoute = func(r *Route) {
				if r.Kind == Agent {
					r.Credential = &credentials
					edit(r)
				}
			}
		})
		e := connectError(t, p.agentDSN())
		if (name == "refused" || name == "no kind") && e.Code != "28P01" {
			t.Errorf("%s: %v", name, e)
		}
		if p.deciders != nil {
			t.Errorf("%s: a session began", name)
		}
	}
}

func TestSettings(t *testing.T) {
	p := startProxy(t)
	for options, want := range map[string]string{
		"search_path=x":              "42501",
		"options='-c search_path=x'": "42501",
		`options='-c application_name=a\\ b -csearch_path=x'`: "42501",
		"options='--search-path=x'":                           "42501",
		"options='-c'":                                        "42601",
		"options='-c x'":                                      "42601",
		"options='-d 5'":                                      "42601",
		"options='-E'":                                        "42601",
		"options='x'":                                         "42601",
		"replication=database":                                "42501",
		"replication=true":                                    "42501",
		"options='-c replication=true'":                       "42501",
		"statement_timeout=never":                             "22023",
		"no_such_setting=1":                                   "42704",
	} {
		if e := connectError(t, p.agentDSN()+" "+options); e.Code != want {
			t.Errorf("%s: %v, want %s", options, e, want)
		}
	}
	conn := p.connect(t, `options='-c application_name=a\\ b --statement-timeout=4321'`, "client_encoding=SQL_ASCII", "DateStyle=German")
	for name, want := range map[string]string{"application_name": "a b", "statement_timeout": "4321ms",
		"client_encoding": "UTF8", "DateStyle": "German, DMY"} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q %v, want %q", name, got, err, want)
		}
	}
}

func TestSplitWords(t *testing.T) {
	for in, want := range map[string][]string{
		"": nil, "  ": nil, "a": {"a"}, " a\tb\n": {"a", "b"}, `a\ b c`: {"a b", "c"}, `\\a`: {`\a`}, `a\`: {"a"}, `\ `: {" "}, `a\\ b`: {`a\`, "b"},
	} {
		if diff := cmp.Diff(want, splitWords(in)); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

// makeCertificate makes a self-signed certificate with a key of the given kind.
func makeCertificate(t testing.TB, kind string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	var key any
	var public any
	switch kind {
	case "rsa":
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		key, public = k, &k.PublicKey
	case "ecdsa":
		k, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		key, public = k, &k.PublicKey
	case "ed25519":
		pub, k, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		key, public = k, pub
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, _ := x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// withTLS offers TLS with this certificate, configured in one of the possible ways.
func withTLS(t testing.TB, kind, way string) func(*testProxy, *Config) {
	return func(p *testProxy, c *Config) {
		cert, pool := makeCertificate(t, kind)
		cfg := &tls.Config{}
		get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
		switch way {
		case "list":
			cfg.Certificates = []tls.Certificate{cert}
		case "function":
			cfg.GetCertificate = get
		case "client":
			cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return &tls.Config{GetCertificate: get}, nil }
		}
		c.TLS = func() *tls.Config { return cfg }
		p.tlsConf = &tls.Config{RootCAs: pool, ServerName: "localhost"}
	}
}

// tlsConnect connects as an agent with pgx over TLS.
func (p *testProxy) tlsConnect(t testing.TB, options string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(strings.Replace(p.agentDSN(), "sslmode=prefer", "sslmode=require", 1) + " " + options)
	if err != nil {
		t.Fatal(err)
	}
	protos := cfg.TLSConfig.NextProtos
	cfg.TLSConfig = p.tlsConf.Clone()
	cfg.TLSConfig.NextProtos = protos
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err == nil {
		t.Cleanup(func() { conn.Close(context.Background()) })
	}
	return conn, err
}

func TestTLS(t *testing.T) {
	for _, way := range []string{"list", "function", "client"} {
		for _, kind := range []string{"rsa", "ecdsa", "ed25519"} {
			t.Run(kind+" by "+way, func(t *testing.T) {
				p := startProxy(t, withTLS(t, kind, way))
				for options, isAccepted := range map[string]bool{
					"":                         true,
					"channel_binding=disable":  true,
					"channel_binding=require":  kind != "ed25519", // RFC 5929 has no hash for ed25519
					"sslnegotiation=direct":    true,
					"max_protocol_version=3.2": true,
					"min_protocol_version=3.2": true,
				} {
					conn, err := p.tlsConnect(t, options)
					if (err == nil) != isAccepted {
						t.Errorf("%q: %v", options, err)
					}
					if err == nil {
						if err := conn.Ping(t.Context()); err != nil {
							t.Errorf("%q: %v", options, err)
						}
					}
				}
				// A client on the same machine may connect without TLS.
				if err := p.connect(t, "sslmode=disable").Ping(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestResumption: a client that tries to resume a TLS session can still use channel binding.
func TestResumption(t *testing.T) {
	p := startProxy(t, withTLS(t, "rsa", "list"))
	p.tlsConf.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	for range 3 {
		conn, err := p.tlsConnect(t, "channel_binding=require")
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestChannelBindingToAnotherCertificate: a SCRAM proof that is bound to another certificate is refused.
func TestChannelBindingToAnotherCertificate(t *testing.T) {
	p := startProxy(t, withTLS(t, "rsa", "list"))
	otherProxy := startProxy(t, withTLS(t, "rsa", "list"))
	// A man in the middle speaks TLS to the client with the other certificate and TLS to the proxy, and passes bytes
	// on.
	innerListener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer innerListener.Close()
	cert, pool := makeCertificate(t, "rsa")
	go func() {
		nc, err := innerListener.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		_, _ = io.ReadFull(nc, make([]byte, 8))
		_, _ = nc.Write([]byte{'S'})
		client := tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{cert}})
		upstream, err := net.Dial("tcp", p.addr)
		if err != nil {
			return
		}
		defer upstream.Close()
		_, _ = upstream.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47})
		_, _ = io.ReadFull(upstream, make([]byte, 1))
		server := tls.Client(upstream, p.tlsConf)
		go func() { _, _ = io.Copy(server, client); upstream.Close() }()
		_, _ = io.Copy(client, server)
	}()
	middleProxy := &testProxy{addr: innerListener.Addr().String(), db: p.db, tlsConf: &tls.Config{RootCAs: pool, ServerName: "localhost"}}
	_, err = middleProxy.tlsConnect(t, "")
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "28000" || !strings.Contains(pg.Message, "channel binding") {
		t.Errorf("got %v", err)
	}
	if _, err := otherProxy.tlsConnect(t, "channel_binding=require"); err != nil {
		t.Error(err)
	}
}

// TestBytesBeforeTheHandshake: the proxy never treats bytes that arrive before the TLS handshake as sent after it.
func TestBytesBeforeTheHandshake(t *testing.T) {
	p := startProxy(t, withTLS(t, "ecdsa", "list"))
	nc := p.dial(t)
	startupPacket, _ := (&pgx3.StartupMessage{ProtocolVersion: protocol30, Parameters: map[string]string{"user": agentName}}).Encode(nil)
	_, _ = nc.Write(append([]byte{0, 0, 0, 8, 4, 210, 22, 47}, startupPacket...))
	_, _ = io.ReadFull(nc, make([]byte, 1))
	if err := tls.Client(nc, p.tlsConf).Handshake(); err == nil {
		t.Error("the handshake went through")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.deciders) != 0 {
		t.Error("a session was opened")
	}
}

func TestDirectTLSNeedsItsName(t *testing.T) {
	p := startProxy(t, withTLS(t, "ecdsa", "list"))
	nc := tls.Client(p.dial(t), p.tlsConf)
	if e := readLastError(t, nc); e == nil || e.Code != "08P01" {
		t.Errorf("got %+v", e)
	}
	noTLS := startProxy(t)
	if n, err := noTLS.dialTLS(t).Read(make([]byte, 1)); err == nil || n != 0 {
		t.Error("TLS where none is configured")
	}
}

func (p *testProxy) dialTLS(t testing.TB) net.Conn {
	return tls.Client(p.dial(t), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}})
}

// A client gets the protocol version that it asks for, or the proxy's newest if that is older. It gets none of the
// protocol options that it asks for, as with PostgreSQL 18.
func TestNegotiation(t *testing.T) {
	p := startProxy(t)
	for _, c := range []struct {
		version uint32
		options []string
		want    uint32 // the version in the NegotiateProtocolVersion answer; 0: no such answer
	}{
		{protocol30, nil, 0},
		{protocol30 + 1, nil, 0},
		{protocol32, nil, 0},
		{protocol32 + 1, nil, protocol32},
		{protocol30 + 9999, []string{"_pq_.grease"}, protocol32},
		{protocol30 + 0xffff, nil, protocol32},
		{protocol30, []string{"_pq_.x"}, protocol30},
		{protocol30 + 1, []string{"_pq_.x"}, protocol30 + 1},
		{protocol32, []string{"_pq_.x"}, protocol32},
	} {
		nc := p.dial(t)
		m := map[string]string{"user": agentName, "database": p.db.Name}
		for _, o := range c.options {
			m[o] = "on"
		}
		b, _ := (&pgx3.StartupMessage{ProtocolVersion: c.version, Parameters: m}).Encode(nil)
		_, _ = nc.Write(b)
		frontend := pgx3.NewFrontend(nc, nc)
		got, err := frontend.Receive()
		if err != nil {
			t.Fatal(err)
		}
		v, isOfKind := got.(*pgx3.NegotiateProtocolVersion)
		if isOfKind != (c.want != 0) {
			t.Errorf("%x: %T", c.version, got)
		}
		if isOfKind {
			if v.NewestMinorProtocol != c.want || !slices.Equal(v.UnrecognizedOptions, c.options) {
				t.Errorf("%x: %+v", c.version, v)
			}
			got, err = frontend.Receive()
			if err != nil {
				t.Fatal(err)
			}
		}
		if a, ok := got.(*pgx3.AuthenticationSASL); !ok || fmt.Sprint(a.AuthMechanisms) != "[SCRAM-SHA-256]" {
			t.Errorf("%T", got)
		}
	}
}

// TestRemoteClientsNeedTLS: without TLS, only clients on the same machine are served.
func TestRemoteClientsNeedTLS(t *testing.T) {
	p := startProxy(t)
	for _, user := range []string{agentName, "nobody"} {
		clientEnd, serverEnd := net.Pipe() // a pipe's address is neither loopback nor a unix socket
		c := newConn(p.server, serverEnd)
		if isServed, _ := p.server.add(c, true); !isServed {
			t.Fatal("draining")
		}
		go c.serve()
		b, _ := (&pgx3.StartupMessage{ProtocolVersion: protocol30, Parameters: map[string]string{"user": user}}).Encode(nil)
		_, _ = clientEnd.Write(b)
		if e := readLastError(t, clientEnd); e == nil || e.Code != "28000" || !strings.Contains(e.Message, "encrypted") {
			t.Errorf("got %+v", e)
		}
		clientEnd.Close()
	}
}

// sendSASL sends one password message after the authentication request, and returns the error.
func sendSASL(t *testing.T, p *testProxy, body []byte) *pgx3.ErrorResponse {
	nc := p.dial(t)
	b, _ := (&pgx3.StartupMessage{ProtocolVersion: protocol30, Parameters: map[string]string{"user": agentName}}).Encode(nil)
	_, _ = nc.Write(b)
	if _, err := pgx3.NewFrontend(nc, nc).Receive(); err != nil {
		t.Fatal(err)
	}
	_, _ = nc.Write(appendMessage(nil, 'p', body))
	return readLastError(t, nc)
}

func TestBadSASL(t *testing.T) {
	p := startProxy(t)
	initial := func(mechanism, data string) []byte {
		b := append([]byte(mechanism), 0)
		b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
		return append(b, data...)
	}
	for name, c := range map[string]struct {
		body []byte
		code string
	}{
		"empty":              {nil, "08P01"},
		"one zero":           {[]byte{0}, "08P01"},
		"no length":          {[]byte("SCRAM-SHA-256\x00"), "08P01"},
		"short length":       {[]byte("SCRAM-SHA-256\x00\x00\x00"), "08P01"},
		"length too long":    {[]byte("SCRAM-SHA-256\x00\x00\x00\x00\x09n,,"), "08P01"},
		"negative length":    {[]byte("SCRAM-SHA-256\x00\xff\xff\xff\xff"), "08P01"},
		"no data":            {initial("SCRAM-SHA-256", ""), "08P01"},
		"nonsense":           {initial("SCRAM-SHA-256", "hello"), "08P01"},
		"truncated":          {initial("SCRAM-SHA-256", "n,,n=,r"), "08P01"},
		"another mechanism":  {initial("PLAIN", "n,,n=,r=abc"), "08P01"},
		"plus without TLS":   {initial("SCRAM-SHA-256-PLUS", "p=tls-server-end-point,,n=,r=abc"), "08P01"},
		"binding unselected": {initial("SCRAM-SHA-256", "p=tls-server-end-point,,n=,r=abc"), "08P01"},
		"for another":        {initial("SCRAM-SHA-256", "n,a=admin,n=,r=abc"), "0A000"},
		"huge":               {make([]byte, 9_999), "08P01"},
	} {
		if e := sendSASL(t, p, c.body); e == nil || e.Code != c.code || e.Severity != "FATAL" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if err := p.connect(t).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNoPassword(t *testing.T) {
	p := startProxy(t)
	nc := p.dial(t)
	b, _ := (&pgx3.StartupMessage{ProtocolVersion: protocol30, Parameters: map[string]string{"user": agentName}}).Encode(nil)
	_, _ = nc.Write(b)
	if _, err := pgx3.NewFrontend(nc, nc).Receive(); err != nil {
		t.Fatal(err)
	}
	nc.Close() // as psql does, before it asks the user for the password
	if strings.Contains(p.log.String(), "level=WARN") {
		t.Error("normal traffic is logged as a problem")
	}
}

func TestLoginTimeout(t *testing.T) {
	p := startProxy(t, func(_ *testProxy, c *Config) { c.LoginTimeout = 8 * time.Second }) // long enough for a login on a slow machine
	conn := p.connect(t)
	in := time.Now()
	silentConn, nc := p.dial(t), p.dial(t)
	b, _ := (&pgx3.StartupMessage{ProtocolVersion: protocol30, Parameters: map[string]string{"user": agentName}}).Encode(nil)
	_, _ = nc.Write(b)
	if e := readLastError(t, nc); e == nil || !strings.Contains(e.Message, "timeout") {
		t.Errorf("got %+v", e)
	}
	if n, _ := io.Copy(io.Discard, silentConn); n != 0 {
		t.Errorf("%d bytes for a silent client", n)
	}
	time.Sleep(time.Until(in.Add(8100 * time.Millisecond)))
	if err := conn.Ping(t.Context()); err != nil {
		t.Errorf("the login's deadline outlives it: %v", err)
	}
}

// TestMaxLogins: silent clients cannot occupy all login slots, and a session that is logged in occupies none.
func TestMaxLogins(t *testing.T) {
	p := startProxy(t, func(_ *testProxy, c *Config) { c.MaxLogins = 3 })
	for range 5 {
		p.connect(t, "sslmode=disable")
		p.connectOwner(t, "sslmode=disable")
	}
	var silentConns []net.Conn
	for range 3 {
		silentConns = append(silentConns, p.dial(t))
	}
	eventually(t, "accepted", func() bool { p.server.mu.Lock(); defer p.server.mu.Unlock(); return p.server.logins == 3 })
	if e := connectError(t, p.agentDSN()+" sslmode=disable"); e.Code != "53300" || e.Severity != "FATAL" {
		t.Errorf("got %+v", e)
	}
	silentConns[0].Close()
	eventually(t, "room", func() bool { p.server.mu.Lock(); defer p.server.mu.Unlock(); return p.server.logins == 2 })
	p.connect(t, "sslmode=disable")
}

func TestUpstreamDown(t *testing.T) {
	p := startProxy(t, func(p *testProxy, _ *Config) {
		p.editRoute = func(r *Route) { r.Upstream.Address = filepath.Join(t.TempDir(), "none") }
	})
	for _, user := range []string{agentName, "wire_owner"} {
		if e := connectError(t, p.dsn(user, agentPassword)); e.Code != "08006" || e.Severity != "FATAL" || e.Hint == "" {
			t.Errorf("%s: %+v", user, e)
		}
	}
	p.editRoute = nil
	if err := p.connect(t).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestUpstreamOverTCP(t *testing.T) {
	p := startProxy(t, func(p *testProxy, _ *Config) {
		p.editRoute = func(r *Route) {
			r.Upstream.Network, r.Upstream.Address, r.Upstream.Password = "tcp", fmt.Sprintf("127.0.0.1:%d", pgtest.TCPPort()), "x"
		}
	})
	if err := p.connect(t).Ping(t.Context()); err != nil {
		t.Error(err)
	}
	p.editRoute = func(r *Route) {
		r.Upstream.Network, r.Upstream.Address, r.Upstream.Password = "tcp", fmt.Sprintf("127.0.0.1:%d", pgtest.TCPPort()), "wrong"
	}
	if e := connectError(t, p.agentDSN()); e.Code != "08006" || strings.Contains(e.Message+e.Detail+e.Hint, agentRole) {
		t.Errorf("got %+v", e)
	}
}

func TestNoSession(t *testing.T) {
	p := startProxy(t)
	p.editRoute = func(r *Route) {
		r.Open = func(context.Context, SessionInfo) (verdict.Decider, error) {
			return nil, sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonStale, "the database is not served")
		}
	}
	if e := connectError(t, p.agentDSN()); e.Code != "57P03" || e.Message != "the database is not served" {
		t.Errorf("got %+v", e)
	}
	p.editRoute = func(r *Route) {
		r.Open = func(context.Context, SessionInfo) (verdict.Decider, error) { return nil, errors.New("secret cause") }
	}
	if e := connectError(t, p.agentDSN()); e.Code != "XX000" || strings.Contains(fmt.Sprint(e), "secret") {
		t.Errorf("got %+v", e)
	}
}

// slowConn is a connection whose last write of the login returns long after the other side has read it.
type slowConn struct{ net.Conn }

func (s slowConn) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if bytes.Contains(b, []byte(startTimeQuery)) {
		time.Sleep(100 * time.Millisecond)
	}
	return n, err
}

// If writing to the server takes long, pgx reads in a second goroutine during the login. This goroutine must not
// consume bytes that belong to the session.
func TestSlowWritesWhileLoggingIn(t *testing.T) {
	originalDial := dialServer
	t.Cleanup(func() { dialServer = originalDial })
	dialServer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := originalDial(ctx, network, address)
		return slowConn{conn}, err
	}
	p := startProxy(t, func(_ *testProxy, c *Config) { c.LoginTimeout = tier.Patience })
	var result int
	if err := p.connect(t).QueryRow(t.Context(), "SELECT 1").Scan(&result); err != nil || result != 1 {
		t.Errorf("%d, %v", result, err)
	}
}
