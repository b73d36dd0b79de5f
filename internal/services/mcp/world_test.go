package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pgconsent/pgconsent/internal/dev/demo"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/serve"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/test/demos"
	"github.com/pgconsent/pgconsent/test/tier"
)

// servedWorld is a world that is served with a tokens file.
type servedWorld struct {
	demo   *demo.RunningDemo
	config *config.Config
	url    string // URL of the MCP server
	tokens string // path of the tokens file
}

// serveWorld starts a world, and serves it a second time with a tokens file.
func serveWorld(t testing.TB, name string) *servedWorld {
	t.Helper()
	f := &servedWorld{demo: demos.StartDemo(t, name), tokens: filepath.Join(t.TempDir(), "tokens.yaml")}
	cfg, err := config.Load(filepath.Join(f.demo.Dir, "pgconsent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.HTTP.Tokens, cfg.HTTP.Listen, cfg.Listen = f.tokens, "127.0.0.1:0", config.AddressList{"127.0.0.1:0"}
	cfg.Audit.File, cfg.Audit.Anchor, cfg.Audit.Key = filepath.Join(t.TempDir(), "audit"), filepath.Join(t.TempDir(),
		"audit.anchor"), filepath.Join(t.TempDir(), "audit.key")
	f.config = cfg
	s, err := serve.New(t.Context(), serve.Options{Config: cfg, DrainTime: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	isFinished := make(chan error, 1)
	go func() { isFinished <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-isFinished; err != nil {
			t.Error(err)
		}
	})
	f.url = "http://" + s.HTTPAddress().String() + "/mcp"
	deadline := time.Now().Add(tier.Patience)
	for s.Ready() != nil {
		if time.Now().After(deadline) {
			t.Fatal(s.Ready())
		}
		time.Sleep(20 * time.Millisecond)
	}
	return f
}

// token adds a token to the tokens file, for "subject:ID", "agent:NAME" or another role, and returns it.
func (f *servedWorld) token(t testing.TB, roleWithName string) string {
	t.Helper()
	role, name, _ := strings.Cut(roleWithName, ":")
	entry := identity.Token{Name: strings.ReplaceAll(roleWithName, "/", "_"), Role: identity.Role(role)}
	switch entry.Role {
	case identity.Subject:
		entry.Subject = name
	case identity.Agent:
		entry.Agent = name
	}
	token, sum, err := identity.NewToken()
	if err != nil {
		t.Fatal(err)
	}
	entry.SHA256 = sum
	if err := identity.AddToken(f.tokens, f.config, entry, true); err != nil {
		t.Fatal(err)
	}
	return token
}

// bearer is an [http.RoundTripper] that adds a bearer token to each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func (f *servedWorld) connect(t testing.TB, token string) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: f.url, HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// as connects with a new token for "subject:ID", "agent:NAME" or another role.
func (f *servedWorld) as(t testing.TB, roleWithName string) *sdk.ClientSession {
	t.Helper()
	return f.connect(t, f.token(t, roleWithName))
}

// toolAnswer is the result of a call of a tool.
type toolAnswer struct {
	hasFailed bool
	text      string
	member    map[string]any
}

func (a toolAnswer) fault() (code, message, hint string) {
	e, _ := a.member["error"].(map[string]any)
	code, _ = e["sqlstate"].(string)
	message, _ = e["message"].(string)
	hint, _ = e["hint"].(string)
	return code, message, hint
}

func ask(t testing.TB, s *sdk.ClientSession, tool string, arguments any) toolAnswer {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	out := toolAnswer{hasFailed: r.IsError}
	for _, c := range r.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			out.text += text.Text
		}
	}
	out.member, _ = r.StructuredContent.(map[string]any)
	if out.member == nil {
		t.Errorf("%s: no structured content beside %q", tool, out.text)
	}
	if !out.hasFailed {
		var textAsJSON map[string]any
		if err := json.Unmarshal([]byte(out.text), &textAsJSON); err != nil {
			t.Errorf("%s: the text is not the structured content: %v", tool, err)
		}
	}
	return out
}

type args = map[string]any

func toolNames(t testing.TB, s *sdk.ClientSession) []string {
	t.Helper()
	toolList, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, tool := range toolList.Tools {
		out = append(out, tool.Name)
	}
	return out
}
