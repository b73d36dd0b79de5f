// Package demo runs an example world: a private PostgreSQL with the world's data, and the sidecar in front of it. All
// files are in one folder.
//
// A world is loaded once and completely: an interrupted load starts over, and a finished load is never repeated.
// [RunningDemo.Stop] stops only what [Start] has started. The package makes the passwords, stores them in files of mode
// 0600, and never logs them.
package demo

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgcluster"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/serve"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// Config says what to run. World and Dir are required.
type Config struct {
	World     *world.World
	ServerDSN string // the DSN of a running server; "": the demo starts a server of its own
	Folder    string
	Listen    string // the address of the proxy; "": DefaultListen, or a free port if DefaultListen is in use
	HTTP      string // the address of HTTP; "": DefaultHTTP, or a free port if DefaultHTTP is in use
	Log       *slog.Logger
	Progress  func(string)

	defaultListen, defaultHTTP string // if set, they stand for DefaultListen and DefaultHTTP
}

// The addresses on which a demo listens if its configuration names none and no other program uses them.
const (
	DefaultListen = "127.0.0.1:7432"
	DefaultHTTP   = "127.0.0.1:7433"
)

// DemoAccess says how to connect to a running demo. Scripts read it as JSON.
type DemoAccess struct {
	World    string            `json:"world"`
	OwnerDSN string            `json:"owner_dsn"`
	Agents   AgentDSNs         `json:"agents"`
	HTTP     string            `json:"http"`
	Tokens   map[string]string `json:"tokens"`
}

// AgentDSN is the connection string of one agent.
type AgentDSN struct{ Name, DSN string }

// AgentDSNs are in the order of the world's agents. The first agent is the default.
type AgentDSNs []AgentDSN

// MarshalJSON writes an object whose members are in the order of the slice.
func (a AgentDSNs) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, agent := range a {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(agent.Name)
		if err != nil {
			return nil, err
		}
		dsn, err := json.Marshal(agent.DSN)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), dsn...)
	}
	return append(b, '}'), nil
}

// RunningDemo is a running demo.
type RunningDemo struct {
	Access DemoAccess
	Dir    string

	config      *config.Config
	service     *serve.Service
	world       *world.World
	cluster     *pgcluster.Cluster // the demo's own server; nil: the demo uses an existing server
	cancel      context.CancelFunc
	serveErrors chan error // receives the error with which the service ends
	serveError  error
	hasEnded    bool
}

// Start starts the demo, and returns when agents can connect. After an error nothing keeps running.
func Start(ctx context.Context, c Config) (_ *RunningDemo, err error) {
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	requested := c
	if err := c.chooseAddresses(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(c.Folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "the folder %s cannot be made",
			dir).WithHint("Name one with --dir.").WithCause(err)
	}
	text, err := c.World.File(c.World.Policy)
	if err != nil {
		return nil, err
	}
	if _, err := policy.Parse(filepath.Join(c.World.Dir, c.World.Policy), text); err != nil {
		return nil, err
	}
	f := demoFolder{dir: dir, world: c.World, objectNames: privateNames(c.World)}
	if c.ServerDSN != "" {
		f.objectNames = foreignNames(c.World)
	}
	if err := f.claimFolder(); err != nil {
		return nil, err
	}
	hasNewSecrets, err := f.makeSecrets()
	if err != nil {
		return nil, err
	}
	cluster, upstream, err := c.fillDatabase(ctx, f, hasNewSecrets)
	if err != nil {
		return nil, err
	}
	if cluster != nil {
		defer func() {
			if err != nil {
				err = errors.Join(err, cluster.Stop())
			}
		}()
	}
	cfg, err := f.writeConfig(c, upstream)
	if err != nil {
		return nil, err
	}
	c.Progress("installing the policy: roles, row security, keys")
	if err := migrate(ctx, cfg, f.world.Name); err != nil {
		return nil, err
	}
	if err := f.recordConsents(ctx, cfg, c.Progress); err != nil {
		return nil, err
	}
	access, service, err := c.openListeners(ctx, f, cfg)
	for attempts := 0; errors.Is(err, syscall.EADDRINUSE) && (requested.Listen == "" || requested.HTTP == "") &&
		attempts < 4; attempts++ {
		// Another program has started to listen on a chosen port in the meantime.
		c.Listen, c.HTTP = requested.Listen, requested.HTTP
		if err := c.chooseAddresses(); err != nil {
			return nil, err
		}
		if cfg, err = f.writeConfig(c, upstream); err != nil {
			return nil, err
		}
		access, service, err = c.openListeners(ctx, f, cfg)
	}
	if err != nil {
		return nil, err
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &RunningDemo{Access: access, Dir: dir, config: cfg, service: service, world: c.World, cluster: cluster,
		cancel: cancel, serveErrors: make(chan error, 1)}
	go func() { r.serveErrors <- service.Run(serving) }()
	retries := retrySchedule{limit: readyTimeout, reportEvery: progressInterval, progress: c.Progress}
	if err := retries.retryUntilReady(ctx, isNotReady, service.Ready); err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("the demo does not serve: %w", err), <-r.serveErrors)
	}
	if err := r.checkAgentLogins(ctx, retries); err != nil {
		cancel()
		return nil, errors.Join(err, <-r.serveErrors)
	}
	return r, nil
}

