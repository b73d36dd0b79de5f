package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
	"github.com/pgconsent/pgconsent/test/tier"
)

// installation is a database that pgconsent migrate has protected, with its configuration.
type installation struct {
	db     *pgtest.DB
	config string
}

const guardedSchema = `
CREATE TABLE public.people (id bigint PRIMARY KEY, user_id uuid NOT NULL, name text NOT NULL, consent_status text);
CREATE TABLE public.memories (id bigint PRIMARY KEY, user_id uuid NOT NULL, title text NOT NULL);
CREATE TABLE public.memory_participants (
	memory_id bigint NOT NULL REFERENCES public.memories, person_id bigint NOT NULL REFERENCES public.people, PRIMARY KEY (memory_id, person_id));
CREATE TABLE public.notes (id bigint PRIMARY KEY, user_id uuid NOT NULL);
CREATE TABLE public.attic (id bigint);
CREATE FUNCTION public.count_memories(respect_consent boolean DEFAULT false) RETURNS bigint LANGUAGE sql STABLE
	AS 'SELECT count(*) FROM public.memories';
INSERT INTO public.people VALUES (1, '6f1e0000-0000-4000-8000-000000000001', 'Ann', 'granted'), (2, '6f1e0000-0000-4000-8000-000000000001', 'Ben', 'revoked');
INSERT INTO public.memories VALUES (1, '6f1e0000-0000-4000-8000-000000000001', 'lake'), (2, '6f1e0000-0000-4000-8000-000000000001', 'hill');
INSERT INTO public.memory_participants VALUES (1, 1), (2, 2);
INSERT INTO public.notes VALUES (1, '6f1e0000-0000-4000-8000-000000000001');
`

const guardedPolicy = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories:
    rows:
      - own: { column: user_id, is: user }
      - consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted }
  people: { rows: [ { own: { column: user_id, is: user } }, { status: { column: consent_status, is: granted } } ] }
  memory_participants: { rows: [ { visible: { memories: { id: memory_id } } }, { visible: { people: { id: person_id } } } ] }
  notes: { rows: [ { own: { column: user_id, is: user } } ] }
functions: { count_memories: { pin: { respect_consent: true } } }
`

// installDatabase makes a database and protects it with the commands that an operator would use. Over TCP the server
// requires a password from everybody.
func installDatabase(t *testing.T) *installation {
	t.Helper()
	i := &installation{db: pgtest.Database(t)}
	i.exec(t, `CREATE ROLE app_owner LOGIN CREATEROLE PASSWORD 'secret'`)
	i.exec(t, "ALTER DATABASE "+i.db.Name+
		" OWNER TO app_owner; ALTER SCHEMA public OWNER TO app_owner; SET ROLE app_owner; "+guardedSchema+"; RESET ROLE")
	i.config = i.configure(t, i.db.Name)
	t.Cleanup(func() {
		if _, stderr, code := call(t, "", "migrate", "--down", "--discard-audit", "-c", i.config); code != exitOK {
			t.Errorf("migrate --down: %s", stderr)
		}
		i.exec(t, "DROP OWNED BY app_owner CASCADE; ALTER DATABASE "+i.db.Name+" OWNER TO postgres; DROP ROLE app_owner")
	})
	if _, stderr, code := call(t, "", "migrate", "-c", i.config); code != exitOK {
		t.Fatalf("migrate: %s", stderr)
	}
	for _, agent := range []string{"chat", "other"} {
		if _, stderr, code := call(t, "", "agent", "add", agent, "--password-file",
			filepath.Join(filepath.Dir(i.config), "pw"), "-c", i.config); code != exitOK {
			t.Fatalf("agent add: %s", stderr)
		}
	}
	return i
}

// configure writes a configuration for a database on the server.
func (i *installation) configure(t *testing.T, database string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"policy.yaml": guardedPolicy, "pw": "secret\n",
		"pgconsent.yaml": fmt.Sprintf(`version: 1
