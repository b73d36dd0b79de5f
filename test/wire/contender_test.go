package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgcluster"
	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// contender is one way to reach the database that the measurement compares: directly, by PgBouncer, or by pgconsent.
type contender struct {
	name  string
	dsn   string
	pid   int  // the process between client and server, whose CPU time is measured; 0: there is none
	agent bool // the policy adds the rule to the statement, so its text does not have it
}

// password is the superuser's password: pgconsent refuses a database whose owner needs none.
const password = "measured"

// The contenders' names.
const (
	direct             = "none"
	bouncer            = "PgBouncer, session"
	bouncerTransaction = "PgBouncer, transaction"
	owner              = "pgconsent, owner"
	agent              = "pgconsent, agent"
	agentTransaction   = "pgconsent, agent, transaction"
)

// contenderSets are the contenders that are compared with one another.
type contenderSets struct {
	all    []contender // all contenders; the audit of the agents' is buffered
	audits []contender // an agent's login with each mode of the audit, named after the mode
}

// startContenders starts the processes to compare. PgBouncer and pgconsent reach the server by its Unix socket.
func startContenders(t *testing.T, cluster *pgcluster.Cluster) contenderSets {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "pgconsent")
	if out, err := exec.Command("go", "build", "-o", binary, instance.RepoPath(t, "cmd/pgconsent")).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	folder := filepath.Join(dir, "demo")
	access := loadDemo(t, binary, folder, cluster)
	login := parseDSN(t, access.Owner)
	database := login.Copy()
	database.Database = "pgconsent_demo_" + login.Database // the name that the demo gives its database on an existing server
	var sets contenderSets
	sets.all = []contender{{name: direct, dsn: socketDSN(database, cluster)}}
	for name, poolMode := range map[string]string{bouncer: "session", bouncerTransaction: "transaction"} {
		if c, ok := pgbouncer(t, name, poolMode, database, cluster); ok {
			sets.all = append(sets.all, c)
		}
	}
	slices.SortStableFunc(sets.all[1:], func(a, b contender) int { return strings.Compare(a.name, b.name) })
	chat := parseDSN(t, access.Agents["chat"])
	for _, poolMode := range []string{"off", "buffered", "strict"} {
		port, pid := serve(t, binary, folder, cluster.SocketDir, poolMode)
		c := contender{name: "audit " + poolMode, dsn: tcpDSN(chat, "127.0.0.1", port), pid: pid, agent: true}
		sets.audits = append(sets.audits, c)
		if poolMode == "buffered" {
			c.name = agent
			sets.all = append(sets.all, contender{name: owner, dsn: tcpDSN(login, "127.0.0.1", port), pid: pid}, c)
		}
	}
	port, pid := serve(t, binary, folder, cluster.SocketDir, "buffered", poolConfig)
	sets.all = append(sets.all, contender{name: agentTransaction, dsn: tcpDSN(chat, "127.0.0.1", port), pid: pid, agent: true})
	return sets
}

// contenderNamed returns the contender with this name; false: it was not started.
func contenderNamed(all []contender, name string) (contender, bool) {
	i := slices.IndexFunc(all, func(c contender) bool { return c.name == name })
	if i < 0 {
		return contender{}, false
	}
	return all[i], true
}

