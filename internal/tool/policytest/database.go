package policytest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/proxy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// templateDatabase is a database with a test file's schema, data and policy. Each test runs on a copy of it.
type templateDatabase struct {
	server   *Server
	file     *File
	owner    string
	name     string
	policy   *policy.Policy
	snapshot *catalog.Snapshot
}

// build makes the template database. It returns policy.Errors if a file is wrong.
func (s *Server) build(ctx context.Context, f *File, dump func(context.Context, string) (Schema,
	error)) (*templateDatabase,
	error) {
	b := &templateDatabase{server: s, file: f, owner: s.owner}
	if b.owner == "" {
		if b.owner = f.Owner; b.owner == "" {
			b.owner = "policy_test_owner"
		}
	}
	doc, err := policy.Load(f.Policy)
	if errors.Is(err, os.ErrNotExist) {
		return nil, policy.Errors{f.PolicyAt.Errorf("policy: FILE, relative to this file", "there is no policy %s", f.Policy)}
	}
	if err != nil {
		return nil, err
	}
	var liveSchema Schema
	switch {
	case f.Database != "" && dump == nil:
		return nil, policy.Errors{f.DatabaseAt.Errorf("run it with --config",
			"there is no configuration that says where database %s is", f.Database)}
	case f.Database != "":
		if liveSchema, err = dump(ctx, f.Database); err != nil {
			return nil, err
		}
	case len(f.Schema) == 0:
		return nil, policy.Errors{f.PolicyAt.Errorf("schema: schema.sql, relative to this file, or database: one of the configuration",
			"the file names no schema, and there is no schema.sql beside it")}
	}
	if b.name, err = s.createDatabase(ctx, "", b.owner); err != nil {
		return nil, err
	}
	conn, err := s.connectAs(ctx, b.name, "")
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // PostgreSQL copies a database only if no session is connected.
	schema := slices.Clone(f.Schema)
	if f.Database != "" {
		schema = nil
		if err := runText(ctx, conn, "the extensions of database "+f.Database, liveSchema.Extensions); err != nil {
			return nil, err
		}
	}
	if err := runFiles(ctx, conn, f.Extensions); err != nil {
		return nil, err
	}
	if err := b.grantSchemas(ctx, conn); err != nil {
		return nil, err
	}
	if err := b.setOwnerRole(ctx, conn); err != nil {
		return nil, err
	}
	if err := runText(ctx, conn, "the schema of database "+f.Database, liveSchema.SQL); err != nil {
		return nil, err
	}
	if err := runFiles(ctx, conn, append(schema, f.Data...)); err != nil {
		return nil, err
	}
	if b.snapshot, err = pgcatalog.Load(ctx, conn, f.SearchPath); err != nil {
		return nil, err
	}
	if err := b.applyChanges(ctx, conn, f.InitialChanges); err != nil {
		return nil, err
	}
	for _, sql := range []string{"RESET SESSION AUTHORIZATION", "ANALYZE"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	if b.policy, err = policy.Compile(doc, b.snapshot, policy.WithViews(rewrite.RewriteViewQuery)); err != nil {
		return nil, err
	}
	if err := b.checkCallers(); err != nil {
		return nil, err
	}
	r := s.roles
	plan := rls.Generate(b.policy, b.snapshot,
		rls.Options{AgentRole: r.AgentRole, ControlRole: r.ControlRole, ReaderRole: r.ReaderRole,
			RowsRole: r.RowsRole, SignedViews: f.Enforcement == "auto"})
	if err := migrations.Up(ctx, conn, r, plan); err != nil {
		return nil, err
	}
	if err := b.writeRegistry(ctx, conn, f.InitialChanges); err != nil {
		return nil, err
	}
	return b, nil
}

// grantSchemas lets the owner use the schemas that the administrator made for extensions.
func (b *templateDatabase) grantSchemas(ctx context.Context, conn *pgx.Conn) error {
	if !b.server.superuser {
		return nil
	}
	rows, err := conn.Query(ctx, `SELECT DISTINCT n.nspname::text FROM pg_catalog.pg_extension AS e
		JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE n.nspname NOT IN ('pg_catalog', 'public')`)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := conn.Exec(ctx, "GRANT USAGE ON SCHEMA "+pgx.Identifier{name}.Sanitize()+" TO "+
			pgx.Identifier{b.owner}.Sanitize()); err != nil {
			return err
		}
	}
	return nil
}

