package main

import (
	"context"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/examples/worlds"
	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/tool/starter"
	"github.com/pgconsent/pgconsent/test/tier"
)

var updateGolden = flag.Bool("update", false, "write testdata/init/*.yaml as they come out")

// The proposal of init passes policy check and migrate on the database that init has read. The expected policies are
// next to their schemas, so that people can read them.
func TestInit(t *testing.T) {
	tier.All(t)
	schemas, err := filepath.Glob("testdata/init/*.sql")
	if err != nil || len(schemas) < 5 {
		t.Fatalf("%v %v", schemas, err)
	}
	sources := map[string]string{}
	for _, path := range schemas {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sources[strings.TrimSuffix(filepath.Base(path), ".sql")] = string(text)
	}
	for _, world := range []string{"arcive"} {
		var text strings.Builder
		for _, file := range []string{"extensions.sql", "schema.sql"} {
			worldText, err := worlds.Files.ReadFile(world + "/" + file)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(worldText)
		}
		sources["world-"+world] = text.String()
	}
	for i, name := range slices.Sorted(maps.Keys(sources)) {
		schema := sources[name]
		if !tier.IsPicked(i, 2) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			db := pgtest.Database(t)
			conn := db.Connect(t, "postgres")
			if name == "supabase" { // roles belong to the whole server
				const roles = "anon, authenticated, service_role"
				if _, err := conn.Exec(t.Context(), "CREATE ROLE "+strings.ReplaceAll(roles, ", ", "; CREATE ROLE ")); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					_, _ = db.Connect(t, "postgres").PgConn().Exec(context.Background(), "DROP OWNED BY "+roles+"; DROP ROLE "+roles).ReadAll()
				})
			}
			if _, err := conn.PgConn().Exec(t.Context(), schema).ReadAll(); err != nil {
				t.Fatal(err)
			}
			checkHints(t, conn)
			dir := filepath.Join(t.TempDir(), "new")
			args := []string{"init", "--dsn", db.DSN("postgres", ""), "--dir", dir}
			out, stderr, code := call(t, "", args...)
			if code != exitOK || !strings.Contains(out, "next:") {
				t.Fatalf("init: %s%s", out, stderr)
			}
			policy, err := os.ReadFile(filepath.Join(dir, "policy.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(string(policy), db.Name, "app")
			goldenPath := "testdata/init/" + name + ".yaml"
			if *updateGolden {
				if err := os.WriteFile(goldenPath, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(goldenPath); err != nil || string(want) != got {
				t.Errorf("%s: %v; the proposal is\n%s", goldenPath, err, got)
			}
			config := filepath.Join(dir, "pgconsent.yaml")
			text, err := os.ReadFile(config)
			hasOtherSchemas := name == "profiles" || name == "supabase"
			isAcknowledged := strings.Contains(string(text), "Tables of auth are listed as well")
			if err != nil || isAcknowledged != hasOtherSchemas {
				t.Errorf("what the search path does not lead to: %v\n%s", err, text)
			}
			if out, stderr, code := call(t, "", "policy", "check", "-c", config); code != exitOK {
				t.Fatalf("policy check: %s%s", out, stderr)
			}
			checkAlternatives(t, string(policy), config)
			defer func() {
				if _, stderr, code := call(t, "", "migrate", "--down", "-c", config); code != exitOK {
					t.Errorf("migrate --down: %s", stderr)
				}
			}()
			for range 2 {
				if out, stderr, code := call(t, "", "migrate", "-c", config); code != exitOK {
					t.Fatalf("migrate: %s%s", out, stderr)
				}
			}
			for _, file := range []string{"agent.pw", "control.pw"} {
				if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Mode().Perm() != 0o600 || info.Size() < 32 {
					t.Errorf("%s: %v %v", file, info, err)
				}
			}
			if _, stderr, code := call(t, "", args...); code != exitError || !strings.Contains(stderr, "nothing is overwritten") {
				t.Errorf("a second run: %d %s", code, stderr)
			}
			if policyAfter, _ := os.ReadFile(filepath.Join(dir, "policy.yaml")); string(policyAfter) != string(policy) {
				t.Error("a second run changed the policy")
			}
			out, stderr, code = call(t, "", "init", "--json", "--dsn", db.DSN("postgres", ""), "--dir", filepath.Join(dir, "again"))
			var b initResult
			if err := json.Unmarshal([]byte(out), &b); err != nil || code != exitOK || len(b.Files) != 4 || b.Proposal == nil || len(b.Next) == 0 {
				t.Errorf("as JSON: %v %s%s", err, out, stderr)
			}
		})
	}
}

