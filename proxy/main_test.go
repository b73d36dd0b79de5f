package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"
	"github.com/xdg-go/scram"
	"go.uber.org/goleak"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	agentRole     = "wire_agent" // the role's name on the server
	agentName     = "agent"      // the agent's name at the proxy
	agentPassword = "secret of the agent"
	settingSeal   = "pgconsent.seal"
)

// fakeDecider is a Decider that allows every text except those that contain one of its words. It records its calls.
type fakeDecider struct {
	mu       sync.Mutex
	info     SessionInfo
	backend  verdict.Backend
	recorded []string
	outcomes []string
	closed   bool

	resultBound                               verdict.ResultBound
	prefix                                    string // is put in front of every text
	hardened                                  bool   // every statement gets a hardened plan
	sealLifetime                              time.Duration
	seals                                     atomic.Int32
	badSeal                                   atomic.Bool
	consentChanges, snapshots, snapshotChecks atomic.Int32 // consentChanges of consent, snapshots noted, and checks of them
	isStateUnknown                            atomic.Bool  // the state of consent is not known
	decidedBeforeRedefinition                 atomic.Int32 // how many of the next statements count as decided before a function was replaced; -1: all
	waitingRowsHidden                         atomic.Bool  // rows of a suspended portal are hidden now

	recheck atomic.Value // the function that Recheck calls: func(*verdict.Verdict) *verdict.Verdict
}

func (j *fakeDecider) Seal(_ context.Context, b verdict.Backend) (verdict.Seal, error) {
	j.backend = b
	n := j.seals.Add(1)
	name := settingSeal
	if j.badSeal.Load() {
		name = "no such setting!"
	}
	now := time.Now()
	return verdict.Seal{Setting: name, Value: fmt.Sprintf("seal %d", n), RenewAfter: now.Add(j.sealLifetime), Expires: now.Add(2*j.sealLifetime + time.Minute),
		Identity: j.userAttribute()}, nil
}

// CanShareSeal implements verdict.SealSharer: sessions of one user have one identity.
func (j *fakeDecider) CanShareSeal(s verdict.Seal) bool { return s.Identity == j.userAttribute() }

// userAttribute is the user for whom the session acts.
func (j *fakeDecider) userAttribute() any { return j.info.TokenAttributes["user"] }

