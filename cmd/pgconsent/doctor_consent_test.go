package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/tier"
)

// The doctor checks the consent registry. It finds a missing key, and records that were cut off or changed. It also
// finds altered tables or functions, a clock that goes backwards, and a sweeper that has not run.
func TestDoctorChecksRegistry(t *testing.T) {
	tier.All(t)
	config, db := installConsent(t)
	dir := filepath.Dir(config)
	policy := "version: 1\ntables:\n  notes:\n    rows: [ consent: { subject: person, registry: {} } ]\n    lifecycle: { subject: person }\n"
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	conn := db.Connect(t, "postgres")
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	checkFindings := func(situation string, want ...string) {
		t.Helper()
		out, stderr, _ := call(t, "", "doctor", "-c", config)
		var lines []string
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, " consent: ") {
				lines = append(lines, line)
			}
		}
		for _, w := range want {
			if !strings.Contains(strings.Join(lines, "\n"), w) {
				t.Errorf("%s: no %q in\n%s\n%s", situation, w, strings.Join(lines, "\n"), stderr)
			}
		}
		if len(lines) != len(want) {
			t.Errorf("%s: %d lines, want %d:\n%s", situation, len(lines), len(want), strings.Join(lines, "\n"))
		}
	}
	runSteps(t, config, []commandStep{{"migrate", exitOK, ""}, {"consent grant ada --stream TEMPORARY", exitOK, ""},
		{"consent grant bob --stream TEMPORARY", exitOK, ""}})
	checkFindings("before a sweep", "the sweeper has never run here")
	runSteps(t, config, []commandStep{{"sweep", exitOK, ""}})
	const wantOK = "the consent registry ends as it was anchored, and nothing waits for the sweeper"
	checkFindings("after a sweep", wantOK)

	exec("UPDATE pgconsent.sweep_state SET finished_at = now() - interval '13 hours'")
	checkFindings("long after", "the sweeper ran last at")
	exec("UPDATE pgconsent.sweep_state SET finished_at = now()")

	const clockSQL = "CREATE OR REPLACE FUNCTION pgconsent.consent_now() RETURNS pg_catalog.timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE RETURN "
	var realClock string
	if err := conn.QueryRow(t.Context(), "SELECT pg_get_functiondef('pgconsent.consent_now()'::regprocedure)").Scan(&realClock); err != nil {
		t.Fatal(err)
	}
	exec(clockSQL + "pg_catalog.clock_timestamp() - interval '3 hours'")
	checkFindings("a clock that goes backwards", "behind the last consent record", "consent_now() is not as migrate installs it")
	exec(realClock)
	checkFindings("the clock is right", wantOK)

	exec("CREATE TABLE saved AS TABLE pgconsent.consent_record; ALTER TABLE pgconsent.consent_record DISABLE " +
		"TRIGGER ALL; DELETE FROM pgconsent.consent_record WHERE number = 2")
	out, _, _ := call(t, "", "doctor", "-c", config)
	if !strings.Contains(out, "record 2, which was acknowledged, is gone") || !strings.Contains(out, "pgconsent audit verify") {
		t.Errorf("cut off: %s", out)
	}
	exec("INSERT INTO pgconsent.consent_record SELECT * FROM saved WHERE number = 2; UPDATE " +
		"pgconsent.consent_record SET state = 'withdrawn' WHERE number = 2")
	out, _, _ = call(t, "", "doctor", "-c", config)
	if !strings.Contains(out, "the consent registry is not what was acknowledged: ") {
		t.Errorf("changed: %s", out)
	}
	exec("UPDATE pgconsent.consent_record SET state = 'given' WHERE number = 2; DROP TABLE saved")

	key := filepath.Join(dir, "consent.key")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	checkFindings("no key", "UNSAFE   consent: the consent registry cannot be opened")
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
}
