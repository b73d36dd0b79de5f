package mcp_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/face/mcp"
)

// docs/reference/mcp.md says what is answered: each message of it is sent, as the agent mcp of the world arcive.
func documented(t *testing.T, f *face) {
	text, err := os.ReadFile("../../../docs/reference/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	token := f.token(t, "agent:mcp")
	session := begin(t, f.url, token)
	pairs := regexp.MustCompile(`(?m)^-> (.*)\n<- (.*)$`).FindAllStringSubmatch(string(text), -1)
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
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-page +server): %s\n%s", p[1], diff, r.body)
		}
	}
}

// Every tool of ours is on the page.
func TestToolsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "| `") {
			cell, _, _ := strings.Cut(line[2:], " |")
			for _, name := range strings.Split(cell, ", ") {
				there = append(there, strings.Trim(name, "`"))
			}
		}
	}
	for _, name := range mcp.OwnNames() {
		if !slices.Contains(there, name) {
			t.Errorf("docs/reference/mcp.md has no line for %s", name)
		}
	}
	for _, name := range there {
		if !slices.Contains(mcp.OwnNames(), name) {
			t.Errorf("docs/reference/mcp.md has %s, which is no tool", name)
		}
	}
}
