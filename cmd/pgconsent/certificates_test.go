package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/test/authority"
	"github.com/pgconsent/pgconsent/test/tier"
)

// withCertificates makes agents log in by certificates that an authority signs, over TLS.
func (i *installation) withCertificates(t *testing.T, agents, server *authority.Authority) {
	t.Helper()
	agents.Write(t, filepath.Join(i.dir(), "agents.crt"))
	authority.WritePair(t, server.Issue(t, "localhost", authority.ForServer), i.dir(), "server")
	i.replaceInConfig(t, "chat: { database: app,", "chat: { database: app, auth: cert,",
		"other: { database: app,", "other: { database: app, auth: cert, cert_name: \"spiffe://example.org/other\",",
		"http: {", "tls: { cert: server.crt, key: server.key, client_ca: agents.crt }\nhttp: {")
}

// replaceInConfig replaces texts of the configuration.
func (i *installation) replaceInConfig(t *testing.T, pairs ...string) {
	t.Helper()
	text, err := os.ReadFile(i.config)
	if err != nil {
		t.Fatal(err)
	}
	changedText := strings.NewReplacer(pairs...).Replace(string(text))
	if changedText == string(text) {
		t.Fatalf("the configuration has none of %q", pairs)
	}
	if err := os.WriteFile(i.config, []byte(changedText), 0o600); err != nil {
		t.Fatal(err)
	}
}

// connectWithCertificate logs in over TLS with a certificate, or without one for nil.
func (i *installation) connectWithCertificate(t *testing.T, address, user string, certificate *tls.Certificate, server *authority.Authority) (*pgx.Conn,
	error) {
	t.Helper()
	config, err := pgx.ParseConfig(strings.Replace(i.dsn(user, address), "sslmode=disable", "sslmode=require", 1))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnectTimeout = tier.Patience
	config.TLSConfig = &tls.Config{RootCAs: server.Pool(), ServerName: "localhost",
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if certificate == nil {
				return &tls.Certificate{}, nil
			}
			return certificate, nil
		}}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

// Agents log in by certificates. A session ends when its certificate expires, when the configuration names another, or
// when its login is disabled. Another authority counts from SIGHUP on.
func TestCertificateLogins(t *testing.T) {
	i := install(t)
	day := time.Now().Add(24 * time.Hour)
	agents, server := authority.New(t, "agents", nil, day), authority.New(t, "servers", nil, day)
	i.withCertificates(t, agents, server)
	p, address := i.serving(t)
	id, err := url.Parse("spiffe://example.org/other")
	if err != nil {
		t.Fatal(err)
	}
	uri := func(c *x509.Certificate) { c.URIs = []*url.URL{id} }
	showing := func(user string, certificate *tls.Certificate) (*pgx.Conn, error) {
		return i.connectWithCertificate(t, address, user, certificate, server)
	}

	chat, other := agents.Issue(t, "chat"), agents.Issue(t, "holder", uri)
	openConns := map[string]*pgx.Conn{}
	for user, rows := range map[string]int{"chat": 1, "other": 0} {
		conn, err := showing(user, map[string]*tls.Certificate{"chat": chat, "other": other}[user])
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		if n := queryInt(t, conn, "SELECT count(*) FROM memories"); n != rows {
			t.Errorf("%s sees %d memories", user, n)
		}
		openConns[user] = conn
	}
	for name, c := range map[string]struct {
		user        string
		certificate *tls.Certificate
	}{
		"no certificate":            {"chat", nil},
		"another's":                 {"chat", other},
		"a Common Name for a URI":   {"other", agents.Issue(t, "other")},
		"a URI for a Common Name":   {"chat", agents.Issue(t, "holder", uri)},
		"one's own for nobody":      {"nobody", chat},
		"an agent's for the owner":  {"app_owner_", chat},
		"without any, for somebody": {"somebody", nil},
	} {
		if _, err := showing(c.user, c.certificate); sqlState(err) != "28P01" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pgx.Connect(t.Context(), i.dsn("chat", address)); sqlState(err) != "28P01" {
		t.Errorf("without TLS: %v", err)
	}
	if conn, err := showing("app_owner", chat); err != nil {
		t.Errorf("an owner who shows a certificate: %v", err)
	} else if n := queryInt(t, conn, "SELECT count(*) FROM memories"); n != 2 {
		t.Errorf("the owner sees %d memories", n)
	}

	// A certificate that expires ends the session.
	var short *pgx.Conn
	for lifetime := 2 * time.Second; short == nil; lifetime *= 2 {
		short, err = showing("chat", agents.Issue(t, "chat", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(lifetime) }))
		if err != nil && lifetime > tier.Patience {
			t.Fatal(err)
		}
	}
	var ended *pgconn.PgError
	waitFor(t, "the session ends with its certificate", func() bool {
		_, err := short.Exec(t.Context(), "SELECT 1")
		return errors.As(err, &ended) || short.IsClosed()
	})
	if ended == nil || ended.Code != "57P01" || !strings.Contains(ended.Message, "the certificate of this session has expired") {
		t.Errorf("the session ends with %v", ended)
	}

	// Another authority counts from SIGHUP on, and a file that is none changes nothing.
	nextAuthority := authority.New(t, "agents", nil, day)
	nextAuthority.Write(t, filepath.Join(i.dir(), "agents.crt"))
	p.signal(t, syscall.SIGHUP)
	waitFor(t, "the next authority counts", func() bool { _, err := showing("chat", nextAuthority.Issue(t, "chat")); return err == nil })
	if _, err := showing("chat", chat); err == nil {
		t.Error("a certificate of the authority before lets somebody in")
	}
	if err := os.WriteFile(filepath.Join(i.dir(), "agents.crt"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGHUP)
	waitFor(t, "the file is refused", func() bool { return strings.Contains(p.errs.String(), "tls.client_ca cannot be used") })
	if _, err := showing("chat", nextAuthority.Issue(t, "chat")); err != nil {
		t.Error(err)
	}
	nextAuthority.Write(t, filepath.Join(i.dir(), "agents.crt"))
	for user, conn := range openConns {
		if err := conn.Ping(t.Context()); err != nil {
			t.Errorf("the session of %s, whose certificate is valid: %v", user, err)
		}
	}

	// Another name, and a login that is disabled, end sessions.
	i.replaceInConfig(t, "spiffe://example.org/other", "spiffe://example.org/another")
	p.signal(t, syscall.SIGHUP)
	waitFor(t, "another name ends the session", func() bool { return openConns["other"].Ping(t.Context()) != nil })
	if _, err := showing("other", nextAuthority.Issue(t, "other", uri)); sqlState(err) != "28P01" {
		t.Errorf("the name before: %v", err)
	}
	runSteps(t, i.config, []commandStep{{"agent disable chat", exitOK, ""}})
	waitFor(t, "disabling ends the session", func() bool { return openConns["chat"].Ping(t.Context()) != nil })
	waitFor(t, "a disabled agent is refused", func() bool {
		_, err := showing("chat", nextAuthority.Issue(t, "chat"))
		return sqlState(err) == "28P01"
	})
	runSteps(t, i.config, []commandStep{{"agent add chat", exitOK, ""}})
	waitFor(t, "an agent that is enabled logs in", func() bool { _, err := showing("chat", nextAuthority.Issue(t, "chat")); return err == nil })
}
