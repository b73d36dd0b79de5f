package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// For the command sweep, a dry run changes nothing, and a sweep then does what the dry run said. A failure is reported
// with exit code 1.
func TestSweepCommand(t *testing.T) {
	config, db := installConsent(t)
	policy := "version: 1\ntables:\n  notes:\n    rows: [ consent: { subject: person, registry: {} } ]\n    lifecycle: { subject: person }\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	conn := db.Connect(t, "postgres")
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("INSERT INTO notes VALUES (1, 'ada'), (2, 'ada'), (3, 'bob')")
	runSteps(t, config, []commandStep{
		{"migrate", exitOK, ""},
		{"sweep --dry-run", exitOK, "app: nothing to record, if it were done"},
		{"consent grant ada --stream TEMPORARY", exitOK, ""},
		{"consent grant bob --stream TEMPORARY", exitOK, ""},
		{"consent revoke ada", exitOK, ""},
		{"sweep --dry-run", exitOK, "public.notes  1         2        0"},
		{"sweep --database nowhere", exitUsage, "nowhere"},
	})
	count := func() (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM notes").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n != 3 {
		t.Errorf("after a dry run there are %d rows", n)
	}
	// A failure of one table is reported without the values that the database quotes.
	exec("CREATE TABLE kept (note int REFERENCES notes); INSERT INTO kept VALUES (1)")
	out, _, code := call(t, "", "sweep", "-c", config)
	if code != exitError || !strings.Contains(out, "FAILED  sweep public.notes: SQLSTATE 23503, constraint kept_note_fkey") || strings.Contains(out, "ada") {
		t.Errorf("%d %s", code, out)
	}
	exec("DROP TABLE kept")
	out, _, code = call(t, "", "sweep", "--json", "-c", config)
	var report []struct {
		Tables []struct {
			Table             string
			Subjects, Deleted int
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitOK || len(report) != 1 ||
		len(report[0].Tables) != 1 || report[0].Tables[0].Deleted != 2 {
		t.Errorf("%d %v %s", code, err, out)
	}
	if n := count(); n != 1 {
		t.Errorf("after a sweep there are %d rows", n)
	}
	runSteps(t, config, []commandStep{{"consent history ada", exitOK, "deleted"}})
}