// openListeners creates the logins of agents and callers, and starts the service.
func (c Config) openListeners(ctx context.Context, f demoFolder, cfg *config.Config) (access DemoAccess,
	service *serve.Service, err error) {
	if access, err = f.createAgents(cfg); err != nil {
		return access, nil, err
	}
	if access.Tokens, err = f.makeTokens(ctx, cfg); err != nil {
		return access, nil, err
	}
	service, err = serve.New(ctx, serve.Options{Config: cfg, Log: c.Log, DrainTime: 2 * time.Second})
	return access, service, err
}

// chooseAddresses chooses the addresses that the configuration does not name, and checks that the demo can listen on
// all addresses.
func (c *Config) chooseAddresses() error {
	var listeners []net.Listener // closed when both addresses are chosen, so that they differ
	for _, listener := range []struct {
		address        *string
		defaultAddress string
		purpose        string
	}{
		{&c.Listen, cmp.Or(c.defaultListen, DefaultListen), "clients connect"},
		{&c.HTTP, cmp.Or(c.defaultHTTP, DefaultHTTP), "HTTP is served"},
	} {
		if *listener.address != "" {
			continue
		}
		*listener.address = listener.defaultAddress
		if pgcluster.CheckPortFree(listener.defaultAddress) == nil {
			continue
		}
		freeListener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		*listener.address = freeListener.Addr().String()
		listeners = append(listeners, freeListener)
		c.Progress(listener.defaultAddress + " is in use: " + listener.purpose + " at " + *listener.address)
	}
	for _, l := range listeners {
		l.Close()
	}
	return c.checkAddresses()
}

// checkAddresses checks that the demo can listen on its addresses.
func (c Config) checkAddresses() error {
	for _, address := range []string{c.Listen, c.HTTP} {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "%q is not of the form HOST:PORT", address)
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
				"the demo has no TLS and listens on loopback only, not on %s", address).
				WithHint("Use 127.0.0.1; \"pgconsent serve\" with tls in its configuration listens anywhere.")
		}
		if err := pgcluster.CheckPortFree(address); err != nil {
			return err
		}
	}
	return nil
}

// fillDatabase fills the world's database, on a server that it starts or on the existing server of --postgres. cluster
// is nil for an existing server. upstream is the server's entry in the configuration.
func (c Config) fillDatabase(ctx context.Context, f demoFolder, isNew bool) (cluster *pgcluster.Cluster,
	upstream yaml.MapSlice, err error) {
	if c.ServerDSN != "" {
		g, err := openForeignServer(ctx, c.ServerDSN, c.World, func(text string) { c.Progress(text) })
		if err != nil {
			return nil, nil, err
		}
		c.Progress("on the server of --postgres: database " + f.objectNames.database + ", roles " +
			strings.Join(f.objectNames.roleNames(), ", ") + "; --down takes them away")
		if err := g.load(ctx, f, c.Progress); err != nil {
			return nil, nil, err
		}
		upstream, err := g.upstreamEntry()
		return nil, upstream, err
	}
	super, err := config.ReadSecret(f.secretPath("postgres"))
	if err != nil {
		return nil, nil, err
	}
	c.Progress("starting PostgreSQL in " + f.dir)
	cluster, err = pgcluster.Start(ctx, pgcluster.Config{Dir: f.dir, Password: super, DeletesExisting: isNew})
	if err != nil {
		return nil, nil, err
	}
	c.Progress(fmt.Sprintf("PostgreSQL %s runs (pid %d, data in %s)", cluster.Binaries.Version, cluster.PID(),
		cluster.DataDir))
	server := demoServer{cluster: cluster, password: super, notice: func(text string) { c.Progress(text) }}
	if err := server.load(ctx, f, c.Progress); err != nil {
		return nil, nil, errors.Join(err, cluster.Stop())
	}
	return cluster, yaml.MapSlice{{Key: "host", Value: cluster.SocketDir}, {Key: "port", Value: cluster.Port}}, nil
}

