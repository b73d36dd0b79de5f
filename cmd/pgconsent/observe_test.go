package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/tool/observe"
	"github.com/pgconsent/pgconsent/test/tier"
)

// observedWorld makes a folder with a configuration of the world beheard, whose migrated policy only observes.
func observedWorld(t *testing.T) (config, logs string) {
	t.Helper()
	w, err := world.Open("beheard")
	if err != nil {
		t.Fatal(err)
	}
	text, err := w.File("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.Database(t)
	if err := w.Load(t.Context(), db.Connect(t, "postgres"), nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config, logs = filepath.Join(dir, "pgconsent.yaml"), filepath.Join(dir, "audit")
	for name, text := range map[string]string{
		"policy.yaml": strings.Replace(string(text), "version: 1", "version: 1\nmode: observe", 1),
		"pgconsent.yaml": fmt.Sprintf(`version: 1
upstream: { host: %s, port: %d }
databases: { app: { name: %s, policy: policy.yaml, owners: [postgres] } }
agents:
  ana: { database: app, attributes: { user: user-ana, role: agent } }
audit: { mode: buffered, file: %s }
`, pgtest.SocketDir(), pgtest.Port(), db.Name, logs),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, stderr, code := call(t, "", "migrate", "-c", config); code != exitOK {
		t.Fatal(stderr)
	}
	t.Cleanup(func() {
		if _, stderr, code := call(t, "", "migrate", "--down", "-c", config); code != exitOK {
			t.Error(stderr)
		}
	})
	if _, err := db.Connect(t, "postgres").Exec(t.Context(), `UPDATE "Session" SET stage = 2 WHERE id = 'ses-1-4'`); err != nil {
		t.Fatal(err)
	}
	return config, logs
}

func TestObserveReplay(t *testing.T) {
	tier.All(t)
	config, _ := observedWorld(t)
	const log = "2026-11-22 00:00:00 UTC LOG:  statement: SELECT content FROM \"UserEvent\" WHERE id = 'a literal'\n" +
		"2026-11-22 00:00:00 UTC LOG:  statement: SELECT map FROM \"AISynthesis\"\n" +
		"2026-11-22 00:00:00 UTC LOG:  statement: SELECT * FROM \"Turn\"\n"
	replay := func(want int, args ...string) observe.LogReplay {
		t.Helper()
		out, stderr, code := call(t, log, append([]string{"observe", "replay", "-c", config, "--json", "-"}, args...)...)
		if code != want || strings.Contains(out+stderr, "a literal") {
			t.Fatalf("%v: exit %d\n%s%s", args, code, out, stderr)
		}
		var r observe.LogReplay
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := replay(exitError); r.Contracts || r.Allowed != 2 || r.Refused != 1 {
		t.Errorf("nobody's: %+v", r)
	}
	out, stderr, code := call(t, log, "observe", "replay", "-c", config, "-")
	if code != exitError || !strings.Contains(out, "Contracts were not asked") {
		t.Errorf("%s%s", out, stderr)
	}
	if r := replay(exitError, "--as", "ana"); !r.Contracts || r.Allowed != 0 ||
		!strings.Contains(r.Shapes[0].Message+r.Shapes[1].Message+r.Shapes[2].Message, "the session has no") {
		t.Errorf("in no session: %+v", r)
	}
	r := replay(exitError, "--as", "ana", "--set", "app.current_session_id=ses-1-4")
	if r.Allowed != 1 || r.Refused != 2 {
		t.Errorf("in stage 2: %+v", r)
	}
	for _, j := range r.Shapes {
		if j.Allowed != (len(j.Tables) == 1 && j.Tables[0] == "public.UserEvent") ||
			j.Reason == "contract" && !strings.HasPrefix(j.Message, "contract role, role agent: synthesis is not allowed") {
			t.Errorf("%+v", j)
		}
	}
	if r := replay(exitError, "--as", "ana", "--set", "app.current_session_id=ses-1-4", "--set", "stage=4"); r.Allowed != 0 {
		t.Errorf("in stage 4: %+v", r)
	}
	for _, args := range [][]string{{"--set", "stage=1"}, {"--as", "nobody"}, {"--as", "ana", "--database", "other"},
		{"--as", "ana", "--set", "stage"}} {
		if _, stderr, code := call(t, log, append([]string{"observe", "replay", "-c", config, "-"}, args...)...); code == exitOK || stderr == "" {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
	if out, stderr, code := call(t, "2026-11-22 00:00:00 UTC LOG:  statement: SELECT count(*) FROM \"Session\"\n",
		"observe", "replay", "-c", config, "-"); code != exitOK {
		t.Errorf("nothing is refused: exit %d\n%s%s", code, out, stderr)
	}
}

func TestObserveReport(t *testing.T) {
	tier.All(t)
	config, logs := observedWorld(t)
	if out, stderr, code := call(t, "", "observe", "report", "-c", config); code == exitOK && !strings.Contains(out, "Nothing was observed") {
		t.Errorf("before there is anything: %s%s", out, stderr)
	}
	log, err := audit.Open(audit.Config{Mode: audit.ModeBuffered, Dir: logs})
	if err != nil {
		t.Fatal(err)
	}
	record := func(fingerprint, table string, o audit.Observation) {
		o.Session, o.Agent, o.Database, o.Fingerprint, o.Tag, o.Tables = "s", "ana", "app", fingerprint, "SELECT", []string{table}
		if o.Compared != nil {
			o.Session = ""
		}
		log.Observation(o)
	}
	record("aaa", "public.Need", audit.Observation{Rows: 3, SkipReason: audit.ComparedSeparately})
	record("aaa", "public.Need", audit.Observation{Compared: &audit.Comparison{Rows: 3, VisibleRows: 3}})
	record("aaa", "public.Need", audit.Observation{Rows: 3, SkipReason: "not in the sample"})
	closeLog := func() {
		ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
		defer cancel()
		if err := log.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	closeLog()
	out, stderr, code := call(t, "", "observe", "report", "-c", config)
	if code != exitOK || !strings.Contains(out, "changes nothing that was seen") ||
		!strings.Contains(out, "1 not compared: not in the sample") || strings.Contains(out, audit.ComparedSeparately) {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	if log, err = audit.Open(audit.Config{Mode: audit.ModeBuffered, Dir: logs}); err != nil {
		t.Fatal(err)
	}
	record("bbb", "public.UserEvent", audit.Observation{
		Rows: 9, SQLState: "42501", Reason: "contract", Contract: "retrieval", SkipReason: "it would be refused"})
	record("ccc", "public.Session", audit.Observation{Rows: 9, SkipReason: "it has parameters"})
	closeLog()
	out, stderr, code = call(t, "", "observe", "report", "-c", config)
	for _, want := range []string{"1 refused (42501 contract retrieval)",
		"is not known to change anything; not all was compared", "not known; 1 not compared: it has parameters",
		"it has parameters  1", "changes answers"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q: exit %d\n%s%s", want, code, out, stderr)
		}
	}
	if code != exitError {
		t.Errorf("exit %d", code)
	}
	if out, _, code := call(t, "", "observe", "report", "-c", config, "--since", "1ns"); code != exitOK || !strings.Contains(out, "Nothing was observed") {
		t.Errorf("exit %d\n%s", code, out)
	}
	var report observe.Report
	out, _, _ = call(t, "", "observe", "report", "-c", config, "--json")
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Tables) != 3 || len(report.Statements) != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}
