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

// dir returns the folder of the configuration.
func (i *installation) dir() string { return filepath.Dir(i.config) }

// installWithAudit does what installDatabase does, with an audit in strict mode.
func installWithAudit(t *testing.T) *installation {
	t.Helper()
	i := installDatabase(t)
	text, err := os.ReadFile(i.config)
	if err != nil {
		t.Fatal(err)
	}
	auditedConfig := strings.Replace(string(text), `audit: { mode: "off" }`, "audit: { mode: strict, file: audit/ }", 1)
	if auditedConfig == string(text) {
		t.Fatal("the configuration has another audit")
	}
	if err := os.WriteFile(i.config, []byte(auditedConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

// installAudit does what installWithAudit does, with the records in the database.
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

// jsonLines decodes the JSON lines that a command printed.
func jsonLines(t *testing.T, text string) []map[string]any {
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

// The audit commands work on the records that a running serve has written.
func TestAuditCommands(t *testing.T) {
	tier.All(t)
	i := installWithAudit(t)
	p, address := i.startServe(t)
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
	// The values of a column begin below its heading, in every line.
	if printedLines := strings.Split(strings.TrimSpace(out), "\n"); len(printedLines) > 1 {
		verdictColumn := strings.Index(printedLines[0], "VERDICT")
		for _, line := range printedLines[1:] {
			if verdict := strings.Index(line, "allow"); verdict >= 0 && verdict != verdictColumn || strings.HasSuffix(line, " ") {
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
		for _, m := range jsonLines(t, out) {
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

	// With --follow, records that are written later are printed.
	follower := launch(t, nil, "audit", "tail", "-c", i.config, "--follow", "-n", "0", "--json")
	line := make(chan string, 1)
	go func() { text, _ := follower.out.ReadString('\n'); line <- text }()
	// The command does not say when it begins to follow, and records from before are not printed.
	for start, isFollowing := time.Now(), false; !isFollowing; {
		queryInt(t, agent, "SELECT count(*) FROM memories")
		select {
		case text := <-line:
			if m := jsonLines(t, text); m[0]["kind"] != "decision" || m[0]["verdict"] != "allow" {
				t.Errorf("follow: %s", text)
			}
			isFollowing = true
		case <-time.After(500 * time.Millisecond):
			if time.Since(start) > tier.Patience {
				t.Fatal("follow prints nothing")
			}
		}
	}
	follower.signal(t, syscall.SIGTERM)
	go func() { _, _ = follower.out.WriteTo(&bytes.Buffer{}) }()
	follower.awaitEnd(t)

	// The log is verified while serve runs, and after it has ended.
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

	// An export continues after the last exported record.
	state := filepath.Join(t.TempDir(), "shipped")
	firstExport, stderr, code := call(t, "", "audit", "export", "-c", i.config, "--resume", state)
	logText, err := os.ReadFile(filepath.Join(records, "audit-000001.jsonl"))
	if code != exitOK || err != nil || firstExport != string(logText) {
		t.Errorf("export: %d %s, %d bytes of %d", code, stderr, len(firstExport), len(logText))
	}
	if secondExport, _, code := call(t, "", "audit", "export", "-c", i.config, "--resume", state); code != exitOK || secondExport != "" {
		t.Errorf("export again: %d, %d bytes", code, len(secondExport))
	}
	if remainingExport, _, code := call(t, "", "audit", "export", "-c", i.config, "--after",
		strconv.FormatUint(report.Audit.Last-2, 10)); code != exitOK || strings.Count(remainingExport, "\n") != 2 {
		t.Errorf("export --after: %d, %q", code, remainingExport)
	}
	events, stderr, code := call(t, "", "audit", "export", "-c", i.config, "--format", "ocsf")
	if code != exitOK {
		t.Fatal(stderr)
	}
	deniedEvents := 0
	for n, e := range jsonLines(t, events) {
		for _, requiredMember := range []string{"activity_id", "category_uid", "class_uid", "metadata", "severity_id",
			"time", "type_uid", "actor", "src_endpoint", "database"} {
			if e[requiredMember] == nil {
				t.Errorf("event %d has no %s: %v", n, requiredMember, e)
			}
		}
		if e["type_uid"].(float64) != 600500+e["activity_id"].(float64) {
			t.Errorf("event %d: type %v of activity %v", n, e["type_uid"], e["activity_id"])
		}
		metadata := e["metadata"].(map[string]any)
		if metadata["event_code"] == "decision" {
			if e["src_endpoint"].(map[string]any)["ip"] != "127.0.0.1" || e["query_info"] != nil ||
				e["unmapped"].(map[string]any)["fingerprint"] == nil && e["status_code"] != "42501" {
				t.Errorf("decision %v", e)
			}
			if e["status_id"] == 2.0 {
				deniedEvents++
			}
		}
	}
	if deniedEvents != 1 {
		t.Errorf("%d decisions failed, want 1", deniedEvents)
	}

	// The newest records are cut off. Only the anchor shows that they are missing.
	verdictColumn := strings.LastIndex(strings.TrimSuffix(string(logText), "\n"), "\n")
	if err := os.WriteFile(filepath.Join(records, "audit-000001.jsonl"), logText[:verdictColumn+1], 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, code = call(t, "", "audit", "verify", "-c", i.config)
	if code != exitError || !strings.Contains(out, "BROKEN") || !strings.Contains(out, "cut off") {
		t.Errorf("verify of a log that was cut: %d %s", code, out)
	}
	keptHead := filepath.Join(t.TempDir(), "head")
	if err := os.WriteFile(keptHead, []byte(fmt.Sprintf("%d %s\n", report.Audit.Last, report.Audit.LastHash)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(i.dir(), "audit.anchor")); err != nil {
		t.Fatal(err)
	}
	if out, _, code = call(t, "", "audit", "verify", "-c", i.config); code != exitError || !strings.Contains(out, "NOT PROVED") {
		t.Errorf("verify without the anchor: %d %s", code, out)
	}
	if out, _, code = call(t, "", "audit", "verify", "-c", i.config, "--anchor", keptHead); code != exitError || !strings.Contains(out, "cut off") {
		t.Errorf("verify with a head kept elsewhere: %d %s", code, out)
	}

	// After a person is forgotten, the records are unchanged, and nobody can be found by them.
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

// user returns the value of the attribute user of the agent chat.
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