// Service returns the running service.
func (r *RunningDemo) Service() *serve.Service { return r.service }

// checkAgentLogins logs in as each agent, so that the demo reports at its start if attributes do not fit the policy.
func (r *RunningDemo) checkAgentLogins(ctx context.Context, slow retrySchedule) error {
	for _, agent := range r.Access.Agents {
		err := slow.retryUntilReady(ctx, isUnanswered, func() error {
			conn, err := pgx.Connect(ctx, agent.DSN)
			if err != nil {
				return err
			}
			return conn.Close(ctx)
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonIdentity,
				"agent %s of world %s cannot log in: do its attributes in world.yaml fit the policy?", agent.Name,
				r.world.Name).WithCause(err)
		}
	}
	return nil
}

// Wait returns nil when ctx ends, or an error when the service or the server ends.
func (r *RunningDemo) Wait(ctx context.Context) error {
	var exited <-chan struct{} // nil for an existing server
	if r.cluster != nil {
		exited = r.cluster.Exited()
	}
	select {
	case <-ctx.Done():
		return nil
	case r.serveError = <-r.serveErrors:
		r.hasEnded = true
		return errors.Join(errors.New("serving has ended"), r.serveError)
	case <-exited:
		return sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream, "the demo's PostgreSQL has ended").
			WithHint("Its log is %s.", r.cluster.LogFile)
	}
}

// Stop waits for running statements, ends the sessions and stops the demo's own server.
func (r *RunningDemo) Stop() error {
	r.cancel()
	if !r.hasEnded {
		r.hasEnded, r.serveError = true, <-r.serveErrors
	}
	if r.cluster == nil {
		return r.serveError
	}
	return errors.Join(r.serveError, r.cluster.Stop())
}

// demoFolder is the folder of a demo.
type demoFolder struct {
	dir         string
	world       *world.World
	objectNames objectNames
}

func (f demoFolder) filePath(name string) string { return filepath.Join(f.dir, name) }
func (f demoFolder) secretPath(name string) string {
	return filepath.Join(f.dir, "secrets", name+".pw")
}
func (f demoFolder) markerPath() string { return f.filePath("loaded") }

// claimFolder marks the folder as the folder of this world, and refuses a folder that belongs to another world.
func (f demoFolder) claimFolder() error {
	name, err := os.ReadFile(f.filePath("world"))
	if errors.Is(err, fs.ErrNotExist) {
		return os.WriteFile(f.filePath("world"), []byte(f.world.Name+"\n"), 0o644)
	}
	if err != nil {
		return err
	}
	if worldName := strings.TrimSpace(string(name)); worldName != f.world.Name {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "%s holds world %s, not %s", f.dir,
			worldName, f.world.Name).
			WithHint("Name another folder with --dir.")
	}
	return nil
}

// makeSecrets makes the passwords that are missing. isNew is true if it makes the superuser's password. Then a cluster
// that remains in /var/tmp after its demo folder was deleted must not be used.
func (f demoFolder) makeSecrets() (isNew bool, err error) {
	if err := os.MkdirAll(f.filePath("secrets"), 0o700); err != nil {
		return false, err
	}
	names := []string{"postgres", "owner", "agent", "control"}
	for _, a := range f.world.Agents {
		names = append(names, "agent-"+a.Name)
	}
	for _, name := range names {
		if _, err := os.Stat(f.secretPath(name)); err == nil {
			continue
		}
		random := make([]byte, 18)
		if _, err := rand.Read(random); err != nil {
			return false, err
		}
		if err := config.WriteSecret(f.secretPath(name),
			[]byte(base64.RawURLEncoding.EncodeToString(random)+"\n")); err != nil {
			return false, err
		}
		isNew = isNew || name == "postgres"
	}
	return isNew, nil
}

