package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/proxy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

const (
	rolePassword  = "role-password"
	agentPassword = "agent-password"
)

// Mode says how the rewriter and row security enforce a policy.
type Mode struct {
	Name        string
	Rewrite     rewrite.Mode
	RowSecurity rls.Mode
}

// The modes. A statement must return the same rows in each of them.
var (
	Both         = Mode{"both", rewrite.InjectedMode, rls.Enforce}
	Auto         = Mode{"auto", rewrite.AutoMode, rls.Enforce}
	SignedViews  = Mode{"signed views, however little is read", rewrite.AlwaysSignedMode, rls.Enforce}
	RLS          = Mode{"row security alone", rewrite.RowSecurityMode, rls.Enforce}
	InjectedOnly = Mode{"injected predicates alone", rewrite.AlwaysInjectedMode, rls.SealOnly}
)

// Modes returns the modes in which a test runs: all of the given ones, but only one in the quick run. In the quick run
// it chooses Auto, the default of pgconsent serve, or else SignedViews, or else the first mode.
func Modes(all ...Mode) []Mode {
	if !tier.Quick() {
		return all
	}
	for _, chosen := range []Mode{Auto, SignedViews} {
		if slices.Contains(all, chosen) {
			return []Mode{chosen}
		}
	}
	return all[:1]
}

// Database is a database that a proxy serves. The fields about the proxy apply if the database is the first in Serve's
// list.
type Database struct {
	Name          string // name by which agents connect to it
	DB            *pgtest.DB
	Policy        string // text of the policy
	SearchPath    []string
	Setup         string        // SQL that the superuser runs before the policy is installed
	LeaveUnfilled bool          // do not compute the materialized answers
	Refresh       time.Duration // time between two of the proxy's probes of its databases; 0: 5 s
	AIR           *air.Tracker  // the proxy's tracker of interactions; nil: the proxy sends no reminders
	Audit         string        // folder for the proxy's audit; "": no audit

	// how sessions share the proxy's connections to the server; nil: as PoolFor says
	Pool *proxy.PoolSettings

	// host:port at which the proxy connects to the server for agents; "": the server's socket
	Server string
	Quiet  bool // do not print the errors that the proxy logs; Proxy.Errors returns them

	// verifies tokens of users for the proxy; nil: no token is accepted
	VerifyUser func(ctx context.Context, token, agent, database string) (map[string]string, time.Time, error)
}

// Agent is an agent that may log in to the proxy.
type Agent struct {
	Name, Database string
	Attributes     map[string]string
	ActsFor        *enforce.ActsFor
}

// Migrated is a policy that is installed in a database, with the database's catalog snapshot and the plan of its
// objects.
type Migrated struct {
	Policy   *policy.Policy
	Snapshot *catalog.Snapshot
	Plan     *rls.Plan
}

// compiledPolicies caches compiled policies for databases that are copies of the same template. The copies' objects
// have the same OIDs.
var compiledPolicies struct {
	sync.Mutex
	by   map[string]*Migrated // by template of the database and text of the policy
	keys []string             // keys of the map, oldest first
}

// maxCompiled limits the size of the cache, since random tests make any number of policies.
const maxCompiled = 48

func storeCompiled(key string, m *Migrated) {
	compiledPolicies.Lock()
	defer compiledPolicies.Unlock()
	if compiledPolicies.by == nil {
		compiledPolicies.by = map[string]*Migrated{}
	}
	if len(compiledPolicies.keys) == maxCompiled {
		delete(compiledPolicies.by, compiledPolicies.keys[0])
		compiledPolicies.keys = compiledPolicies.keys[1:]
	}
	compiledPolicies.by[key] = m
	compiledPolicies.keys = append(compiledPolicies.keys, key)
}

func findCompiled(key string) *Migrated {
	compiledPolicies.Lock()
	defer compiledPolicies.Unlock()
	return compiledPolicies.by[key]
}