listen: 127.0.0.1:0
http: { listen: "off" }
upstream: { host: 127.0.0.1, port: %d }
databases: { app: { name: %s, policy: policy.yaml, owners: [app_owner], secrets: { agent: pw, control: pw, migrate: pw } } }
agents:
  chat: { database: app, attributes: { user: 6f1e0000-0000-4000-8000-000000000001 } }
  other: { database: app, attributes: { user: 6f1e0000-0000-4000-8000-000000000002 } }
audit: { mode: "off" }
`, pgtest.TCPPort(), database),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "pgconsent.yaml")
}

// exec runs SQL as the superuser, past the proxy.
func (i *installation) exec(t *testing.T, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, i.db.DSN("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// runFinished runs the program until it ends.
func runFinished(t *testing.T, args ...string) (out, stderr string, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	var o, e bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "PGCONSENT_TEST_MAIN=1")
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exitErr *exec.ExitError
	if err != nil && !errors.As(err, &exitErr) || ctx.Err() != nil {
		t.Errorf("%v: %v %v", args, err, ctx.Err())
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// withHBA returns SQL that adds a first line to pg_hba.conf, or removes it.
func withHBA(line string, isRecorded bool) string {
	text := `replace(pg_read_file(current_setting('hba_file')), '` + line + `' || chr(10), '')`
	if isRecorded {
		text = `'` + line + `' || chr(10) || ` + text
	}
	return `DO $$ BEGIN
		EXECUTE format('COPY (SELECT unnest(%L::text[])) TO %L', string_to_array(rtrim(` + text + `, chr(10)), chr(10)), current_setting('hba_file'));
		PERFORM pg_reload_conf();
		PERFORM pg_sleep(0.3);
	END $$`
}

// singleTableCases are findings about single tables: serve suspends such a table, and serves the others.
var singleTableCases = []string{"rls_off", "force_rls", "foreign_policy", "foreign_restrictive", "agent_write", "drift"}

// Each case makes a real database unsafe. The doctor must name the problem and its fix, and serve must not start, or
// must suspend the table.
func TestUnsafeDatabases(t *testing.T) {
	tier.All(t)
	i := installDatabase(t)
	db := i.db.Name
	for n, c := range []struct {
		id             string // the id of the finding
		breakSQL       string
		repairSQL      string // "": pgconsent migrate does
		wantFix        string // a text in the fix that the doctor proposes
		wantServeError string // the error with which serve does not start, if it is not the finding
	}{
		{"agent_owner", "ALTER TABLE attic OWNER TO pgconsent_agent", "ALTER TABLE attic OWNER TO app_owner", "REASSIGN OWNED BY", ""},
		{"agent_superuser", "ALTER ROLE pgconsent_agent SUPERUSER", "ALTER ROLE pgconsent_agent NOSUPERUSER", "NOSUPERUSER", ""},
		{"agent_bypassrls", "ALTER ROLE pgconsent_agent BYPASSRLS", "ALTER ROLE pgconsent_agent NOBYPASSRLS", "NOBYPASSRLS", ""},
		{"agent_createrole", "ALTER ROLE pgconsent_agent CREATEROLE", "ALTER ROLE pgconsent_agent NOCREATEROLE", "NOCREATEROLE", ""},
		{"agent_replication", "ALTER ROLE pgconsent_agent REPLICATION", "ALTER ROLE pgconsent_agent NOREPLICATION", "NOREPLICATION", ""},
		{"agent_member", "GRANT app_owner TO pgconsent_agent", "REVOKE app_owner FROM pgconsent_agent", "REVOKE app_owner FROM", ""},
		{"agent_member", "GRANT pg_read_all_data TO pgconsent_agent", "REVOKE pg_read_all_data FROM pgconsent_agent", "REVOKE pg_read_all_data FROM", ""},
		{"reader_bypassrls", "ALTER ROLE pgconsent_reader BYPASSRLS", "ALTER ROLE pgconsent_reader NOBYPASSRLS", "NOBYPASSRLS", ""},
		{"reader_login", "ALTER ROLE pgconsent_reader LOGIN", "ALTER ROLE pgconsent_reader NOLOGIN", "NOLOGIN", ""},
		{"role_settings", "ALTER ROLE pgconsent_agent SET pgconsent.seal = 'v1'",
			"ALTER ROLE pgconsent_agent RESET pgconsent.seal", "RESET pgconsent.seal", ""},
		{"owner_login", withHBA("host all app_owner all trust", true), withHBA("host all app_owner all trust", false), "scram-sha-256", ""},
		{"rls_off", "ALTER TABLE memories DISABLE ROW LEVEL SECURITY", "ALTER TABLE memories ENABLE ROW LEVEL SECURITY", "ENABLE ROW LEVEL SECURITY", ""},
		{"force_rls", "ALTER TABLE people FORCE ROW LEVEL SECURITY", "ALTER TABLE people NO FORCE ROW LEVEL SECURITY", "NO FORCE ROW LEVEL SECURITY", ""},
		{"foreign_policy", "CREATE POLICY theirs ON memories TO pgconsent_agent USING (true)", "DROP POLICY theirs ON memories", "DROP POLICY theirs", ""},
		{"foreign_policy", "CREATE POLICY theirs ON people AS RESTRICTIVE TO pgconsent_reader USING (id < 2)",
			"DROP POLICY theirs ON people", "DROP POLICY theirs", ""},
		{"foreign_restrictive", "CREATE POLICY theirs ON people AS RESTRICTIVE USING (id < 2)", "DROP POLICY theirs ON people", "ALTER POLICY theirs", ""},
		{"agent_temp", "GRANT TEMPORARY ON DATABASE " + db + " TO PUBLIC",
			"REVOKE TEMPORARY ON DATABASE " + db + " FROM PUBLIC", "REVOKE TEMPORARY ON DATABASE", ""},
		{"agent_create_database", "GRANT CREATE ON DATABASE " + db + " TO PUBLIC",
			"REVOKE CREATE ON DATABASE " + db + " FROM PUBLIC", "REVOKE CREATE ON DATABASE", ""},
		{"agent_create_schema", "GRANT CREATE ON SCHEMA public TO PUBLIC",
			"REVOKE CREATE ON SCHEMA public FROM PUBLIC", "REVOKE CREATE ON SCHEMA public", ""},
		{"agent_write", "GRANT UPDATE (consent_status) ON people TO PUBLIC",
			"REVOKE UPDATE (consent_status) ON people FROM PUBLIC", "REVOKE INSERT, UPDATE", ""},
		{"agent_usage", "GRANT USAGE ON SCHEMA pgconsent TO PUBLIC", "REVOKE USAGE ON SCHEMA pgconsent FROM PUBLIC", "REVOKE ALL ON SCHEMA pgconsent", ""},
		{"other_policy", "UPDATE pgconsent.installed SET hash = reverse(hash)",
			"UPDATE pgconsent.installed SET hash = reverse(hash)", "pgconsent migrate", "the configured policy is installed, but"},
		{"drift", "ALTER POLICY pgconsent_select ON memories USING (true)", "", "pgconsent migrate", ""},
		{"view_owner", "ALTER VIEW pgconsent.h_public_people OWNER TO app_owner", "", "OWNER TO", ""},
		{"policy", "ALTER FUNCTION count_memories SECURITY DEFINER", "ALTER FUNCTION count_memories SECURITY INVOKER",
			"Correct the policy or the database", "is SECURITY DEFINER"},
		{"policy", "ALTER TABLE notes RENAME TO scraps", "ALTER TABLE scraps RENAME TO notes", "Correct the policy or the database", "notes"},
		{"bad_key", "DELETE FROM pgconsent.keys", "SET ROLE app_owner; SELECT pgconsent.make_key()", "pgconsent.make_key()", "key"},
		{"bad_key", "UPDATE pgconsent.keys SET ipad = opad, opad = ipad", "SET ROLE app_owner; SELECT pgconsent.make_key()", "pgconsent.make_key()", ""},
		{"key_readable", "GRANT EXECUTE ON FUNCTION pgconsent.seal_key() TO PUBLIC",
			"REVOKE EXECUTE ON FUNCTION pgconsent.seal_key() FROM PUBLIC", "REVOKE ALL ON FUNCTION pgconsent.seal_key()", ""},
	} {
		if !tier.IsPicked(n, 8) { // the tests of package doctor try every case
			continue
		}
		t.Run(c.id, func(t *testing.T) {
			i.exec(t, c.breakSQL)
			checkRefused(t, i.config, c.id, c.wantFix, c.wantServeError)
			if c.repairSQL != "" {
				i.exec(t, c.repairSQL)
			} else if _, stderr, code := call(t, "", "migrate", "-c", i.config); code != exitOK {
				t.Errorf("migrate does not repair it: %s", stderr)
			}
		})
	}
	// Each case has repaired what it broke, so that each finding had its own cause.
	out, stderr, code := runFinished(t, "doctor", "-c", i.config)
	if code != exitOK || strings.Contains(out, "UNSAFE") {
		t.Errorf("%d\n%s\n%s", code, out, stderr)
	}

	t.Run("server_encoding", func(t *testing.T) {
		i.exec(t, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0 OWNER app_owner")
		t.Cleanup(func() { i.exec(t, "DROP DATABASE latin WITH (FORCE)") })
		latinInstallation := installation{db: &pgtest.DB{Name: "latin", SocketDir: i.db.SocketDir, Port: i.db.Port}}
		latinInstallation.exec(t, "ALTER SCHEMA public OWNER TO app_owner; SET ROLE app_owner; "+guardedSchema)
		config := latinInstallation.configure(t, "latin")
		if _, stderr, code := call(t, "", "migrate", "-c", config); code != exitOK {
			t.Fatal(stderr)
		}
		checkRefused(t, config, "server_encoding", "ENCODING 'UTF8'", "")
	})
}

// checkRefused runs the doctor, with text and JSON output, and serve.
func checkRefused(t *testing.T, config, id, wantFix, wantServeError string) {
	t.Helper()
	var checks sync.WaitGroup
	defer checks.Wait()
	checks.Go(func() {
		out, stderr, code := runFinished(t, "doctor", "-c", config)
		line, rest, _ := strings.Cut(out[max(0, strings.Index(out, "UNSAFE   "+id+": ")):], "\n")
		next, _, _ := strings.Cut(rest, "\n")
		if code != exitError || !strings.Contains(line, id) || !strings.Contains(next, "fix: ") ||
			!strings.Contains(next, wantFix) || !strings.Contains(out, "agents are not served") {
			t.Errorf("doctor: code %d, want UNSAFE %s with …%s…\n%s\n%s", code, id, wantFix, out, stderr)
		}
	})
	checks.Go(func() {
		out, stderr, code := runFinished(t, "doctor", "--json", "-c", config)
		var reports []databaseFinding
		if err := json.Unmarshal([]byte(out), &reports); err != nil {
			t.Errorf("doctor --json: %v in %s %s", err, out, stderr)
		}
		for _, r := range reports {
			if r.ID == id && r.Severity == doctor.SeverityUnsafe && r.Database == "app" && strings.Contains(r.Fix, wantFix) && code == exitError {
				return
			}
		}
		t.Errorf("doctor --json: code %d, no unsafe finding %s with …%s… in %s", code, id, wantFix, out)
	})
	if wantServeError == "" {
		wantServeError = id + ": "
	}
	if slices.Contains(singleTableCases, id) {
		p := launch(t, nil, "serve", "-c", config)
		waitFor(t, "the table is suspended", func() bool {
			output := p.errs.String()
			return strings.Contains(output, "are suspended") && strings.Contains(output, wantServeError) && strings.Contains(output, `"serving"`)
		})
		p.signal(t, os.Interrupt)
		if code := p.awaitEnd(t); code != exitOK {
			t.Errorf("serve ends with %d: %s", code, p.errs)
		}
		return
	}
	out, stderr, code := runFinished(t, "serve", "-c", config)
	if code != exitError || out != "" || !strings.Contains(stderr, wantServeError) || strings.Contains(stderr, `"serving"`) {
		t.Errorf("serve: code %d, want …%s…\n%s\n%s", code, wantServeError, out, stderr)
	}
}
