package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/test/tier"
)

// SYSTEMS.md 3 l: the doctor names missing indexes; serve works without them.
// seeds/002:428-430.
func TestBeheardL_DoctorNamesMissingIndexes(t *testing.T) {
	tier.All(t)
	w, err := world.Open("beheard")
	if err != nil {
		t.Fatal(err)
	}
	text, err := w.File("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	if err := w.Load(t.Context(), conn, nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "pgconsent.yaml")
	for name, text := range map[string]string{"policy.yaml": string(text),
		"pgconsent.yaml": fmt.Sprintf(
			"version: 1\nupstream: { host: %s, port: %d }\ndatabases:\n  app: { name: %s, policy: policy.yaml, "+
				"owners: [postgres] }\nagents: { ana: { database: app, attributes: { user: user-ana, role: agent "+
				"} } }\n", pgtest.SocketDir(), pgtest.Port(), db.Name)} {
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
	t.Run("explain", func(t *testing.T) { checkContractExplanations(t, config) })
	fixes := []string{
		`CREATE INDEX CONCURRENTLY ON public."UserEvent" ("vesselId");`,
		`CREATE INDEX CONCURRENTLY ON public."ConsentedContent" ("consentActive");`,
		`CREATE INDEX CONCURRENTLY ON public."ConsentRecord" (id) WHERE "revokedAt" IS NULL;`,
	}
	checkFixes := func(areNamed bool) {
		t.Helper()
		out, stderr, _ := call(t, "", "doctor", "-c", config)
		for _, fix := range fixes {
			if strings.Contains(out, "fix: "+fix) != areNamed {
				t.Errorf("%s is named: %t; %s%s", fix, !areNamed, out, stderr)
			}
		}
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, " indexes: ") && strings.HasPrefix(strings.TrimSpace(line), "UNSAFE") {
				t.Errorf("more than a warning: %s", line)
			}
		}
	}
	checkFixes(false)
	if _, err := conn.Exec(context.Background(), "DROP INDEX event_vessel, content_active, record_unrevoked"); err != nil {
		t.Fatal(err)
	}
	checkFixes(true)
	for _, fix := range fixes {
		if _, err := conn.Exec(context.Background(), fix); err != nil {
			t.Errorf("%s: %v", fix, err)
		}
	}
	checkFixes(false)
}

// checkContractExplanations checks what explain prints: what a statement reads, and which contract refuses which access
// (SYSTEMS.md 3 a). The session is in stage 1.
func checkContractExplanations(t *testing.T, config string) {
	for _, c := range []struct {
		sql   string
		code  int
		parts []string
	}{
		{
			`SELECT e.content FROM "UserEvent" e JOIN "UserVessel" v ON v.id = e."vesselId" ORDER BY e.embedding <-> e.embedding LIMIT 5`,
			exitOK, []string{`"object":"event","vessel":"user"`, `"source":"vector"`, `"object":"user_vessel"`, `"stage":"1"`}},
		{`SELECT id FROM "Boundary" WHERE id = 'x' LIMIT 1`, exitOK, []string{`"object":"boundary","vessel":"user"`, `"by_key":true`}},
		{`SELECT description FROM "Agreement" LIMIT 5`, exitError,
			[]string{`"object":"agreement","vessel":"shared"`, `"source":"structured"`,
				"contract retrieval, stage 1: agreement is not allowed; this statement would read it (structured)"}},
		{`SELECT e.id, g.title FROM "UserEvent" e, "GlobalExperiment" g LIMIT 5`, exitError,
			[]string{`"object":"event"`, `"object":"library","vessel":"global"`, "contract retrieval, stage 1: library is not allowed"}},
	} {
		out, stderr, code := call(t, "", "explain", "--as", "ana", "--set", "app.current_session_id=ses-1-4", "--json", "-c", config, c.sql)
		for _, part := range c.parts {
			if code != c.code || !strings.Contains(out, part) {
				t.Errorf("%s: code %d, no %q in %s%s", c.sql, code, part, out, stderr)
			}
		}
	}
}

// If an agent would get "permission denied", the doctor names the cause: functions and triggers that use columns or
// tables without the agents' rights.
func TestDoctorNamesFailingCalls(t *testing.T) {
	tier.All(t)
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(t.Context(), `CREATE TABLE memory (id integer PRIMARY KEY, owner text, title text, secret text); CREATE TABLE log (id integer);
CREATE FUNCTION titles() RETURNS SETOF text LANGUAGE sql STABLE AS 'SELECT title FROM memory';
CREATE FUNCTION headline(m memory) RETURNS text LANGUAGE sql STABLE AS 'SELECT m.title';
CREATE FUNCTION fine() RETURNS integer LANGUAGE sql STABLE AS 'SELECT 1'; CREATE TABLE task (id integer PRIMARY KEY, owner text, body text);
CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log VALUES (1); RETURN NEW; END';
CREATE TRIGGER logging AFTER UPDATE ON task FOR EACH ROW EXECUTE FUNCTION logs()`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "pgconsent.yaml")
	for name, text := range map[string]string{
		"policy.yaml": `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  memory: { rows: [ own: { column: owner, is: user } ], columns: { id: allow, title: allow } }
  task: { rows: [ own: { column: owner, is: user } ], write: { commands: [update], columns: [body] } }
functions: { titles: {}, headline: {}, fine: {} }
`,
		"pgconsent.yaml": fmt.Sprintf(
			"version: 1\nupstream: { host: %s, port: %d }\ndatabases:\n  app: { name: %s, policy: policy.yaml, "+
				"owners: [postgres] }\nagents: {}\n", pgtest.SocketDir(), pgtest.Port(), db.Name)} {
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
	doctorOutput := func() string {
		t.Helper()
		out, stderr, _ := call(t, "", "doctor", "-c", config)
		var lines []string
		for _, line := range strings.Split(out, "\n") {
			if strings.Contains(line, " calls: ") {
				lines = append(lines, line)
			}
		}
		if len(lines) == 0 {
			t.Fatalf("%s%s", out, stderr)
		}
		return strings.Join(lines, "\n")
	}
	out := doctorOutput()
	for _, part := range []string{"public.titles reads public.memory, of which agents have some columns only",
		"public.headline takes rows of public.memory", "the trigger logging of public.task"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not said:\n%s", part, out)
		}
	}
	if strings.Contains(out, "public.fine") {
		t.Errorf("what fails not is named:\n%s", out)
	}
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"),
		[]byte("version: 1\nattributes: {}\ntables: { task: { rows: open } }\nfunctions: { fine: {} }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := doctorOutput(); !strings.Contains(out, "ok") || strings.Contains(out, "fails") {
		t.Error(out)
	}
}
