package proxy

import (
	"context"
	"errors"
	"maps"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// dialInside connects within the process, without a socket. It sends user and database in the startup message.
func (p *testProxy) dialInside(ctx context.Context, id Identity, user, database string) (*pgx.Conn, error) {
	c, err := pgx.ParseConfig("host=localhost port=5432 sslmode=disable user=" + user + " dbname=" + database)
	if err != nil {
		return nil, err
	}
	c.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return p.server.Dial(ctx, id) }
	return pgx.ConnectConfig(ctx, c)
}

func TestDial(t *testing.T) {
	p := startProxy(t)
	id := Identity{Agent: agentName, Database: p.db.Name, Remote: "token of a test"}
	conn, err := p.dialInside(t.Context(), id, agentName, p.db.Name)
	if err != nil {
		t.Fatal(err)
	}
	if info := p.lastDecider().info; info.Agent != agentName || info.Database != p.db.Name || info.RemoteAddr != "token of a test" {
		t.Errorf("enforcement was told %+v", info)
	}
	// Every statement is decided, in each mode of the driver.
	var n int
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeSimpleProtocol} {
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM generate_series(1, $1::int) i", mode, 200000).Scan(&n); err != nil || n != 200000 {
			t.Errorf("%v: %d, %v", mode, n, err)
		}
	}
	var pgErr *pgconn.PgError
	if _, err := conn.Exec(t.Context(), "SELECT forbidden"); !errors.As(err, &pgErr) || pgErr.Code != "42501" {
		t.Errorf("a refused statement: %v", err)
	}
	// A text and a result that are larger than any buffer.
	var text string
	bigText := strings.Repeat("x", 4<<20)
	if err := conn.QueryRow(t.Context(), "SELECT $1::text", bigText).Scan(&text); err != nil || text != bigText {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	eventually(t, "the session is closed", func() bool { j := p.lastDecider(); j.mu.Lock(); defer j.mu.Unlock(); return j.closed })
}

// The decider is told everything that the proxy knows of a session, since no rule can use a fact that the decider does
// not know.
func TestEnforcementIsToldEverything(t *testing.T) {
	p := startProxy(t)
	id := Identity{
		Agent: agentName, Database: p.db.Name, Remote: "token of a test", Claims: map[string]string{
			"user": "u"}, Until: time.Now().Add(time.Hour).Round(0), Lists: true,
	}
	identityFields := reflect.ValueOf(id)
	for i := range identityFields.NumField() {
		if identityFields.Field(i).IsZero() {
			t.Errorf("%s: give it a value", identityFields.Type().Field(i).Name)
		}
	}
	conn, err := p.dialInside(t.Context(), id, agentName, p.db.Name+" application_name=told")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	info := p.lastDecider().info
	for i, receivedInfo := 0, reflect.ValueOf(info); i < receivedInfo.NumField(); i++ {
		if name := receivedInfo.Type().Field(i).Name; receivedInfo.Field(i).IsZero() != (name == "ExpiresWithCertificate") { // no certificate within the process
			t.Errorf("it is not told %s", name)
		}
	}
	if info.Agent != id.Agent || info.Database != id.Database || info.RemoteAddr != id.Remote ||
		!maps.Equal(info.TokenAttributes, id.Claims) || !info.ExpiresAt.Equal(id.Until) || info.HidesKeyOnlyColumns != id.Lists ||
		info.BackendPID != p.lastDecider().backend.PID || info.Settings["application_name"] != "told" {
		t.Errorf("it is told %+v of %+v", info, id)
	}
}

// A connection within the process belongs to the named agent. It is refused for another user, another database, or a
// route that is not an agent's.
func TestDialRefuses(t *testing.T) {
	p := startProxy(t)
	openedSessions := func() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.deciders) }
	for name, c := range map[string]struct{ agent, user, database string }{
		"an owner":               {"wire_owner", "wire_owner", p.db.Name},
		"nobody":                 {"nobody", "nobody", p.db.Name},
		"another user":           {agentName, "wire_owner", p.db.Name},
		"another agent":          {"nobody", agentName, p.db.Name},
		"another database":       {agentName, agentName, "postgres"},
		"a user with a password": {"wire_owner", agentName, p.db.Name},
	} {
		_, err := p.dialInside(t.Context(), Identity{Agent: c.agent, Database: p.db.Name}, c.user, c.database)
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != "28000" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := openedSessions(); n != 0 {
		t.Errorf("%d sessions were opened", n)
	}
	if _, err := p.server.Dial(t.Context(), Identity{Database: p.db.Name}); err == nil {
		t.Error("an identity without agent was taken")
	}
	canceledCtx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.server.Dial(canceledCtx, Identity{Agent: agentName, Database: p.db.Name}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Login limits, revocation and draining apply to connections within the process as to those of clients.
func TestDialEnds(t *testing.T) {
	p := startProxy(t, func(_ *testProxy, c *Config) { c.MaxLogins = 1 })
	id := Identity{Agent: agentName, Database: p.db.Name}
	connInLogin, err := p.server.Dial(t.Context(), id) // it occupies a login slot
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.dialInside(t.Context(), id, agentName, p.db.Name)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "53300" {
		t.Errorf("the second login: %v", err)
	}
	connInLogin.Close()
	var conn *pgx.Conn
	eventually(t, "there is room again", func() bool {
		conn, err = p.dialInside(t.Context(), id, agentName, p.db.Name)
		return err == nil
	})
	p.lastDecider().info.OnRevoke(sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonIdentity, "this agent was disabled"))
	if _, err := conn.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("a session that was revoked goes on")
	}
	conn.Close(context.Background())

	conn, err = p.dialInside(t.Context(), id, agentName, p.db.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	busyResult := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "SELECT pg_sleep(1)")
		busyResult <- err
	}()
	p.awaitRunning(t, "pg_sleep(1)")
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	if err := p.server.Shutdown(ctx); err != nil {
		t.Errorf("draining: %v", err)
	}
	if err := <-busyResult; err != nil {
		t.Errorf("a busy session was cut off: %v", err)
	}
	if _, err := p.server.Dial(t.Context(), id); sqlstate.AsError(err).Code != sqlstate.AdminShutdown {
		t.Errorf("a server that drains took a connection: %v", err)
	}
}

// A cancel request over a connection within the process cancels the statement.
func TestDialCancel(t *testing.T) {
	p := startProxy(t)
	conn, err := p.dialInside(t.Context(), Identity{Agent: agentName, Database: p.db.Name}, agentName, p.db.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	result := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "SELECT pg_sleep(600)")
		result <- err
	}()
	p.awaitRunning(t, "pg_sleep(600)")
	if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = <-result
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "57014" {
		t.Error(err)
	}
}
