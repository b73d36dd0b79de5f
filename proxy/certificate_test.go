package proxy

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/test/authority"
)

// withCertificate makes the agent log in by a certificate that is issued by the authority for the agent's name.
func withCertificate(t testing.TB, ca *authority.Authority) func(*testProxy, *Config) {
	return func(p *testProxy, c *Config) {
		withTLS(t, "ecdsa", "list")(p, c)
		cfg := c.TLS()
		cfg.ClientAuth, cfg.ClientCAs = tls.VerifyClientCertIfGiven, ca.Pool()
		credentials := agentCredentials() // not even the right password is accepted
		p.editRoute = func(r *Route) {
			if r.Kind == Agent {
				r.Credential = &credentials
				r.Certificate = func(agentCertificate *x509.Certificate) error {
					if agentCertificate.Subject.CommonName != agentName {
						return errors.New("another name")
					}
					return nil
				}
			}
		}
	}
}

// connectWithCertificate connects as a user, with a certificate unless it is nil.
func (p *testProxy) connectWithCertificate(t testing.TB, certificate *tls.Certificate, user, password string) (*pgx.Conn, error) {
	t.Helper()
	cfg, err := pgx.ParseConfig(strings.Replace(p.dsn(user, password), "sslmode=prefer", "sslmode=require", 1))
	if err != nil {
		t.Fatal(err)
	}
	cfg.TLSConfig = p.tlsConf.Clone()
	// The client sends its certificate whatever authorities the server names, as libpq does.
	cfg.TLSConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if certificate == nil {
			return &tls.Certificate{}, nil
		}
		return certificate, nil
	}
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err == nil {
		t.Cleanup(func() { conn.Close(context.Background()) })
	}
	return conn, err
}

// An agent that logs in by certificate cannot log in by a password. The error is the same as for a wrong password, and
// as for a user who does not exist.
func TestCertificates(t *testing.T) {
	ca := authority.New(t, "agents", nil, time.Now().Add(24*time.Hour))
	p := startProxy(t, withCertificate(t, ca))
	agentCertificate := ca.Issue(t, agentName)
	conn, err := p.connectWithCertificate(t, agentCertificate, agentName, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if info := p.lastDecider().info; !info.ExpiresAt.Equal(agentCertificate.Leaf.NotAfter) || !info.ExpiresWithCertificate {
		t.Errorf("the session ends at %v, and the certificate at %v", info.ExpiresAt, agentCertificate.Leaf.NotAfter)
	}
	sessions := len(p.deciders)

	asUnit := func(c *x509.Certificate) { c.Subject.OrganizationalUnit = []string{agentName} }
	for name, c := range map[string]struct {
		certificate    *tls.Certificate
		user, password string
	}{
		"none":                              {nil, agentName, agentPassword},
		"another's":                         {ca.Issue(t, "other"), agentName, agentPassword},
		"another's in another case":         {ca.Issue(t, strings.ToUpper(agentName)), agentName, agentPassword},
		"another's, and a wrong password":   {ca.Issue(t, "other"), agentName, "wrong"},
		"one's own for somebody who is not": {agentCertificate, "nobody", agentPassword},
		"none, for somebody who is not":     {nil, "nobody", agentPassword},
		"another's name behind a zero byte": {ca.Issue(t, agentName+"\x00.example"), agentName, agentPassword},
		"the agent's as a unit":             {ca.Issue(t, "other", asUnit), agentName, agentPassword},
	} {
		_, err := p.connectWithCertificate(t, c.certificate, c.user, c.password)
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(pgErr.Severity, pgErr.Code, pgErr.Message, pgErr.Detail, pgErr.Hint); got !=
			`FATAL28P01password authentication failed for user "`+c.user+`"` {
			t.Errorf("%s: %s", name, got)
		}
	}
	if e := connectError(t, p.agentDSN()+" sslmode=disable"); e.Code != "28P01" {
		t.Errorf("without TLS: %v", e)
	}
	if !strings.Contains(p.log.String(), "a certificate was refused") {
		t.Error("the log does not say why")
	}

	// The TLS handshake fails with a certificate that another authority issued, that has expired, or that is not for
	// clients.
	server := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	setExpired := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	setNotYetValid := func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }
	for name, certificate := range map[string]*tls.Certificate{
		"of another authority": authority.New(t, "agents", nil, time.Now().Add(time.Hour)).Issue(t, agentName),
		"for servers":          ca.Issue(t, agentName, server),
		"expired":              ca.Issue(t, agentName, setExpired),
		"not valid yet":        ca.Issue(t, agentName, setNotYetValid),
		"signed by an agent":   (&authority.Authority{Certificate: agentCertificate.Leaf, Key: agentCertificate.PrivateKey.(*ecdsa.PrivateKey)}).Issue(t, agentName),
	} {
		for _, user := range []string{agentName, "nobody"} {
			_, err := p.connectWithCertificate(t, certificate, user, agentPassword)
			if pgErr := new(pgconn.PgError); err == nil || errors.As(err, &pgErr) {
				t.Errorf("%s, as %s: %v", name, user, err)
			}
		}
	}
	if len(p.deciders) != sessions {
		t.Error("a session was opened")
	}
}

