package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/test/tier"
)

// TestPgx runs queries in each query mode of the driver pgx.
func TestPgx(t *testing.T) {
	p := startProxy(t)
	conn := p.connect(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for range 3 {
			rows, err := conn.Query(t.Context(), "SELECT i, i * $1::int FROM generate_series(1, 100) i", mode, 2)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0
			var i, j int
			if _, err := pgx.ForEachRow(rows, []any{&i, &j}, func() error { sum += j; return nil }); err != nil || sum != 10100 {
				t.Errorf("%v: %d %v", mode, sum, err)
			}
		}
	}
	b := &pgx.Batch{}
	b.Queue("SELECT 1")
	b.Queue("SELECT forbidden")
	b.Queue("SELECT 3")
	br := conn.SendBatch(t.Context(), b)
	var pg *pgconn.PgError
	if err := br.Close(); !errors.As(err, &pg) || pg.Code != "42501" {
		t.Errorf("batch: %v", err)
	}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nestedTx, err := tx.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nestedTx.Exec(t.Context(), "SELECT forbidden"); !errors.As(err, &pg) || pg.Code != "42501" {
		t.Error(err)
	}
	if err := nestedTx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	pipe := conn.PgConn().StartPipeline(t.Context())
	for i := range 50 {
		pipe.SendQueryParams("SELECT $1::int", [][]byte{[]byte(fmt.Sprint(i))}, nil, nil, nil)
		if i%10 == 9 {
			if err := pipe.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := pipe.Close(); err != nil {
		t.Error(err)
	}
}

// requireTool returns the path of a PostgreSQL client program, or skips the test.
func requireTool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if out, err := exec.Command("sh", "-c", "ls /usr/lib/postgresql/*/bin/"+name+" | tail -1").Output(); err == nil && len(out) > 0 {
			return strings.TrimSpace(string(out))
		}
		t.Skipf("no %s here", name)
	}
	return path
}

func runPsql(t testing.TB, dsn string, script string) string {
	t.Helper()
	cmd := exec.Command(requireTool(t, "psql"), "-X", "-q", "-A", "-t", "-v", "VERBOSITY=verbose", dsn)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("psql: %v: %s", err, out)
	}
	return string(out)
}