func (j *fakeDecider) Decide(_ context.Context, text string, _ verdict.Protocol) *verdict.Verdict {
	v := &verdict.Verdict{Original: text, EnforcerDetail: text, CallsUncheckedFunctions: strings.Contains(text, "of_the_owner")}
	switch {
	case strings.Contains(text, "panicking"):
		panic(text)
	case strings.Contains(text, "forbidden"):
		v.Refusal = sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonRelation, "refused").WithHint("Ask for less.").WithPosition(3)
	case strings.Contains(text, "misspelt"):
		v.Refusal = sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonSyntax, "syntax error at or near \"misspelt\"").WithPosition(1)
	default:
		var texts []string
		addedCharacters := 0 // by how many characters names before an error's position have become longer
		v.Position = func(p int) int { return max(0, p-len(j.prefix)-addedCharacters) }
		offset := len(j.prefix)
		var statementParts []verdict.Part
		for _, t := range strings.Split(text, ";") {
			var e verdict.Effect
			switch upperText := strings.ToUpper(strings.TrimSpace(t)); {
			case upperText == "COMMIT", upperText == "ROLLBACK":
				e.Kind = verdict.EffectEnd
			case strings.HasPrefix(upperText, "SAVEPOINT "):
				e.Kind = verdict.EffectSavepoint
			case strings.HasPrefix(upperText, "ROLLBACK TO "):
				e.Kind = verdict.EffectRollbackTo
			case upperText == "BEGIN":
				e.Kind = verdict.EffectBegin
			case upperText == "DEALLOCATE ALL":
				e.Kind = verdict.EffectDeallocate
			case strings.HasPrefix(upperText, "DEALLOCATE "):
				e.Kind, e.Name = verdict.EffectDeallocate, strings.TrimSpace(t)[len("DEALLOCATE "):]
				t = `DEALLOCATE "` + verdict.UpstreamName(e.Name) + `"`
			case strings.HasPrefix(upperText, "PREPARE "):
				name, afterName, _ := strings.Cut(strings.TrimSpace(t)[len("PREPARE "):], " ")
				e.Kind, e.Name = verdict.EffectPrepare, name
				e.Body = &verdict.Verdict{Original: text, Text: text,
					Rewritten: verdict.Rewritten{Effects: []verdict.Effect{{ReadsRows: true}}, Position: v.Position}, EnforcerDetail: text}
				addedCharacters = len(verdict.UpstreamName(name)) + 2 - len(name)
				t = `PREPARE "` + verdict.UpstreamName(name) + `" ` + afterName
			case strings.HasPrefix(upperText, "EXECUTE "):
				name, afterName, _ := strings.Cut(strings.TrimSpace(t)[len("EXECUTE "):], " ")
				e.Kind, e.Name = verdict.EffectExecute, name
				addedCharacters = len(verdict.UpstreamName(name)) + 2 - len(name)
				t = `EXECUTE "` + verdict.UpstreamName(name) + `" ` + afterName
			case strings.HasPrefix(upperText, "DECLARE "):
				name, afterName, _ := strings.Cut(strings.TrimSpace(t)[len("DECLARE "):], " ")
				e.Kind, e.Name, e.WithHold, e.Binary = verdict.EffectDeclare, name, strings.Contains(upperText,
					"WITH HOLD"), strings.HasPrefix(strings.ToUpper(afterName), "BINARY")
				e.Body = &verdict.Verdict{Original: text, Text: text,
					Rewritten: verdict.Rewritten{Effects: []verdict.Effect{{ReadsRows: true}}, Position: v.Position}, EnforcerDetail: text}
				addedCharacters = len(verdict.UpstreamName(name)) + 2 - len(name)
				t = `DECLARE "` + verdict.UpstreamName(name) + `" ` + afterName
			case strings.HasPrefix(upperText, "FETCH "), strings.HasPrefix(upperText, "MOVE "), strings.HasPrefix(upperText, "CLOSE "):
				e.Kind = verdict.EffectFetch
				if strings.HasPrefix(upperText, "CLOSE") {
					e.Kind = verdict.EffectClose
				}
				if upperText == "CLOSE ALL" {
					break
				}
				i := strings.LastIndex(t, " ")
				e.Name = t[i+1:]
				t = t[:i+1] + `"` + verdict.UpstreamName(e.Name) + `"`
			case strings.Contains(upperText, "REPEATABLE READ"):
				e.SnapshotHold = verdict.HoldForTransaction
				if strings.HasPrefix(upperText, "BEGIN") {
					e.Kind = verdict.EffectBegin
				} else if e.Kind = verdict.EffectSet; strings.Contains(upperText, "DEFAULT") {
					e.SnapshotHold = verdict.HoldForSession
				}
			case strings.HasPrefix(upperText, "SET "), strings.HasPrefix(upperText, "RESET ") && upperText != "RESET ALL":
				words := strings.Fields(strings.ToLower(t))
				e.Kind, e.Name = verdict.EffectSet, words[1]
				if e.Name == "local" || e.Name == "session" {
					e.Name = words[2]
				}
			case upperText == "RESET ALL":
				e.Kind, e.ReadsRows, e.CommandTag, t = verdict.EffectResetAll, true, "RESET", verdict.ResetSettings
			case strings.HasPrefix(upperText, "LISTEN "):
				e.Kind, e.Name = verdict.EffectListen, strings.TrimSpace(t)[len("LISTEN "):]
			case upperText == "DISCARD ALL":
				e.Kind = verdict.EffectDiscard
			case strings.HasPrefix(upperText, "COPY") && strings.Contains(upperText, "FROM STDIN"):
				e.Kind, e.WritesRows = verdict.EffectCopyIn, true
			case strings.HasPrefix(upperText, "INSERT "), strings.HasPrefix(upperText, "UPDATE "), strings.HasPrefix(upperText,
				"WITH X AS (DELETE "):
				e.ReadsRows, e.WritesRows = true, true
			case strings.HasPrefix(upperText, "SELECT"), strings.HasPrefix(upperText, "COPY"):
				e.ReadsRows = true
			}
			texts = append(texts, t)
			v.KeepsSessionState = v.KeepsSessionState || strings.Contains(t, "pg_advisory_lock") || strings.Contains(t, "setseed")
			v.CallsSetConfig = v.CallsSetConfig || strings.Contains(t, "set_config")
			if strings.TrimSpace(t) != "" {
				e.ReturnsRows = true
				v.Effects = append(v.Effects, e)
				statementParts = append(statementParts, verdict.Part{Text: t, Offset: offset})
			}
			offset += len(t) + 1
		}
		v.Text = j.prefix + strings.Join(texts, ";")
		for i := range v.Effects {
			if j.hardened {
				withHardenedPlan(&v.Effects[i], texts[i])
			}
		}
		if len(statementParts) > 1 {
			v.Parts = func() []verdict.Part { return statementParts }
		}
	}
	return v
}

