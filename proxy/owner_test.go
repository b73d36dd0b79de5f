package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

func (p *testProxy) connectOwner(t testing.TB, options string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.dsn("wire_owner", "owner")+" "+options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func TestOwner(t *testing.T) {
	p := startProxy(t)
	conn := p.connectOwner(t, "search_path=public options='-c work_mem=1234kB'")
	var user, path, mem string
	var pid uint32
	if err := conn.QueryRow(t.Context(),
		"SELECT current_user, current_setting('search_path'), current_setting('work_mem'), pg_backend_pid()").Scan(&user, &path, &mem, &pid); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(user, path, mem); got != "wire_ownerpublic1234kB" {
		t.Error(got)
	}
	if pid != conn.PgConn().PID() {
		t.Error("the key is not the server's")
	}
	if _, err := conn.Exec(t.Context(), "CREATE TABLE t (a int, b text)"); err != nil {
		t.Error(err)
	}
	rows := make([][]any, 10000)
	for i := range rows {
		rows[i] = []any{i, fmt.Sprint("row ", i)}
	}
	if n, err := conn.CopyFrom(t.Context(), pgx.Identifier{"public", "t"}, []string{"a", "b"}, pgx.CopyFromRows(rows)); err != nil || n != 10000 {
		t.Errorf("copy in: %d %v", n, err)
	}
	// The server checks the owner's password.
	p.editRoute = func(r *Route) {
		r.Upstream.Network, r.Upstream.Address = "tcp", fmt.Sprintf("127.0.0.1:%d", pgtest.TCPPort())
	}
	if err := p.connectOwner(t, "").Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if e := connectError(t, p.dsn("wire_owner", "wrong")); e.Code != "28P01" {
		t.Errorf("got %+v", e)
	}
}

// TestOwnerOfAServerThatEnds: when the server ends an owner's session, the proxy frees everything even if the client is
// idle and reads nothing. When the client reads, it gets the reason.
func TestOwnerOfAServerThatEnds(t *testing.T) {
	checkDescriptors(t)
	p := startProxy(t)
	c := connectPeer(t, p.dsn("wire_owner", "owner")+" sslmode=disable")
	admin := p.db.Connect(t, "postgres")
	if _, err := admin.Exec(t.Context(),
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'wire_owner' AND datname = current_database()"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the proxy has no session", func() bool {
		p.server.mu.Lock()
		defer p.server.mu.Unlock()
		return len(p.server.conns) == 0
	})
	if e := c.readLastError(); e == nil || e.Code != "57P01" || e.Severity != "FATAL" {
		t.Errorf("the client was told %+v", e)
	}
}

// TestOwnerDatabase: the database may have another name on the server than at the proxy.
func TestOwnerDatabase(t *testing.T) {
	p := startProxy(t)
	p.editRoute = func(r *Route) { r.Upstream.Database = p.db.Name }
	for _, db := range []string{" dbname=memories", " dbname=" + p.db.Name, " dbname=''"} {
		conn := p.connectOwner(t, db+" application_name=x")
		var got, app string
		if err := conn.QueryRow(t.Context(), "SELECT current_database(), current_setting('application_name')").
			Scan(&got, &app); err != nil || got != p.db.Name || app != "x" {
			t.Errorf("%s: %s %s %v", db, got, app, err)
		}
	}
}

func TestOwnerCancel(t *testing.T) {
	p := startProxy(t)
	conn := p.connectOwner(t, "")
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "SELECT pg_sleep(600)")
		done <- err
	}()
	p.awaitRunning(t, "pg_sleep(600)")
	if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	var pg *pgconn.PgError
	if err := <-done; !errors.As(err, &pg) || pg.Code != "57014" {
		t.Errorf("got %v", err)
	}
}

// TestOwnerTools: pg_dump and psql's \copy give the same output through the proxy as on the server.
func TestOwnerTools(t *testing.T) {
	p := startProxy(t)
	if _, err := p.db.Connect(t, "postgres").Exec(t.Context(), `
		CREATE TABLE big AS SELECT i, repeat(chr(97 + i % 26), i % 300) AS t FROM generate_series(1, 20000) i;
		CREATE VIEW v AS SELECT count(*) FROM big;
		CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`); err != nil {
		t.Fatal(err)
	}
	dump := requireTool(t, "pg_dump")
	run := func(dsn string) []byte {
		out, err := exec.Command(dump, "--restrict-key=x", dsn).Output()
		if err != nil { // PostgreSQL before 15.14
			out, err = exec.Command(dump, dsn).Output()
		}
		var exit *exec.ExitError
		if errors.As(err, &exit) && strings.Contains(string(exit.Stderr), "server version mismatch") {
			t.Skipf("NOT TESTED: %s", exit.Stderr)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	directDSN := fmt.Sprintf("host=%s port=%d user=wire_owner dbname=%s", p.db.SocketDir, p.db.Port, p.db.Name)
	want, got := run(directDSN), run(p.dsn("wire_owner", ""))
	if len(want) < 1<<20 || !bytes.Equal(want, got) {
		t.Errorf("pg_dump: %d bytes directly, %d through the proxy", len(want), len(got))
	}
	dir := t.TempDir()
	for i, dsn := range []string{directDSN, p.dsn("wire_owner", "")} {
		runPsql(t, dsn, fmt.Sprintf("\\copy big TO '%s/%d'\nCREATE TABLE in%d (LIKE big);\n\\copy in%d FROM '%s/%d'\n", dir, i, i, i, dir, i))
	}
	a, _ := os.ReadFile(filepath.Join(dir, "0"))
	b, _ := os.ReadFile(filepath.Join(dir, "1"))
	if len(a) == 0 || !bytes.Equal(a, b) {
		t.Errorf("\\copy: %d and %d bytes", len(a), len(b))
	}
	var n int
	if err := p.db.Connect(t, "postgres").QueryRow(t.Context(),
		"SELECT count(*) FROM in0 FULL JOIN in1 USING (i, t) WHERE in0.i IS NULL OR in1.i IS NULL OR (SELECT "+
			"count(*) FROM in0) <> 20000").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d %v", n, err)
	}
}

// TestOwnerBytes: after the startup message, the proxy relays all bytes unchanged in both directions.
func TestOwnerBytes(t *testing.T) {
	p := startProxy(t)
	c := connectPeer(t, p.dsn("wire_owner", "")+" sslmode=disable")
	_, _ = c.Write([]byte("garbage \x00\xff\x00"))
	if e := c.readLastError(); e == nil || e.Code != "08P01" || e.Routine == "" {
		t.Errorf("not the server's own answer: %+v", e)
	}
}

func TestOwnerOverTLS(t *testing.T) {
	p := startProxy(t, withTLS(t, "rsa", "list"))
	cfg, err := pgx.ParseConfig(p.dsn("wire_owner", "") + " sslmode=require")
	if err != nil {
		t.Fatal(err)
	}
	cfg.TLSConfig, cfg.Fallbacks = p.tlsConf, nil
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT sum(length(repeat('x', 1000))) FROM generate_series(1, 1000)").Scan(&n); err != nil || n != 1_000_000 {
		t.Errorf("%d %v", n, err)
	}
}

func TestOwnersAtShutdown(t *testing.T) {
	p := startProxy(t)
	conn := p.connectOwner(t, "")
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if err := p.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("still served")
	}
}
