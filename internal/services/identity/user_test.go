package identity

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/config"
)

// The token of a user for whom an agent acts gives the attributes that the agent's key acts_for names. A program's
// token is refused, and so is a token for another agent.
func TestUserTokens(t *testing.T) {
	p, foreignProvider := newProvider(t, "first"), newProvider(t, "first")
	path := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(path, keySet(t, p), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg := jwtConfig(path)
	cfg.Agents["backend"] = &config.Agent{Database: "app", Auth: "scram", ActsFor: &config.ActsFor{
		Attributes: []string{"user", "level"}, By: config.ByJWT, Claims: map[string]string{"user": "sub"}}}
	cfg.Agents["exact"] = &config.Agent{Database: "app", Auth: "scram", ActsFor: &config.ActsFor{
		Attributes: []string{"user"}, By: config.ByJWT, Claims: map[string]string{"user": "sub"}, Actor: "client-7"}}
	v := NewJWT(func() *config.Config { return cfg })
	actorClaim := func(subject any) map[string]any {
		return map[string]any{"sub": subject, "act": map[string]any{"sub": "before"}}
	}
	for name, q := range map[string]struct {
		agent  string
		claims map[string]any
		want   map[string]string // nil: the token is refused
	}{
		"a user":                    {"backend", nil, map[string]string{"user": "alice"}},
		"without a role":            {"backend", map[string]any{"role": nil, "level": 7}, map[string]string{"user": "alice", "level": "7"}},
		"a role of another system":  {"backend", map[string]any{"role": "authenticated"}, map[string]string{"user": "alice"}},
		"roles of another system":   {"backend", map[string]any{"role": []string{"a"}}, map[string]string{"user": "alice"}},
		"this agent's own":          {"backend", map[string]any{"role": "agent", "agent": "backend"}, map[string]string{"user": "alice"}},
		"delegated":                 {"backend", map[string]any{"act": actorClaim("backend")}, map[string]string{"user": "alice"}},
		"may be delegated":          {"backend", map[string]any{"may_act": actorClaim("backend")}, map[string]string{"user": "alice"}},
		"delegated, and may be on":  {"backend", map[string]any{"act": actorClaim("backend"), "may_act": actorClaim("next")}, map[string]string{"user": "alice"}},
		"delegated to the actor":    {"exact", map[string]any{"act": actorClaim("client-7")}, map[string]string{"user": "alice"}},
		"delegated to another":      {"backend", map[string]any{"act": actorClaim("other")}, nil},
		"may be by another":         {"backend", map[string]any{"may_act": actorClaim("other")}, nil},
		"delegated to the name":     {"exact", map[string]any{"act": actorClaim("exact")}, nil},
		"not delegated":             {"exact", nil, nil},
		"delegated to nobody":       {"backend", map[string]any{"act": map[string]any{}}, nil},
		"an actor that is a text":   {"backend", map[string]any{"act": "backend"}, nil},
		"an actor that is a number": {"backend", map[string]any{"act": actorClaim(7)}, nil},
		"before, not now":           {"backend", map[string]any{"act": map[string]any{"sub": "other", "act": map[string]any{"sub": "backend"}}}, nil},
		"an agent":                  {"backend", map[string]any{"role": "agent", "agent": "robot"}, nil},
		"an administrator":          {"backend", map[string]any{"role": "admin"}, nil},
		"an operator":               {"backend", map[string]any{"role": "operator"}, nil},
		"a system":                  {"backend", map[string]any{"role": "system"}, nil},
		"no user":                   {"backend", map[string]any{"sub": nil}, nil},
		"a user that is an object":  {"backend", map[string]any{"sub": map[string]any{}}, nil},
		"expired":                   {"backend", map[string]any{"exp": time.Now().Unix() - 120}, nil},
		"without an end":            {"backend", map[string]any{"exp": nil}, nil},
		"of another issuer":         {"backend", map[string]any{"iss": "https://evil.test"}, nil},
		"for another audience":      {"backend", map[string]any{"aud": "other"}, nil},
		"of an agent that acts not": {"robot", nil, nil},
		"of an agent that is not":   {"nobody", nil, nil},
	} {
		got, until, err := v.VerifyUser(t.Context(), p.token(q.claims), q.agent, "app")
		if (err == nil) != (q.want != nil) || err == nil && (!maps.Equal(got, q.want) || until.Before(time.Now())) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "alice") {
			t.Errorf("%s: the error quotes the token: %v", name, err)
		}
	}
	if _, _, err := v.VerifyUser(t.Context(), foreignProvider.token(nil), "backend", "app"); err == nil {
		t.Error("a foreign key")
	}
	if _, _, err := v.VerifyUser(t.Context(), p.token(nil), "backend", "other"); err == nil {
		t.Error("another database")
	}
	// A caller over HTTP has a different name for each user.
	names := map[string]bool{}
	for _, subject := range []string{"alice", "bob", "alice"} {
		caller, err := v.CallerForUser(t.Context(), Caller{Name: "app", Role: Agent, Agent: "backend", Database: "app"},
			p.token(map[string]any{"sub": subject}))
		if err != nil || caller.UserToken == "" || caller.ExpiresAt.IsZero() || strings.Contains(caller.Name, subject) {
			t.Errorf("%+v, %v", caller, err)
		}
		names[caller.Name] = true
	}
	if len(names) != 2 {
		t.Errorf("two users are %v", names)
	}
	if _, err := v.CallerForUser(t.Context(), Caller{Name: "s", Role: System, Database: "app"}, p.token(nil)); err == nil {
		t.Error("the role system acts for a user")
	}
}