// withHardenedPlan marks a statement as one with a hardened plan, if PostgreSQL plans it.
func withHardenedPlan(e *verdict.Effect, text string) {
	switch e.Kind {
	case verdict.EffectNone:
		switch upperText := strings.TrimSpace(strings.ToUpper(text)); {
		case strings.HasPrefix(upperText, "COPY"):
			e.HardenedPlan = verdict.HardenedAtExecute
		case strings.Contains(upperText, "SELECT"), strings.HasPrefix(upperText, "INSERT"):
			e.HardenedPlan = verdict.HardenedAtBind
		}
	case verdict.EffectDeclare, verdict.EffectCopyIn:
		e.HardenedPlan = verdict.HardenedAtExecute
	case verdict.EffectPrepare:
		e.Body.Effects[0].HardenedPlan = verdict.HardenedAtBind
	}
}

func (j *fakeDecider) DeclareParameters(_ context.Context, v *verdict.Verdict, _ []uint32) *verdict.Verdict {
	return v
}

func (j *fakeDecider) UseRowSecurity(_ context.Context, v *verdict.Verdict, _ []uint32) *verdict.Verdict {
	return v
}

func (j *fakeDecider) CheckValues(v *verdict.Verdict, _ [][]byte) *verdict.Verdict { return v }

func (j *fakeDecider) ClientOrigin(o verdict.Origin) verdict.Origin { return o }

func (j *fakeDecider) Recheck(_ context.Context, v *verdict.Verdict) *verdict.Verdict {
	if f, ok := j.recheck.Load().(func(*verdict.Verdict) *verdict.Verdict); ok && f != nil {
		return f(v)
	}
	return v
}

func (j *fakeDecider) Record(v *verdict.Verdict, runs ...*verdict.Verdict) verdict.Ticket {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.recorded = append(j.recorded, v.Original)
	for _, r := range runs {
		j.recorded[len(j.recorded)-1] += " runs " + r.Original
	}
	return &fakeTicket{j, v.Original}
}

func (j *fakeDecider) Snapshot(context.Context) (verdict.Snapshot, *sqlstate.Error) {
	n := j.snapshots.Add(1)
	if j.isStateUnknown.Load() {
		return verdict.Snapshot{}, sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonUpstream, "lost")
	}
	return verdict.Snapshot{Value: fmt.Sprint(j.consentChanges.Load()), RulesVersion: fmt.Sprint(n)}, nil
}

func (j *fakeDecider) CheckSnapshot(_ context.Context, snapshot verdict.Snapshot, portal bool) *sqlstate.Error {
	j.snapshotChecks.Add(1)
	switch {
	case portal && j.waitingRowsHidden.Load():
		return sqlstate.New(sqlstate.SerializationFailure, sqlstate.ReasonStale, "time has hidden something")
	case j.isStateUnknown.Load():
		return sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonUpstream, "lost")
	case snapshot.Value != fmt.Sprint(j.consentChanges.Load()):
		return sqlstate.New(sqlstate.SerializationFailure, sqlstate.ReasonStale, "consent has changed")
	}
	return nil
}

func (j *fakeDecider) CheckCatalogs(context.Context, *verdict.Verdict) *sqlstate.Error {
	n := j.decidedBeforeRedefinition.Load()
	if n > 0 {
		j.decidedBeforeRedefinition.Add(-1)
	}
	if n != 0 {
		return sqlstate.New(sqlstate.SerializationFailure, sqlstate.ReasonStale, "the schema has changed")
	}
	return nil
}

func (j *fakeDecider) Close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
}

type fakeTicket struct {
	decider *fakeDecider
	text    string
}

func (r *fakeTicket) Release() *sqlstate.Error {
	if strings.Contains(r.text, "unrecordable") {
		return sqlstate.New(sqlstate.IOError, sqlstate.ReasonAudit, "the decision could not be recorded")
	}
	return nil
}

func (r *fakeTicket) ResultBound() verdict.ResultBound {
	b := r.decider.resultBound
	b.MustRollBack = b.MustRollBack || strings.Contains(r.text, "INSERT")
	return b
}

func (r *fakeTicket) RowsReturned(int64) {}

func (r *fakeTicket) RecordOutcome(o verdict.Outcome) {
	r.decider.mu.Lock()
	defer r.decider.mu.Unlock()
	r.decider.outcomes = append(r.decider.outcomes, fmt.Sprintf("%s: %s %d", r.text, o.Code, o.Rows))
}

