package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTokenCommands(t *testing.T) {
	config := writeTestFile(t, "c.yaml", strings.Replace(minimalConfig, "upstream:", "http: { tokens: tokens.yaml }\nupstream:", 1), 0o600)
	ok := func(args ...string) string {
		t.Helper()
		out, stderr, code := call(t, "", append([]string{"--config", config}, args...)...)
		if code != exitOK {
			t.Fatalf("%v: exit code %d: %s", args, code, stderr)
		}
		return out
	}
	checkFailure := func(code int, text string, args ...string) {
		t.Helper()
		_, stderr, got := call(t, "", append([]string{"--config", config}, args...)...)
		if got != code || !strings.Contains(stderr, text) {
			t.Errorf("%v: exit code %d, %q; want %d and %q", args, got, stderr, code, text)
		}
	}
	token := strings.TrimSpace(ok("token", "add", "alice", "--role", "subject", "--subject", "alice"))
	if !strings.HasPrefix(token, "pgct_") || len(token) < 40 {
		t.Errorf("the token is %q", token)
	}
	var printedToken struct{ Name, Role, Token string }
	if err := json.Unmarshal([]byte(ok("--json", "token", "add", "chat", "--role", "agent", "--agent", "chat")),
		&printedToken); err != nil || printedToken.Token == "" || printedToken.Role != "agent" {
		t.Errorf("%+v, %v", printedToken, err)
	}
	storedTokens, err := os.ReadFile(filepath.Join(filepath.Dir(config), "tokens.yaml"))
	if err != nil || strings.Contains(string(storedTokens), token) || strings.Contains(string(storedTokens), printedToken.Token) {
		t.Errorf("a token is in the file (%v)", err)
	}
	if list := ok("token", "list"); !strings.Contains(list, "alice") || strings.Contains(list, "revoked") || strings.Contains(list, "pgct_") {
		t.Errorf("list: %s", list)
	}
	ok("token", "revoke", "alice")
	if list := ok("token", "list"); !strings.Contains(list, "revoked") {
		t.Errorf("list: %s", list)
	}
	checkFailure(exitUsage, "role", "token", "add", "x")
	checkFailure(exitUsage, "must be one of", "token", "add", "x", "--role", "root")
	checkFailure(exitError, "names its subject", "token", "add", "x", "--role", "subject")
	checkFailure(exitError, "names its subject", "token", "add", "x", "--role", "admin", "--subject", "alice")
	checkFailure(exitError, "there is no agent", "token", "add", "x", "--role", "agent", "--agent", "nobody")
	checkFailure(exitError, "already", "token", "add", "chat", "--role", "admin")
	checkFailure(exitError, "no token called", "token", "revoke", "nobody")
	config = writeTestFile(t, "c.yaml", minimalConfig, 0o600)
	checkFailure(exitError, "names no file for tokens", "token", "list")
}