// Compile compiles the policy of a database with the catalog snapshot of the database.
func Compile(t testing.TB, d Database, mode Mode) *Migrated {
	t.Helper()
	key := ""
	if origin := d.DB.UnchangedTemplate(); origin != "" {
		key = origin + "\n" + d.cacheKey(mode)
		if m := findCompiled(key); m != nil {
			return m
		}
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, d.DB.ReadOnlyDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	m, err := d.compile(ctx, conn, mode)
	if err != nil {
		t.Fatalf("%v\n%s", err, d.Policy)
	}
	if key != "" {
		storeCompiled(key, m)
	}
	return m
}

// cacheKey returns a text with everything in a database and a mode that affects what is installed.
func (d Database) cacheKey(mode Mode) string {
	return fmt.Sprintf("policy %q, %q, row security %d, signed views %t, unfilled %t, setup %q", d.SearchPath, d.Policy, mode.RowSecurity,
		mode.Rewrite.UsesSignedPath(), d.LeaveUnfilled, d.Setup)
}

func (d Database) compile(ctx context.Context, conn *pgx.Conn, mode Mode) (*Migrated, error) {
	snap, err := pgcatalog.Load(ctx, conn, d.SearchPath)
	if err != nil {
		return nil, err
	}
	doc, err := policy.Parse("policy.yaml", []byte(d.Policy))
	if err != nil {
		return nil, err
	}
	pol, err := policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		return nil, err
	}
	return &Migrated{Policy: pol, Snapshot: snap,
		Plan: rls.Generate(pol, snap, rls.Options{Mode: mode.RowSecurity, SignedViews: mode.Rewrite.UsesSignedPath()})}, nil
}

// Migrate installs the policy in the database with the rights of the superuser, and computes the materialized answers.
func Migrate(t testing.TB, d Database, mode Mode) *Migrated {
	t.Helper()
	if !useInstalledCopy(d, mode) {
		return migrateDatabase(t, d, mode)
	}
	return Compile(t, d, mode)
}

// Install is [Migrate] for a test that does not need the compiled policy.
func Install(t testing.TB, d Database, mode Mode) {
	t.Helper()
	if !useInstalledCopy(d, mode) {
		migrateDatabase(t, d, mode)
	}
}

// useInstalledCopy replaces a database that is an unchanged copy of a template by a copy of a second template, in which
// the policy is installed already. It returns false if the database has been changed.
func useInstalledCopy(d Database, mode Mode) bool {
	return d.DB.BuildFurther(d.cacheKey(mode), func(ctx context.Context, conn *pgx.Conn) error {
		if err := d.setUp(ctx, conn); err != nil {
			return err
		}
		m, err := d.compile(ctx, conn, mode)
		if err != nil {
			return fmt.Errorf("%w\n%s", err, d.Policy)
		}
		return d.install(ctx, conn, m)
	})
}

// migrateDatabase installs the policy in the database itself, without a template.
func migrateDatabase(t testing.TB, d Database, mode Mode) *Migrated {
	t.Helper()
	ctx := context.Background()
	conn := d.DB.Connect(t, "postgres")
	defer pgtest.Lock(t, "roles")() // the plan names roles, which must not change while it is installed
	if d.Setup != "" {
		if err := d.setUp(ctx, conn); err != nil {
			t.Fatal(err)
		}
	}
	m, err := d.compile(ctx, conn, mode)
	if err != nil {
		t.Fatalf("%v\n%s", err, d.Policy)
	}
	if err := d.install(ctx, conn, m); err != nil {
		t.Fatal(err)
	}
	return m
}

func (d Database) setUp(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.PgConn().Exec(ctx, d.Setup).ReadAll(); err != nil {
		return fmt.Errorf("%s: %w", OneLine(d.Setup), err)
	}
	return nil
}

func (d Database) install(ctx context.Context, conn *pgx.Conn, m *Migrated) error {
	plan, err := newKnownRolesPlan(ctx, conn, m.Plan)
	if err != nil {
		return err
	}
	if err := migrations.Up(ctx, conn, migrations.Options{AgentPassword: rolePassword, ControlPassword: rolePassword}, plan); err != nil {
		return err
	}
	if d.LeaveUnfilled {
		return nil
	}
	return migrations.FillAll(ctx, conn, m.Plan.Fills(), func(migrations.Fill, int64) {})
}

// knownRolesPlan is a plan that grants nothing to roles of other tests on this server. A grant would prevent those
// tests from dropping their roles.
type knownRolesPlan struct {
	*rls.Plan
	otherRoles []string
}

