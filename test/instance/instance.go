package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/air"
	"github.com/pgconsent/pgconsent/audit"
	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/enforce"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/pgtest"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/proxy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/verdict"
)

const (
	rolePassword  = "role-password"
	agentPassword = "agent-password"
)

// Mode is how an instance enforces.
type Mode struct {
	Name    string
	Rewrite rewrite.Mode
	Walls   rls.Mode
}

// The modes in which every statement must get the same rows.
var (
	Both     = Mode{"both", rewrite.Both, rls.Enforce}
	Doors    = Mode{"doors", rewrite.Doors, rls.Enforce}
	Gate     = Mode{"the gate door, however little is read", rewrite.Gate, rls.Enforce}
	RLS      = Mode{"row security alone", rewrite.RLS, rls.Enforce}
	Injected = Mode{"injected predicates alone", rewrite.Injected, rls.SealOnly}
)

// Database is a database behind a proxy.
type Database struct {
	Name       string // as agents ask for it
	DB         *pgtest.DB
	Policy     string // the text
	SearchPath []string
	AIR        *air.Tracker // of the proxy that serves it first; nil: nobody is reminded
	Audit      string       // a folder for the audit of the proxy that serves it first; "": none is kept
}

// Agent is a login of the proxy.
type Agent struct {
	Name, Database string
	Attributes     map[string]string
}

// Migrated is what a policy became over a database.
type Migrated struct {
	Policy   *policy.Policy
	Snapshot *catalog.Snapshot
	Plan     *rls.Plan
}

// Compile reads a policy over the catalog of a database.
func Compile(t testing.TB, d Database, mode Mode) *Migrated {
	t.Helper()
	conn := d.DB.Connect(t, "postgres")
	snap, err := pgcatalog.Load(context.Background(), conn, d.SearchPath)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("policy.yaml", []byte(d.Policy))
	if err != nil {
		t.Fatalf("%v\n%s", err, d.Policy)
	}
	pol, err := policy.Compile(doc, snap, policy.WithViews(rewrite.Definition))
	if err != nil {
		t.Fatalf("%v\n%s", err, d.Policy)
	}
	return &Migrated{Policy: pol, Snapshot: snap, Plan: rls.Generate(pol, snap, rls.Options{Mode: mode.Walls, Doors: mode.Rewrite.Doors()})}
}

// Migrate installs the policy in the database, with the superuser's rights, and fills in what is kept.
func Migrate(t testing.TB, d Database, mode Mode) *Migrated {
	t.Helper()
	m := Compile(t, d, mode)
	defer pgtest.Lock(t, "roles")()
	options := migrations.Options{AgentPassword: rolePassword, ControlPassword: rolePassword}
	conn := d.DB.Connect(t, "postgres")
	if err := migrations.Up(context.Background(), conn, options, m.Plan); err != nil {
		t.Fatal(err)
	}
	if err := migrations.FillAll(context.Background(), conn, m.Plan.Fills(), func(migrations.Fill, int64) {}); err != nil {
		t.Fatal(err)
	}
	return m
}

// Proxy serves agents of migrated databases.
type Proxy struct {
	addr string
	tap  *Tap
	log  *errorLog
}

// errorLog keeps what a proxy logs of errors, which goes to standard error as well.
type errorLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *errorLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	return os.Stderr.Write(b)
}

// Errors are the lines of the proxy's log that tell of errors.
func (p *Proxy) Errors() string {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	return p.log.text.String()
}

