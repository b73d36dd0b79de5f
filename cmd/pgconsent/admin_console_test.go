package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/test/tier"
)

// editConfig replaces a part of the configuration.
func (i *installation) editConfig(t *testing.T, oldText, newText string) {
	t.Helper()
	text, err := os.ReadFile(i.config)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), oldText) {
		t.Fatalf("the configuration has no %s", oldText)
	}
	if err := os.WriteFile(i.config, []byte(strings.Replace(string(text), oldText, newText, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withOperators lists operators and gives them the password of everybody.
func (i *installation) withOperators(t *testing.T, names ...string) *installation {
	t.Helper()
	i.editConfig(t, "audit: {", "admin: { users: ["+strings.Join(names, ", ")+"] }\naudit: {")
	for _, name := range names {
		if out, stderr, code := call(t, "", "operator", "add", name, "--password-file", filepath.Join(i.dir(), "pw"), "-c", i.config); code != exitOK ||
			!strings.Contains(out, "postgres://"+name+"@127.0.0.1:0/pgconsent") {
			t.Fatalf("operator add: %s %s", out, stderr)
		}
	}
	return i
}

func consoleDSN(user, address string) string {
	return "postgres://" + user + ":secret@" + address + "/pgconsent?sslmode=disable"
}

// psql runs commands by the program, and returns what it prints.
func psql(t *testing.T, dsn string, args ...string) (out, stderr string) {
	t.Helper()
	program, err := exec.LookPath("psql")
	if err != nil {
		if os.Getenv("REQUIRE_CLIENTS") == "1" {
			t.Fatal(err)
		}
		t.Skip("NOT TESTED: psql, which is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"-X", "-d", dsn}, args...)...)
	cmd.Env = append(os.Environ(), "PGOPTIONS=", "LC_ALL=C.UTF-8")
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("psql %q: %v %s", args, ctx.Err(), e.String())
	}
	return o.String(), e.String()
}

// An operator uses the admin console by psql: it lists the sessions and ends some. Nobody else can log in.
func TestAdminConsole(t *testing.T) {
	i := installWithAudit(t).withOperators(t, "ops", "second")
	_, address := i.startServe(t)
	agent, owner := connect(t, i.dsn("chat", address)), connect(t, i.dsn("app_owner", address))
	queryInt(t, agent, "SELECT count(*) FROM memories")
	if _, err := agent.Exec(t.Context(), "SELECT * FROM attic"); err == nil {
		t.Error("the agent reads a table that the policy does not list")
	}
	opsDSN := consoleDSN("ops", address)

	out, stderr := psql(t, opsDSN, "-A", "-c", "SHOW SESSIONS")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if stderr != "" || len(lines) != 5 || lines[0] != "id|kind|user|database|client|state|since|last_statement|statements|refused" ||
		lines[4] != "(3 rows)" {
		t.Fatalf("SHOW SESSIONS: %s%s", out, stderr)
	}
	var ids []string
	for n, want := range []string{"agent|chat|app|" + agent.PgConn().Conn().LocalAddr().String() + "|idle|",
		"owner|app_owner|app|" + owner.PgConn().Conn().LocalAddr().String() + "|relayed|", "operator|ops|pgconsent|127.0.0.1:"} {
		id, afterID, _ := strings.Cut(lines[n+1], "|")
		if ids = append(ids, id); !strings.HasPrefix(afterID, want) {
			t.Errorf("session %d: %s, want %s", n, afterID, want)
		}
	}
	if !strings.HasSuffix(lines[1], "|2|1") || !strings.HasSuffix(lines[2], "||") {
		t.Errorf("statements are not counted: %s", out)
	}
	for sql, want := range map[string][]string{
		"SHOW POOLS":     {"(0 rows)", "waited_seconds"},
		"SHOW POLICY":    {"app|t|", "|f|t|4|0|", "(1 row)"},
		"SHOW SUSPENDED": {"database|kind|name|cause|remedy", "(0 rows)"},
		"SHOW VERSION":   {readVersion().String()},
		"SHOW STATS": {`pgconsent_sessions_open|kind="agent"|1`, `pgconsent_sessions_open|kind="operator"|1`, `pgconsent_paused|database="app"|0`,
			`pgconsent_statements_total|reason="relation",tag="select",verdict="deny"|1`, "pgconsent_added_seconds_count||"},
		"HELP": {"SHOW SESSIONS|", "KILL session|", "PAUSE [database]|"},
	} {
		out, stderr := psql(t, opsDSN, "-A", "-c", sql)
		for _, w := range want {
			if !strings.Contains(out, w) || stderr != "" {
				t.Errorf("%s has no %q: %s%s", sql, w, out, stderr)
			}
		}
	}
	if _, stderr := psql(t, opsDSN, "-v", "VERBOSITY=verbose", "-c", "SHOW  tables"); !strings.Contains(stderr,
		"ERROR:  42601: SHOW is followed by one of: SESSIONS") ||
		!strings.Contains(stderr, "LINE 1: SHOW  tables\n               ^") && !strings.Contains(stderr, "LINE 1: SHOW  tables\n              ^") ||
		!strings.Contains(stderr, "HINT:") {
		t.Errorf("an error of psql: %s", stderr)
	}

	// An agent, an owner, an unknown user and a wrong password are refused, all with the same error.
	for _, dsn := range []string{consoleDSN("chat", address), consoleDSN("app_owner", address), consoleDSN("nobody", address),
		strings.Replace(opsDSN, ":secret@", ":wrong@", 1), strings.Replace(opsDSN, "/pgconsent?", "/app?", 1)} {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err == nil {
			conn.Close(t.Context())
		}
		if sqlState(err) != "28P01" {
			t.Errorf("%s: %v", dsn, err)
		}
	}

	// KILL ends a session of an agent or of an owner, with the statement that it runs.
	if out, stderr := psql(t, opsDSN, "-c", "KILL "+ids[0], "-c", "KILL "+ids[1], "-c", "KILL "+ids[0]); !strings.HasPrefix(out, "KILL\nKILL\n") ||
		!strings.Contains(stderr, "there is no session") {
		t.Errorf("KILL: %s%s", out, stderr)
	}
	if err := agent.Ping(t.Context()); sqlState(err) != "57P01" {
		t.Errorf("the agent is told %v", err)
	}
	if err := owner.Ping(t.Context()); err == nil {
		t.Error("the owner's session goes on")
	}

	// RELOAD does what SIGHUP does: changes apply, and errors in the configuration are reported.
	i.editConfig(t, "  other:", "  third: { database: app, attributes: { user: 6f1e0000-0000-4000-8000-000000000003 } }\n  other:")
	if _, stderr, code := call(t, "", "agent", "add", "third", "--password-file", filepath.Join(i.dir(), "pw"), "-c", i.config); code != exitOK {
		t.Fatal(stderr)
	}
	if out, stderr := psql(t, opsDSN, "-c", "RELOAD"); out != "RELOAD\n" || stderr != "" {
		t.Errorf("RELOAD: %s%s", out, stderr)
	}
	queryInt(t, connect(t, i.dsn("third", address)), "SELECT count(*) FROM memories")
	i.editConfig(t, "version: 1", "version: 2")
	if _, stderr := psql(t, opsDSN, "-c", "RELOAD"); !strings.Contains(stderr, "version must be 1") {
		t.Errorf("RELOAD of a wrong file: %s", stderr)
	}
	i.editConfig(t, "version: 2", "version: 1")

	// An operator who was removed from the configuration cannot run a command, even in an open session.
	secondConn := connect(t, consoleDSN("second", address))
	if _, err := secondConn.Exec(t.Context(), "SHOW VERSION"); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := call(t, "", "operator", "disable", "second", "-c", i.config); code != exitOK {
		t.Fatal(stderr)
	}
	waitFor(t, "a disabled operator is refused", func() bool {
		_, err := secondConn.Exec(t.Context(), "SHOW VERSION")
		return sqlState(err) == "28000"
	})
	if out, _, _ := call(t, "", "operator", "list", "-c", i.config, "--json"); !strings.Contains(strings.Join(strings.Fields(out), ""),
		`[{"name":"ops","login":"yes"},{"name":"second","login":"disabled"}]`) {
		t.Errorf("operator list: %s", out)
	}

	i.checkCalls(t, []string{"console.login ops ", "session.kill ops app done", "session.kill ops  failed 42704", "configuration.reload ops  done",
		"configuration.reload ops  failed F0000", "console.login second "})
}

// checkCalls checks that the audit has a record of each of these calls of operators, in any order.
func (i *installation) checkCalls(t *testing.T, want []string) {
	t.Helper()
	out, stderr, code := call(t, "", "audit", "export", "-c", i.config)
	if code != exitOK {
		t.Fatal(stderr)
	}
	var got []string
	for line := range strings.Lines(out) {
		var r struct {
			Kind, Face, By, Role, Database, Operation, Outcome, Code string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Kind == "call" && r.Face == "admin" && r.Role == "operator" {
			got = append(got, strings.TrimSpace(strings.Join([]string{r.Operation, r.By, r.Database, r.Outcome, r.Code}, " ")))
		}
	}
	for _, w := range want {
		if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, w) }) {
			t.Errorf("the audit has no call %q among %q", w, got)
		}
	}
}

// PAUSE makes new statements wait, in SQL and in the services, and RESUME lets them continue. A table that has changed
// is listed with its fix.
func TestPauseByOperator(t *testing.T) {
	i := installWithAudit(t).withOperators(t, "ops")
	p, address := i.startServe(t)
	opsConn := connect(t, consoleDSN("ops", address))
	agent, busyAgent := connect(t, i.dsn("chat", address)), connect(t, i.dsn("chat", address))
	tx, err := busyAgent.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, stderr := psql(t, consoleDSN("ops", address), "-c", "PAUSE app"); !strings.Contains(stderr, "NOTICE:  1 sessions have a statement or a transaction") {
		t.Errorf("PAUSE does not tell of the open transaction: %s", stderr)
	}
	busyResult := make(chan error, 1)
	go func() {
		busyResult <- agent.QueryRow(context.Background(), "SELECT count(*) FROM memories").Scan(new(int))
	}()
	count := func(state string) (n int) {
		rows, err := opsConn.Query(t.Context(), "SHOW SESSIONS")
		if err != nil {
			t.Fatal(err)
		}
		serverStatements, err := pgx.CollectRows(rows, pgx.RowToMap)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range serverStatements {
			if s["state"] == state && s["kind"] == "agent" {
				n++
			}
		}
		return n
	}
	waitFor(t, "the statement waits", func() bool { return count("waiting") == 1 })
	if n := count("idle in transaction"); n != 1 {
		t.Errorf("%d sessions are in a transaction", n)
	}
	var n int
	if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM memories").Scan(&n); err != nil || n != 1 {
		t.Errorf("the open transaction: %d %v", n, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	// During a pause an agent can log in, and its first statement waits. The owner's statements do not wait.
	waitingConn := connect(t, i.dsn("other", address))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := waitingConn.Exec(ctx, "SELECT 1"); err == nil {
		t.Error("a new session does not wait")
	}
	queryInt(t, connect(t, i.dsn("app_owner", address)), "SELECT count(*) FROM memories")
	select {
	case err := <-busyResult:
		t.Errorf("the statement was answered: %v", err)
	default:
	}
	if out, _ := psql(t, consoleDSN("ops", address), "-At", "-c", "SHOW POLICY"); strings.Count(out, "+00|") != 2 {
		t.Errorf("SHOW POLICY does not tell since when: %s", out)
	}
	if _, err := opsConn.Exec(t.Context(), "RESUME"); err != nil {
		t.Fatal(err)
	}
	if err := <-busyResult; err != nil {
		t.Errorf("after RESUME: %v", err)
	}
	if _, err := opsConn.Exec(t.Context(), "PAUSE nothing"); sqlState(err) != "3D000" {
		t.Errorf("PAUSE of another database: %v", err)
	}

	owner := i.db.Connect(t, "postgres")
	if _, err := owner.Exec(t.Context(), "ALTER TABLE public.notes ADD COLUMN more bigint GENERATED ALWAYS AS (id) STORED"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the changed table is listed", func() bool {
		out, _ := psql(t, consoleDSN("ops", address), "-At", "-c", "SHOW SUSPENDED")
		return strings.Contains(out, "app|relation|public.notes|its definition has changed since pgconsent migrate|Run pgconsent migrate")
	})
	i.checkCalls(t, []string{"database.pause ops app done", "database.resume ops  done", "database.pause ops nothing failed 3D000"})

	p.signal(t, syscall.SIGTERM)
	if code := p.awaitEnd(t); code != exitOK {
		t.Errorf("code %d", code)
	}
	if err := opsConn.Ping(t.Context()); err == nil {
		t.Error("the console outlives the process")
	}
}

// Without admin.users there is no console, and operator add says how to configure one.
func TestNoAdminConsole(t *testing.T) {
	c := writeTestFile(t, "c.yaml", minimalConfig, 0o600)
	_, stderr, code := call(t, "", "operator", "add", "ops", "-c", c)
	if code != exitError || !strings.Contains(stderr, `there is no operator "ops"`) || !strings.Contains(stderr, "admin: { users: [ops] }") {
		t.Errorf("%d %s", code, stderr)
	}
}
