//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/test/authority"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The audit has the client's address that a load balancer sends, also on a socket that serve was passed. On a unix
// socket, no such header is accepted.
func TestProxyProtocol(t *testing.T) {
	i := installDatabase(t)
	server := authority.New(t, "servers", nil, time.Now().Add(24*time.Hour))
	authority.WritePair(t, server.Issue(t, "localhost", authority.ForServer), i.dir(), "server")
	i.replaceInConfig(t, "http: {", "tls: { cert: server.crt, key: server.key }\nproxy_protocol: { from: [127.0.0.0/8] }\nhttp: {",
		`audit: { mode: "off" }`, "audit: { mode: strict, file: audit }")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, path := l.Addr().String(), filepath.Join(t.TempDir(), ".s.PGSQL.7432")
	socket, err := l.(*net.TCPListener).File()
	l.Close()
	if err != nil {
		t.Fatal(err)
	}
	p := i.startServeOnSockets(t, address+","+path, socket)
	socket.Close()
	p.listenAddress(t)

	login := func(header string, editConnConfig func(*pgx.ConnConfig)) (*pgx.Conn, error) {
		config, err := pgx.ParseConfig(strings.Replace(i.dsn("chat", address), "sslmode=disable", "sslmode=require", 1))
		if err != nil {
			t.Fatal(err)
		}
		config.ConnectTimeout = tier.Patience
		config.TLSConfig = &tls.Config{RootCAs: server.Pool(), ServerName: "localhost"}
		config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			netConn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				_, err = netConn.Write([]byte(header))
			}
			return netConn, err
		}
		editConnConfig(config)
		return pgx.ConnectConfig(t.Context(), config)
	}
	conn, err := login("PROXY TCP4 203.0.113.7 192.0.2.1 4711 7432\r\n", func(*pgx.ConnConfig) {})
	if err != nil {
		t.Fatal(err)
	}
	if n := queryInt(t, conn, "SELECT count(*) FROM memories"); n != 1 {
		t.Errorf("the agent sees %d memories", n)
	}
	conn.Close(t.Context())
	if _, err := login("", func(*pgx.ConnConfig) {}); err == nil {
		t.Error("a connection without a header was served")
	}
	waitFor(t, "the refusal is logged", func() bool { return strings.Contains(p.errs.String(), "without a right PROXY header") })
	conn, err = login("", func(c *pgx.ConnConfig) { c.Host, c.TLSConfig = filepath.Dir(path), nil; c.Port = 7432 })
	if err != nil {
		t.Fatalf("over the unix socket: %v", err)
	}
	conn.Close(t.Context())
	if !strings.Contains(i.auditText(t), `"203.0.113.7:4711"`) {
		t.Error("the audit does not have the client's address")
	}
}

// auditText returns the text of all audit files.
func (i *installation) auditText(t *testing.T) string {
	t.Helper()
	var texts strings.Builder
	if err := filepath.WalkDir(filepath.Join(i.dir(), "audit"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		texts.Write(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return texts.String()
}