func TestPsql(t *testing.T) {
	p := startProxy(t)
	got := runPsql(t, p.agentDSN(), `
SELECT 'one';
SELECT forbidden;
BEGIN;
SELECT forbidden;
SELECT 1;
ROLLBACK;
\copy (SELECT 'copied') TO STDOUT
SELECT 'two' \gdesc
SELECT 'three' \; SELECT 'four';
\set FETCH_COUNT 2
`)
	want := `one
ERROR:  42501: refused
LINE 1: SELECT forbidden;
          ^
HINT:  Ask for less.
ERROR:  42501: refused
LINE 1: SELECT forbidden;
          ^
HINT:  Ask for less.
ERROR:  25P02: current transaction is aborted, commands ignored until end of transaction block
copied
?column?|text
three
four
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSealRenewal: the proxy renews a seal only between transactions, before the next statement. The client does not
// notice.
func TestSealRenewal(t *testing.T) {
	p := startProxy(t, withDecider(func(j *fakeDecider) { j.sealLifetime = -time.Second }))
	c := p.connectRaw(t)
	show := "SELECT current_setting('pgconsent.seal') AS s"
	got := c.play(t, []round{
		upToReady(1, q(show)),
		upToReady(1, pa("", show), sy),
		upToReady(1, bi("", ""), ex("", 0), sy), // the statement without a name is still there
		upToReady(1, q("BEGIN")),
		upToReady(1, q(show)),
		upToReady(1, q(show)), // no renewal inside a transaction
		upToReady(1, q("COMMIT")),
		upToReady(1, q(show)),
		upToReady(3, q(show), q(show), q(show)), // one renewal for the batch
	})
	want := []string{"T s:25:0", `D ["seal 2"]`, "C SELECT 1", "Z I", "1", "Z I", "2", `D ["seal 4"]`, "C SELECT 1", "Z I", "C BEGIN", "Z T",
		"T s:25:0", `D ["seal 5"]`, "C SELECT 1", "Z T", "T s:25:0", `D ["seal 5"]`, "C SELECT 1", "Z T", "C COMMIT", "Z I",
		"T s:25:0", `D ["seal 6"]`, "C SELECT 1", "Z I"}
	for n := range 3 {
		want = append(want, "T s:25:0", fmt.Sprintf(`D ["seal %d"]`, 7+n), "C SELECT 1", "Z I")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Without a Sync the server may not send its answers yet. The proxy does not wait for them, and does not renew.
	got = c.play(t, []round{
		{[]pgx3.FrontendMessage{pa("", show), bi("", ""), fl}, '2', 1},
		{[]pgx3.FrontendMessage{ex("", 0), fl}, 'C', 1},
		upToReady(1, sy),
	})
	if diff := cmp.Diff([]string{"1", "2", `D ["seal 10"]`, "C SELECT 1", "Z I"}, got); diff != "" {
		t.Error(diff)
	}
	// The same is true inside of a transaction that has failed.
	got = c.play(t, []round{upToReady(1, q("BEGIN")), upToReady(1, q("SELECT 1/0")), upToReady(1, q("ROLLBACK")), upToReady(1, q("SELECT 1 AS a"))})
	if got[len(got)-1] != "Z I" {
		t.Errorf("%q", got)
	}
}

// TestSealNames: the proxy prepares a statement and opens a portal for its own use. A client may use the same names for
// other objects.
func TestSealNames(t *testing.T) {
	p := startProxy(t, withDecider(func(j *fakeDecider) { j.sealLifetime = -time.Second }))
	c := p.connectRaw(t)
	got := c.play(t, []round{
		upToReady(1, bi("", sealName), sy),
		upToReady(1, cl('S', sealName), sy),
		upToReady(1, pa(sealName, "SELECT 1 AS a"), bi(sealName, sealName), ex(sealName, 0), sy),
		upToReady(1, q("BEGIN")),
		upToReady(1, bi(sealName, sealName), sy),
		upToReady(1, q("COMMIT")),
		upToReady(1, q("SELECT current_setting('pgconsent.seal') AS s")),
	})
	want := []string{"E ERROR 26000 prepared statement \"pgconsent_seal\" does not exist  @0", "Z I", "3", "Z I",
		"1", "2", `D ["1"]`, "C SELECT 1", "Z I",
		"C BEGIN", "Z T", "2", "Z T", "C COMMIT", "Z I", "T s:25:0", `D ["seal 6"]`, "C SELECT 1", "Z I"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSealAfterDeallocateAll: a client's DEALLOCATE ALL also removes the proxy's own prepared statement. The session
// goes on.
func TestSealAfterDeallocateAll(t *testing.T) {
	p := startProxy(t, withDecider(func(j *fakeDecider) { j.sealLifetime = -time.Second }))
	c := p.connectRaw(t)
	got := c.play(t, []round{
		upToReady(1, q("DEALLOCATE ALL")),
		upToReady(1, q("SELECT current_setting('pgconsent.seal') AS s")),
	})
	want := []string{"C DEALLOCATE ALL", "Z I", "T s:25:0", `D ["seal 3"]`, "C SELECT 1", "Z I"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDeallocateFrees: deallocated statements no longer count against the limits of a session.
func TestDeallocateFrees(t *testing.T) {
	p := startProxy(t)
	c := p.connectRaw(t)
	c.play(t, []round{upToReady(1, pa("a", "SELECT 1"), pa("b", "SELECT 2"), sy), upToReady(1, q("DEALLOCATE a; DEALLOCATE ALL"))})
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	for conn := range p.server.conns {
		l := conn.session.ledger
		l.mu.Lock()
		if l.statements.len() != 0 || l.statementBytes != 0 {
			t.Errorf("%d statements and %d bytes are counted", l.statements.len(), l.statementBytes)
		}
		l.mu.Unlock()
	}
}

// TestStatementsForgottenWhileInUse: prepared statements are forgotten as answers arrive, while the client still binds
// them. It is for the race detector.
func TestStatementsForgottenWhileInUse(t *testing.T) {
	p := startProxy(t)
	c := p.connectRaw(t)
	for range 200 {
		m := []pgx3.FrontendMessage{pa("s", "SELECT 1"), sy, q("DEALLOCATE s")}
		for range 5 {
			m = append(m, bi("", "s"), ex("", 0), sy)
		}
		c.play(t, []round{upToReady(7, m...)})
	}
}

// TestSealFails: no statement runs if its seal could not be renewed.
func TestSealFails(t *testing.T) {
	p := startProxy(t, withDecider(func(j *fakeDecider) { j.sealLifetime = -time.Second }))
	c := p.connectRaw(t)
	c.play(t, []round{upToReady(1, q("SELECT 1"))})
	p.lastDecider().badSeal.Store(true)
	c.send(t, q("CREATE TABLE must_not_be ()"))
	if e := c.readLastError(); e == nil || e.Severity != "FATAL" || strings.Contains(fmt.Sprint(e), "setting!") {
		t.Errorf("got %+v", e)
	}
	var exists bool
	if err := p.db.Connect(t, "postgres").QueryRow(t.Context(), "SELECT to_regclass('must_not_be') IS NOT NULL").Scan(&exists); err != nil || exists {
		t.Errorf("the statement ran: %v %v", exists, err)
	}
	p.setupDecider = func(j *fakeDecider) { j.badSeal.Store(true) }
	if e := connectError(t, p.agentDSN()); e.Code != "XX000" {
		t.Errorf("login: %+v", e)
	}
}

func TestCancel(t *testing.T) {
	p := startProxy(t)
	for version, length := range map[string]int{"3.0": 4, "3.2": 32} {
		conn := p.connect(t, "max_protocol_version="+version)
		done := make(chan error, 1)
		go func() {
			_, err := conn.Exec(context.Background(), "SELECT pg_sleep(600)")
			done <- err
		}()
		p.awaitRunning(t, "pg_sleep(600)")
		cancelKey := append(binary.BigEndian.AppendUint32(nil, conn.PgConn().PID()), conn.PgConn().SecretKey()...)
		if len(cancelKey) != 4+length {
			t.Fatalf("%s: the secret of the key has %d bytes", version, len(cancelKey)-4)
		}
		// A wrong cancel key does nothing, nor does the right one with one bit changed or with another length.
		wrongKeys := [][]byte{cancelKey[:len(cancelKey)-1], cancelKey[:4], append(slices.Clone(cancelKey), 0), append(slices.Clone(cancelKey), cancelKey[4:]...)}
		for bit := range 8 * len(cancelKey) {
			wrongKey := slices.Clone(cancelKey)
			wrongKey[bit/8] ^= 1 << (bit % 8)
			wrongKeys = append(wrongKeys, wrongKey)
		}
		for _, wrongKey := range wrongKeys {
			nc := p.dial(t)
			_, _ = nc.Write(append([]byte{0, 0, 0, byte(8 + len(wrongKey)), 4, 210, 22, 46}, wrongKey...))
			if frontend := pgx3.NewFrontend(nc, nil); len(wrongKey) >= 8 {
				if m, err := frontend.Receive(); err == nil {
					t.Errorf("a cancel request was answered: %T", m)
				}
			}
			nc.Close()
		}
		select {
		case err := <-done:
			t.Fatalf("ended early: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		var pg *pgconn.PgError
		if err := <-done; !errors.As(err, &pg) || pg.Code != "57014" {
			t.Errorf("got %v", err)
		}
		if err := conn.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		conn.Close(context.Background())
	}
	eventually(t, "the key goes with the session", func() bool {
		c := &p.server.cancels
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.agents) == 0
	})
}

func TestPsqlCancel(t *testing.T) {
	p := startProxy(t)
	cmd := exec.Command(requireTool(t, "psql"), "-X", "-v", "VERBOSITY=sqlstate", p.agentDSN(), "-c", "SELECT pg_sleep(600)")
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.awaitRunning(t, "pg_sleep(600)")
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
	if !strings.Contains(out.String(), "57014") {
		t.Errorf("got %q", out.String())
	}
}

func TestDrain(t *testing.T) {
	tier.All(t)
	p := startProxy(t)
	idleConn, busyConn, connInTx, loginConn := p.connectRaw(t), p.connectRaw(t), p.connectRaw(t), p.dial(t)
	connInTx.play(t, []round{upToReady(1, q("BEGIN"))})
	busyConn.send(t, q("SELECT pg_sleep(1), 1 AS a"))
	p.awaitRunning(t, "pg_sleep(1)")
	serveResult := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
		defer cancel()
		serveResult <- p.server.Shutdown(ctx)
	}()
	if e := idleConn.readLastError(); e == nil || e.Code != "57P01" || e.Severity != "FATAL" {
		t.Errorf("idle: %+v", e)
	}
	latePeer := p.loginOver(t, loginConn) // accepted before the drain, so it gets one answer
	if got := latePeer.play(t, []round{upToReady(1, q("SELECT 1"))}); got[len(got)-1] != "Z I" {
		t.Errorf("login: %q", got)
	}
	if e := latePeer.readLastError(); e == nil || e.Code != "57P01" {
		t.Errorf("login: %+v", e)
	}
	got := busyConn.play(t, []round{{nil, 'Z', 1}})
	if got[len(got)-2] != "C SELECT 1" {
		t.Errorf("busy: %q", got)
	}
	if e := busyConn.readLastError(); e == nil || e.Code != "57P01" {
		t.Errorf("busy: %+v", e)
	}
	select {
	case <-serveResult:
		t.Error("a transaction was not waited for")
	case <-time.After(100 * time.Millisecond):
	}
	if got := connInTx.play(t, []round{upToReady(1, q("SELECT 1")), upToReady(1, q("COMMIT"))}); got[len(got)-1] != "Z I" {
		t.Errorf("in transaction: %q", got)
	}
	if e := connInTx.readLastError(); e == nil || e.Code != "57P01" {
		t.Errorf("in transaction: %+v", e)
	}
	if err := <-serveResult; err != nil {
		t.Error(err)
	}
}

// slowListener returns an accepted connection only after the server has begun to drain.
type slowListener struct {
	net.Listener
	p        *testProxy
	accepted *atomic.Bool
}

func (l slowListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	l.accepted.Store(true)
	for err == nil && !l.p.server.isDraining() {
		time.Sleep(time.Millisecond)
	}
	return nc, err
}

// TestDrainWhileAccepting: a client whose connection was accepted just before a drain is answered once, like a client
// that was logging in.
func TestDrainWhileAccepting(t *testing.T) {
	var hasAccepted atomic.Bool
	p := startProxy(t, func(p *testProxy, _ *Config) {
		p.listen = func(l net.Listener) net.Listener { return slowListener{l, p, &hasAccepted} }
	})
	nc := p.dial(t)
	eventually(t, "the connection is accepted", hasAccepted.Load)
	serveResult := make(chan error, 1)
	go func() { serveResult <- p.server.Shutdown(context.Background()) }()
	latePeer := p.loginOver(t, nc)
	if got := latePeer.play(t, []round{upToReady(1, q("SELECT 1"))}); got[len(got)-1] != "Z I" {
		t.Errorf("it was answered %q", got)
	}
	if e := latePeer.readLastError(); e == nil || e.Code != "57P01" {
		t.Errorf("it was told %+v", e)
	}
	if err := <-serveResult; err != nil {
		t.Error(err)
	}
}

func TestDrainDeadline(t *testing.T) {
	p := startProxy(t)
	busyConn := p.connectRaw(t)
	busyConn.send(t, q("SELECT pg_sleep(600)"))
	eventually(t, "recorded", func() bool { return len(p.lastDecider().recordedTexts()) > 0 })
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := p.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if e := busyConn.readLastError(); e == nil || e.Code != "57P01" {
		t.Errorf("got %+v", e)
	}
}

// TestServerDies: the server process of one session is terminated, or killed in the middle of a message. The other
// sessions go on.
func TestServerDies(t *testing.T) {
	p := startProxy(t)
	otherConn := p.connect(t)
	admin := p.db.Connect(t, "postgres")
	for _, text := range []string{"", "SELECT pg_sleep(600)", "SELECT repeat('x', 1000) FROM generate_series(1, 100000000)"} {
		c := p.connectRaw(t)
		pid := p.lastDecider().info.BackendPID
		if text != "" {
			c.send(t, q(text))
			p.awaitRunning(t, text)
		}
		if _, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend($1)", int32(pid)); err != nil {
			t.Fatal(err)
		}
		if e := c.readLastError(); !strings.Contains(text, "repeat") && (e == nil || e.Code != "57P01" || e.Severity != "FATAL") {
			t.Errorf("%q: %+v", text, e)
		}
	}
	if err := otherConn.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestServerVanishes: the connection to the server ends without an error message.
func TestServerVanishes(t *testing.T) {
	p := startProxy(t)
	otherConn := p.connect(t)
	c := p.connectRaw(t)
	c.send(t, q("SELECT pg_sleep(600)"))
	eventually(t, "recorded", func() bool { return len(p.lastDecider().recordedTexts()) > 0 })
	p.server.mu.Lock()
	for k := range p.server.conns {
		if k.id == p.lastDecider().info.ID {
			k.upstream.(interface{ CloseRead() error }).CloseRead()
		}
	}
	p.server.mu.Unlock()
	if e := c.readLastError(); e == nil || e.Code != "08006" || e.Severity != "FATAL" || e.Hint == "" {
		t.Errorf("got %+v", e)
	}
	if err := otherConn.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPanic(t *testing.T) {
	p := startProxy(t)
	otherConn := p.connect(t)
	c := p.connectRaw(t)
	c.send(t, q("SELECT 'panicking secret'"))
	if e := c.readLastError(); e == nil || e.Code != "XX000" || e.Severity != "FATAL" {
		t.Errorf("got %+v", e)
	}
	if log := p.log.String(); !strings.Contains(log, "panic in a session") || strings.Contains(log, "panicking") {
		t.Errorf("log: %s", log)
	}
	if err := otherConn.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSlowClient: a client that does not read delays no other, and nothing of it is left after it disconnects.
func TestSlowClient(t *testing.T) {
	for name, option := range map[string]func(*testProxy, *Config){"session": withDecider(nil), "transaction": withPool(2)} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, option)
			c := p.connectRaw(t)
			c.send(t, q("SELECT repeat('x', 1000) FROM generate_series(1, 200000)"))
			time.Sleep(200 * time.Millisecond)
			if err := p.connect(t).Ping(t.Context()); err != nil {
				t.Error(err)
			}
			c.Close()
			j := p.deciders[0]
			eventually(t, "closed", func() bool { j.mu.Lock(); defer j.mu.Unlock(); return j.closed })
			if name == "transaction" {
				eventually(t, "the connection is gone", func() bool { s := p.server.Pools()[0]; return s.Used == 0 && s.Idle == 1 })
			}
		})
	}
}

// TestManyMessagesWithoutReading: the number of a client's unanswered messages is limited, and a client at the limit is
// not blocked forever.
func TestManyMessagesWithoutReading(t *testing.T) {
	p := startProxy(t)
	c := p.connectRaw(t)
	var out []byte
	const n = 30_000
	for range n {
		out = appendMessage(out, 'P', []byte("\x00SELECT 1\x00\x00\x00"))
	}
	out = appendSync(out)
	go func() { _, _ = c.Write(out) }()
	got := c.play(t, []round{{nil, 'Z', 1}})
	if len(got) != n+1 {
		t.Errorf("%d answers", len(got))
	}
}

func TestTooManyStatements(t *testing.T) {
	p := startProxy(t)
	c := p.connectRaw(t)
	text := "SELECT 1 /*" + strings.Repeat("x", 1<<20-100) + "*/"
	refused := 0
	for i := range 40 {
		for _, l := range c.play(t, []round{upToReady(1, pa(fmt.Sprint("s", i), text), sy)}) {
			if strings.HasPrefix(l, "E ERROR 54000") {
				refused++
			}
		}
	}
	if refused == 0 || refused > 10 {
		t.Errorf("%d refused", refused)
	}
	c.play(t, []round{upToReady(1, cl('S', "s0"), sy)})
	if got := c.play(t, []round{upToReady(1, pa("again", text), sy)}); got[0] != "1" {
		t.Errorf("%.80q", got)
	}
}

func TestTooManyPortals(t *testing.T) {
	p := startProxy(t)
	c := p.connectRaw(t)
	bind := []pgx3.FrontendMessage{pa("s", "SELECT 1")}
	for i := range maxPortals {
		bind = append(bind, bi(fmt.Sprint("p", i), "s"))
	}
	const refused = "E ERROR 54000 too many portals in one transaction  @0"
	c.play(t, []round{upToReady(1, q("BEGIN")), upToReady(1, append(bind, sy)...)})
	got := c.play(t, []round{upToReady(1, cl('P', "p7"), sy), upToReady(1, bi("one", "s"), sy), upToReady(1, bi("more", "s"), sy),
		upToReady(1, q("ROLLBACK")), upToReady(1, bi("", "s"), ex("", 0), sy)})
	if diff := cmp.Diff([]string{"3", "Z T", "2", "Z T", refused, "Z E", "C ROLLBACK", "Z I", "2", `D ["1"]`, "C SELECT 1", "Z I"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTerminate(t *testing.T) {
	p := startProxy(t)
	c := p.connectRaw(t)
	// Messages before the Terminate are answered.
	c.send(t, q("SELECT pg_sleep(0.1), 1 AS a"), &pgx3.Terminate{})
	if got := c.play(t, []round{{nil, 'Z', 1}}); got[len(got)-1] != "Z I" {
		t.Errorf("%q", got)
	}
	// They are also answered where a group without a Sync follows.
	idleConn := p.connectRaw(t)
	idleConn.send(t, pa("", "SELECT pg_sleep(0.1), 1 AS a"), bi("", ""), ex("", 0), sy, pa("", "SELECT 2"), &pgx3.Terminate{})
	if got := idleConn.play(t, []round{{nil, 'Z', 1}}); got[len(got)-1] != "Z I" {
		t.Errorf("%q", got)
	}
	halfOpen := p.connectRaw(t)
	halfOpen.send(t, q("SELECT pg_sleep(0.1), 1 AS a"))
	_ = halfOpen.Conn.(interface{ CloseWrite() error }).CloseWrite()
	if got := halfOpen.play(t, []round{{nil, 'Z', 1}}); got[len(got)-1] != "Z I" {
		t.Errorf("%q", got)
	}
}

// TestPortalOfAFailedQuery: a Query that fails in a transaction leaves an unnamed portal whose statements PostgreSQL
// has freed. Running that portal would read freed memory and may crash the server, so the proxy does not send such an
// Execute.
func TestPortalOfAFailedQuery(t *testing.T) {
	p := startProxy(t)
	for name, script := range map[string][]round{
		"in rounds": {upToReady(1, q("BEGIN")),
			upToReady(1, pa("", "SELECT 1"), bi("", ""), sy), upToReady(1, q("RELEASE nothing")), upToReady(1, ex("", 0), sy)},
		"at once": {upToReady(4, q("BEGIN"), pa("", "SELECT 1"), bi("", ""), sy, q("RELEASE nothing"), ex("", 0), sy)},
		"no sync": {upToReady(3, q("BEGIN"), pa("", "SELECT 1"), bi("", ""), q("RELEASE nothing"), ex("", 0), sy)},
		"bound in the same round": {upToReady(1, q("BEGIN")),
			upToReady(2, pa("", "SELECT 1"), bi("", ""), sy, q("RELEASE nothing")), upToReady(1, ex("", 0), sy)},
		"bound in the same round, no sync": {upToReady(1, q("BEGIN")),
			upToReady(1, pa("", "SELECT 1"), bi("", ""), q("RELEASE nothing")), upToReady(1, ex("", 0), sy)},
		"bound anew": {upToReady(1, q("BEGIN")), upToReady(1, pa("s", "SELECT 1"), bi("", "s"), sy), upToReady(1, q("RELEASE nothing")),
			upToReady(1, bi("", "s"), ex("", 0), sy), upToReady(1, ex("", 0), sy)},
	} {
		t.Run(name, func(t *testing.T) {
			got := p.connectRaw(t).play(t, script)
			if want := []string{`E ERROR 34000 portal "" does not exist  @0`, "Z E"}; len(got) < 2 || !slices.Equal(got[len(got)-2:], want) {
				t.Errorf("%q, want %q at the end", got, want)
			}
		})
	}
}

func TestConcurrentSessions(t *testing.T) {
	p := startProxy(t, withDecider(func(j *fakeDecider) { j.sealLifetime = time.Millisecond }))
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			conn, err := pgx.Connect(context.Background(), p.agentDSN())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close(context.Background())
			for i := range 100 {
				var got int
				if err := conn.QueryRow(context.Background(), "SELECT $1::int", w*1000+i).Scan(&got); err != nil || got != w*1000+i {
					t.Errorf("%d %v", got, err)
					return
				}
				if i%10 == 0 {
					if _, err := conn.Exec(context.Background(), "SELECT forbidden"); err == nil {
						t.Error("not refused")
					}
				}
			}
		}()
	}
	wg.Wait()
}