// An agent with a password is asked for it, whatever certificate it sends. Its session does not end when that
// certificate expires.
func TestCertificateOfAnAgentWithAPassword(t *testing.T) {
	ca := authority.New(t, "agents", nil, time.Now().Add(24*time.Hour))
	p := startProxy(t, withCertificate(t, ca))
	p.editRoute = nil
	agentCertificate := ca.Issue(t, agentName)
	if _, err := p.connectWithCertificate(t, agentCertificate, agentName, "wrong"); err == nil || !strings.Contains(err.Error(), "28P01") {
		t.Errorf("a wrong password: %v", err)
	}
	for _, certificate := range []*tls.Certificate{agentCertificate, ca.Issue(t, "other"), nil} {
		if _, err := p.connectWithCertificate(t, certificate, agentName, agentPassword); err != nil {
			t.Error(err)
		}
		if expiry := p.lastDecider().info.ExpiresAt; !expiry.IsZero() {
			t.Errorf("the session ends at %v", expiry)
		}
	}
}

// A session ends when any certificate in the chain between the agent's and the authority's expires.
func TestChainOfCertificates(t *testing.T) {
	ca := authority.New(t, "agents", nil, time.Now().Add(24*time.Hour))
	intermediate := authority.New(t, "department", ca, time.Now().Add(10*time.Minute))
	p := startProxy(t, withCertificate(t, ca))
	agentCertificate := intermediate.Issue(t, agentName)
	agentCertificate.Certificate = append(agentCertificate.Certificate, intermediate.Certificate.Raw)
	if _, err := p.connectWithCertificate(t, agentCertificate, agentName, ""); err != nil {
		t.Fatal(err)
	}
	if got := p.lastDecider().info.ExpiresAt; !got.Equal(intermediate.Certificate.NotAfter) {
		t.Errorf("the session ends at %v, and the authority between at %v", got, intermediate.Certificate.NotAfter)
	}
}

// What the server requests from a client does not tell whether an agent logs in by certificate, or whether the agent
// exists.
func TestRefusedCertificatesTellNothing(t *testing.T) {
	ca := authority.New(t, "agents", nil, time.Now().Add(24*time.Hour))
	p := startProxy(t, withCertificate(t, ca))
	var transcripts []string
	for _, user := range []string{agentName, "nobody"} {
		nc := tls.Client(p.dial(t), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}, Certificates: []tls.Certificate{*ca.Issue(t, "other")}})
		transcripts = append(transcripts, strings.ReplaceAll(refusedBySCRAM(t, nc, user), user, "USER"))
	}
	if transcripts[0] != transcripts[1] || !strings.Contains(transcripts[0], "SCRAM-SHA-256") || !strings.Contains(transcripts[0], "28P01") {
		t.Errorf("%q", transcripts)
	}
}

// refusedBySCRAM goes through the SCRAM exchange with a wrong proof. It returns the server's messages without their
// random parts.
func refusedBySCRAM(t *testing.T, nc net.Conn, user string) string {
	t.Helper()
	frontend := pgx3.NewFrontend(nc, nc)
	var transcript []string
	sendMessage := func(m pgx3.FrontendMessage) {
		frontend.Send(m)
		if err := frontend.Flush(); err != nil {
			t.Fatal(err)
		}
		got, err := frontend.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch got := got.(type) {
		case *pgx3.AuthenticationSASL:
			transcript = append(transcript, strings.Join(got.AuthMechanisms, " "))
		case *pgx3.AuthenticationSASLContinue:
			transcript = append(transcript, string(got.Data))
		case *pgx3.ErrorResponse:
			transcript = append(transcript, got.Severity, got.Code, got.Message, got.Detail, got.Hint)
		default:
			t.Fatalf("%T", got)
		}
	}
	sendMessage(&pgx3.StartupMessage{ProtocolVersion: protocol30, Parameters: map[string]string{"user": user}})
	sendMessage(&pgx3.SASLInitialResponse{AuthMechanism: mechanism, Data: []byte("n,,n=,r=abc")})
	nonce, _, _ := strings.Cut(transcript[1], ",")
	_, rounds, _ := strings.Cut(transcript[1], ",i=")
	transcript[1] = fmt.Sprintf("%d bytes, %s rounds", len(nonce), rounds)
	sendMessage(&pgx3.SASLResponse{Data: []byte("c=biws," + nonce + ",p=" + base64.StdEncoding.EncodeToString(make([]byte, 32)))})
	return strings.Join(transcript, "; ")
}

// psql can log in by a certificate.
func TestPsqlCertificate(t *testing.T) {
	ca := authority.New(t, "agents", nil, time.Now().Add(24*time.Hour))
	p := startProxy(t, withCertificate(t, ca))
	agentCertificate := ca.Issue(t, agentName)
	dir := t.TempDir()
	certificate, key := authority.WritePair(t, agentCertificate, dir, "agent")
	dsn := strings.Replace(p.dsn(agentName, ""), "sslmode=prefer", "sslmode=require", 1)
	for _, c := range []struct {
		extraOptions string
		want         string
	}{
		{" sslcert=" + certificate + " sslkey=" + key, "wire_agent"},
		{" sslcert=" + filepath.Join(dir, "none"), "no password supplied"},
	} {
		cmd := exec.Command(requireTool(t, "psql"), "-XAtw", dsn+c.extraOptions, "-c", "SELECT current_user")
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") })
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), c.want) {
			t.Errorf("got %q, want %q", out, c.want)
		}
	}
}
