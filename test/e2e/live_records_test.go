package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The record of a statement has the derived attributes of the moment of its decision, whether the statement runs, fails
// or is refused.
func TestRecordsHaveLiveAttributes(t *testing.T) {
	tier.All(t)
	in := start(t, options{beforeMigrate: liveSetup, policy: livePolicy})
	agent := in.agent(t)
	for _, sql := range []string{"SET app.current_session_id = '" + sessionA + "'", "PREPARE mine AS SELECT count(*) FROM talk.item"} {
		if a := harness.Ask(agent, sql); a.Err != "" {
			t.Fatal(a.Err)
		}
	}
	var statements, want []string
	for _, stage := range []string{"1", "3", "2"} {
		runAsSuperuser(t, in.db, `UPDATE talk."Session" SET stage = `+stage+` WHERE id = '`+sessionA+`'`)
		for sql, code := range map[string]string{
			"SELECT id FROM talk.item": "", "EXECUTE mine": "", "SELECT 1/0": "22012", // statements that run
			"SELECT * FROM talk.nothing": "42501", "SELECT pg_read_file('x')": "42501", "SELECT id FROM": "42601", // statements refused for their text
			"SET app.current_session_id = 'nonsense'": "42501", "SET app.actor_id = '" + user2 + "'": "42501", // statements refused for their claims
		} {
			if a := harness.Ask(agent, sql); a.Code != code {
				t.Fatalf("%s: %s, want %q", sql, a, code)
			}
			statements, want = append(statements, sql), append(want, sessionA+" "+stage)
		}
	}
	files, err := filepath.Glob(filepath.Join(in.audit, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	var got []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var r struct {
				Kind       string            `json:"kind"`
				Attributes map[string]string `json:"attributes"`
			}
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			if r.Kind == "decision" {
				got = append(got, r.Attributes["session"]+" "+r.Attributes["stage"])
				if r.Attributes["user"] == "" { // an attribute of the credential
					t.Errorf("a record says nothing of the user: %s", line)
				}
			}
		}
	}
	if got = got[max(0, len(got)-len(want)):]; len(got) < len(want) {
		t.Fatalf("%d records of %d statements", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: recorded %q, and it was %q", statements[i], got[i], want[i])
		}
	}
}
