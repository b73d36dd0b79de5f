package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/record/dsar/access"
	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/services/api"
	"github.com/pgconsent/pgconsent/internal/services/console"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/mcp"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/policy"
)

// httpServices has the services that callers with a token use over HTTP.
type httpServices struct {
	verifier   identity.Verifier
	registries map[string]*registry.Registry // by database; empty if no consent registry is configured
	operations *operations.Service
	api        http.Handler
	mcp        *mcp.Server
	console    *console.Console
}

// newHTTPServices makes the services. It returns nil if neither a file of tokens nor JWTs are configured, since then no
// caller can have a token.
func (s *Service) newHTTPServices(cfg *config.Config) (*httpServices, error) {
	if cfg.HTTP.Tokens == "" && s.tokens == nil || cfg.HTTP.Listen == "off" {
		return nil, nil
	}
	verifiers, err := s.openVerifiers(cfg)
	if err != nil {
		return nil, err
	}
	f := &httpServices{
		verifier: enabledAgentVerifier{verifiers, s}, registries: map[string]*registry.Registry{},
		operations: &operations.Service{Databases: map[string]*operations.Database{}, Connect: s.Connect,
			Record: s.enforcer.RecordCall, Reminders: s.reminders},
	}
	databases := map[string]*mcp.Database{}
	for _, name := range sortedKeys(cfg.Databases) {
		if databases[name], err = s.mcpDatabase(cfg, name); err != nil {
			return nil, err
		}
		if cfg.Consent != nil {
			f.registries[name] = databases[name].Registry
		}
		f.operations.Databases[name] = &operations.Database{Name: name, Registry: databases[name].Registry,
			Policy:  databases[name].Policy,
			Privacy: databases[name].Privacy}
	}
	admin := s.adminService(f.operations)
	report := func(ctx context.Context, caller identity.Caller, subject string, data bool) (*dsar.Report, error) {
		return admin.Report(ctx, caller, access.ReportRequest{Subject: subject, Interface: "http", Format: "json",
			WithCopy: data})
	}
	if f.api, err = api.New(api.Config{Service: f.operations, Verifier: f.verifier, Log: s.log, MakeReport: report,
		ReadDecisions: s.readDecisions}); err != nil {
		return nil, err
	}
	f.mcp, err = mcp.NewServer(mcp.Config{
		Verifier: f.verifier, Connect: s.connectForLists, Record: s.enforcer.RecordCall, Databases: databases, Service: f.operations,
		Reminders: s.reminders, Version: version(), Log: s.log,
	})
	if err != nil {
		return nil, err
	}
	f.console, err = s.newConsole(admin, f.verifier)
	return f, err
}

// openVerifiers returns the verifiers of static tokens and of JWTs, as far as they are configured.
func (s *Service) openVerifiers(cfg *config.Config) (identity.VerifierList, error) {
	var verifiers identity.VerifierList
	if cfg.HTTP.Tokens != "" {
		tokens, err := identity.OpenTokens(cfg.HTTP.Tokens, s.config.Load, s.log)
		if err != nil {
			return nil, err
		}
		verifiers = append(verifiers, tokens)
	}
	if s.tokens != nil {
		verifiers = append(verifiers, s.tokens)
	}
	return verifiers, nil
}

// mcpDatabase returns what the MCP tools need for one database.
func (s *Service) mcpDatabase(cfg *config.Config, name string) (*mcp.Database, error) {
	tools := &mcp.Database{
		Policy: func() *policy.Policy { return s.enforcer.Policy(name) },
		Attributes: func(agent string) map[string]string {
			if a, ok := s.config.Load().Agents[agent]; ok && a.Database == name {
				return a.Attributes
			}
			return nil
		},
	}
	var err error
	if tools.Privacy, err = s.privacyService(cfg, name); err != nil {
		return nil, err
	}
	if cfg.Consent != nil {
		if tools.Registry, err = OpenRegistry(cfg, name); err != nil {
			return nil, err
		}
	}
	return tools, nil
}

// Registry returns the consent registry of a database, as HTTP, MCP and the console use it. It returns nil if there is
// none.
func (s *Service) Registry(database string) *registry.Registry {
	if s.httpServices == nil {
		return nil
	}
	return s.httpServices.registries[database]
}

// addHandlers registers the paths of the services.
func (f *httpServices) addHandlers(mux *http.ServeMux) {
	mux.Handle("/v1", f.api)
	mux.Handle("/v1/", f.api)
	mux.Handle("/openapi.json", f.api)
	mux.Handle("/mcp", f.mcp)
	mux.Handle(console.Base, f.console)
	mux.Handle("/", f.api) // for paths that the policy declares, and unknown paths
}

// requireCanonicalPaths passes requests with // or .. in the path to the API, which answers that the path is unknown.
// The multiplexer would redirect such clients, which would then send their tokens again.
func (f *httpServices) requireCanonicalPaths(mux http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !api.HasCanonicalPath(r) {
			f.api.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// runBackground ends MCP sessions that are idle or whose token is no longer valid, until ctx is canceled.
func (f *httpServices) runBackground(ctx context.Context) {
	f.mcp.Run(ctx)
}

// close closes the registries. No request may be in progress.
func (f *httpServices) close() {
	for _, r := range f.registries {
		r.Close()
	}
}

// enabledAgentVerifier refuses tokens of agents that are disabled, and otherwise verifies like the embedded verifier.
type enabledAgentVerifier struct {
	identity.Verifier
	service *Service
}

// Verify implements identity.Verifier.
func (e enabledAgentVerifier) Verify(ctx context.Context, bearer string) (identity.Caller, error) {
	bearer, user, acts := identity.SplitBearer(bearer)
	caller, err := e.Verifier.Verify(ctx, bearer)
	if err == nil && acts {
		if e.service.tokens == nil {
			return identity.Caller{}, identity.NewRefusal(errors.New("no tokens of users are accepted"))
		}
		caller, err = e.service.tokens.CallerForUser(ctx, caller, user)
	}
	if err != nil || caller.Role != identity.Agent {
		return caller, err
	}
	if _, ok := e.service.enforcer.Agent(caller.Agent, caller.Database); !ok {
		return identity.Caller{}, identity.NewRefusal(fmt.Errorf("token %s: agent %s cannot log in", caller.Name,
			caller.Agent))
	}
	return caller, nil
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(devel)"
}
