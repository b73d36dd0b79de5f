package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/services/mcp"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The MCP client by the authors of the protocol, from npm, in a fixed version.
const (
	nodeClient  = "@modelcontextprotocol/sdk"
	nodeVersion = "1.32.2"
	bridgeURL   = "PGCONSENT_TEST_BRIDGE" // if it is set, this program is a bridge to that URL
)

func TestMain(m *testing.M) {
	if url := os.Getenv(bridgeURL); url != "" {
		err := mcp.Bridge{URL: url, Token: os.Getenv("PGCONSENT_TOKEN"), HTTP: http.DefaultClient, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}.
			Run(context.Background(), os.Stdin, os.Stdout)
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	pgtest.MainAlone(m)
}

// independentClient runs the MCP client by the authors of the protocol, over HTTP and over the bridge on stdio.
func independentClient(t *testing.T, f *servedWorld) {
	dir := nodeModules(t)
	script, err := os.ReadFile("testdata/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "client.mjs"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	c := exec.CommandContext(ctx, "node", "client.mjs")
	c.Dir = dir
	c.Env = append(os.Environ(), "URL="+f.url, "TOKEN="+f.token(t, "agent:mcp"), "BRIDGE="+self)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, out)
	}
	var report struct {
		HTTP, Stdio clientReport
		Raw         map[string]map[string]string
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for way, r := range map[string]clientReport{"http": report.HTTP, "stdio": report.Stdio} {
		if len(r.Tools) != 9 || r.Found != 4 || !r.Same || r.Refused != "42501" || r.Unknown != "-32602" || r.Strict != "22023" ||
			r.Cancelled != "room" || r.Side != "answered" || r.Outlives != "answered" {
			t.Errorf("%s: %+v", way, r)
		}
	}
	if report.HTTP.WrongKey != "401" {
		t.Errorf("a wrong token: %q", report.HTTP.WrongKey)
	}
	// Only HTTP has a status. The codes are those in docs/reference/mcp.md.
	for description, want := range map[string][2]string{
		"list before initialize": {"400", "-32001 08P01"}, "no JSON": {"400", "-32700 08P01"}, "a name twice": {
			"400", "-32700 08P01"}, "a batch": {"400", "-32600 08P01"},
		"no version": {"400", "-32600 08P01"}, "begin": {"200", "answered"}, "list before initialized": {"400", "-32600 08P01"}, "initialized": {"202", ""},
		"unknown method": {"200", "-32601 08P01"}, "no parameters": {"400", "-32602 08P01"}, "begin again": {
			"400", "-32600 08P01"}, "cancels nothing": {"202", ""}, "list": {"200", "answered"},
	} {
		if got := report.Raw["http"][description]; got != strings.TrimSpace(want[0]+" "+want[1]) {
			t.Errorf("over http %s: %s, want %v", description, got, want)
		}
		switch description { // the bridge has begun a new session, which is not initialized yet
		case "begin again":
			want[1] = "answered"
		case "list":
			want[1] = "-32600 08P01"
		}
		if got := report.Raw["stdio"][description]; got != want[1] {
			t.Errorf("over stdio %s: %s, want %v", description, got, want)
		}
	}
}

// clientReport is what the client has reported about one transport.
type clientReport struct {
	Tools     []string
	Found     int
	Same      bool // the result's text and its structured content are equal
	Refused   string
	Unknown   string
	Strict    string
	WrongKey  string
	Cancelled string // result after canceled calls
	Side      string // result in a second session
	Outlives  string // result in the second session after the first has ended
}

// nodeModules installs the client once per machine in a cache folder, and returns the folder.
func nodeModules(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT TESTED with an independent client: %s is not installed", program)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("NOT TESTED with an independent client: %v", err)
	}
	dir := filepath.Join(cache, "pgconsent-test", "mcp-"+nodeVersion)
	if _, err := os.Stat(filepath.Join(dir, "installed")); err == nil {
		return dir
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	c := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts",
		"--silent", nodeClient+"@"+nodeVersion)
	if out, err := c.CombinedOutput(); err != nil {
		var exitErr *exec.ExitError
		if errors.As(err, &exitErr) || ctx.Err() != nil {
			t.Skipf("NOT TESTED with an independent client: npm cannot install %s: %v\n%s", nodeClient, err, out)
		}
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "installed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
