package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/tier"
)

// dir is where the configuration is.
func (i *installation) dir() string { return filepath.Dir(i.config) }

// installWithAudit is install with an audit in strict mode.
func installWithAudit(t *testing.T) *installation {
	t.Helper()
	i := install(t)
	text, err := os.ReadFile(i.config)
	if err != nil {
		t.Fatal(err)
	}
	with := strings.Replace(string(text), `audit: { mode: "off" }`, "audit: { mode: strict, file: audit/ }", 1)
	if with == string(text) {
		t.Fatal("the configuration has another audit")
	}
	if err := os.WriteFile(i.config, []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

// installAudit is recording, with the records in the database.
func installAudit(t *testing.T) *installation {
	t.Helper()
	i := installWithAudit(t)
	text, err := os.ReadFile(i.config)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("file: audit/ }"), []byte("sink: database, chain: here }"), 1)
	if err := os.WriteFile(i.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

// lines are what a command printed, as JSON.
func lines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		var m map[string]any
		if err := json.Unmarshal(s.Bytes(), &m); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		out = append(out, m)
	}
	return out
}

// The commands over what a server has recorded.
func TestAuditCommands(t *testing.T) {
	tier.All(t)
	i := installWithAudit(t)
	p, address := i.serving(t)
	agent := connect(t, i.dsn("chat", address))
	for range 3 {
		queryInt(t, agent, "SELECT count(*) FROM memories")
	}
	if err := agent.QueryRow(t.Context(), "SELECT count(*) FROM attic").Scan(new(int)); sqlState(err) != "42501" {
		t.Fatal(err)
	}
	records := filepath.Join(i.dir(), "audit")

	out, stderr, code := call(t, "", "audit", "tail", "-c", i.config)
	if code != exitOK || strings.Count(out, "public.memories") != 3 || strings.Count(out, "42501 relation") != 1 ||
		!strings.Contains(out, "session open") {
		t.Errorf("tail: %d\n%s%s", code, out, stderr)
	}
	// A column is where its heading is, in every line.
	if all := strings.Split(strings.TrimSpace(out), "\n"); len(all) > 1 {
		index := strings.Index(all[0], "VERDICT")
		for _, line := range all[1:] {
			if verdict := strings.Index(line, "allow"); verdict >= 0 && verdict != index || strings.HasSuffix(line, " ") {
				t.Errorf("not in its column:\n%s", out)
			}
		}
	}
	user := i.user(t)
	if strings.Contains(out, user) {
		t.Errorf("tail names the person:\n%s", out)
	}
	for args, want := range map[string]int{
		"--table memories": 3, "--table public.memories": 3, "--verdict deny": 1, "--agent chat --verdict allow": 3,
		"--agent nobody": 0, "--since 1h --verdict allow": 3,
		"--since 2000-01-01 --verdict allow": 3, "-n 1 --verdict allow": 1, "--subject " + user + " --verdict allow": 3,
	} {
		out, stderr, code := call(t, "", append([]string{"audit", "tail", "--json", "-c", i.config}, strings.Fields(args)...)...)
		decisions := 0
		for _, m := range lines(t, out) {
			if m["kind"] == "decision" {
				decisions++
			}
		}
		if code != exitOK || decisions != want {
			t.Errorf("tail %s: %d, %d decisions, want %d\n%s%s", args, code, decisions, want, out, stderr)
		}
	}
	for args, want := range map[string]string{
		"--since tomorrow": "is not a time", "--verdict maybe": "--verdict must be one of", "--lines=-1": "cannot be below 0",
	} {
		if _, stderr, code := call(t, "", append([]string{"audit", "tail", "-c", i.config},
			strings.Fields(args)...)...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("tail %s: %d %s", args, code, stderr)
		}
	}
	if _, stderr, code := call(t, "", "audit", "tail", "-c", i.config, "--subject", "whoever"); code != exitError ||
		!strings.Contains(stderr, "knows no such person") {
		t.Errorf("tail of an unknown person: %d %s", code, stderr)
	}

	// Following: what is recorded later is printed.
	follow := launch(t, nil, "audit", "tail", "-c", i.config, "--follow", "-n", "0", "--json")
	line := make(chan string, 1)
	go func() { text, _ := follow.out.ReadString('\n'); line <- text }()
	// It says nowhere that it follows: what is recorded before it does is not printed.
	for start, followed := time.Now(), false; !followed; {
		queryInt(t, agent, "SELECT count(*) FROM memories")
		select {
		case text := <-line:
			if m := lines(t, text); m[0]["kind"] != "decision" || m[0]["verdict"] != "allow" {
				t.Errorf("follow: %s", text)
			}
			followed = true
		case <-time.After(500 * time.Millisecond):
			if time.Since(start) > tier.Patience {
				t.Fatal("follow prints nothing")
			}
		}
	}
	follow.signal(t, syscall.SIGTERM)
	go func() { _, _ = follow.out.WriteTo(&bytes.Buffer{}) }()
	follow.awaitEnd(t)

	// Verified beside the server, and once it has ended.
	for round := range 2 {
		out, stderr, code := call(t, "", "audit", "verify", "-c", i.config)
		if code != exitOK || !strings.Contains(out, "records hold") {
			t.Fatalf("verify: %d %s%s", code, out, stderr)
		}
		if round == 0 {
			agent.Close(t.Context())
			p.signal(t, syscall.SIGTERM)
			p.awaitEnd(t)
		}
	}
	out, _, _ = call(t, "", "audit", "verify", "-c", i.config, "--json")
	var report struct {
		Sound bool
		Audit struct {
			Last     uint64
			LastHash string `json:"last_hash"`
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || !report.Sound || report.Audit.Last < 10 {
		t.Fatalf("verify --json: %s (%v)", out, err)
	}

	// Export goes on where it was.
	state := filepath.Join(t.TempDir(), "shipped")
	first, stderr, code := call(t, "", "audit", "export", "-c", i.config, "--resume", state)
	whole, err := os.ReadFile(filepath.Join(records, "audit-000001.jsonl"))
	if code != exitOK || err != nil || first != string(whole) {
		t.Errorf("export: %d %s, %d bytes of %d", code, stderr, len(first), len(whole))
	}
	if again, _, code := call(t, "", "audit", "export", "-c", i.config, "--resume", state); code != exitOK || again != "" {
		t.Errorf("export again: %d, %d bytes", code, len(again))
	}
	if rest, _, code := call(t, "", "audit", "export", "-c", i.config, "--after",
		strconv.FormatUint(report.Audit.Last-2, 10)); code != exitOK || strings.Count(rest, "\n") != 2 {
		t.Errorf("export --after: %d, %q", code, rest)
	}
	events, stderr, code := call(t, "", "audit", "export", "-c", i.config, "--format", "ocsf")
	if code != exitOK {
		t.Fatal(stderr)
	}
	denied := 0
	for n, e := range lines(t, events) {
		for _, required := range []string{"activity_id", "category_uid", "class_uid", "metadata", "severity_id",
			"time", "type_uid", "actor", "src_endpoint", "database"} {
			if e[required] == nil {
				t.Errorf("event %d has no %s: %v", n, required, e)
			}
		}
		if e["type_uid"].(float64) != 600500+e["activity_id"].(float64) {
			t.Errorf("event %d: type %v of activity %v", n, e["type_uid"], e["activity_id"])
		}
		meta := e["metadata"].(map[string]any)
		if meta["event_code"] == "decision" {
			if e["src_endpoint"].(map[string]any)["ip"] != "127.0.0.1" || e["query_info"] != nil ||
				e["unmapped"].(map[string]any)["fingerprint"] == nil && e["status_code"] != "42501" {
				t.Errorf("decision %v", e)
			}
			if e["status_id"] == 2.0 {
				denied++
			}
		}
	}
	if denied != 1 {
		t.Errorf("%d decisions failed, want 1", denied)
	}

	// Somebody cuts the newest records off, and everybody's eyes but the anchor's are satisfied.
	index := strings.LastIndex(strings.TrimSuffix(string(whole), "\n"), "\n")
	if err := os.WriteFile(filepath.Join(records, "audit-000001.jsonl"), whole[:index+1], 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, code = call(t, "", "audit", "verify", "-c", i.config)
	if code != exitError || !strings.Contains(out, "BROKEN") || !strings.Contains(out, "cut off") {
		t.Errorf("verify of a log that was cut: %d %s", code, out)
	}
	kept := filepath.Join(t.TempDir(), "head")
	if err := os.WriteFile(kept, []byte(fmt.Sprintf("%d %s\n", report.Audit.Last, report.Audit.LastHash)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(i.dir(), "audit.anchor")); err != nil {
		t.Fatal(err)
	}
	if out, _, code = call(t, "", "audit", "verify", "-c", i.config); code != exitError || !strings.Contains(out, "NOT PROVED") {
		t.Errorf("verify without the anchor: %d %s", code, out)
	}
	if out, _, code = call(t, "", "audit", "verify", "-c", i.config, "--anchor", kept); code != exitError || !strings.Contains(out, "cut off") {
		t.Errorf("verify with a head kept elsewhere: %d %s", code, out)
	}

	// Forgotten: the records are what they were, and nobody is found by them.
	if out, stderr, code := call(t, "", "audit", "forget", "-c", i.config, "--subject", user); code != exitOK {
		t.Errorf("forget: %d %s%s", code, out, stderr)
	}
	if _, stderr, code := call(t, "", "audit", "tail", "-c", i.config, "--subject", user); code != exitError || !strings.Contains(stderr, "forgotten") {
		t.Errorf("tail of who was forgotten: %d %s", code, stderr)
	}
	if _, _, code := call(t, "", "audit", "forget", "-c", i.config, "--subject", user); code != exitError {
		t.Errorf("forget twice: %d", code)
	}
	for _, name := range []string{"audit/audit-000001.jsonl", "audit.key"} {
		b, err := os.ReadFile(filepath.Join(i.dir(), name))
		if err != nil || bytes.Contains(b, []byte(user)) {
			t.Errorf("%s names the person (%v)", name, err)
		}
	}
}

// user is the person of the agent chat.
func (i *installation) user(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(i.config)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "user: ")
	if !ok {
		t.Fatal("the configuration names no user")
	}
	return strings.Trim(strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(" ,}\n", r) })[0], `"'`)
}
