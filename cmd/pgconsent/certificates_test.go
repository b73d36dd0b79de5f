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

// withCertificates makes agents log in over TLS with certificates that an authority signs.
func (i *installation) withCertificates(t *testing.T, agents, server *authority.Authority) {
	t.Helper()
	agents.Write(t, filepath.Join(i.dir(), "agents.crt"))
	authority.WritePair(t, server.Issue(t, "localhost", authority.ForServer), i.dir(), "server")
	i.replaceInConfig(t, "chat: { database: app,", "chat: { database: app, auth: cert,",
		"other: { database: app,", "other: { database: app, auth: cert, cert_name: \"spiffe://example.org/other\",",
		"http: {", "tls: { cert: server.crt, key: server.key, client_ca: agents.crt }\nhttp: {")
}

// replaceInConfig replaces texts in the configuration file.
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

// Agents log in with certificates. A session ends when its certificate expires, when the configuration names another
// certificate, or when the login is disabled. A new authority applies after SIGHUP.
func TestCertificateLogins(t *testing.T) {
	i := installDatabase(t)
	expiry := time.Now().Add(24 * time.Hour)
	agents, server := authority.New(t, "agents", nil, expiry), authority.New(t, "servers", nil, expiry)
	i.withCertificates(t, agents, server)
	p, address := i.startServe(t)
	id, err := url.Parse("spiffe://example.org/other")
	if err != nil {
		t.Fatal(err)
	}
	setURI := func(c *x509.Certificate) { c.URIs = []*url.URL{id} }
	loginWith := func(user string, certificate *tls.Certificate) (*pgx.Conn, error) {
		return i.connectWithCertificate(t, address, user, certificate, server)
	}

	chatCertificate, otherCertificate := agents.Issue(t, "chat"), agents.Issue(t, "holder", setURI)
	openConns := map[string]*pgx.Conn{}
	for user, rows := range map[string]int{"chat": 1, "other": 0} {
		conn, err := loginWith(user, map[string]*tls.Certificate{"chat": chatCertificate, "other": otherCertificate}[user])
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
		"another's":                 {"chat", otherCertificate},
		"a Common Name for a URI":   {"other", agents.Issue(t, "other")},
		"a URI for a Common Name":   {"chat", agents.Issue(t, "holder", setURI)},
		"one's own for nobody":      {"nobody", chatCertificate},
		"an agent's for the owner":  {"app_owner_", chatCertificate},
		"without any, for somebody": {"somebody", nil},
	} {
		if _, err := loginWith(c.user, c.certificate); sqlState(err) != "28P01" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pgx.Connect(t.Context(), i.dsn("chat", address)); sqlState(err) != "28P01" {
		t.Errorf("without TLS: %v", err)
	}
	if conn, err := loginWith("app_owner", chatCertificate); err != nil {
		t.Errorf("an owner who shows a certificate: %v", err)
	} else if n := queryInt(t, conn, "SELECT count(*) FROM memories"); n != 2 {
		t.Errorf("the owner sees %d memories", n)
	}

	// A session ends when its certificate expires.
	var shortConn *pgx.Conn
	for lifetime := 2 * time.Second; shortConn == nil; lifetime *= 2 {
		shortConn, err = loginWith("chat", agents.Issue(t, "chat", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(lifetime) }))
		if err != nil && lifetime > tier.Patience {
			t.Fatal(err)
		}
	}
	var pgError *pgconn.PgError
	waitFor(t, "the session ends with its certificate", func() bool {
		_, err := shortConn.Exec(t.Context(), "SELECT 1")
		return errors.As(err, &pgError) || shortConn.IsClosed()
	})
	if pgError == nil || pgError.Code != "57P01" || !strings.Contains(pgError.Message, "the certificate of this session has expired") {
		t.Errorf("the session ends with %v", pgError)
	}

	// A new authority applies after SIGHUP. A file that is not a certificate changes nothing.
	nextAuthority := authority.New(t, "agents", nil, expiry)
	nextAuthority.Write(t, filepath.Join(i.dir(), "agents.crt"))
	p.signal(t, syscall.SIGHUP)
	waitFor(t, "the next authority counts", func() bool { _, err := loginWith("chat", nextAuthority.Issue(t, "chat")); return err == nil })
	if _, err := loginWith("chat", chatCertificate); err == nil {
		t.Error("a certificate of the authority before lets somebody in")
	}
	if err := os.WriteFile(filepath.Join(i.dir(), "agents.crt"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGHUP)
	waitFor(t, "the file is refused", func() bool { return strings.Contains(p.errs.String(), "tls.client_ca cannot be used") })
	if _, err := loginWith("chat", nextAuthority.Issue(t, "chat")); err != nil {
		t.Error(err)
	}
	nextAuthority.Write(t, filepath.Join(i.dir(), "agents.crt"))
	for user, conn := range openConns {
		if err := conn.Ping(t.Context()); err != nil {
			t.Errorf("the session of %s, whose certificate is valid: %v", user, err)
		}
	}

	// Sessions end when the configuration has another name for the agent, or when the login is disabled.
	i.replaceInConfig(t, "spiffe://example.org/other", "spiffe://example.org/another")
	p.signal(t, syscall.SIGHUP)
	waitFor(t, "another name ends the session", func() bool { return openConns["other"].Ping(t.Context()) != nil })
	if _, err := loginWith("other", nextAuthority.Issue(t, "other", setURI)); sqlState(err) != "28P01" {
		t.Errorf("the name before: %v", err)
	}
	runSteps(t, i.config, []commandStep{{"agent disable chat", exitOK, ""}})
	waitFor(t, "disabling ends the session", func() bool { return openConns["chat"].Ping(t.Context()) != nil })
	waitFor(t, "a disabled agent is refused", func() bool {
		_, err := loginWith("chat", nextAuthority.Issue(t, "chat"))
		return sqlState(err) == "28P01"
	})
	runSteps(t, i.config, []commandStep{{"agent add chat", exitOK, ""}})
	waitFor(t, "an agent that is enabled logs in", func() bool { _, err := loginWith("chat", nextAuthority.Issue(t, "chat")); return err == nil })
}
