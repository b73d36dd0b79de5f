package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/proxy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	owner         = "arcive_owner"
	rolePassword  = "role-password"
	agentPassword = "agent-password"
	user1         = "11111111-1111-4111-8111-111111111111"
	user2         = "22222222-2222-4222-8222-222222222222"
)

// options say how an instance differs from the defaults of serve.
type options struct {
	mode          rewrite.Mode // Both by default
	rowSecurity   rls.Mode     // Enforce by default
	policy        string       // a policy instead of the world's
	beforeMigrate string       // SQL run by the superuser after the world is loaded, before migrate
	afterMigrate  string       // SQL run by the superuser after migrate

	refreshInterval time.Duration // the time between two refreshes of the catalog, 5 s by default

	attributes         map[string]string // attributes of every agent, besides user
	passwordIterations int               // the iterations of the agents' passwords: some drivers want 4096
}

// quickRefresh is for tests that wait until the proxy has refreshed its catalog.
const quickRefresh = 200 * time.Millisecond

// instance is a database with the arcive world, migrated, behind a proxy of its own.
type instance struct {
	db    *pgtest.DB
	addr  string       // the address of the proxy
	tap   *harness.Tap // in front of the proxy; agents connect through it
	audit string

	enforcer *enforce.Enforcer
}

// loadArcive loads the example world arcive into the template database, as its owner would.
func loadArcive(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `DO $$ BEGIN
		IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'arcive_owner') THEN CREATE ROLE arcive_owner LOGIN PASSWORD 'role-password'; END IF;
		EXECUTE format('ALTER DATABASE %I OWNER TO arcive_owner', current_database());
		ALTER SCHEMA public OWNER TO arcive_owner;
	END $$`)
	if err != nil {
		return err
	}
	w, err := world.Open("arcive")
	if err != nil {
		return err
	}
	return w.Load(ctx, conn, func(string) {})
}