func newKnownRolesPlan(ctx context.Context, conn *pgx.Conn, plan *rls.Plan) (knownRolesPlan, error) {
	rows, err := conn.Query(ctx, `SELECT r.rolname FROM pg_catalog.pg_roles AS r, pg_catalog.pg_database AS here
		WHERE here.datname = pg_catalog.current_database() AND here.datdba <> r.oid AND NOT EXISTS (
			SELECT FROM pg_catalog.pg_shdepend AS d WHERE d.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND d.refobjid = r.oid
			AND (d.dbid = here.oid OR d.classid = 'pg_catalog.pg_database'::pg_catalog.regclass AND d.objid = here.oid))`)
	if err != nil {
		return knownRolesPlan{}, err
	}
	strangers, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return knownRolesPlan{plan, strangers}, err
}

func (p knownRolesPlan) Objects(f migrations.Found) []migrations.Object {
	f.KeepRoles = slices.DeleteFunc(f.KeepRoles, func(role string) bool { return slices.Contains(p.otherRoles, role) })
	return p.Plan.Objects(f)
}

// Proxy is a proxy in the test's process that serves migrated databases.
type Proxy struct {
	addr     string
	server   *proxy.Server
	enforcer *enforce.Enforcer
	tap      *Tap
	log      *errorLog
	files    map[string]string // paths of the policy files, by database
}

// errorLog stores the errors that a proxy logs. It also writes them to standard error, unless quiet is set.
type errorLog struct {
	mu    sync.Mutex
	text  strings.Builder
	quiet bool
}

func (l *errorLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	if l.quiet {
		return len(b), nil
	}
	return os.Stderr.Write(b)
}

// Errors returns the lines of the proxy's log that report errors.
func (p *Proxy) Errors() string {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	return p.log.text.String()
}

// WritePolicy replaces the policy file of a database, which the proxy watches.
func (p *Proxy) WritePolicy(t testing.TB, database, text string) {
	t.Helper()
	if err := os.WriteFile(p.files[database], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Serve starts a proxy for databases in which the policy is installed already.
func Serve(t testing.TB, mode Mode, databases []Database, agents []Agent) *Proxy {
	t.Helper()
	ctx := context.Background()
	logged := &errorLog{quiet: len(databases) > 0 && databases[0].Quiet}
	logger := slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelError}))
	kept := audit.Config{Mode: audit.ModeOff}
	if len(databases) > 0 && databases[0].Audit != "" {
		kept = audit.Config{Mode: audit.ModeStrict, Dir: databases[0].Audit}
	}
	log, err := audit.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	pool := PoolFor(t)
	cfg := enforce.Config{Audit: log, Log: logger, RewriteMode: mode.Rewrite, RowSecurityMode: mode.RowSecurity,
		ProbeInterval: 5 * time.Second}
	if len(databases) > 0 {
		cfg.Reminders, cfg.VerifyUser = databases[0].AIR, databases[0].VerifyUser
		pool = cmp.Or(databases[0].Pool, pool)
		cfg.ProbeInterval = cmp.Or(databases[0].Refresh, cfg.ProbeInterval)
	}
	router, files := &router{databases: map[string]*pgtest.DB{}, pool: pool}, map[string]string{}
	if len(databases) > 0 {
		router.server = databases[0].Server
	}
	for _, d := range databases {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(file, []byte(d.Policy), 0o600); err != nil {
			t.Fatal(err)
		}
		router.databases[d.Name], files[d.Name] = d.DB, file
		cfg.Databases = append(cfg.Databases, enforce.Database{
			Name: d.Name, PolicyPath: file, SearchPath: d.SearchPath, ControlConnection: d.DB.DSN("pgconsent_control", rolePassword),
			AgentConnection: d.DB.DSN("pgconsent_agent", rolePassword),
		})
	}
	for _, a := range agents {
		cfg.Agents = append(cfg.Agents, enforce.Agent{
			Name: a.Name, Database: a.Database, Credential: Credential(t, agentPassword, FewIterations), Attributes: a.Attributes, ActsFor: a.ActsFor})
	}
	if router.enforcer, err = enforce.New(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	AwaitProbes(t, router.enforcer)
	server, err := proxy.New(proxy.Config{Router: router, Log: logger})
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
		router.enforcer.Close()
		if err := log.Close(context.Background()); err != nil {
			t.Errorf("audit: %v", err)
		}
	})
	p := &Proxy{addr: listener.Addr().String(), server: server, enforcer: router.enforcer, log: logged, files: files}
	p.tap = NewTap(t, p.addr)
	return p
}

