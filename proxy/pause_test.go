package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// pauseSwitch pauses and resumes the agents of a test.
type pauseSwitch struct {
	mu           sync.Mutex
	resumeSignal chan struct{}
}

func (g *pauseSwitch) paused() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.resumeSignal
}

func (g *pauseSwitch) pause() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resumeSignal = make(chan struct{})
}

func (g *pauseSwitch) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.resumeSignal)
	g.resumeSignal = nil
}

func (g *pauseSwitch) option(p *testProxy, _ *Config) {
	p.editRoute = func(r *Route) { r.Paused = g.paused }
}

// states returns the states of the sessions, oldest first.
func (p *testProxy) states() (out []SessionState) {
	for _, s := range p.server.Sessions() {
		out = append(out, s.State)
	}
	return out
}

func (p *testProxy) awaitStates(t *testing.T, want ...SessionState) {
	t.Helper()
	eventually(t, fmt.Sprint(want), func() bool { return slices.Equal(p.states(), want) })
}

// loginPeer logs the agent in, with or without TLS.
func (p *testProxy) loginPeer(t *testing.T, tls bool) *peer {
	t.Helper()
	if !tls {
		return p.connectRaw(t)
	}
	conn, err := p.tlsConnect(t, "")
	if err != nil {
		t.Fatal(err)
	}
	hijacked, err := conn.PgConn().Hijack()
	if err != nil {
		t.Fatal(err)
	}
	_ = hijacked.Conn.SetDeadline(time.Now().Add(tier.Patience))
	t.Cleanup(func() { hijacked.Conn.Close() })
	return &peer{hijacked.Conn, hijacked.Frontend}
}

// While agents are paused, a message that begins a transaction waits. Open transactions go on.
func TestPause(t *testing.T) {
	for name, tls := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			var g pauseSwitch
			p := startProxy(t, withTLS(t, "ecdsa", "list"), g.option)
			simplePeer, txPeer, extendedPeer := p.loginPeer(t, tls), p.loginPeer(t, tls), p.loginPeer(t, tls)
			largeResultPeer, leavingPeer := p.loginPeer(t, tls), p.loginPeer(t, tls)
			txPeer.play(t, []round{upToReady(1, q("BEGIN"))})
			g.pause()
			simplePeer.send(t, q("SELECT 1 AS a"))
			extendedPeer.send(t, pa("", "SELECT 2 AS a"), bi("", ""), ex("", 0), sy)
			manyMessages := make([]pgx3.FrontendMessage, 200)
			for i := range manyMessages {
				manyMessages[i] = q("SELECT 3 AS a --" + strings.Repeat("x", 1000))
			}
			largeResultPeer.send(t, manyMessages...)
			leavingPeer.send(t, q("SELECT 4 AS a"))
			p.awaitStates(t, Waiting, InTransaction, Waiting, Waiting, Waiting)

			if got := txPeer.play(t, []round{upToReady(1, q("SELECT 5 AS a")), upToReady(1, q("COMMIT"))}); got[len(got)-1] != "Z I" {
				t.Errorf("in the transaction: %q", got)
			}
			txPeer.send(t, q("SELECT 6 AS a"))
			leavingPeer.Close()
			p.awaitStates(t, Waiting, Waiting, Waiting, Waiting)
			for i, want := range [][]string{nil, {"BEGIN", "SELECT 5 AS a", "COMMIT"}, nil, nil, nil} {
				if recordedTexts := p.deciders[i].recordedTexts(); !slices.Equal(recordedTexts, want) {
					t.Errorf("session %d: %q was recorded during the pause", i, recordedTexts)
				}
			}

			g.resume()
			for i, w := range []struct {
				client     *peer
				readyCount int
				tag        string
			}{{simplePeer, 1, "C SELECT 1"}, {txPeer, 1, "C SELECT 1"}, {extendedPeer, 1, "C SELECT 1"}, {largeResultPeer, len(manyMessages),
				"C SELECT 1"}} {
				got := w.client.play(t, []round{{nil, 'Z', w.readyCount}})
				if n := len(slices.DeleteFunc(got, func(s string) bool { return s != w.tag })); n != w.readyCount {
					t.Errorf("client %d got %d answers of %d after the pause", i, n, w.readyCount)
				}
			}
			// A session that has waited works as before.
			for _, client := range []*peer{simplePeer, extendedPeer, largeResultPeer} {
				if got := client.play(t, []round{upToReady(1, q("SELECT 7 AS a"))}); got[len(got)-1] != "Z I" {
					t.Errorf("after the pause: %q", got)
				}
			}
			if recordedTexts := p.deciders[4].recordedTexts(); len(recordedTexts) != 0 {
				t.Errorf("%q of a client that had left was run", recordedTexts)
			}
		})
	}
}

