// Package serve runs the sidecar. It makes the enforcer, the proxy, the audit log and the HTTP listener from a
// configuration, and stops them in an order in which no record is lost.
//
// Guarantee: no agent is served before its database has been verified, and none after [Service.Run] has begun to drain.
// A reload either applies an agent list, a policy or a certificate as a whole, or leaves the old one active.
package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/proxy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// Options has the configuration and the settings of a service. Config is required.
type Options struct {
	Config    *config.Config
	Log       *slog.Logger  // nil: slog.Default()
	DrainTime time.Duration // how long sessions may continue after the service is told to end; 0: [DefaultDrain]

	Version string // version of the program, which the admin console shows
}

// DefaultDrain is the default of Options.DrainTime. It is well below the time after which Kubernetes (30 s) and systemd
// (90 s) kill a process. While an owner is connected, all of it passes: the proxy does not parse owners' messages, and
// so does not know whether their sessions are idle.
const DefaultDrain = 10 * time.Second

// Service is a sidecar whose listeners are open.
type Service struct {
	log             *slog.Logger
	drainTime       time.Duration
	config          atomic.Pointer[config.Config]
	credentials     *config.Credentials
	certificate     atomic.Pointer[tls.Config] // TLS configuration of the listeners; nil: no TLS
	registry        *prometheus.Registry
	metrics         *metrics.Metrics
	audit           *audit.Log
	reminders       *air.Tracker
	enforcer        *enforce.Enforcer
	proxy           *proxy.Server
	router          *router
	operators       *operatorLogins
	tokens          *identity.JWT // verifies JWTs; nil: JWTs are not accepted
	clientListeners []net.Listener
	http            net.Listener    // listener of HTTP; nil: HTTP is off
	sweepers        *sweepScheduler // nil: no consent registry is configured
	httpServices    *httpServices   // nil: no caller can have a token
	isDraining      atomic.Bool
	reloadMu        sync.Mutex
	startedAt       time.Time
}

// New opens the listeners and the audit log, and then verifies the databases. Clients are served only after
// [Service.Run] is called.
func New(ctx context.Context, o Options) (_ *Service, err error) {
	if o.Config == nil {
		return nil, errors.New("serve: Options.Config is required")
	}
	cfg := o.Config
	s := &Service{log: o.Log, drainTime: o.DrainTime, registry: prometheus.NewRegistry(), startedAt: time.Now()}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.drainTime == 0 {
		s.drainTime = DefaultDrain
	}
	s.config.Store(cfg)
	defer func() {
		if err != nil {
			s.closeAfterFailure()
		}
	}()
	if err := s.openListeners(cfg); err != nil {
		return nil, err
	}
	if err := s.openRecords(cfg); err != nil {
		return nil, err
	}
	for _, spelling := range cfg.DeprecatedSpellings {
		s.log.Warn("the configuration has an old spelling, which stays accepted", "write", spelling)
	}
	if s.operators, err = s.newOperators(cfg, o.Version); err != nil {
		return nil, err
	}
	if err := s.startEnforcement(ctx, cfg); err != nil {
		return nil, err
	}
	if s.httpServices, err = s.newHTTPServices(cfg); err != nil {
		return nil, err
	}
	s.proxy, err = proxy.New(proxy.Config{
		TLS: s.certificate.Load, BalancerNetworks: cfg.Proxies.Networks(), Router: s.router, Log: s.log,
		Metrics: collectAtLogins(s.metrics), MaxSessions: s.maxSessions, MaxText: cfg.StatementBytes(),
	})
	if err == nil {
		s.metrics.WatchPools(s.poolNumbers)
	}
	return s, err
}

// poolNumbers returns the counts of connection pools, summed for each database.
func (s *Service) poolNumbers() (out []metrics.Pool) {
	for _, p := range s.proxy.Pools() {
		if len(out) == 0 || out[len(out)-1].Database != p.Database {
			out = append(out, metrics.Pool{Database: p.Database})
		}
		sum := &out[len(out)-1]
		sum.Used, sum.Idle, sum.Waiting = sum.Used+p.Used, sum.Idle+p.Idle, sum.Waiting+p.Waiting
		sum.Taken, sum.TimedOut = sum.Taken+p.Taken, sum.TimedOut+p.TimedOut
		sum.WaitedSeconds += p.Waited.Seconds()
	}
	return out
}

// openListeners opens the listeners, and reads the certificate and the credentials that they need.
func (s *Service) openListeners(cfg *config.Config) (err error) {
	sockets, err := findPassedSockets()
	if err != nil {
		return err
	}
	defer sockets.close()
	for _, address := range cfg.Listen {
		l, err := sockets.listen(address)
		if err != nil {
			return err
		}
		s.clientListeners = append(s.clientListeners, l)
	}
	if cfg.HTTP.Listen != "off" {
		if s.http, err = sockets.listen(cfg.HTTP.Listen); err != nil {
			return err
		}
	}
	if err := sockets.checkAllUsed(); err != nil {
		return err
	}
	certificate, err := loadCertificate(cfg.TLS)
	if err != nil {
		return err
	}
	s.certificate.Store(certificate)
	s.credentials, err = config.OpenCredentials(cfg.Credentials)
	return err
}

