package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

// program is a running pgconsent.
type program struct {
	cmd        *exec.Cmd
	out        *bufio.Reader
	errs       *output
	exitResult chan error
}

// output collects what a program prints.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func launch(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	return launchThrough(t, env, append([]string{os.Args[0]}, args...)...)
}

// launchThrough does what launch does, with a command that executes the program.
func launchThrough(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	return startProgram(t, exec.Command(args[0], args[1:]...), env)
}

// startProgram starts a command that executes the program.
func startProgram(t *testing.T, cmd *exec.Cmd, env []string) *program {
	t.Helper()
	p := &program{cmd: cmd, errs: &output{}, exitResult: make(chan error, 1)}
	p.cmd.Env = append(append(os.Environ(), "PGCONSENT_TEST_MAIN=1"), env...)
	p.cmd.Stderr = p.errs
	out, pipeEnd := io.Pipe()
	p.cmd.Stdout, p.out = pipeEnd, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { err := p.cmd.Wait(); pipeEnd.Close(); p.exitResult <- err; close(p.exitResult) }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exitResult
		if t.Failed() {
			t.Logf("%v said:\n%s", cmd.Args, p.errs)
		}
	})
	return p
}

// awaitEnd waits for the program and returns its exit code.
func (p *program) awaitEnd(t *testing.T) int {
	t.Helper()
	select {
	case err := <-p.exitResult:
		var e *exec.ExitError
		if errors.As(err, &e) {
			return e.ExitCode()
		}
		return 0
	case <-time.After(tier.Patience):
		t.Fatalf("%v does not end", p.cmd.Args[1:])
		return -1
	}
}

func (p *program) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// announcement is the line that demo --json prints.
type announcement struct {
	World    string            `json:"world"`
	OwnerDSN string            `json:"owner_dsn"`
	Agents   map[string]string `json:"agents"`
	HTTP     string            `json:"http"`
	Tokens   map[string]string `json:"tokens"`
}

