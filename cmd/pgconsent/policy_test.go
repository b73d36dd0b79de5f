package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// policyFolder writes a policy, and a configuration with two databases that share it.
func policyFolder(t *testing.T, policy string) (config string) {
	t.Helper()
	dir := t.TempDir()
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(t.Context(), guardedSchema+"; GRANT SELECT ON public.attic TO PUBLIC; "+
		"CREATE VIEW public.old AS SELECT * FROM public.attic").ReadAll(); err != nil {
		t.Fatal(err)
	}
	databaseConfig := fmt.Sprintf("{ name: %s, policy: policy.yaml, owners: [postgres] }", db.Name)
	for name, text := range map[string]string{
		"policy.yaml": policy,
		"pgconsent.yaml": fmt.Sprintf(
			"version: 1\nupstream: { host: %s, port: %d }\ndatabases:\n  one: %s\n  two: %s\nagents:\n  chat: { "+
				"database: one, attributes: { user: 6f1e0000-0000-4000-8000-000000000001 } }\n  talk: { database: "+
				"two, attributes: { user: 6f1e0000-0000-4000-8000-000000000001 } }\n",
			pgtest.SocketDir(), pgtest.Port(), databaseConfig, databaseConfig),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "pgconsent.yaml")
}

// A finding that is the same for several databases is printed once, as text and as JSON.
func TestPolicyCheckSaysThingsOnce(t *testing.T) {
	for _, c := range []struct {
		name, policy string
		code         int
		problems     int
		out          []string // texts that the output has exactly once
	}{
		{"does not load", "version: 1\ntables: { notes: { row: open } }\n", exitError, 2, []string{`policy.yaml:2:20: unknown key "row"`, "2 problems"}},
		{"does not load, and more", strings.Replace(guardedPolicy, "  notes:",
			"  attic: { row: open }\n  note: { rows: open }\n  people2: { rows: [ visible: { attic: { id: id } } ] }\n  notes:", 1), exitError, 4, []string{
			`unknown key "row"`, `table attic needs "rows"`, `has no table "note"`, `has no table "people2"`, "warning: ",
			"4 problems, compared with databases one, two"}},
		{"a table and a view", strings.Replace(guardedPolicy, "functions:", "  none: { rows: open }\nviews: { old: {}, nothing: {} }\nfunctions:", 1),
			exitError, 3, []string{`has no table "none"`, "view public.old reads public.attic, which the policy does not list",
				`has no view "nothing"`, "3 problems, compared with databases one, two"}},
		{"is no YAML", "version: 1\ntables: { notes: { rows: open }\nviews: [", exitError, 1, []string{"1 problem\n"}},
		{"does not fit", strings.Replace(guardedPolicy, "notes:", "note:", 1), exitError,
			1, []string{`has no table "note"`, "1 problem, compared with databases one, two"}},
		{"does not fit, and more", strings.Replace(guardedPolicy, "notes:", "note: { rows: open }\n  notes:", 1), exitError,
			1, []string{`has no table "note"`, "warning: ", "1 problem, compared with databases one, two"}},
		{"warnings", guardedPolicy, exitOK, 0, []string{
			"ok for databases one, two, version ", "warning: ", "REVOKE ALL ON public.attic FROM PUBLIC;",
			`CREATE INDEX CONCURRENTLY ON public.notes (user_id);`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := policyFolder(t, c.policy)
			out, stderr, code := call(t, "", "policy", "check", "-c", config)
			if code != c.code || stderr != "" {
				t.Fatalf("exit code %d: %s%s", code, out, stderr)
			}
			for _, want := range c.out {
				if n := strings.Count(out, want); n != 1 && want != "warning: " || n == 0 {
					t.Errorf("%q stands there %d times:\n%s", want, n, out)
				}
			}
			out, _, code = call(t, "", "policy", "check", "--json", "-c", config)
			var reports []policyReport
			if err := json.Unmarshal([]byte(out), &reports); err != nil || code != c.code {
				t.Fatalf("exit code %d, %v: %s", code, err, out)
			}
			if len(reports) != 1 || strings.Join(reports[0].Databases, " ") != "one two" || len(reports[0].Problems) != c.problems {
				t.Errorf("%+v", reports)
			}
			for _, p := range append(reports[0].Problems, reports[0].Warnings...) {
				if p.File == "" || p.Line == 0 || p.Column == 0 || p.Message == "" {
					t.Errorf("%+v", p)
				}
			}
			if _, _, code := call(t, "", "policy", "check", "--strict", "-c", config); code != exitError {
				t.Errorf("--strict exits with %d", code)
			}
		})
	}
	if _, _, code := call(t, "", "policy", "check", "p.yaml", "--database", "one"); code != exitUsage {
		t.Errorf("a file and a database: exit code %d", code)
	}
}

// policy show prints every table, with its rule in words and in SQL, and the tables that the policy does not list.
func TestPolicyShow(t *testing.T) {
	config := policyFolder(t, strings.Replace(guardedPolicy, "  notes: { rows: [ { own: { column: user_id, is: user } } ] }",
		"  notes:\n    rows: [ any: [ own: { column: user_id, is: user }, not: { sql: 'id > 5' } ] ]\n    columns: { id: allow }", 1))
	out, stderr, code := call(t, "", "policy", "show", "--database", "one", "-c", config)
	if code != exitOK {
		t.Fatalf("%s%s", out, stderr)
	}
	for _, want := range []string{
		"user  uuid: the configuration gives each agent one",
		"table public.memories", "user_id is the agent's user   policy.yaml:6:9",
		`everybody reached by public.memory_participants (memory_id = id) → public.people (id = person_id) has consent_status = "granted"; ` +
			`a row without anybody to ask shows`,
		"memories.user_id = (SELECT attr('user'))::uuid",
		"one of these holds", "it does certainly not hold that", "the condition (notes.id > '5'::int8)   policy.yaml:",
		"columns: id, and no other", "agents write nothing",
		"public.count_memories(boolean), always with respect_consent = 'true'::bool",
		"public.attic",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, _, code = call(t, "", "policy", "show", "--json", "people", "-c", config)
	var policies []policyJSON
	if err := json.Unmarshal([]byte(out), &policies); err != nil || code != exitOK || len(policies) != 2 ||
		len(policies[0].Tables) != 1 || policies[0].Tables[0].SQL == "" || len(policies[0].Tables[0].Words) != 3 {
		t.Errorf("%d %v %s", code, err, out)
	}
	if _, stderr, code := call(t, "", "policy", "show", "nothing", "-c", config); code != exitError || !strings.Contains(stderr, `lists no table "nothing"`) {
		t.Errorf("%d %s", code, stderr)
	}
}
