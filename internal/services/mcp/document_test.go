package mcp_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/services/mcp"
)

// checkDocument sends each message in docs/reference/mcp.md as the agent mcp of the world arcive, and compares the
// answer with the page.
func checkDocument(t *testing.T, f *servedWorld) {
	text, err := os.ReadFile("../../../docs/reference/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	token := f.token(t, "agent:mcp")
	session := begin(t, f.url, token)
	pairs := regexp.MustCompile("(?s)\n-> ([^`]*?)\n<- (.*?)\n```\n").FindAllStringSubmatch(string(text), -1)
	if len(pairs) < 3 {
		t.Fatalf("%d messages", len(pairs))
	}
	for _, p := range pairs {
		var want, got any
		if err := json.Unmarshal([]byte(p[2]), &want); err != nil {
			t.Fatalf("%v in %s", err, p[2])
		}
		r := send(t, "POST", f.url, token, session, p[1])
		if err := json.Unmarshal([]byte(r.body), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, shortened(want, got)); diff != "" {
			t.Errorf("%s (-page +server): %s\n%s", p[1], diff, r.body)
		}
	}
}

// shortened returns got with those texts shortened in which the page has "…".
func shortened(want, got any) any {
	switch want := want.(type) {
	case string:
		if s, ok := got.(string); ok && strings.Contains(want, "…") {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
			if regexp.MustCompile("(?s)^" + pattern + "$").MatchString(s) {
				return want
			}
		}
	case map[string]any:
		if m, ok := got.(map[string]any); ok {
			out := map[string]any{}
			for k, v := range m {
				out[k] = shortened(want[k], v)
			}
			return out
		}
	case []any:
		if l, ok := got.([]any); ok && len(l) == len(want) {
			out := make([]any, len(l))
			for i := range l {
				out[i] = shortened(want[i], l[i])
			}
			return out
		}
	}
	return got
}

// docs/reference/mcp.md lists every built-in tool.
func TestToolsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	var exists []string
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "| `") {
			cell, _, _ := strings.Cut(line[2:], " |")
			for _, name := range strings.Split(cell, ", ") {
				exists = append(exists, strings.Trim(name, "`"))
			}
		}
	}
	for _, name := range mcp.ReservedNames() {
		if !slices.Contains(exists, name) {
			t.Errorf("docs/reference/mcp.md has no line for %s", name)
		}
	}
	for _, name := range exists {
		if !slices.Contains(mcp.ReservedNames(), name) {
			t.Errorf("docs/reference/mcp.md has %s, which is no tool", name)
		}
	}
}