// checkHints checks that row policies in the database add rules to a proposal, and tables to the denied ones. They
// never show rows that would be hidden otherwise.
func checkHints(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	snap, err := pgcatalog.Load(t.Context(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	policies, err := readRowPolicies(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]*starter.Table{}
	for _, table := range starter.Propose(snap, nil, nil).Tables {
		tables[table.Name] = table
	}
	for _, table := range starter.Propose(snap, policies, nil).Tables {
		withoutHints := tables[table.Name]
		if withoutHints == nil || table.IsOpen && !withoutHints.IsOpen {
			t.Errorf("%s shows because of a row policy", table.Name)
			continue
		}
		for _, block := range withoutHints.Blocks {
			if !slices.ContainsFunc(table.Blocks, func(b starter.Block) bool { return b.YAML == block.YAML }) {
				t.Errorf("%s is without %s because of a row policy", table.Name, block.YAML)
			}
		}
		if !slices.Equal(withoutHints.Hidden, table.Hidden) {
			t.Errorf("%s hides other columns because of a row policy", table.Name)
		}
	}
}

// checkAlternatives checks that the alternatives in the policy's comments pass policy check as well.
func checkAlternatives(t *testing.T, policy, config string) {
	t.Helper()
	path := filepath.Join(filepath.Dir(config), "policy.yaml")
	defer func() {
		if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
	}()
	chosenPolicy := regexp.MustCompile(`(?m)^(  )# (\w+: \{ type: .*)$|^(      )# (- .*)$`).ReplaceAllString(policy, "$1$3$2$4")
	if chosenPolicy == policy {
		return
	}
	if err := os.WriteFile(path, []byte(chosenPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, stderr, code := call(t, "", "policy", "check", "-c", config); code != exitOK {
		t.Errorf("with what is written as comments: %s%s\n%s", out, stderr, chosenPolicy)
	}
}

// init reads catalogs only: it works for a role that may not read a single row.
func TestInitReadsNoRow(t *testing.T) {
	db := pgtest.Database(t)
	conn := db.Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(t.Context(), guardedSchema+"; CREATE ROLE init_nobody LOGIN").ReadAll(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = db.Connect(t, "postgres").Exec(t.Context(), "DROP ROLE init_nobody")
	})
	out, stderr, code := call(t, "", "init", "--dsn", db.DSN("init_nobody", ""), "--dir", t.TempDir())
	if code != exitOK {
		t.Errorf("%s%s", out, stderr)
	}
}

func TestInitUsage(t *testing.T) {
	for dsn, want := range map[string]struct {
		code int
		err  string
	}{
		"port=x": {exitUsage, "the DSN is not understood"},
		"host=127.0.0.1 port=1 user=u password=hidden": {exitError, "Is the server running"},
	} {
		_, stderr, code := call(t, "", "init", "--dsn", dsn, "--dir", t.TempDir())
		if code != want.code || !strings.Contains(stderr, want.err) || strings.Contains(stderr, "hidden") {
			t.Errorf("%s: %d %s", dsn, code, stderr)
		}
	}
	if _, _, code := call(t, "", "init"); code != exitUsage {
		t.Errorf("without a DSN: %d", code)
	}
}

// The policy that init proposes for a chat application shows chats, messages and files only where all people have
// consented. It must do so over many steps and for any participants.
func TestInitAsksForConsent(t *testing.T) {
	const schema = `
CREATE TABLE users (id integer PRIMARY KEY, ai_consent boolean NOT NULL);
CREATE TABLE settings (user_id integer PRIMARY KEY REFERENCES users, allow_ai_voice boolean);
CREATE TABLE chats (id integer PRIMARY KEY, user_id integer NOT NULL REFERENCES users);
CREATE TABLE chat_members (chat_id integer NOT NULL REFERENCES chats, user_id integer NOT NULL REFERENCES users, PRIMARY KEY (chat_id, user_id));
CREATE TABLE messages (id integer PRIMARY KEY, chat_id integer NOT NULL REFERENCES chats, sender_id integer REFERENCES users, body text);
CREATE TABLE files (id integer PRIMARY KEY, message_id integer NOT NULL REFERENCES messages, path text);
CREATE INDEX ON chats (user_id);`
	const data = `
INSERT INTO users VALUES (1, true), (2, true), (3, false);
INSERT INTO settings VALUES (1, true), (2, true), (3, true);
INSERT INTO chats VALUES (10, 1), (11, 1), (12, 2);
INSERT INTO chat_members VALUES (10, 1), (10, 2), (11, 1), (11, 3);
INSERT INTO messages VALUES (100, 10, 1, 'a'), (101, 10, 2, 'b'), (102, 10, 3, 'c'), (103, 10, NULL, 'd'), (104, 11, 1, 'e'), (105, 12, 2, 'f');
INSERT INTO files VALUES (1000, 100, 'a'), (1001, 102, 'c'), (1002, 104, 'e');`
	const tests = `
version: 1
callers:
  ann: { attributes: { user: 1 } }
tests:
  - name: what hangs on somebody who has not agreed does not show
    as: ann
    steps:
      - then: { sees: { users: [1], chats: [10], messages: [100, 101, 103], files: [1000] } }
      - when: UPDATE users SET ai_consent = true WHERE id = 3
        then: { sees: { chats: [10, 11], messages: [100, 101, 102, 103, 104], files: [1000, 1001, 1002] } }
      - when: UPDATE settings SET allow_ai_voice = NULL WHERE user_id = 1
        then: { sees: { users: [], chats: [], messages: [], files: [] } }
      - when: UPDATE settings SET allow_ai_voice = true WHERE user_id = 1
        then: { sees: { chats: [10, 11] } }
      - when: DELETE FROM settings WHERE user_id = 1
        then: { sees: { chats: [], messages: [], files: [] } }
`
	db := pgtest.Database(t)
	if _, err := db.Connect(t, "postgres").PgConn().Exec(t.Context(), schema).ReadAll(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	if _, stderr, code := call(t, "", "init", "--dsn", db.DSN("postgres", ""), "--dir", dir); code != exitOK {
		t.Fatal(stderr)
	}
	for name, text := range map[string]string{"schema.sql": schema, "data.sql": data, "policy_test.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, stderr, code := call(t, "", "policy", "test", "-c", filepath.Join(dir, "pgconsent.yaml"), "--postgres", db.DSN("postgres", ""), dir)
	if code != exitOK || !strings.Contains(out, "1 of 1 tests passed") {
		t.Errorf("%s%s", out, stderr)
	}
}