// AwaitProbes waits until the proxy has probed each database once with success, since the first probe may time out on a
// busy machine. It does not wait for databases that are not served for another reason.
func AwaitProbes(t testing.TB, e *enforce.Enforcer) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := e.Ready()
		var refused *sqlstate.Error
		if !errors.As(err, &refused) || refused.Code != sqlstate.CannotConnectNow || refused.Reason != sqlstate.ReasonUpstream {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// Start installs the policy in a database, and starts a proxy that serves the database to one agent with the name
// "agent".
func Start(t testing.TB, mode Mode, d Database, attributes map[string]string) *Proxy {
	t.Helper()
	Install(t, d, mode)
	return Serve(t, mode, []Database{d}, []Agent{{Name: "agent", Database: d.Name, Attributes: attributes}})
}

// FewIterations is a number of SCRAM iterations far below that of config.NewVerifier. It makes logins fast, since some
// tests log in for each statement.
const FewIterations = 16

// Credential returns the SCRAM verifier of a password, with this number of iterations.
func Credential(t testing.TB, password string, rounds int) *scram.StoredCredentials {
	t.Helper()
	client, err := scram.SHA256.NewClient("", password, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: "0123456789abcdef", Iters: rounds})
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// router routes the proxy's clients to the databases, as the router of package serve does.
type router struct {
	enforcer  *enforce.Enforcer
	databases map[string]*pgtest.DB
	pool      *proxy.PoolSettings
	server    string // host:port; "": the socket of each database's server
}

func (r *router) Route(user, database string) proxy.Route {
	access, ok := r.enforcer.Agent(user, database)
	db := r.databases[database]
	if !ok || db == nil {
		return proxy.Route{Kind: proxy.Refused, Credential: &scram.StoredCredentials{KeyFactors: scram.KeyFactors{Salt: "0123456789abcdef", Iters: 4096}}}
	}
	network, address := "unix", fmt.Sprintf("%s/.s.PGSQL.%d", db.SocketDir, db.Port)
	if r.server != "" {
		network, address = "tcp", r.server
	}
	return proxy.Route{
		Kind: proxy.Agent, Credential: access.Credential, CheckSetting: access.CheckSetting, Pool: r.pool,
		Upstream: proxy.Upstream{
			Network: network, Address: address, Database: db.Name,
			User: "pgconsent_agent", Password: rolePassword, Params: access.Params,
			StatementCache: proxy.DefaultStatementCache, CacheEagerly: true, Settings: rewrite.SettingsOfAgents(),
		},
		Open: func(ctx context.Context, info proxy.SessionInfo) (verdict.Decider, error) {
			return access.OpenSession(ctx, enforce.SessionInfo(info))
		},
	}
}

// Tap returns the relay between the agents and the proxy.
func (p *Proxy) Tap() *Tap { return p.tap }

// Agent connects as an agent, through the tap.
func (p *Proxy) Agent(t testing.TB, name, database string) *pgconn.PgConn {
	t.Helper()
	return Connect(t, p.DSN(name, database))
}

// DSN returns an agent's connection string, which leads through the tap.
func (p *Proxy) DSN(name, database string) string { return DSNAt(p.tap.Addr(), name, database) }

// DSNAt returns an agent's connection string for a proxy at this address.
func DSNAt(address, name, database string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", name, agentPassword, address, database)
}

// Addr returns the address of the proxy itself, without the tap.
func (p *Proxy) Addr() string { return p.addr }

// Server returns the server of package proxy.
func (p *Proxy) Server() *proxy.Server { return p.server }

// ConnectSuperuser connects to the database as the superuser, without the proxy.
func ConnectSuperuser(t testing.TB, db *pgtest.DB) *pgconn.PgConn {
	t.Helper()
	return Connect(t, db.DSN("postgres", ""))
}

// Exec runs SQL in the database as the superuser, without the proxy.
func Exec(t testing.TB, db *pgtest.DB, sql string) {
	t.Helper()
	if _, err := db.Connect(t, "postgres").PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", OneLine(sql), err)
	}
}
