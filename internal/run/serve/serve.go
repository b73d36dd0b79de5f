// Package serve runs the sidecar: it builds from a configuration the enforcer, the proxy, the audit log and the HTTP
// listener, and takes them down in the order that loses nothing.
//
// Guarantee: no agent is served before its database has been vouched for, and none after [Service.Run] has begun to
// drain. A reload either takes effect as a whole for each agent list, policy and certificate, or leaves the old one.
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
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/face/identity"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/registry/air"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/proxy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// Options say what to serve. Config is required.
type Options struct {
	Config *config.Config
	Log    *slog.Logger  // nil: slog.Default()
	Drain  time.Duration // how long sessions may go on after the end was asked for; 0: [DefaultDrain]
}

// DefaultDrain is well within what Kubernetes (30 s) and systemd (90 s) wait before they kill. Sessions of owners use
// it up: their bytes are not parsed, so nobody knows whether they are idle.
const DefaultDrain = 10 * time.Second

// Service is a sidecar with its listeners open.
type Service struct {
	log         *slog.Logger
	drain       time.Duration
	config      atomic.Pointer[config.Config]
	credentials *config.Credentials
	certificate atomic.Pointer[tls.Config] // nil: no TLS
	registry    *prometheus.Registry
	counts      *metrics.Metrics
	audit       *audit.Log
	air         *air.Tracker
	enforcer    *enforce.Enforcer
	proxy       *proxy.Server
	router      *router
	tokens      *identity.JWT // nil: none are taken
	clients     net.Listener
	http        net.Listener // nil: off
	sweepers    *sweepers    // nil: no consent registry is configured
	faces       *faces       // nil: nobody has a token
	draining    atomic.Bool
	reloading   sync.Mutex
	started     time.Time
}

// New opens the listeners, then the audit log, then looks at the databases. What it returns serves nobody until Run.
func New(ctx context.Context, o Options) (_ *Service, err error) {
	if o.Config == nil {
		return nil, errors.New("serve: Options.Config is required")
	}
	c := o.Config
	s := &Service{log: o.Log, drain: o.Drain, registry: prometheus.NewRegistry(), started: time.Now()}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.drain == 0 {
		s.drain = DefaultDrain
	}
	s.config.Store(c)
	defer func() {
		if err != nil {
			s.abandon()
		}
	}()
	if s.clients, err = listen(c.Listen); err != nil {
		return nil, err
	}
	if c.HTTP.Listen != "off" {
		if s.http, err = listen(c.HTTP.Listen); err != nil {
			return nil, err
		}
	}
	certificate, err := loadCertificate(c.TLS)
	if err != nil {
		return nil, err
	}
	s.certificate.Store(certificate)
	if s.credentials, err = config.OpenCredentials(c.Credentials); err != nil {
		return nil, err
	}
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	counts := metrics.New(s.registry)
	s.counts, s.air = counts, newTracker(c.AIR)
	if s.audit, err = openAudit(c, counts, s.log); err != nil {
		return nil, err
	}
	if s.sweepers, err = s.newSweepers(c, counts); err != nil {
		return nil, err
	}
	databases, err := targets(c)
	if err != nil {
		return nil, err
	}
	for _, old := range c.Outdated {
		s.log.Warn("the configuration has an old spelling, which stays accepted", "write", old)
	}
	vouch := newVouchers(c, s.log)
	mode := rewrite.Both
	if c.Enforcement == config.Auto {
		mode = rewrite.Auto
	}
	s.enforcer, err = enforce.New(ctx, enforce.Config{
		Databases: databases, Agents: s.agents(c), Audit: s.audit, Metrics: counts, Log: s.log, AIR: s.air,
		Check: vouch.check, Mode: mode,
		StaleAfter: c.Stale(),
	})
	if err != nil {
		return nil, err
	}
	if c.JWT != nil {
		s.tokens = identity.NewJWT(s.config.Load)
	}
	if s.router, err = newRouter(c, s.enforcer, vouch, s.tokens); err != nil {
		return nil, err
	}
	if s.faces, err = s.newFaces(c); err != nil {
		return nil, err
	}
	s.proxy, err = proxy.New(proxy.Config{
		Listen: c.Listen, TLS: s.certificate.Load, Router: s.router, Log: s.log, Metrics: counts, MaxSessions: s.maxSessions,
	})
	return s, err
}