// openRecords makes the metrics, and opens the audit log and the consent registries.
func (s *Service) openRecords(c *config.Config) (err error) {
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.metrics = metrics.New(s.registry)
	s.reminders = newTracker(c.AIR)
	if s.audit, err = openAudit(c, s.metrics, s.log); err != nil {
		return err
	}
	s.sweepers, err = s.newSweepers(c, s.metrics)
	return err
}

// startEnforcement verifies the databases, and makes the router that assigns clients to their kinds.
func (s *Service) startEnforcement(ctx context.Context, cfg *config.Config) error {
	sqltext.SetMaxBytes(cfg.StatementBytes())
	databases, err := enforcedDatabases(cfg)
	if err != nil {
		return err
	}
	verifiers := newVerifiers(cfg, s.log)
	mode := rewrite.InjectedMode
	if cfg.Enforcement == config.EnforceAuto {
		mode = rewrite.AutoMode
	}
	if cfg.JWT != nil {
		s.tokens = identity.NewJWT(s.config.Load)
	}
	s.enforcer, err = enforce.New(ctx, enforce.Config{
		Databases: databases, Agents: s.enforcedAgents(cfg), Audit: s.audit, Metrics: s.metrics, Log: s.log,
		Reminders: s.reminders,
		Check:     verifiers.verify, RewriteMode: mode, VerifyUser: s.verifyUser(),
		StaleAfter: cfg.StaleDuration(),
	})
	if err != nil {
		return err
	}
	s.router, err = newRouter(cfg, s.enforcer, verifiers, s.tokens, s.operators,
		func(agent string) config.Pool { return s.config.Load().PoolOf(agent) })
	return err
}

// closeAfterFailure closes everything that New has opened before it failed.
func (s *Service) closeAfterFailure() {
	for _, l := range s.clientListeners {
		l.Close()
	}
	if s.http != nil {
		s.http.Close()
	}
	if s.enforcer != nil {
		s.enforcer.Close()
	}
	if s.audit != nil {
		closeCtx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = s.audit.Close(closeCtx)
	}
}

// Address returns the first address at which clients can connect.
func (s *Service) Address() net.Addr { return s.clientListeners[0].Addr() }

// addresses returns the addresses at which clients can connect, for the log.
func (s *Service) addresses() string {
	all := make([]string, len(s.clientListeners))
	for i, l := range s.clientListeners {
		all[i] = l.Addr().String()
	}
	return strings.Join(all, ", ")
}

// HTTPAddress returns the address of the HTTP listener, and nil if HTTP is off.
func (s *Service) HTTPAddress() net.Addr {
	if s.http == nil {
		return nil
	}
	return s.http.Addr()
}

// Ready returns nil if the agents of every database are served, and otherwise the reason.
func (s *Service) Ready() error {
	if s.isDraining.Load() {
		return errors.New("draining")
	}
	return s.enforcer.Ready()
}

// Run serves clients until ctx is canceled. Then it ends idle sessions at once, and all others when the drain time is
// over.
func (s *Service) Run(ctx context.Context) error {
	var wait sync.WaitGroup
	failures := make(chan error, len(s.clientListeners)+1)
	for _, l := range s.clientListeners {
		wait.Go(func() {
			if err := s.proxy.Serve(l); !errors.Is(err, proxy.ErrClosed) {
				failures <- fmt.Errorf("listening for clients at %s: %w", l.Addr(), err)
			}
		})
	}
	web := defaultLimits.newServer(s.handler(), s.log)
	if s.http != nil {
		wait.Go(func() {
			if err := web.Serve(s.httpListener()); !errors.Is(err, http.ErrServerClosed) {
				failures <- fmt.Errorf("listening for http: %w", err)
			}
		})
	}
	background, cancel := context.WithCancel(ctx)
	defer cancel()
	s.startBackground(background, &wait)
	cfg := s.config.Load()
	s.log.Info("serving", "listen", s.addresses(), "agents", len(cfg.Agents), "databases", len(cfg.Databases))

	var err error
	select {
	case <-ctx.Done():
		s.log.Info("draining", "sessions", s.enforcer.Sessions(), "at_most", s.drainTime.String())
	case err = <-failures:
		s.log.Error("stopping", "error", err)
	}
	s.isDraining.Store(true)
	cancel()
	if e := s.shutdown(context.WithoutCancel(ctx), web); e != nil {
		err = errors.Join(err, e)
	}
	wait.Wait()
	s.log.Info("stopped")
	return err
}

// startBackground starts the goroutines that work until ctx is canceled.
func (s *Service) startBackground(ctx context.Context, wait *sync.WaitGroup) {
	wait.Go(func() { s.cleanInteractions(ctx) })
	if s.sweepers != nil {
		wait.Go(func() { s.sweepers.run(ctx) })
	}
	if s.httpServices != nil {
		wait.Go(func() { s.httpServices.runBackground(ctx) })
	}
	wait.Go(func() { s.operators.credentials.Watch(ctx, s.log, func() {}) })
	wait.Go(func() {
		s.credentials.Watch(ctx, s.log, func() { s.enforcer.SetAgents(s.enforcedAgents(s.config.Load())) })
	})
}