// setOwnerRole switches a connection of the administrator to the owner's role.
func (b *templateDatabase) setOwnerRole(ctx context.Context, conn *pgx.Conn) error {
	if !b.server.superuser {
		return nil
	}
	_, err := conn.Exec(ctx, "SET SESSION AUTHORIZATION "+pgx.Identifier{b.owner}.Sanitize())
	return err
}

// checkCallers checks the attributes of the callers, so that a mistake is reported with its place before a login fails.
func (b *templateDatabase) checkCallers() error {
	var errs policy.Errors
	declaredAttributes := b.policy.Attributes()
	var names []string
	for _, a := range declaredAttributes {
		names = append(names, a.Name)
	}
	for _, c := range b.file.Callers {
		for name := range c.Attributes {
			if a, ok := b.policy.Attribute(name); !ok {
				errs = append(errs, c.Place.Errorf(policy.Suggest(name, names),
					"caller %s: the policy declares no attribute %q", c.Name, name))
			} else if err := a.Check(c.Attributes[name]); err != nil {
				errs = append(errs, c.Place.Errorf("", "caller %s: %v", c.Name, err))
			}
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

func runFiles(ctx context.Context, conn *pgx.Conn, files []string) error {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := runText(ctx, conn, file, string(text)); err != nil {
			return err
		}
	}
	return nil
}

// runText runs SQL and then resets all settings: the output of pg_dump empties the search path.
func runText(ctx context.Context, conn *pgx.Conn, name, text string) error {
	if err := runPieces(ctx, conn, text); err != nil {
		return policy.Errors{sqlProblem(name, text, err)}
	}
	_, err := conn.Exec(ctx, "RESET ALL")
	return err
}

// sqlProblem adds the place in an SQL file to an error of PostgreSQL. If a message has several statements, PostgreSQL
// says which one failed only for a syntax error.
func sqlProblem(file, text string, err error) *policy.Error {
	place := Place{File: file}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return place.Errorf("", "%v", err)
	}
	if pg.Position > 0 {
		place.Line, place.Column = 1, 1
		for i, r := range []rune(text) {
			if i == int(pg.Position)-1 {
				break
			}
			if place.Column++; r == '\n' {
				place.Line, place.Column = place.Line+1, 1
			}
		}
	}
	message := fmt.Sprintf("%s (SQLSTATE %s)", pg.Message, pg.Code)
	if pg.Detail != "" {
		message += ": " + pg.Detail
	}
	return place.Errorf(pg.Hint, "%s", message)
}

// testDatabase is a copy of the template, with a proxy in front of it.
type testDatabase struct {
	*templateDatabase
	name        string
	ownerConn   *pgx.Conn // connection of the owner
	adminConn   *pgx.Conn // connection of the administrator
	enforcer    *enforce.Enforcer
	proxy       *proxy.Server
	audit       *audit.Log
	listener    net.Listener
	serveErrors chan error
	sessions    map[string]*pgconn.PgConn
	changeCount int // how many changes the owner and the callers have made
}

// credential is the password that all callers use.
type credential struct {
	password          string
	storedCredentials scram.StoredCredentials
}

func newCredential(password string) (credential, error) {
	line, err := config.NewVerifier(password)
	if err != nil {
		return credential{}, err
	}
	storedVerifier, err := config.ParseVerifier(line)
	return credential{password, storedVerifier}, err
}

// openCopy copies the template and starts a proxy for the copy.
func (b *templateDatabase) openCopy(ctx context.Context, login credential, log *slog.Logger) (_ *testDatabase,
	err error) {
	d := &testDatabase{templateDatabase: b, sessions: map[string]*pgconn.PgConn{}}
	defer func() {
		if err != nil {
			d.close(context.WithoutCancel(ctx))
		}
	}()
	if d.name, err = b.server.createDatabase(ctx, b.name, b.owner); err != nil {
		return nil, err
	}
	if d.ownerConn, err = b.server.connectAs(ctx, d.name, ""); err != nil {
		return nil, err
	}
	if err := b.setOwnerRole(ctx, d.ownerConn); err != nil {
		return nil, err
	}
	if d.adminConn, err = b.server.connectAs(ctx, d.name, ""); err != nil {
		return nil, err
	}
	if d.audit, err = audit.Open(audit.Config{Mode: audit.ModeOff}); err != nil {
		return nil, err
	}
	mode := rewrite.InjectedMode
	if b.file.Enforcement == "auto" {
		mode = rewrite.AutoMode
	}
	r := b.server.roles
	control, agent := r.ControlRole, r.AgentRole
	if control == "" {
		control, agent = migrations.DefaultControlRole, migrations.DefaultAgentRole
	}
	cfg := enforce.Config{Audit: d.audit, Log: log, RewriteMode: mode, ProbeInterval: 250 * time.Millisecond,
		CacheBytes: 4 << 20,
		Databases: []enforce.Database{{Name: d.name, PolicyPath: b.file.Policy, ControlConnection: b.server.dsnFor(d.name,
			control),
			SearchPath: b.file.SearchPath,
			AgentRole:  r.AgentRole, ControlRole: r.ControlRole, ReaderRole: r.ReaderRole, RowsRole: r.RowsRole}}}
	for _, c := range b.file.Callers {
		cfg.Agents = append(cfg.Agents, enforce.Agent{
			Name: c.Name, Database: d.name, Credential: &login.storedCredentials, Attributes: c.Attributes})
	}
	if d.enforcer, err = enforce.New(ctx, cfg); err != nil {
		var sqlErr *sqlstate.Error
		if errors.As(err, &sqlErr) && sqlErr.Code == sqlstate.ConnectionFailure && sqlErr.Cause != nil {
			return nil, newLoginError("as role %s, which was made for the tests: %v", control, sqlErr.Cause).
				WithHint("It must be possible to log in as such a role with a password, as --postgres says: see pg_hba.conf of the server.")
		}
		return nil, err
	}
	upstream := proxy.Upstream{Database: d.name, User: agent, Password: b.server.password, TLS: b.server.admin.TLSConfig}
	upstream.Network, upstream.Address = pgconn.NetworkAddress(b.server.admin.Host, b.server.admin.Port)
	if d.proxy, err = proxy.New(proxy.Config{Router: proxyRouter{d.enforcer, upstream}, Log: log}); err != nil {
		return nil, err
	}
	if d.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	d.serveErrors = make(chan error, 1)
	go func() { d.serveErrors <- d.proxy.Serve(d.listener) }()
	return d, nil
}

// close ends the sessions and removes the database.
func (d *testDatabase) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, c := range d.sessions {
		_ = c.Close(ctx)
	}
	if d.serveErrors != nil {
		_ = d.proxy.Shutdown(ctx)
		<-d.serveErrors
	}
	if d.enforcer != nil {
		d.enforcer.Close()
	}
	if d.audit != nil {
		_ = d.audit.Close(ctx)
	}
	for _, conn := range []*pgx.Conn{d.ownerConn, d.adminConn} {
		if conn != nil {
			_ = conn.Close(ctx)
		}
	}
	if d.name == "" {
		return nil
	}
	return d.server.dropDatabase(ctx, d.name)
}