// abandon closes what New had opened.
func (s *Service) abandon() {
	for _, l := range []net.Listener{s.clients, s.http} {
		if l != nil {
			l.Close()
		}
	}
	if s.enforcer != nil {
		s.enforcer.Close()
	}
	if s.audit != nil {
		closing, cancel := context.WithTimeout(context.Background(), 5*time.Second) // its disk may not answer
		defer cancel()
		_ = s.audit.Close(closing)
	}
}

// Address is where clients connect.
func (s *Service) Address() net.Addr { return s.clients.Addr() }

// HTTPAddress is where HTTP is served; nil if it is off.
func (s *Service) HTTPAddress() net.Addr {
	if s.http == nil {
		return nil
	}
	return s.http.Addr()
}

// Ready returns nil when the agents of every database are served.
func (s *Service) Ready() error {
	if s.draining.Load() {
		return errors.New("draining")
	}
	return s.enforcer.Ready()
}

// Run serves until ctx ends, then drains: sessions end when idle, and the rest when the drain time is over.
func (s *Service) Run(ctx context.Context) error {
	var wait sync.WaitGroup
	failed := make(chan error, 2)
	wait.Go(func() {
		if err := s.proxy.Serve(s.clients); !errors.Is(err, proxy.ErrClosed) {
			failed <- fmt.Errorf("listening for clients: %w", err)
		}
	})
	web := usualLimits.server(s.handler(), s.log)
	if s.http != nil {
		wait.Go(func() {
			if err := web.Serve(s.secured()); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("listening for http: %w", err)
			}
		})
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	wait.Go(func() { s.cleanAIR(watching) })
	wait.Go(func() {
		if s.sweepers != nil {
			s.sweepers.run(watching)
		}
	})
	wait.Go(func() {
		if s.faces != nil {
			s.faces.run(watching)
		}
	})
	wait.Go(func() {
		s.credentials.Watch(watching, s.log, func() { s.enforcer.SetAgents(s.agents(s.config.Load())) })
	})
	s.log.Info("serving", "listen", s.clients.Addr().String(), "agents", len(s.config.Load().Agents), "databases",
		len(s.config.Load().Databases))

	var err error
	select {
	case <-ctx.Done():
		s.log.Info("draining", "sessions", s.enforcer.Sessions(), "at_most", s.drain.String())
	case err = <-failed:
		s.log.Error("stopping", "error", err)
	}
	s.draining.Store(true)
	stopWatching()
	// /readyz says no while draining, /metrics goes on until the sessions are gone.
	drained, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.drain)
	defer cancel()
	if e := s.proxy.Shutdown(drained); e != nil {
		s.log.Warn("sessions were cut off when the drain time was over")
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = web.Shutdown(closing)
	if s.faces != nil {
		s.faces.close()
	}
	s.enforcer.Close()
	if e := s.audit.Close(closing); e != nil {
		err = errors.Join(err, fmt.Errorf("audit: %w", e))
	}
	wait.Wait()
	s.log.Info("stopped")
	return err
}

// Reload reads agents, credentials, policies and the certificate again. Each that is wrong leaves its old one in force.
func (s *Service) Reload() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	old := s.config.Load()
	next, err := config.Load(old.Path)
	if err != nil {
		s.log.Error("the configuration was not reloaded; the old one stays in force", "error", err)
		return err
	}
	var failed []error
	if fixed(old) != fixed(next) {
		s.log.Warn("listen, http, upstream, databases, credentials, enforcement, audit and air take effect at the next start")
	}
	if certificate, err := loadCertificate(next.TLS); err != nil {
		failed = append(failed, err)
	} else if (certificate == nil) == (s.certificate.Load() == nil) {
		s.certificate.Store(certificate)
	}
	if err := s.credentials.Reload(); err != nil {
		failed = append(failed, err)
	}
	running := *old
	running.Agents = next.Agents
	s.config.Store(&running)
	s.enforcer.SetAgents(s.agents(&running))
	if err := s.enforcer.Reload(); err != nil {
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		s.log.Error("reload: what is wrong was left as it was", "error", err)
		return err
	}
	s.log.Info("reloaded", "agents", len(running.Agents))
	return nil
}

