package serve

import (
	"context"
	"net/http"
	"runtime/debug"

	"github.com/pgconsent/pgconsent/config"
	"github.com/pgconsent/pgconsent/consent/registry"
	"github.com/pgconsent/pgconsent/identity"
	"github.com/pgconsent/pgconsent/mcp"
	"github.com/pgconsent/pgconsent/policy"
)

// faces are what callers with a token reach over HTTP, besides what machines beside us ask without one.
type faces struct {
	verifier   identity.Verifier
	registries map[string]*registry.Registry // by database; none without a consent registry
	mcp        *mcp.Server
}

// newFaces makes them; nil where no file of tokens is configured, since then nobody could call.
func (s *Service) newFaces(c *config.Config) (*faces, error) {
	if c.HTTP.Tokens == "" || c.HTTP.Listen == "off" {
		return nil, nil
	}
	tokens, err := identity.OpenTokens(c.HTTP.Tokens, s.config.Load, s.log)
	if err != nil {
		return nil, err
	}
	f := &faces{verifier: tokens, registries: map[string]*registry.Registry{}}
	desks := map[string]*mcp.Desk{}
	for _, name := range sorted(c.Databases) {
		desk := &mcp.Desk{
			Policy: func() *policy.Policy { return s.enforcer.Policy(name) },
			Attributes: func(agent string) map[string]string {
				if a, ok := s.config.Load().Agents[agent]; ok && a.Database == name {
					return a.Attributes
				}
				return nil
			},
		}
		if c.Consent != nil {
			if desk.Registry, err = Registry(c, name); err != nil {
				return nil, err
			}
			f.registries[name] = desk.Registry
		}
		desks[name] = desk
	}
	f.mcp, err = mcp.NewServer(mcp.Config{
		Verifier: f.verifier, Connect: s.Connect, Record: s.enforcer.RecordCall, Desks: desks, AIR: s.air, Version: version(), Log: s.log,
	})
	return f, err
}

// handle adds the addresses of the faces.
func (f *faces) handle(mux *http.ServeMux) {
	mux.Handle("/mcp", f.mcp)
}

// run does what faces do by the clock until ctx ends.
func (f *faces) run(ctx context.Context) {
	f.mcp.Run(ctx)
	for _, r := range f.registries {
		r.Close()
	}
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(devel)"
}
