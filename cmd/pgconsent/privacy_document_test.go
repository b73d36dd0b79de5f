package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The sessions of docs/privacy.md and docs/generalize.md, line by line, by the command line against a demo: what it prints is what
// stands there.
func TestPrivacyPageIsWhatHappens(t *testing.T) {
	demo := launch(t, nil, "demo", "--world", "kernle", "--json", "--dir", t.TempDir(), "--listen", freeAddress(t), "--http", freeAddress(t))
	access, _ := demo.ready(t)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	prompt := regexp.MustCompile(`(?m)^(\w+)\$ pgconsent (.*)\n`)
	made := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	for _, name := range []string{"privacy", "generalize"} {
		page, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		_, session, _ := strings.Cut(string(page), "```console\n")
		session, _, _ = strings.Cut(session, "```")
		lines := prompt.FindAllStringSubmatchIndex(session, -1)
		if len(lines) < 4 {
			t.Fatalf("%s: %d lines", name, len(lines))
		}
		for i, m := range lines {
			who, command, end := session[m[2]:m[3]], session[m[4]:m[5]], len(session)
			if i+1 < len(lines) {
				end = lines[i+1][0]
			}
			t.Setenv("PGCONSENT_TOKEN", access.Tokens["agent:"+who])
			var args []string
			for j, part := range strings.Split(command, `"`) {
				if j%2 == 1 {
					args = append(args, part)
				} else {
					args = append(args, strings.Fields(part)...)
				}
			}
			var out strings.Builder
			run(append(args, "--url", access.HTTP), streams{strings.NewReader(""), &out, &out})
			if got, want := made.ReplaceAllString(out.String(), "…"), session[m[1]:end]; got != want {
				t.Errorf("%s: %s$ pgconsent %s\n%s\nwant\n%s", name, who, command, got, want)
			}
		}
	}
}

// Several ids may stand after a flag of ids, and what is no id is the next argument.
func TestFlagsOfIDsSpread(t *testing.T) {
	for given, want := range map[string]string{
		"privacy add x --access a:1 b:2 * --reason r": "privacy add x --access a:1 --access b:2 --access * --reason r",
		"context enter ctx:x --participants a:1 b:2":  "context enter ctx:x --participants a:1 --participants b:2",
		"privacy add --subject dog:bella text":        "privacy add --subject dog:bella text",
		"privacy grant --to a:1 episode:1":            "privacy grant --to a:1 episode:1",
		"privacy add --access a:1 -- b:2":             "privacy add --access a:1 -- b:2",
		"generalize --access-grants a:1 * --check":    "generalize --access-grants a:1 --access-grants * --check",
		"consent grant --subject a:1 b:2":             "consent grant --subject a:1 b:2",
	} {
		if got := strings.Join(spread(strings.Fields(given)), " "); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