// fixed is what only a start can change.
func fixed(c *config.Config) string {
	var b strings.Builder
	fmt.Fprintln(&b, c.Listen, c.HTTP, c.Upstream, c.Credentials, c.Enforcement, c.Audit, c.AIR, c.TLS == nil)
	if c.JWT != nil {
		fmt.Fprintln(&b, *c.JWT)
	}
	for _, name := range sorted(c.Databases) {
		fmt.Fprintln(&b, name, *c.Databases[name])
	}
	return b.String()
}

// maxSessions is how many sessions agents may have at a time: as many as the configuration says, or as the server has
// room for.
func (s *Service) maxSessions() int {
	if most := s.config.Load().MaxSessions; most > 0 {
		return most
	}
	return s.enforcer.MaxSessions()
}

// agents are the logins as enforcement wants them: what the configuration says, with what the credentials file has.
func (s *Service) agents(c *config.Config) []enforce.Agent {
	var out []enforce.Agent
	for _, name := range sorted(c.Agents) {
		a := enforce.Agent{Name: name, Database: c.Agents[name].Database, Attributes: c.Agents[name].Attributes,
			Sessions: c.Agents[name].Limits.Sessions}
		if c.Agents[name].Auth == "jwt" {
			a.Token = !s.credentials.Disabled(name)
			if c.JWT != nil {
				a.Claims = c.JWT.Claims.Attributes
			}
		} else if v, ok := s.credentials.Lookup(name); ok {
			a.Credential = &v
		}
		out = append(out, a)
	}
	return out
}

func targets(c *config.Config) ([]enforce.Database, error) {
	var out []enforce.Database
	for _, name := range sorted(c.Databases) {
		db := c.Databases[name]
		control, err := c.ConnString(db, db.Roles.Control, db.Secrets.Control)
		if err != nil {
			return nil, err
		}
		agent, err := c.ConnString(db, db.Roles.Agent, db.Secrets.Agent)
		if err != nil {
			return nil, err
		}
		out = append(out, enforce.Database{
			Name: name, Policy: db.Policy, Control: control, Agent: agent, SearchPath: db.SearchPath,
			AgentRole: db.Roles.Agent, ControlRole: db.Roles.Control, ReaderRole: db.Roles.Reader, RowsRole: db.Roles.Rows,
		})
	}
	return out, nil
}

func listen(address string) (net.Listener, error) {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	l, err := net.Listen(network, address)
	if errors.Is(err, syscall.EADDRINUSE) {
		hint := "Stop what listens there, or name another address."
		if _, port, e := net.SplitHostPort(address); e == nil {
			hint = fmt.Sprintf("Stop what listens there (lsof -i :%s shows it), or name another port.", port)
		}
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "%s is in use", address).
			WithHint("%s", hint).WithCause(err)
	}
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "cannot listen on %s", address).WithCause(err)
	}
	return l, nil
}

func loadCertificate(t *config.TLS) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
			"the listener's certificate cannot be used: %v", err).
			WithHint("tls.cert and tls.key must be a certificate chain and its key in PEM form.")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, nil
}

// mockKey decides what a login sees for users who do not exist. It outlives restarts, so that trying a name before and
// after one tells nothing: it is derived from the secrets the process has. Without any it is random.
func mockKey(c *config.Config) ([]byte, error) {
	h := sha256.New()
	h.Write([]byte("pgconsent mock key"))
	any := false
	for _, name := range sorted(c.Databases) {
		password, err := config.Secret(c.Databases[name].Secrets.Agent)
		if err != nil {
			return nil, err
		}
		any = any || password != ""
		h.Write([]byte(name + "\x00" + password + "\x00"))
	}
	if !any {
		key := make([]byte, 32)
		_, err := rand.Read(key)
		return key, err
	}
	return h.Sum(nil), nil
}