func (p *program) ready(t *testing.T) (announcement, string) {
	t.Helper()
	line := make(chan string, 1)
	go func() { text, _ := p.out.ReadString('\n'); line <- text }()
	var a announcement
	select {
	case text := <-line:
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return a, text
	case <-time.After(tier.Patience):
		t.Fatal("the demo does not get ready")
		return a, ""
	}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func queryInt(t *testing.T, conn *pgx.Conn, sql string) (n int) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

var serverPID = regexp.MustCompile(`runs \(pid (\d+)`)

func (p *program) server(t *testing.T) int {
	t.Helper()
	m := serverPID.FindStringSubmatch(p.errs.String())
	if m == nil {
		t.Fatal("the demo does not say its server's pid")
	}
	pid, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func isAlive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// A demo runs from its start to its removal, and the other commands work with the configuration that it writes.
func TestDemo(t *testing.T) {
	tier.All(t)
	ctx := context.Background()
	baseDir, err := os.MkdirTemp("/tmp", "demo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(baseDir) })
	if err := os.Chmod(baseDir, 0o711); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(baseDir, "d")
	listen, httpAddress := pgtest.FreeAddress(t), pgtest.FreeAddress(t)
	start := func(extraArgs ...string) *program {
		return launch(t, nil, append([]string{"demo", "--dir", dir, "--listen", listen, "--http", httpAddress}, extraArgs...)...)
	}

	// A port that is in use is reported before anything is created.
	occupiedListener, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	if p := start(); p.awaitEnd(t) != exitError || !strings.Contains(p.errs.String(), listen+" is in use") || !strings.Contains(p.errs.String(), "lsof") {
		t.Errorf("port in use: %s", p.errs)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("with its port in use the demo made its folder: %v", err)
	}
	occupiedListener.Close()

	demo := start("--json")
	access, line := demo.ready(t)
	if access.World != "arcive" || access.HTTP != "http://"+httpAddress || len(access.Agents) != 8 || access.Tokens == nil ||
		!strings.Contains(line, `"agents":{"caregiver":`) {
		t.Errorf("the line is %s", line)
	}
	chatConn, owner := connect(t, access.Agents["chat"]), connect(t, access.OwnerDSN)
	if n := queryInt(t, chatConn, "SELECT count(*) FROM memories"); n != 866 {
		t.Errorf("an agent sees %d memories", n)
	}
	if n := queryInt(t, owner, "SELECT count(*) FROM memories"); n != 2505 {
		t.Errorf("the owner sees %d memories", n)
	}
	if n := queryInt(t, connect(t, access.Agents["neighbour"]),
		"SELECT count(*) FROM memories WHERE user_id <> '22222222-2222-4222-8222-222222222222'"); n != 0 {
		t.Errorf("an agent sees %d memories of others", n)
	}
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/metrics": "pgconsent_sessions"} {
		response, err := http.Get(access.HTTP + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %.80s", path, response.StatusCode, body)
		}
	}
	secrets, err := filepath.Glob(filepath.Join(dir, "secrets", "*"))
	if err != nil || len(secrets) != 12 {
		t.Errorf("secrets: %v %v", secrets, err)
	}
	for _, path := range append(secrets, filepath.Join(dir, "agents.scram")) {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	if p := start("--listen", pgtest.FreeAddress(t), "--http", pgtest.FreeAddress(t)); p.awaitEnd(t) != exitError ||
		!strings.Contains(p.errs.String(), "in use by another pgconsent") {
		t.Errorf("a second demo in the folder: %s", p.errs)
	}

	config := filepath.Join(dir, "pgconsent.yaml")
	t.Run("commands", func(t *testing.T) { checkCommands(t, config) })
	t.Run("readme", func(t *testing.T) { readmeSession(t, access) })
	t.Run("unsafe database", func(t *testing.T) { checkUnsafeDatabase(t, config) })
	t.Run("serve", func(t *testing.T) { checkServe(t, config, dir) })

	// The demo may have checked the database while it was unsafe.
	waitFor(t, "agents are served again", func() bool {
		conn, err := pgx.Connect(ctx, access.Agents["neighbour"])
		if err == nil {
			_ = conn.Close(ctx)
		}
		return err == nil
	})

	// Disabling an agent ends its sessions and prevents logins.
	neighbourConn := connect(t, access.Agents["neighbour"])
	if _, stderr, code := call(t, "", "agent", "disable", "neighbour", "-c", config); code != exitOK {
		t.Fatal(stderr)
	}
	waitFor(t, "the disabled agent's session ends", func() bool { return neighbourConn.Ping(ctx) != nil })
	if _, err := pgx.Connect(ctx, access.Agents["neighbour"]); sqlState(err) != "28P01" {
		t.Errorf("the disabled agent's login: %v", err)
	}

	if _, err := owner.Exec(ctx, "UPDATE memories SET title = 'kept' WHERE title = 'Sunrise at the lake'"); err != nil {
		t.Fatal(err)
	}
	pid := demo.server(t)
	demo.signal(t, os.Interrupt)
	if code := demo.awaitEnd(t); code != exitOK {
		t.Errorf("after SIGINT the exit code is %d", code)
	}
	if isAlive(pid) {
		t.Error("the demo's PostgreSQL lives on")
	}
	if err := chatConn.Ping(ctx); err == nil {
		t.Error("the demo has ended and still answers")
	}
	// The demo does not stop a PostgreSQL that it did not start.
	if err := pgtest.Database(t).Connect(t, "postgres").Ping(ctx); err != nil {
		t.Errorf("another PostgreSQL of this machine is gone: %v", err)
	}

	// A demo that is started again has the changed data and the same passwords.
	secondDemo := start("--json")
	if announcement, _ := secondDemo.ready(t); announcement.OwnerDSN != access.OwnerDSN || announcement.Agents["neighbour"] != access.Agents["neighbour"] {
		t.Error("the second start has other passwords")
	}
	if n := queryInt(t, connect(t, access.Agents["neighbour"]), "SELECT count(*) FROM memories WHERE title = 'kept'"); n != 0 {
		t.Errorf("another user's agent sees %d", n)
	}
	if n := queryInt(t, connect(t, access.Agents["mcp"]), "SELECT count(*) FROM memories WHERE title = 'kept'"); n != 1 {
		t.Error("the second start lost a change")
	}

	// After the demo is killed, the next start waits for the PostgreSQL that still runs, and recovers. An interrupted load
	// is repeated.
	pid = secondDemo.server(t)
	secondDemo.signal(t, os.Kill)
	secondDemo.awaitEnd(t)
	if err := os.Remove(filepath.Join(dir, "loaded")); err != nil {
		t.Fatal(err)
	}
	tourProgram := start("--tour=only")
	text, err := io.ReadAll(tourProgram.out)
	if err != nil {
		t.Fatal(err)
	}
	if code := tourProgram.awaitEnd(t); code != exitOK {
		t.Errorf("the tour's exit code is %d:\n%s", code, text)
	}
	for _, want := range []string{"(3 rows)", "(2 rows)", "UPDATE 1", "memory_edges", "SQLSTATE 42501", "HINT:", "Sunrise at the lake"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the tour does not show %q:\n%s", want, text)
		}
	}
	if isAlive(pid) || isAlive(tourProgram.server(t)) {
		t.Error("a PostgreSQL of the demo lives on")
	}
}

func waitFor(t *testing.T, label string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(tier.Patience); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", label)
		}
	}
}