// Serve starts a proxy before databases that are migrated already.
func Serve(t testing.TB, mode Mode, databases []Database, agents []Agent) *Proxy {
	t.Helper()
	ctx := context.Background()
	logged := &errorLog{}
	logger := slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelError}))
	kept := audit.Config{Mode: audit.Off}
	if len(databases) > 0 && databases[0].Audit != "" {
		kept = audit.Config{Mode: audit.Strict, Dir: databases[0].Audit}
	}
	log, err := audit.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	cfg := enforce.Config{Audit: log, Log: logger, Mode: mode.Rewrite, Walls: mode.Walls, Refresh: 500 * time.Millisecond}
	if len(databases) > 0 {
		cfg.AIR = databases[0].AIR
	}
	router := &router{databases: map[string]*pgtest.DB{}}
	for _, d := range databases {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(file, []byte(d.Policy), 0o600); err != nil {
			t.Fatal(err)
		}
		router.databases[d.Name] = d.DB
		cfg.Databases = append(cfg.Databases, enforce.Database{
			Name: d.Name, Policy: file, SearchPath: d.SearchPath, Control: d.DB.DSN("pgconsent_control", rolePassword),
			Agent: d.DB.DSN("pgconsent_agent", rolePassword),
		})
	}
	for _, a := range agents {
		cfg.Agents = append(cfg.Agents, enforce.Agent{Name: a.Name, Database: a.Database, Credential: Credential(t, agentPassword, FewRounds), Attributes: a.Attributes})
	}
	if router.enforcer, err = enforce.New(ctx, cfg); err != nil {
		t.Fatal(err)
	}
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
	p := &Proxy{addr: listener.Addr().String(), log: logged}
	p.tap = NewTap(t, p.addr)
	return p
}

// Start migrates one database and serves one agent, "agent", on it.
func Start(t testing.TB, mode Mode, d Database, attributes map[string]string) *Proxy {
	t.Helper()
	Migrate(t, d, mode)
	return Serve(t, mode, []Database{d}, []Agent{{Name: "agent", Database: d.Name, Attributes: attributes}})
}

// FewRounds are far fewer than config.NewVerifier takes: suites that log in for each statement would spend more time on
// passwords than on statements.
const FewRounds = 16

// Credential is that of an agent with a password.
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

// router joins enforcement and the wire as package serve does.
type router struct {
	enforcer  *enforce.Enforcer
	databases map[string]*pgtest.DB
}

func (r *router) Route(user, database string) proxy.Route {
	access, ok := r.enforcer.Agent(user, database)
	db := r.databases[database]
	if !ok || db == nil {
		return proxy.Route{Kind: proxy.Refused, Credential: &scram.StoredCredentials{KeyFactors: scram.KeyFactors{Salt: "0123456789abcdef", Iters: 4096}}}
	}
	return proxy.Route{
		Kind: proxy.Agent, Credential: access.Credential, CheckSetting: access.CheckSetting,
		Upstream: proxy.Upstream{
			Network: "unix", Address: fmt.Sprintf("%s/.s.PGSQL.%d", db.SocketDir, db.Port), Database: db.Name,
			User: "pgconsent_agent", Password: rolePassword, Params: access.Params,
		},
		Open: func(ctx context.Context, info proxy.SessionInfo) (verdict.Decider, error) {
			return access.Open(ctx, enforce.SessionInfo(info))
		},
	}
}

// Tap is the relay that agents' connections go through.
func (p *Proxy) Tap() *Tap { return p.tap }

// Agent connects as an agent, through the tap.
func (p *Proxy) Agent(t testing.TB, name, database string) *pgconn.PgConn {
	t.Helper()
	return Connect(t, p.DSN(name, database))
}

// DSN is what an agent's client is given.
func (p *Proxy) DSN(name, database string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", name, agentPassword, p.tap.Addr(), database)
}

// Super connects as the superuser, past the proxy.
func Super(t testing.TB, db *pgtest.DB) *pgconn.PgConn {
	t.Helper()
	return Connect(t, db.DSN("postgres", ""))
}

// Exec runs SQL as the superuser, past every wall.
func Exec(t testing.TB, db *pgtest.DB, sql string) {
	t.Helper()
	if _, err := db.Connect(t, "postgres").PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", OneLine(sql), err)
	}
}
