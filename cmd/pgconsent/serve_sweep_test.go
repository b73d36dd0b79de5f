package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Two processes of serve sweep one database. One is killed meanwhile, and the other continues. No row is deleted twice,
// no due row is left, and no row of an active consent is deleted. /metrics reports the state of the registry.
// seeds/001:158-159.
func TestTwoServesSweep(t *testing.T) {
	tier.All(t)
	config, db := installConsent(t)
	dir := filepath.Dir(config)
	policy := "version: 1\ntables:\n  notes:\n    rows: [ consent: { subject: person, registry: {} } ]\n    lifecycle: { subject: person }\n"
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	configure := func(name, httpAddress string) string {
		path := filepath.Join(dir, name)
		output := strings.NewReplacer(fmt.Sprintf("host: %s, port: %d", pgtest.SocketDir(), pgtest.Port()),
			fmt.Sprintf("host: 127.0.0.1, port: %d", pgtest.TCPPort()),
			"owners: [postgres]", "owners: [app_owner], secrets: { agent: pw, control: pw }",
			"consent: { ", "listen: 127.0.0.1:0\nhttp: { listen: \""+httpAddress+"\" }\naudit: { mode: \"off\" }\nconsent: { sweep_every: 2s, ").Replace(string(text))
		if err := os.WriteFile(path, []byte(output), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, text := range map[string]string{"policy.yaml": policy, "pw": "secret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conn := db.Connect(t, "postgres")
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	count := func(sql string) (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const subjects, rowsPerSubject = 8, 60
	commands := []commandStep{{"migrate", exitOK, ""}, {"consent grant stays --stream TEMPORARY", exitOK, ""}, {"consent upgrade partner", exitOK, ""},
		{"consent decide partner TASK_COMPLETE --agent chat", exitOK, ""}, {"consent grant quiet --stream ANONYMOUS", exitOK, ""}}
	for n := range subjects {
		commands = append(commands, commandStep{fmt.Sprintf("consent grant s%d --stream TEMPORARY", n), exitOK, ""},
			commandStep{fmt.Sprintf("consent revoke s%d", n), exitOK, ""})
	}
	runSteps(t, config, commands)
	exec("ALTER ROLE pgconsent_control PASSWORD 'secret'; ALTER ROLE pgconsent_agent PASSWORD 'secret'; CREATE ROLE app_owner LOGIN PASSWORD 'secret'")
	t.Cleanup(func() {
		if _, err := db.Connect(t, "postgres").Exec(context.Background(), "DROP ROLE app_owner"); err != nil {
			t.Error(err)
		}
	})
	exec(fmt.Sprintf(`INSERT INTO notes SELECT n, CASE WHEN n %% 2 = 0 THEN 'stays' ELSE 's' || (n / 2) %% %d END FROM generate_series(1, %d) n;
		CREATE TABLE gone (id int);
		CREATE FUNCTION gone() RETURNS trigger
			LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN PERFORM pg_catalog.pg_sleep(0.004); INSERT INTO public.gone VALUES (OLD.id); RETURN OLD; END';
		CREATE TRIGGER gone BEFORE DELETE ON notes FOR EACH ROW EXECUTE FUNCTION gone()`, subjects, 2*subjects*rowsPerSubject))
	httpAddresses := []string{pgtest.FreeAddress(t), pgtest.FreeAddress(t)}
	var programs []*program
	for i, httpAddress := range httpAddresses {
		programs = append(programs, launch(t, nil, "serve", "-c", configure(fmt.Sprintf("serve%d.yaml", i), httpAddress), "--log-format", "json"))
	}
	waitFor(t, "a sweep has begun", func() bool { return count("SELECT count(*) FROM gone") > 0 })
	programs[0].signal(t, syscall.SIGKILL)
	waitFor(t, "the other goes on", func() bool { return count("SELECT count(*) FROM notes") == subjects*rowsPerSubject })
	waitFor(t, "it is recorded", func() bool { return count("SELECT count(*) FROM pgconsent.sweep_note") == 0 })
	if n := count("SELECT count(*) - count(DISTINCT id) FROM gone"); n != 0 {
		t.Errorf("%d rows went twice", n)
	}
	if n := count("SELECT count(*) FROM gone"); n != subjects*rowsPerSubject {
		t.Errorf("%d rows went, want %d", n, subjects*rowsPerSubject)
	}
	if n := count("SELECT count(DISTINCT subject) FROM pgconsent.consent_record WHERE event = 'deleted'"); n != subjects {
		t.Errorf("of %d subjects it is recorded, want %d", n, subjects)
	}
	want := map[string]float64{
		"consent_active_users": 3, `consent_stream_distribution{stream="TEMPORARY"}`: 100. / 3,
		`consent_stream_distribution{stream="PARTNERED"}`: 100. / 3, `consent_stream_distribution{stream="ANONYMOUS"}`: 100. / 3,
		"consent_partnership_success_rate": 1, "consent_average_age_days": 0, "consent_expiry_rate": 0, "pgconsent_sweep_lag_seconds": 0,
	}
	var got map[string]float64
	waitFor(t, "the page says what the registry says", func() bool {
		got = readMetrics(t, httpAddresses[1])
		for name, value := range want {
			if v, ok := got[name]; !ok || v < value-0.01 || v > value+0.01 {
				return false
			}
		}
		return got[`pgconsent_sweeps_total{result="ok"}`] >= 1 && got["pgconsent_sweep_finished_seconds"] > 0
	})
	if t.Failed() {
		t.Log(got)
	}
	runSteps(t, config, []commandStep{{"audit verify", exitOK, "hold"}})
}

// readMetrics returns the values of /metrics by name and labels.
func readMetrics(t *testing.T, address string) map[string]float64 {
	t.Helper()
	r, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return nil
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			out[name] = v
		}
	}
	return out
}