// proxyRouter tells the proxy how to treat a login, as package serve does.
type proxyRouter struct {
	enforcer *enforce.Enforcer
	upstream proxy.Upstream
}

// Route implements proxy.Router.
func (r proxyRouter) Route(user, database string) proxy.Route {
	access, ok := r.enforcer.Agent(user, database)
	if !ok {
		return proxy.Route{Kind: proxy.Refused,
			Credential: &scram.StoredCredentials{KeyFactors: scram.KeyFactors{Salt: "0123456789abcdef", Iters: 4096}}}
	}
	upstream := r.upstream
	upstream.Params = access.Params
	return proxy.Route{Kind: proxy.Agent, Upstream: upstream, Credential: access.Credential,
		CheckSetting: access.CheckSetting,
		Open: func(ctx context.Context, info proxy.SessionInfo) (verdict.Decider, error) {
			return access.OpenSession(ctx, enforce.SessionInfo(info))
		}}
}

// callerSession returns the connection of a caller, which stays open for the whole test.
func (d *testDatabase) callerSession(ctx context.Context, name string, login credential) (*pgconn.PgConn, error) {
	if c := d.sessions[name]; c != nil && !c.IsClosed() {
		return c, nil
	}
	caller := d.caller(name)
	c, err := pgconn.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, err
	}
	address := d.listener.Addr().(*net.TCPAddr)
	c.Host, c.Port, c.User, c.Password, c.Database, c.Fallbacks = "127.0.0.1", uint16(address.Port),
		name, login.password, d.name, nil
	for _, setting := range caller.Settings {
		c.RuntimeParams[setting.Name] = setting.Value
	}
	c.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {}
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	d.sessions[name] = conn
	return conn, nil
}

func (f *File) caller(name string) *Caller {
	for _, c := range f.Callers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (d *testDatabase) caller(name string) *Caller { return d.file.caller(name) }

// shortPath returns a path relative to the working directory if that is shorter.
func shortPath(path string) string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && len(rel) < len(path) {
			return rel
		}
	}
	return path
}