// demoServer is the demo's own cluster, to which the demo connects as superuser.
type demoServer struct {
	cluster  *pgcluster.Cluster
	password string
	notice   func(string)
}

func (s demoServer) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	c, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, err
	}
	c.Host, c.Port, c.User, c.Password, c.Database = s.cluster.SocketDir, uint16(s.cluster.Port), s.cluster.Superuser,
		s.password, database
	c.Fallbacks = nil
	c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { s.notice(n.Message) }
	return pgx.ConnectConfig(ctx, c)
}

// load fills the world's database, unless the marker file says that it was filled before.
func (s demoServer) load(ctx context.Context, f demoFolder, progress func(string)) error {
	name := quoteIdent(f.world.Name)
	_, err := os.Stat(f.markerPath())
	isLoaded := err == nil && !s.cluster.WasInitialised
	if isLoaded {
		progress("world " + f.world.Name + " is loaded already")
	} else {
		admin, err := s.connect(ctx, "postgres")
		if err != nil {
			return err
		}
		defer admin.Close(context.WithoutCancel(ctx))
		if err := os.Remove(f.markerPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, sql := range []string{"SET client_min_messages = warning",
			"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)", "CREATE DATABASE " + name + " TEMPLATE template0"} {
			if _, err := admin.Exec(ctx, sql); err != nil {
				return err
			}
		}
	}
	conn, err := s.connect(ctx, f.world.Name)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if !isLoaded {
		if err := f.world.Load(ctx, conn, progress); err != nil {
			return err
		}
	}
	// The owner role gets the password in the file, whichever password it had before. It needs CREATEROLE to run
	// migrations.
	password, err := config.ReadSecret(f.secretPath("owner"))
	if err != nil {
		return err
	}
	verifier, err := config.NewVerifier(password)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx,
		"ALTER ROLE "+quoteIdent(f.world.Owner)+" LOGIN CREATEROLE PASSWORD '"+verifier+"'"); err != nil {
		return err
	}
	if isLoaded {
		return f.resume("deleting "+f.dir, progress)
	}
	if err := f.resetState(); err != nil {
		return err
	}
	return os.WriteFile(f.markerPath(), []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o644)
}