// testProxy is a proxy in front of the test's database.
type testProxy struct {
	t       testing.TB
	server  *Server
	addr    string // host:port
	db      *pgtest.DB
	tlsConf *tls.Config
	log     *lockedBuffer
	listen  func(net.Listener) net.Listener // wraps the listener, unless nil

	mu           sync.Mutex
	deciders     []*fakeDecider
	setupDecider func(*fakeDecider)
	editRoute    func(*Route) // changes a route of an agent or an owner
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var agentCredentials = sync.OnceValue(func() scram.StoredCredentials {
	return storedCredentials(agentPassword)
})

func storedCredentials(password string) scram.StoredCredentials {
	client, err := scram.SHA256.NewClientUnprepped("", password, "")
	if err != nil {
		panic(err)
	}
	c, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: "0123456789abcdef", Iters: 16})
	if err != nil {
		panic(err)
	}
	return c
}

func (p *testProxy) upstream() Upstream {
	return Upstream{Network: "unix", Address: filepath.Join(p.db.SocketDir, fmt.Sprintf(".s.PGSQL.%d", p.db.Port)),
		KeepHeap: 1 << 20, StatementCache: 20, CacheEagerly: true,
		Settings: []string{"application_name", "datestyle", "extra_float_digits", "statement_timeout", "timezone"}}
}

func (p *testProxy) Route(user, database string) Route {
	r := Route{Upstream: p.upstream()}
	switch user {
	case agentName:
		c := agentCredentials()
		r.Kind, r.Credential = Agent, &c
		r.Upstream.User, r.Upstream.Params = agentRole, map[string]string{"search_path": "public"}
		r.CheckSetting = func(name, value, _ string) (string, bool, *sqlstate.Error) {
			switch strings.ToLower(name) {
			case "search_path":
				return "", false, sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonSetting, "the setting search_path is pinned")
			case "client_encoding":
				return "", false, nil
			}
			return value, true, nil
		}
		r.Open = func(_ context.Context, info SessionInfo) (verdict.Decider, error) {
			j := &fakeDecider{info: info, sealLifetime: time.Hour}
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.setupDecider != nil {
				p.setupDecider(j)
			}
			p.deciders = append(p.deciders, j)
			return j, nil
		}
	case "postgres", "wire_owner":
		r.Kind = Owner
	default:
		c := storedCredentials("a password nobody has: " + user)
		r.Credential = &c
	}
	if p.editRoute != nil {
		p.editRoute(&r)
	}
	return r
}

// lastDecider is the decider of the session that was opened last.
func (p *testProxy) lastDecider() *fakeDecider {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deciders[len(p.deciders)-1]
}