// A waiting session can be ended in four ways: by an operator, by a cancel request, by draining, and by the loss of the
// server connection.
func TestPausedSessionsEnd(t *testing.T) {
	var g pauseSwitch
	p := startProxy(t, g.option)
	killedPeer, canceledPeer, drainedPeer := p.connectRaw(t), p.connectRaw(t), p.connectRaw(t)
	g.pause()
	for _, client := range []*peer{killedPeer, canceledPeer, drainedPeer} {
		client.send(t, q("SELECT 1 AS a"))
	}
	p.awaitStates(t, Waiting, Waiting, Waiting)
	reason := sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonNone, "killed")
	if p.server.End("nobody", reason) || !p.server.End(p.server.Sessions()[0].ID, reason) {
		t.Error("a session is not found by its id")
	}
	if e := killedPeer.readLastError(); e == nil || e.Message != "killed" || e.Severity != "FATAL" {
		t.Errorf("killed: %+v", e)
	}
	admin := p.db.Connect(t, "postgres")
	if _, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend($1)", p.deciders[1].backend.PID); err != nil {
		t.Fatal(err)
	}
	if e := canceledPeer.readLastError(); e == nil || e.Severity != "FATAL" {
		t.Errorf("cut: %+v", e)
	}
	p.awaitStates(t, Waiting)
	canceling := p.connect(t)
	canceled := make(chan error, 1)
	go func() {
		_, err := canceling.Exec(context.Background(), "SELECT 1 AS a")
		canceled <- err
	}()
	p.awaitStates(t, Waiting, Waiting)
	if err := canceling.PgConn().CancelRequest(t.Context()); err != nil {
		t.Error(err)
	}
	var e *pgconn.PgError
	if err := <-canceled; !errors.As(err, &e) || e.Code != "57014" || e.Severity != "FATAL" {
		t.Errorf("canceled: %v", err)
	}
	p.awaitStates(t, Waiting)
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	if err := p.server.Shutdown(ctx); err != nil {
		t.Errorf("a session that waits keeps a drain waiting: %v", err)
	}
	if e := drainedPeer.readLastError(); e == nil || e.Code != "57P01" {
		t.Errorf("drained: %+v", e)
	}
	for i := range 4 {
		if recordedTexts := p.deciders[i].recordedTexts(); len(recordedTexts) != 0 {
			t.Errorf("%q was run", recordedTexts)
		}
	}
}

// After the right password, an operator is served by the handler of the route. The list of sessions has sessions of all
// kinds.
func TestOperator(t *testing.T) {
	var servedOperator OperatorInfo
	p := startProxy(t, func(p *testProxy, _ *Config) {
		p.editRoute = func(r *Route) {
			if r.Kind != Refused {
				return
			}
			c := storedCredentials("secret of the operator")
			*r = Route{Kind: Operator, Credential: &c, Serve: func(_ context.Context, client net.Conn, info OperatorInfo) error {
				servedOperator = info
				b := pgx3.NewBackend(client, client)
				b.Send(&pgx3.AuthenticationOk{})
				b.Send(&pgx3.ReadyForQuery{TxStatus: 'I'})
				if err := b.Flush(); err != nil {
					return err
				}
				_, _ = b.Receive()
				return nil
			}}
		}
	})
	awaitSessionCount := func(n int) { // the client may be answered before its session is listed
		t.Helper()
		eventually(t, "the session is listed", func() bool { return len(p.server.Sessions()) == n })
	}
	agent := p.connect(t)
	awaitSessionCount(1)
	owner, err := pgx.Connect(t.Context(), p.dsn("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.Background())
	awaitSessionCount(2)
	if _, err := pgx.Connect(t.Context(), p.dsn("ops", "wrong")); err == nil || !strings.Contains(err.Error(), "28P01") {
		t.Errorf("a wrong password: %v", err)
	}
	ops := connectPeer(t, p.dsn("ops", "secret of the operator"))
	awaitSessionCount(3)
	sessions := p.server.Sessions()
	var kinds []RouteKind
	for _, s := range sessions {
		kinds = append(kinds, s.Kind)
	}
	if !slices.Equal(kinds, []RouteKind{Agent, Owner, Operator}) || !slices.Equal(p.states(), []SessionState{Idle, Relayed, Connected}) {
		t.Fatalf("%+v", sessions)
	}
	if lastSession := sessions[2]; lastSession.ID != servedOperator.ID || lastSession.User != "ops" || servedOperator.User != "ops" ||
		lastSession.Database != p.db.Name ||
		lastSession.Remote != ops.LocalAddr().String() || servedOperator.RemoteAddr != lastSession.Remote {
		t.Errorf("%+v, the handler has %+v", lastSession, servedOperator)
	}
	reason := sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonNone, "killed")
	for _, s := range sessions {
		if !p.server.End(s.ID, reason) {
			t.Errorf("%s is not ended", s.User)
		}
	}
	if e := ops.readLastError(); e == nil || e.Message != "killed" {
		t.Errorf("the operator: %+v", e)
	}
	if err := agent.Ping(t.Context()); err == nil {
		t.Error("the agent goes on")
	}
	eventually(t, "no session is left", func() bool { return len(p.server.Sessions()) == 0 })
}