// resetState prepares the folder for a database that was just filled: it copies the world's policy, and removes the
// files of the consent registry, since the registry is empty.
func (f demoFolder) resetState() error {
	for _, name := range []string{"consent.key", "consent.anchor", "consents"} {
		if err := os.Remove(f.filePath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	newDigests, err := f.currentDigests()
	if err != nil {
		return err
	}
	return f.copyPolicy(newDigests.Rows)
}

// writeConfig writes pgconsent.yaml for this start, and loads it as pgconsent serve would.
func (f demoFolder) writeConfig(c Config, upstream yaml.MapSlice) (*config.Config, error) {
	agents := yaml.MapSlice{}
	for _, a := range f.world.Agents {
		attributes := yaml.MapSlice{}
		for _, name := range f.world.AttributeNames() {
			if v, ok := a.Attributes[name]; ok {
				attributes = append(attributes, yaml.MapItem{Key: name, Value: v})
			}
		}
		agents = append(agents, yaml.MapItem{Key: a.Name, Value: yaml.MapSlice{
			{Key: "database", Value: f.world.Name}, {Key: "auth", Value: "scram"}, {Key: "attributes", Value: attributes}}})
	}
	secret := func(name string) string { return "secrets/" + name + ".pw" }
	tree := yaml.MapSlice{
		{Key: "version", Value: 1},
		{Key: "listen", Value: c.Listen},
		{Key: "http", Value: yaml.MapSlice{{Key: "listen", Value: c.HTTP}, {Key: "tokens", Value: "tokens.yaml"}}},
		{Key: "upstream", Value: upstream},
		{Key: "databases", Value: yaml.MapSlice{{Key: f.world.Name, Value: yaml.MapSlice{
			{Key: "policy", Value: "policy.yaml"},
			{Key: "name", Value: f.objectNames.database},
			{Key: "owners", Value: []string{f.objectNames.owner}},
			{Key: "search_path", Value: []string{"public"}},
			{Key: "roles", Value: yaml.MapSlice{{Key: "agent", Value: f.objectNames.agent},
				{Key: "control", Value: f.objectNames.control}, {Key: "reader", Value: f.objectNames.reader}, {Key: "rows",
					Value: f.objectNames.rows}}},
			{Key: "secrets", Value: yaml.MapSlice{
				{Key: "agent", Value: secret("agent")}, {Key: "control", Value: secret("control")}, {
					Key: "migrate", Value: secret("owner")}}},
		}}}},
		{Key: "agents", Value: agents},
		{Key: "credentials", Value: "agents.scram"},
		{Key: "enforcement", Value: "auto"},
		{Key: "consent", Value: yaml.MapSlice{}},
		{Key: "audit", Value: yaml.MapSlice{{Key: "mode", Value: "strict"}, {Key: "file", Value: "audit/"}}},
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("# Written by \"pgconsent demo\" at each start. docs/reference/configuration.md explains the keys.\n")
	b.Write(text)
	path := f.filePath("pgconsent.yaml")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return nil, err
	}
	return config.Load(path)
}

// migrate installs pgconsent's objects in the database, as "pgconsent migrate" does.
func migrate(ctx context.Context, cfg *config.Config, name string) error {
	db := cfg.Databases[name]
	dsn, err := cfg.ConnString(db, db.Roles.Migrate, db.Secrets.Migrate)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	doc, err := policy.Load(db.Policy)
	if err != nil {
		return err
	}
	snap, err := pgcatalog.Load(ctx, conn, db.SearchPath)
	if err != nil {
		return err
	}
	p, err := policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
	if err != nil {
		return err
	}
	o := migrations.Options{AgentRole: db.Roles.Agent, ControlRole: db.Roles.Control, ReaderRole: db.Roles.Reader,
		RowsRole: db.Roles.Rows}
	if o.AgentPassword, err = config.ReadSecret(db.Secrets.Agent); err != nil {
		return err
	}
	if o.ControlPassword, err = config.ReadSecret(db.Secrets.Control); err != nil {
		return err
	}
	plan := rls.Generate(p, snap, rls.Options{AgentRole: o.AgentRole, ControlRole: o.ControlRole,
		ReaderRole: o.ReaderRole, RowsRole: o.RowsRole, SignedViews: cfg.Enforcement == config.EnforceAuto})
	if err := migrations.Up(ctx, conn, o, plan); err != nil {
		return err
	}
	_, err = serve.InitRegistry(ctx, cfg, conn, name)
	return err
}

// createAgents creates the logins of agents, and returns how to connect.
func (f demoFolder) createAgents(cfg *config.Config) (DemoAccess, error) {
	a := DemoAccess{World: f.world.Name, HTTP: "http://" + cfg.HTTP.Listen}
	owner, err := config.ReadSecret(f.secretPath("owner"))
	if err != nil {
		return a, err
	}
	dsn := func(user, password string) string {
		u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: cfg.Listen.First(), Path: "/" +
			f.world.Name}
		return u.String()
	}
	a.OwnerDSN = dsn(f.objectNames.owner, owner)
	for _, agent := range f.world.Agents {
		password, err := config.ReadSecret(f.secretPath("agent-" + agent.Name))
		if err != nil {
			return a, err
		}
		verifier, err := config.NewVerifier(password)
		if err != nil {
			return a, err
		}
		if err := config.SetCredential(cfg.Credentials, config.Credential{Name: agent.Name, Verifier: verifier}); err != nil {
			return a, err
		}
		a.Agents = append(a.Agents, AgentDSN{agent.Name, dsn(agent.Name, password)})
	}
	return a, nil
}

// Registry returns the consent registry in the world's database; nil: the world has none.
func (r *RunningDemo) Registry() *registry.Registry { return r.service.Registry(r.Access.World) }
