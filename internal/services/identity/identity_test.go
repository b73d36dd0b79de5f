package identity

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

func one() *config.Config {
	return &config.Config{
		Databases: map[string]*config.Database{"app": {}},
		Agents:    map[string]*config.Agent{"chat": {Database: "app"}},
	}
}

func add(t *testing.T, path string, c *config.Config, entry Token, replace bool) string {
	t.Helper()
	token, sum, err := NewToken()
	if err != nil {
		t.Fatal(err)
	}
	entry.SHA256 = sum
	if err := AddToken(path, c, entry, replace); err != nil {
		t.Fatal(err)
	}
	return token
}

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	cfg := one()
	v, err := OpenTokens(path, func() *config.Config { return cfg }, nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(bearer, reason string) {
		t.Helper()
		got, err := v.Verify(context.Background(), bearer)
		if err == nil {
			t.Fatalf("%s: taken for %+v", reason, got)
		}
		var e *sqlstate.Error
		want := NewRefusal(nil).(*sqlstate.Error)
		if !errors.As(err, &e) || e.Code != want.Code || e.Message != want.Message || e.Hint != want.Hint || e.Detail != "" {
			t.Errorf("%s: the error tells more than others: %v", reason, err)
		}
		if e.Cause == nil || bearer != "" && strings.Contains(e.Cause.Error(), bearer) {
			t.Errorf("%s: the log's cause is %v", reason, e.Cause)
		}
	}
	refused("", "no token")
	alice := add(t, path, cfg, Token{Name: "alice", Role: Subject, Subject: "alice@example.org"}, false)
	chat := add(t, path, cfg, Token{Name: "agent:chat", Role: Agent, Agent: "chat"}, false)
	for bearer, want := range map[string]Caller{
		alice: {Name: "alice", Role: Subject, Subject: "alice@example.org", Database: "app"},
		chat:  {Name: "agent:chat", Role: Agent, Agent: "chat", Database: "app"},
	} {
		if got, err := v.Verify(context.Background(), bearer); err != nil || got.Name != want.Name ||
			got.Role != want.Role || got.Subject != want.Subject || got.Agent != want.Agent || got.Database != want.Database {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	refused(alice+"x", "another token")
	refused(TokenHash(alice), "the sum that the file keeps")
	if err := RevokeToken(path, "alice"); err != nil {
		t.Fatal(err)
	}
	refused(alice, "revoked")
	replacedToken := add(t, path, cfg, Token{Name: "alice", Role: Subject, Subject: "alice"}, false)
	refused(alice, "replaced")
	if _, err := v.Verify(context.Background(), replacedToken); err != nil {
		t.Error(err)
	}
	if err := AddToken(path, cfg, Token{Name: "alice", Role: Admin, SHA256: TokenHash("x")}, false); err == nil {
		t.Error("a valid token was replaced unasked")
	}
	delete(cfg.Agents, "chat")
	refused(chat, "an agent that the configuration no longer has")
	cfg.Databases["other"] = &config.Database{}
	refused(replacedToken, "no database among several")

	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), replacedToken) {
		t.Errorf("the file has a token (%v)", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// If the tokens file becomes invalid while pgconsent runs, the previous tokens stay valid. At the start, an invalid
// file is an error.
func TestBrokenTokensFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	cfg := one()
	admin := add(t, path, cfg, Token{Name: "admin", Role: Admin}, false)
	v, err := OpenTokens(path, func() *config.Config { return cfg }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(context.Background(), admin); err != nil {
		t.Fatal(err)
	}
	sum := TokenHash("x")
	for name, text := range map[string]string{
		"unknown key":       "tokens: [ { name: a, role: admin, sha256: " + sum + ", admin: true } ]",
		"unknown role":      "tokens: [ { name: a, role: root, sha256: " + sum + " } ]",
		"no role":           "tokens: [ { name: a, sha256: " + sum + " } ]",
		"no subject":        "tokens: [ { name: a, role: subject, sha256: " + sum + " } ]",
		"everybody":         "tokens: [ { name: a, role: subject, subject: '*', sha256: " + sum + " } ]",
		"no agent":          "tokens: [ { name: a, role: agent, sha256: " + sum + " } ]",
		"admin's subject":   "tokens: [ { name: a, role: admin, subject: x, sha256: " + sum + " } ]",
		"admin's agent":     "tokens: [ { name: a, role: admin, agent: chat, sha256: " + sum + " } ]",
		"no sum":            "tokens: [ { name: a, role: admin } ]",
		"a token for a sum": "tokens: [ { name: a, role: admin, sha256: " + admin + " } ]",
		"two of a name":     "tokens: [ { name: a, role: admin, sha256: " + sum + " }, { name: a, role: admin, sha256: " + TokenHash("y") + " } ]",
		"two of a sum":      "tokens: [ { name: a, role: admin, sha256: " + sum + " }, { name: b, role: admin, sha256: " + sum + " } ]",
		"duplicate key":     "tokens: [ { name: a, role: admin, role: agent, sha256: " + sum + " } ]",
		"no YAML":           "tokens: [",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenTokens(path, func() *config.Config { return cfg }, nil); err == nil {
			t.Errorf("%s: read", name)
		}
		if _, err := v.Verify(context.Background(), admin); err != nil {
			t.Errorf("%s: what was read before is gone: %v", name, err)
		}
		if _, err := v.Verify(context.Background(), "x"); err == nil {
			t.Errorf("%s: somebody was let in", name)
		}
	}
	// A hash may be written in upper or lower case.
	if err := os.WriteFile(path, []byte("tokens: [ { name: a, role: admin, sha256: "+strings.ToUpper(TokenHash(admin))+" } ]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if caller, err := v.Verify(context.Background(), admin); err != nil || caller.Name != "a" {
		t.Errorf("a sum in capitals: %+v, %v", caller, err)
	}
	if err := os.WriteFile(path, []byte("tokens: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTokens(path); err == nil {
		t.Error("a file that others can read was read")
	}
}

func TestBearer(t *testing.T) {
	for want, headers := range map[string][]string{"t": {"Bearer t"}, "u": {"bearer  u "}, "v w": {"BEARER v w"}} {
		if got, ok := Bearer(http.Header{"Authorization": headers}); !ok || got != want {
			t.Errorf("%q: %q, %v", headers, got, ok)
		}
	}
	for _, headers := range [][]string{nil, {""}, {"Bearer"}, {"Bearer "}, {"Basic dDp0"}, {"t"}, {"Bearer\tt"},
		{"Bearer t", "Bearer t"}, {"Basic dDp0", "Bearer t"}} {
		if got, ok := Bearer(http.Header{"Authorization": headers}); ok {
			t.Errorf("%q: %q", headers, got)
		}
	}
}
