package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/record/audit"
)

// Completion offers the words that may come next.
func TestCompletion(t *testing.T) {
	for words, want := range map[string]string{
		"":                          "demo init serve migrate doctor",
		"aud":                       "audit",
		"audit ":                    "tail verify export forget",
		"audit t":                   "tail",
		"help audit t":              "tail",
		"-c x.yaml audit t":         "tail",
		"audit tail --foll":         "--follow",
		"audit tail --log-":         "--log-format --log-level",
		"audit tail --log-format t": "text",
		"--log-format=j":            "--log-format=json",
		"--log-format = j":          "json",
		"--log-format =":            "auto text json",
		"--config ":                 "",
		"completion ":               "bash zsh fish",
		"completion bash ":          "",
		"policy test -- --wat":      "",
		"__comp":                    "",
	} {
		out, stderr, code := call(t, "", append([]string{completeWord}, strings.Split(words, " ")...)...)
		var got []string
		for line := range strings.Lines(out) {
			word, _, _ := strings.Cut(line, "\t")
			got = append(got, word)
		}
		if code != exitOK || stderr != "" || !strings.HasPrefix(strings.Join(got, " "), want) || want == "" && out != "" {
			t.Errorf("%q: %d %q %s", words, code, got, stderr)
		}
	}
}

// The completion scripts work in those shells that are installed.
func TestCompletionScripts(t *testing.T) {
	dir := t.TempDir()
	programPath, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(programPath, filepath.Join(dir, "pgconsent")); err != nil {
		t.Fatal(err)
	}
	for shell, c := range map[string]struct {
		args []string
		want string
	}{
		"bash": {[]string{"--norc", "-c", `. "$0"; COMP_WORDS=(pgconsent audit ve); COMP_CWORD=2; _pgconsent; echo "${COMPREPLY[@]}"
			COMP_WORDS=(pgconsent ""); COMP_CWORD=1; _pgconsent; echo "${COMPREPLY[0]}"`}, "verify\ndemo\n"},
		"zsh": {[]string{"-f", "-c", `compdef() { :; }; _describe() { print -l $candidates; }; . "$0"
			words=(pgconsent audit ve); CURRENT=3; _pgconsent`},
			"verify:Verify the records of agents' statements and of consents: whether any is missing or was changed.\n"},
		"fish": {[]string{"-N", "-c", `source $argv[1]; complete -C "pgconsent audit ve" | string split -f1 \t
			complete -C "pgconsent completion " | string split -f1 \t; true`}, "verify\nbash\nfish\nzsh\n"},
	} {
		t.Run(shell, func(t *testing.T) {
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("NOT TESTED: the completion of %s, which is not installed", shell)
			}
			script, stderr, code := call(t, "", "completion", shell)
			if code != exitOK || script == "" {
				t.Fatalf("%d %s", code, stderr)
			}
			cmd := exec.CommandContext(t.Context(), program, append(c.args, writeTestFile(t, "script", script, 0o600))...)
			cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "PGCONSENT_TEST_MAIN=1",
				"HOME="+dir)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != c.want {
				t.Errorf("%v: %q", err, out)
			}
		})
	}
}

// The manual page has every command, and no text in it is read as a formatter request.
func TestManPage(t *testing.T) {
	page, stderr, code := call(t, "", "man")
	if code != exitOK {
		t.Fatalf("%d %s", code, stderr)
	}
	for _, want := range []string{".TH PGCONSENT 1 ", ".SS pgconsent audit tail\n", `.B \-f, \-\-follow`, ".SH EXIT STATUS"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for line := range strings.Lines(page) {
		roffMacro, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case !strings.HasPrefix(line, ".") && !strings.HasPrefix(line, "'"):
		case strings.Contains(".TH .SH .SS .PP .TP .B .I .nf .fi", roffMacro):
		default:
			t.Errorf("a request that is none: %s", line)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("NOT TESTED: how groff reads the page, since it is not installed")
	}
	cmd := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-ww", "-P-c")
	cmd.Stdin = strings.NewReader(page)
	var out, warnings bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &warnings
	if err := cmd.Run(); err != nil || warnings.Len() > 0 || !bytes.Contains(out.Bytes(), []byte("pgconsent audit tail --follow")) {
		t.Errorf("%v %s\n%.2000s", err, warnings.String(), out.String())
	}
}

// help CMD prints what CMD --help prints.
func TestHelpOfCommand(t *testing.T) {
	for _, words := range []string{"", "audit", "audit tail", "agent add"} {
		want, _, _ := call(t, "", append(strings.Fields(words), "--help")...)
		got, stderr, code := call(t, "", append([]string{"help"}, strings.Fields(words)...)...)
		if code != exitOK || got != want || got == "" || stderr != "" {
			t.Errorf("help %s: %d %s%s", words, code, got, stderr)
		}
	}
	if _, stderr, code := call(t, "", "help", "frobnicate"); code != exitUsage || !strings.Contains(stderr, "unexpected argument frobnicate") {
		t.Errorf("%d %s", code, stderr)
	}
}

// Lines that --follow prints later are aligned with the headings.
func TestTailStaysAligned(t *testing.T) {
	var out bytes.Buffer
	p := &tailPrinter{out: &out, pendingDecisions: map[uint64]auditRecord{}}
	p.addHeader()
	for _, agent := range []string{"a long name é", "b"} {
		e := auditRecord{Kind: audit.KindDecision}
		e.Agent, e.Tag, e.Verdict, e.SQLState = agent, "SELECT", "deny", "42501"
		p.addRecord(e)
		if err := p.flush(); err != nil {
			t.Fatal(err)
		}
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	columnOf := func(row, word string) int {
		textBefore, _, _ := strings.Cut(row, word)
		return utf8.RuneCountInString(textBefore)
	}
	for _, row := range rows[1:] {
		if columnOf(row, "deny") != columnOf(rows[0], "VERDICT") || columnOf(row, "42501") != columnOf(rows[0], "NOTE") {
			t.Errorf("not under its heading:\n%s", out.String())
		}
	}
	if len(rows) != 3 {
		t.Errorf("%q", rows)
	}
}
