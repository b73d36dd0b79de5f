package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/demos"
)

// A shell with curl and psql runs the sessions of docs/reference/http.md, docs/reference/mcp.md and
// docs/reference/air.md. They use the world that the pages name, and print what the pages show; "…" there matches any
// text. seeds/001:350-354, over HTTP, SQL and MCP.
func TestSessionsOfThePages(t *testing.T) {
	for _, program := range []string{"bash", "curl", "jq", "psql"} {
		if _, err := exec.LookPath(program); err != nil {
			if program == "psql" || os.Getenv("REQUIRE_TOOLS") != "" { // make setup installs the other programs
				t.Fatalf("there is no %s, which the sessions of the pages need", program)
			}
			t.Skipf("SKIPPED: no %[1]s, so that nobody has played the sessions of the pages: apt-get install %[1]s", program)
		}
	}
	r := demos.StartDemo(t, "../../examples/air")
	dir := t.TempDir()
	access, err := json.Marshal(r.Access)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "air.json"), access, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	section := func(page, heading string) string {
		text, err := os.ReadFile("../../docs/reference/" + page)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, ok := strings.Cut(string(text), "\n## "+heading+"\n")
		if !ok {
			t.Fatalf("docs/reference/%s has no section %q", page, heading)
		}
		rest, _, _ = strings.Cut(rest, "\n## ")
		return rest
	}
	block := func(text, kind string) string {
		_, rest, ok := strings.Cut(text, "```"+kind+"\n")
		if !ok {
			t.Fatalf("no block of %s in %s", kind, text)
		}
		rest, _, _ = strings.Cut(rest, "\n```")
		return rest
	}
	preparation := ""
	for line := range strings.Lines(block(section("air.md", "A session"), "sh")) {
		if !strings.HasPrefix(line, "pgconsent demo ") {
			preparation += line
		}
	}
	for _, page := range []struct{ name, heading string }{{"http.md", "A session"}, {"mcp.md", "A whole session"}, {"air.md", "A session"}} {
		script := preparation + "\n"
		var commands, wantOutputs []string
		for _, line := range strings.Split(block(section(page.name, page.heading), "console"), "\n") {
			lastIndex := len(commands) - 1
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				commands, wantOutputs = append(commands, command), append(wantOutputs, "")
			} else if lastIndex >= 0 && (strings.HasSuffix(commands[lastIndex], "\\") || strings.Count(commands[lastIndex], "'")%2 == 1) {
				commands[lastIndex] += "\n" + line
			} else if lastIndex >= 0 {
				wantOutputs[lastIndex] += line + "\n"
			}
		}
		for i, command := range commands {
			script += fmt.Sprintf("%s\nprintf '\\n@@%d@@\\n'\n", command, i+1)
		}
		if len(commands) < 5 {
			t.Fatalf("docs/reference/%s: %d commands", page.name, len(commands))
		}
		c := exec.CommandContext(t.Context(), "bash", "-c", "exec 2>&1\n"+script)
		c.Dir = dir
		output, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("docs/reference/%s: %v\n%s", page.name, err, output)
		}
		rest := string(output)
		for i, command := range commands {
			got, after, ok := strings.Cut(rest, fmt.Sprintf("\n@@%d@@\n", i+1))
			if !ok {
				t.Fatalf("docs/reference/%s: %s: %s", page.name, command, rest)
			}
			rest = after
			pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.Trim(wantOutputs[i], "\n")), "…", ".*?")
			if !regexp.MustCompile(`(?s)^` + pattern + `$`).MatchString(strings.Trim(got, "\n")) {
				t.Errorf("docs/reference/%s: $ %s\nprints %s\nand the page says %s", page.name, command, got, wantOutputs[i])
			}
		}
	}
}