// startPostgres starts a PostgreSQL server for the measurement. It does not sync to disk, since disks are not measured.
func startPostgres(t *testing.T) *pgcluster.Cluster {
	t.Helper()
	dir := t.TempDir()
	makeReadable(t, dir)
	cluster, err := pgcluster.Start(t.Context(),
		pgcluster.Config{Dir: filepath.Join(dir, "postgres"), Password: password, ListensOnTCP: true, NoSync: true,
			Settings: map[string]string{"max_connections": "3500"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

type access struct {
	Owner  string            `json:"owner_dsn"`
	Agents map[string]string `json:"agents"`
}

// loadDemo loads the demo's world into the server, and returns the connection strings. The demo's process has ended
// then.
func loadDemo(t *testing.T, binary, folder string, cluster *pgcluster.Cluster) access {
	t.Helper()
	super := fmt.Sprintf("postgres://%s:%s@/postgres?host=%s&port=%d", cluster.Superuser, password, url.QueryEscape(cluster.SocketDir), cluster.Port)
	cmd := exec.Command(binary, "demo", "--postgres", super, "--dir", folder,
		"--listen", pgtest.FreeAddress(t), "--http", pgtest.FreeAddress(t), "--json")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var a access
	if err := json.NewDecoder(out).Decode(&a); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
	return a
}

// poolSize is how many connections to the server the sessions of a pool share.
const poolSize = 20

// poolConfig is the configuration of a database whose agents share connections.
var poolConfig = fmt.Sprintf("    pool: { mode: transaction, size: %d }", poolSize)

// serve starts pgconsent with the demo's configuration, but with its own address, audit mode and upstream. It adds the
// given lines to the database's section.
func serve(t *testing.T, binary, folder, upstream, audit string, databaseLines ...string) (port, pid int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "pgconsent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	listen := pgtest.FreeAddress(t)
	_, p, _ := net.SplitHostPort(listen)
	var lines []string
	section := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, " ") {
			section, _, _ = strings.Cut(line, ":")
		}
		switch {
		case section == "listen":
			line = "listen: " + listen
		case section == "http", section == "audit":
			continue
		case section == "upstream" && strings.HasPrefix(line, "  host:"):
			line = "  host: " + upstream
		case section == "databases" && strings.HasPrefix(line, "    policy:"):
			lines = append(lines, databaseLines...)
		}
		lines = append(lines, line)
	}
	name := "wire-" + p
	lines = append(lines, "http: { listen: off }", "audit: { mode: "+audit+", file: "+name+".audit }", "")
	file := filepath.Join(folder, name+".yaml")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, binary, "serve", "--config", file)
	pid = waitForListener(t, listen)
	port, _ = strconv.Atoi(p)
	return port, pid
}

// pgbouncer starts PgBouncer in a pool mode. It returns false if PgBouncer is not installed.
func pgbouncer(t *testing.T, name, mode string, owner *pgconn.Config, cluster *pgcluster.Cluster) (contender, bool) {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		if path = "/usr/sbin/pgbouncer"; !executable(path) {
			fmt.Println("wire: pgbouncer is not installed, and is left out")
			return contender{}, false
		}
	}
	size := 1100
	if mode == "transaction" {
		size = poolSize
	}
	dir := t.TempDir()
	listen := pgtest.FreeAddress(t)
	host, port, _ := net.SplitHostPort(listen)
	users := filepath.Join(dir, "users.txt")
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n%s = host=%s port=%d\n[pgbouncer]\nlisten_addr = %s\nlisten_port = "+
		"%s\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = %s\npool_mode = %s\n"+
		"max_client_conn = 12000\ndefault_pool_size = %d\nlog_connections = 0\nlog_disconnections = "+
		"0\nstats_period = 600\nserver_idle_timeout = 5\nserver_idle_timeout = 5\nignore_startup_parameters = extra_float_digits\n",
		owner.Database, cluster.SocketDir, cluster.Port, host, port, users, mode, size)
	for file, text := range map[string]string{users: fmt.Sprintf("%q %q\n", owner.User, owner.Password), config: text} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	arguments := []string{path, config}
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		makeReadable(t, dir)
		makeReadable(t, cluster.SocketDir)
		arguments = []string{"setpriv", "--reuid=nobody", "--clear-groups", path, config}
	}
	run(t, arguments[0], arguments[1:]...)
	n, _ := strconv.Atoi(port)
	return contender{name: name, dsn: tcpDSN(owner, host, n), pid: waitForListener(t, listen)}, true
}

// makeReadable lets other users of the machine into a folder of the test.
func makeReadable(t *testing.T, dir string) {
	t.Helper()
	for d := dir; strings.HasPrefix(d, os.TempDir()) && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func executable(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.Mode()&0o111 != 0
}

// run starts a process that is ended with the test.
func run(t *testing.T, name string, arguments ...string) {
	t.Helper()
	cmd := exec.Command(name, arguments...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if b, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s: %s", name, b)
		}
		_ = log.Close()
	})
	startedPID = cmd.Process.Pid
}

// startedPID is the process that run has started last. If that is setpriv, it becomes the program that it starts.
var startedPID int

// waitForListener waits until something listens at the address, and returns the process that was started last.
func waitForListener(t *testing.T, address string) int {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return startedPID
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func parseDSN(t *testing.T, dsn string) *pgconn.Config {
	t.Helper()
	c, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tcpDSN(c *pgconn.Config, host string, port int) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(c.User, c.Password),
		Host: net.JoinHostPort(host, strconv.Itoa(port)), Path: c.Database, RawQuery: "sslmode=disable"}
	return u.String()
}

// socketDSN returns the DSN of the server's Unix socket.
func socketDSN(c *pgconn.Config, cluster *pgcluster.Cluster) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(c.User, c.Password), Path: "/" + c.Database,
		RawQuery: url.Values{"host": {cluster.SocketDir}, "port": {strconv.Itoa(cluster.Port)}, "sslmode": {"disable"}}.Encode()}
	return u.String()
}

// connect opens a connection to a contender.
func connect(t *testing.T, c contender) *pgconn.PgConn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgconn.Connect(ctx, c.dsn)
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return conn
}

// hasProc tells whether /proc exists.
func hasProc() bool { return runtime.GOOS == "linux" }