func checkCommands(t *testing.T, config string) {
	for name, c := range map[string]struct {
		in   string
		args []string
		code int
		out  string
		err  string
	}{
		"doctor":          {"", []string{"doctor"}, exitOK, "row security is on", ""},
		"doctor JSON":     {"", []string{"doctor", "--json"}, exitOK, `{"database":"arcive","id":"server","severity":"ok"`, ""},
		"policy check":    {"", []string{"policy", "check"}, exitOK, "ok for database arcive", ""},
		"policy offline":  {"", []string{"policy", "check", "--offline"}, exitOK, "not compared", ""},
		"dry run":         {"", []string{"migrate", "--dry-run"}, exitOK, "-- database arcive", ""},
		"migrate again":   {"", []string{"migrate"}, exitOK, "database arcive: installed", ""},
		"rewrite":         {"", []string{"rewrite", "--as", "chat", "SELECT count(*) FROM memories"}, exitOK, "public.memories", ""},
		"rewrite verbose": {"", []string{"rewrite", "--as", "chat", "-v", "SELECT count(*) FROM memories"}, exitOK, "public.memories", "path:  "},
		"rewrite stdin":   {"TABLE people", []string{"rewrite", "--as", "chat"}, exitOK, "public.people", ""},
		"rewrite JSON":    {"", []string{"rewrite", "--as", "chat", "--json", "SELECT 1 FROM people WHERE id <> id"}, exitOK, `<>`, ""},
		"rewrite refuses": {"", []string{"rewrite", "--as", "chat", "SELECT 1 FROM memory_edges"}, exitError, "", "HINT:"},
		"rewrite pins":    {"", []string{"rewrite", "--as", "chat", "SELECT * FROM search_memories_semantic('x', 3, false)"}, exitOK, "true", ""},
		"explain": {"", []string{"explain", "--as",
			"chat", "SELECT m.title FROM memories m WHERE m.id = $1"}, exitOK, "public.memories AS m  -       -       structured  key  id, title", ""},
		"explain rules": {"", []string{"explain", "--as", "chat", "SELECT count(*) FROM memories"}, exitOK,
			"rows of public.memories: own (policy.yaml:", ""},
		"explain JSON":    {"", []string{"explain", "--as", "chat", "--json", "SELECT * FROM memories"}, exitOK, `"source":"vector"`, ""},
		"explain refuses": {"", []string{"explain", "--as", "chat", "SELECT 1 FROM memory_edges"}, exitError, "REFUSED:  relation", ""},
		"explain no value": {"", []string{"explain", "--as", "chat", "--set", "nothing=1", "SELECT 1"}, exitUsage,
			"", `the policy has no attribute "nothing"`},
		"refusal JSON":      {"", []string{"rewrite", "--as", "chat", "--json", "DELETE FROM people"}, exitError, `"sqlstate":"42501"`, ""},
		"rewrite no syntax": {"", []string{"rewrite", "--as", "chat", "SELEC 1"}, exitError, "", "42601"},
	} {
		out, stderr, code := call(t, c.in, append(c.args, "-c", config)...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(stderr, c.err) {
			t.Errorf("%s: code %d, want %d\nstdout %s\nstderr %s", name, code, c.code, out, stderr)
		}
	}
}

// superuser connects to the demo's server, past the proxy.
func superuser(t *testing.T, config string) *pgx.Conn {
	t.Helper()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	host := regexp.MustCompile(`(?m)^  host: (.*)$`).FindSubmatch(text)
	port := regexp.MustCompile(`(?m)^  port: (.*)$`).FindSubmatch(text)
	password, err := os.ReadFile(filepath.Join(filepath.Dir(config), "secrets", "postgres.pw"))
	if err != nil || host == nil || port == nil {
		t.Fatalf("%v in %s", err, text)
	}
	return connect(t, fmt.Sprintf("host=%s port=%s user=postgres password=%s dbname=arcive", host[1], port[1], strings.TrimSpace(string(password))))
}

// The doctor reports a database that cannot enforce the policy, and serve refuses it.
func checkUnsafeDatabase(t *testing.T, config string) {
	admin := superuser(t, config)
	for _, c := range []struct {
		breakSQL, repairSQL string
		suspendsTable       bool // only a table and its dependents are suspended; otherwise all agents are refused
	}{
		{"ALTER ROLE pgconsent_agent BYPASSRLS", "ALTER ROLE pgconsent_agent NOBYPASSRLS", false},
		{"ALTER TABLE people DISABLE ROW LEVEL SECURITY", "ALTER TABLE people ENABLE ROW LEVEL SECURITY", true},
	} {
		if _, err := admin.Exec(context.Background(), c.breakSQL); err != nil {
			t.Fatal(err)
		}
		out, stderr, code := call(t, "", "doctor", "-c", config)
		if code != exitError || !strings.Contains(out, "UNSAFE") || !strings.Contains(out, "fix:") {
			t.Errorf("%s: doctor says %d %s %s", c.breakSQL, code, out, stderr)
		}
		p := launch(t, []string{"PGCONSENT_LISTEN=127.0.0.1:0", "PGCONSENT_HTTP_LISTEN=off", "PGCONSENT_AUDIT_MODE=off"}, "serve", "-c", config)
		want := exitError
		if c.suspendsTable {
			want = exitOK
			waitFor(t, "the table is suspended", func() bool {
				return strings.Contains(p.errs.String(), "are suspended") && strings.Contains(p.errs.String(), "serving")
			})
			p.signal(t, os.Interrupt)
		}
		if code := p.awaitEnd(t); code != want || !strings.Contains(p.errs.String(), "cannot enforce the policy") {
			t.Errorf("%s: serve ends with %d: %s", c.breakSQL, code, p.errs)
		}
		if _, err := admin.Exec(context.Background(), c.repairSQL); err != nil {
			t.Fatal(err)
		}
	}
}

// checkServe runs a second proxy on the same database, with its own configuration.
func checkServe(t *testing.T, config, dir string) {
	ctx := context.Background()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	configPath := filepath.Join(dir, "second.yaml")
	if err := os.WriteFile(configPath, text, 0o600); err != nil {
		t.Fatal(err)
	}
	listen, httpAddress := pgtest.FreeAddress(t), pgtest.FreeAddress(t)
	p := launch(t, []string{"PGCONSENT_LISTEN=" + listen, "PGCONSENT_HTTP_LISTEN=" + httpAddress,
		"PGCONSENT_AUDIT_FILE=" + filepath.Join(dir, "audit2")}, "serve", "-c", configPath)
	httpGet := func(path string) string {
		response, err := http.Get("http://" + httpAddress + path)
		if err != nil {
			return ""
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return string(body)
	}
	waitFor(t, "serve is ready", func() bool { return strings.HasPrefix(httpGet("/readyz"), "ready") })
	password, err := os.ReadFile(filepath.Join(dir, "secrets", "agent-voice.pw"))
	if err != nil {
		t.Fatal(err)
	}
	dsn := "postgres://voice:" + strings.TrimSpace(string(password)) + "@" + listen + "/arcive"
	voiceConn := connect(t, dsn)
	if n := queryInt(t, voiceConn, "SELECT count(*) FROM memories"); n != 866 {
		t.Errorf("voice sees %d memories", n)
	}
	// The log is JSON if stderr is no terminal, and its first line reports the start.
	if firstLine, _, _ := strings.Cut(p.errs.String(), "\n"); !json.Valid([]byte(firstLine)) {
		t.Errorf("the log is not JSON: %s", firstLine)
	}
	for name, user := range map[string]string{"unknown user": "nobody", "a role that is no owner": "postgres", "the agent role": "pgconsent_agent"} {
		if _, err := pgx.Connect(ctx, "postgres://"+user+":x@"+listen+"/arcive"); sqlState(err) != "28P01" {
			t.Errorf("%s: %v", name, err)
		}
	}

	// An invalid configuration changes nothing; a valid one takes effect.
	if err := os.WriteFile(configPath, []byte("version: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGHUP)
	waitFor(t, "the wrong configuration is reported", func() bool { return strings.Contains(p.errs.String(), "was not reloaded") })
	if err := voiceConn.Ping(ctx); err != nil {
		t.Errorf("a wrong configuration ended a session: %v", err)
	}
	configWithoutVoice := regexp.MustCompile(`(?s)  voice:\n.*?\n  mcp:`).ReplaceAllString(string(text), "  mcp:")
	if configWithoutVoice == string(text) {
		t.Fatal("the configuration has no agent voice to take out")
	}
	if err := os.WriteFile(configPath, []byte(configWithoutVoice), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGHUP)
	waitFor(t, "the session of an agent that is gone ends", func() bool { return voiceConn.Ping(ctx) != nil })

	p.signal(t, syscall.SIGTERM)
	if code := p.awaitEnd(t); code != exitOK {
		t.Errorf("after SIGTERM the exit code is %d", code)
	}
	if strings.Contains(p.errs.String(), strings.TrimSpace(string(password))) {
		t.Error("the log has a password")
	}
}