var makeRoles = sync.OnceValue(func() error {
	conn, err := pgx.Connect(context.Background(), fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", pgtest.SocketDir(), pgtest.Port()))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), `DO $$ BEGIN
		CREATE ROLE wire_agent LOGIN PASSWORD 'x'; CREATE ROLE wire_owner LOGIN SUPERUSER PASSWORD 'owner';
		EXCEPTION WHEN duplicate_object THEN END $$`)
	return err
})

// createHardenFunction creates the function in the database that sets the settings of a hardened plan.
func (p *testProxy) createHardenFunction() {
	p.t.Helper()
	base, err := os.ReadFile("../migrations/sql/0001_schema.sql")
	if err != nil {
		p.t.Fatal(err)
	}
	_, function, ok := strings.Cut(string(base), "CREATE FUNCTION pgconsent_signed.harden_plan()")
	function, _, found := strings.Cut(function, "REVOKE ")
	if !ok || !found {
		p.t.Fatal("the base does not make pgconsent_signed.harden_plan()")
	}
	conn := p.db.Connect(p.t, "postgres")
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(),
		"CREATE SCHEMA pgconsent_signed; GRANT USAGE ON SCHEMA pgconsent_signed TO wire_agent; "+
			"CREATE FUNCTION pgconsent_signed.harden_plan()"+function+
			"GRANT EXECUTE ON FUNCTION pgconsent_signed.harden_plan() TO wire_agent"); err != nil {
		p.t.Fatal(err)
	}
}

// startProxy starts a proxy for the test, and checks at the end that nothing of it is left.
func startProxy(t testing.TB, options ...func(*testProxy, *Config)) *testProxy {
	t.Helper()
	if err := makeRoles(); err != nil {
		t.Fatal(err)
	}
	p := &testProxy{t: t, db: pgtest.Database(t), log: &lockedBuffer{}}
	p.createHardenFunction()
	existingGoroutines := goleak.IgnoreCurrent()
	cfg := Config{Router: p, Log: slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, o := range options {
		o(p, &cfg)
	}
	var err error
	if p.server, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.addr = l.Addr().String()
	if p.listen != nil {
		l = p.listen(l)
	}
	serveResult := make(chan error, 1)
	go func() { serveResult <- p.server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = p.server.Shutdown(ctx)
		if err := <-serveResult; err != ErrClosed {
			t.Errorf("Serve: %v", err)
		}
		if err := goleak.Find(existingGoroutines, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/internal/ctxwatch.(*ContextWatcher).Watch.func1")); err != nil {
			t.Error(err)
		}
		if strings.Contains(p.log.String(), agentPassword) || strings.Contains(p.log.String(), "seal 1") {
			t.Error("the log holds a secret")
		}
		if t.Failed() {
			t.Log(p.log.String())
		}
	})
	return p
}

func withDecider(f func(*fakeDecider)) func(*testProxy, *Config) {
	return func(p *testProxy, _ *Config) { p.setupDecider = f }
}

func (p *testProxy) dsn(user, password string) string {
	host, port, _ := net.SplitHostPort(p.addr)
	return fmt.Sprintf("host=%s port=%s user=%s password='%s' dbname=%s sslmode=prefer", host, port, user, password, p.db.Name)
}

func (p *testProxy) agentDSN() string { return p.dsn(agentName, agentPassword) }

// connect returns a connection of the agent.
func (p *testProxy) connect(t testing.TB, options ...string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.agentDSN()+" "+strings.Join(options, " "))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// peer is a connection on which a test sends and receives single protocol messages.
type peer struct {
	net.Conn
	frontend *pgx3.Frontend
}

func (p *peer) send(t testing.TB, messages ...pgx3.FrontendMessage) {
	t.Helper()
	for _, m := range messages {
		p.frontend.Send(m)
	}
	if err := p.frontend.Flush(); err != nil {
		t.Fatal(err)
	}
}

// connectRaw logs the agent in, and returns the connection as a peer.
func (p *testProxy) connectRaw(t testing.TB) *peer {
	return connectPeer(t, p.agentDSN()+" sslmode=disable")
}

// connectDirect does the same on the server itself.
func (p *testProxy) connectDirect(t testing.TB) *peer {
	return connectPeer(t, fmt.Sprintf("host=%s port=%d user=%s dbname=%s", p.db.SocketDir, p.db.Port, agentRole, p.db.Name))
}

func connectPeer(t testing.TB, dsn string) *peer {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return connectPeerWith(t, config)
}

// loginOver logs an agent in over an existing connection.
func (p *testProxy) loginOver(t testing.TB, nc net.Conn) *peer {
	t.Helper()
	config, err := pgx.ParseConfig(p.agentDSN() + " sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) { return nc, nil }
	return connectPeerWith(t, config)
}

func connectPeerWith(t testing.TB, config *pgx.ConnConfig) *peer {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.PgConn().SyncConn(t.Context()); err != nil {
		t.Fatal(err)
	}
	hc, err := conn.PgConn().Hijack()
	if err != nil {
		t.Fatal(err)
	}
	_ = hc.Conn.SetDeadline(time.Now().Add(tier.Patience))
	t.Cleanup(func() { hc.Conn.Close() })
	return &peer{hc.Conn, hc.Frontend}
}

// dial opens a connection and sends nothing.
func (p *testProxy) dial(t testing.TB) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.SetDeadline(time.Now().Add(tier.Patience))
	t.Cleanup(func() { nc.Close() })
	return nc
}

// readLastError reads until the other side closes and returns the last error's fields.
func readLastError(t testing.TB, r io.Reader) *pgx3.ErrorResponse {
	t.Helper()
	return lastError(pgx3.NewFrontend(r, nil))
}

// readLastError is the same for a peer.
func (p *peer) readLastError() *pgx3.ErrorResponse { return lastError(p.frontend) }

func lastError(frontend *pgx3.Frontend) *pgx3.ErrorResponse {
	var lastResponse *pgx3.ErrorResponse
	for {
		m, err := frontend.Receive()
		if err != nil {
			return lastResponse
		}
		if e, ok := m.(*pgx3.ErrorResponse); ok {
			response := *e
			lastResponse = &response
		}
	}
}

func eventually(t testing.TB, description string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(tier.Patience); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", description)
		}
	}
}

// awaitRunning waits until the server runs a statement that contains the text.
func (p *testProxy) awaitRunning(t testing.TB, text string) {
	t.Helper()
	admin := p.db.Connect(t, "postgres")
	eventually(t, text+" runs", func() bool {
		var runs bool
		if err := admin.QueryRow(t.Context(),
			"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> "+
				"pg_backend_pid() AND state = 'active' AND position($1 IN query) > 0)", text).Scan(&runs); err != nil {
			t.Fatal(err)
		}
		return runs
	})
}