func policyFile(t testing.TB, text string) string {
	t.Helper()
	if text == "" {
		w, err := world.Open("arcive")
		if err != nil {
			t.Fatal(err)
		}
		b, err := w.File("policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// arciveDatabase describes the world's database with a policy, for the harness.
func arciveDatabase(t testing.TB, db *pgtest.DB, file, setup string) harness.Database {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return harness.Database{Name: "arcive", DB: db, Policy: string(text), SearchPath: []string{"public"}, Setup: setup, LeaveUnfilled: true}
}

// start loads the world, migrates and serves it.
func start(t testing.TB, o options) *instance {
	t.Helper()
	return serveOn(t, pgtest.Template(t, "arcive", loadArcive), o)
}

// startForReading returns an instance that read-only tests share; such tests must not read the whole audit. It has the
// world's policy, and the mode and row security of o. Each test has its own tap.
func startForReading(t testing.TB, o options) *instance {
	t.Helper()
	o = options{mode: o.mode, rowSecurity: o.rowSecurity}
	sharedInstance := *harness.Shared(t, fmt.Sprintf("arcive, mode %d, row security %d", o.mode, o.rowSecurity), func(t testing.TB) (*instance, *pgtest.DB) {
		in := start(t, o)
		return in, in.db
	})
	harness.AwaitProbes(t, sharedInstance.enforcer)
	sharedInstance.tap = harness.NewTap(t, sharedInstance.addr)
	sharedInstance.audit = "" // the shared folder has records of other tests as well
	return &sharedInstance
}

func serveOn(t testing.TB, db *pgtest.DB, o options) *instance {
	t.Helper()
	file := policyFile(t, o.policy)
	harness.Install(t, arciveDatabase(t, db, file, o.beforeMigrate), harness.Mode{Rewrite: o.mode, RowSecurity: o.rowSecurity})
	if o.afterMigrate != "" {
		runAsSuperuser(t, db, o.afterMigrate)
	}
	in := &instance{db: db, audit: filepath.Join(t.TempDir(), "audit")}
	log, err := audit.Open(audit.Config{Mode: audit.ModeStrict, Dir: in.audit, ReleaseTimeout: tier.Patience})
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	enforcer, err := enforce.New(context.Background(), enforce.Config{
		Databases: []enforce.Database{{
			Name: "arcive", PolicyPath: file, SearchPath: []string{"public"},
			ControlConnection: db.DSN("pgconsent_control", rolePassword), AgentConnection: db.DSN("pgconsent_agent", rolePassword),
		}},
		Agents: agentsOf(t, o),
		Audit:  log, Log: logger, RewriteMode: o.mode, RowSecurityMode: o.rowSecurity, ProbeInterval: cmp.Or(o.refreshInterval, 5*time.Second),
	})
	if err != nil {
		t.Fatal(err)
	}
	harness.AwaitProbes(t, enforcer)
	server, err := proxy.New(proxy.Config{Router: &testRouter{enforcer: enforcer, db: db, pool: harness.PoolFor(t)}, Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
		if err := <-done; err != nil && !errors.Is(err, proxy.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
		enforcer.Close()
		if err := log.Close(context.Background()); err != nil {
			t.Errorf("audit: %v", err)
		}
	})
	in.addr, in.enforcer = listener.Addr().String(), enforcer
	in.tap = harness.NewTap(t, in.addr)
	return in
}

func agentOf(t testing.TB, name, user string, o options) enforce.Agent {
	t.Helper()
	attributes := map[string]string{"user": user}
	maps.Copy(attributes, o.attributes)
	return enforce.Agent{Name: name, Database: "arcive",
		Credential: harness.Credential(t, agentPassword, max(o.passwordIterations, harness.FewIterations)), Attributes: attributes}
}

// arciveAgents are the agents of the first user, the default one first.
var arciveAgents = []string{"caregiver", "reviewer", "tutor", "brainstorm", "chat", "voice", "mcp"}

func agentsOf(t testing.TB, o options) []enforce.Agent {
	t.Helper()
	agents := []enforce.Agent{agentOf(t, "second", user2, o)}
	for _, name := range arciveAgents {
		agents = append(agents, agentOf(t, name, user1, o))
	}
	return agents
}

// testRouter connects the enforcement to the wire protocol, as package serve does.
type testRouter struct {
	enforcer *enforce.Enforcer
	db       *pgtest.DB
	pool     *proxy.PoolSettings
}

func (r *testRouter) Route(user, database string) proxy.Route {
	upstream := proxy.Upstream{
		Network: "unix", Address: fmt.Sprintf("%s/.s.PGSQL.%d", r.db.SocketDir, r.db.Port), Database: r.db.Name,
		User: "pgconsent_agent", Password: rolePassword,
		StatementCache: proxy.DefaultStatementCache, CacheEagerly: true, Settings: rewrite.SettingsOfAgents(),
	}
	if user == owner {
		return proxy.Route{Kind: proxy.Owner, Upstream: upstream}
	}
	access, ok := r.enforcer.Agent(user, database)
	if !ok {
		return proxy.Route{Kind: proxy.Refused, Credential: &scram.StoredCredentials{KeyFactors: scram.KeyFactors{Salt: "0123456789abcdef", Iters: 4096}}}
	}
	upstream.Params = access.Params
	return proxy.Route{
		Kind: proxy.Agent, Upstream: upstream, Credential: access.Credential, CheckSetting: access.CheckSetting, Pool: r.pool,
		Open: func(ctx context.Context, info proxy.SessionInfo) (verdict.Decider, error) {
			return access.OpenSession(ctx, enforce.SessionInfo(info))
		},
	}
}

// runAsSuperuser runs SQL as the superuser, past the proxy.
func runAsSuperuser(t testing.TB, db *pgtest.DB, sql string) {
	t.Helper()
	if _, err := db.Connect(t, "postgres").Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", harness.OneLine(sql), err)
	}
}

// dsn returns the connection string of a user of the proxy.
func (in *instance) dsn(user, password string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/arcive?sslmode=disable", user, password, in.tap.Addr())
}

// ownerDSN returns the connection string of the owner. It bypasses the tap, since owners see everything.
func (in *instance) ownerDSN() string {
	return fmt.Sprintf("postgres://%s:%s@%s/arcive?sslmode=disable", owner, rolePassword, in.addr)
}

// agent connects the default agent, through the tap.
func (in *instance) agent(t testing.TB) *pgconn.PgConn {
	t.Helper()
	return harness.Connect(t, in.dsn("caregiver", agentPassword))
}

// superuserConn connects the superuser, past the proxy.
func (in *instance) superuserConn(t testing.TB) *pgconn.PgConn {
	return harness.Connect(t, in.db.DSN("postgres", ""))
}

// connectPgx connects an agent with pgx, through the tap.
func (in *instance) connectPgx(t testing.TB, user string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), in.dsn(user, agentPassword))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// ownerConn connects the owner with pgx, through the proxy.
func (in *instance) ownerConn(t testing.TB) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), in.ownerDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// requireNoMarker fails the test if a marker of a hidden row came through the tap.
func (in *instance) requireNoMarker(t testing.TB) {
	t.Helper()
	in.tap.RequireNoMarker(t)
}