// shutdown ends the sessions and then stops everything else. Until the sessions have ended, /readyz returns an error,
// and /metrics is still served.
func (s *Service) shutdown(ctx context.Context, web *http.Server) error {
	drained, cancel := context.WithTimeout(ctx, s.drainTime)
	defer cancel()
	if err := s.proxy.Shutdown(drained); err != nil {
		s.log.Warn("sessions were cut off when the drain time was over")
	}
	closeCtx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = web.Shutdown(closeCtx)
	if s.httpServices != nil {
		s.httpServices.close()
	}
	s.enforcer.Close()
	if err := s.audit.Close(closeCtx); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// closeTimeout limits how long closing the HTTP server and the audit log, whose disk may not respond, may take.
const closeTimeout = 5 * time.Second

// maxSessions returns how many sessions all agents together may have: the number in the configuration, or else as many
// as PostgreSQL has room for.
func (s *Service) maxSessions() int {
	if limit := s.config.Load().MaxSessions; limit > 0 {
		return limit
	}
	return s.enforcer.MaxSessions()
}

// enforcedAgents returns the agents of the configuration for package enforce, with their logins in the credentials
// file.
func (s *Service) enforcedAgents(cfg *config.Config) []enforce.Agent {
	var out []enforce.Agent
	for _, name := range sortedKeys(cfg.Agents) {
		a := enforce.Agent{Name: name, Database: cfg.Agents[name].Database, Attributes: cfg.Agents[name].Attributes,
			MaxSessions: cfg.Agents[name].Limits.Sessions, ActsFor: representedUsers(cfg.Agents[name].ActsFor)}
		switch cfg.Agents[name].Auth {
		case config.AuthToken:
			a.LogsInByToken = !s.credentials.IsDisabled(name)
			if cfg.JWT != nil {
				a.Claims = cfg.JWT.Claims.Attributes
			}
		case config.AuthCertificate:
			if !s.credentials.IsDisabled(name) {
				a.CertificateName = wantedCertificateName(name, cfg.Agents[name].CertName)
			}
		default:
			if v, ok := s.credentials.Verifier(name); ok {
				a.Credential = &v
			}
		}
		out = append(out, a)
	}
	return out
}

// verifyUser returns the function that verifies the tokens of users for whom agents act. It returns nil if JWTs are not
// accepted.
func (s *Service) verifyUser() func(ctx context.Context, token, agent, database string) (map[string]string, time.Time, error) {
	if s.tokens == nil {
		return nil
	}
	return s.tokens.VerifyUser
}

// representedUsers converts the key acts_for of an agent for package enforce. It returns nil if the agent acts for no
// user.
func representedUsers(a *config.ActsFor) *enforce.ActsFor {
	switch {
	case a == nil:
		return nil
	case a.By == config.ByJWT:
		return &enforce.ActsFor{Attributes: a.Attributes, ByToken: true, Setting: enforce.TokenSetting}
	default:
		return &enforce.ActsFor{Attributes: a.Attributes, Setting: a.Setting, Claims: a.Claims}
	}
}

func enforcedDatabases(cfg *config.Config) ([]enforce.Database, error) {
	var out []enforce.Database
	for _, name := range sortedKeys(cfg.Databases) {
		db := cfg.Databases[name]
		control, err := cfg.ConnString(db, db.Roles.Control, db.Secrets.Control)
		if err != nil {
			return nil, err
		}
		agent, err := cfg.ConnString(db, db.Roles.Agent, db.Secrets.Agent)
		if err != nil {
			return nil, err
		}
		out = append(out, enforce.Database{
			Name: name, PolicyPath: db.Policy, ControlConnection: control, AgentConnection: agent, SearchPath: db.SearchPath,
			AgentRole: db.Roles.Agent, ControlRole: db.Roles.Control, ReaderRole: db.Roles.Reader, RowsRole: db.Roles.Rows,
		})
	}
	return out, nil
}

// mockKey returns the key from which [config.MockCredentials] derives the credentials of unknown users. It is derived
// from passwords of the configuration, so that it is the same after a restart: a client must not learn from a changed
// answer that a user is unknown. Without passwords the key is random.
func mockKey(cfg *config.Config) ([]byte, error) {
	h := sha256.New()
	h.Write([]byte("pgconsent mock key"))
	isAnyMocked := false
	for _, name := range sortedKeys(cfg.Databases) {
		password, err := config.ReadSecret(cfg.Databases[name].Secrets.Agent)
		if err != nil {
			return nil, err
		}
		isAnyMocked = isAnyMocked || password != ""
		h.Write([]byte(name + "\x00" + password + "\x00"))
	}
	if !isAnyMocked {
		key := make([]byte, 32)
		_, err := rand.Read(key)
		return key, err
	}
	return h.Sum(nil), nil
}
