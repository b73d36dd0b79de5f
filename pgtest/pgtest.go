//go:build unix

// Package pgtest gives tests a real PostgreSQL: one server per package run, a database of its own for each test.
//
// The server trusts every user on its unix socket, whose folder is private to the user it runs as, and asks for SCRAM
// passwords on 127.0.0.1. It ends with the test process, on Linux even when that is killed. Roles belong to the whole
// server: tests that create some share them. Import it from _test files only.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/pgcluster"
)

var (
	cluster *pgcluster.Cluster
	counter atomic.Int64
)

// Main runs the package's tests with a server. A machine without PostgreSQL fails: it is no reason to skip.
func Main(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	_ = os.Chmod(dir, 0o711) // the server may run as another user
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cluster, err = pgcluster.Start(ctx, pgcluster.Config{
		Dir: dir, TCP: true, NoSync: true,
		// Of two databases one that is analysed meanwhile has other plans: twins are compared, and so are costs.
		Settings: map[string]string{"max_connections": "200", "max_worker_processes": "16", "shared_buffers": "32MB", "autovacuum": "off"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest: cannot start PostgreSQL:", err)
		return 1
	}
	if home := filepath.Dir(cluster.DataDir); !strings.HasPrefix(home, dir) {
		defer os.RemoveAll(home)
	}
	defer cluster.StopNow()
	return m.Run()
}

// SocketDir is the folder of the server's unix socket.
func SocketDir() string { return cluster.SocketDir }

// Port is the port in the name of the unix socket.
func Port() int { return cluster.Port }

// TCPPort is the port on 127.0.0.1.
func TCPPort() int { return cluster.Port }

// LogFile is where the server writes its log.
func LogFile() string { return cluster.LogFile }

// Binaries are those of the running server: psql and pg_dump are often in the same folder.
func Binaries() pgcluster.Binaries { return cluster.Binaries }

// DB is a database that exists for one test.
type DB struct {
	Name      string
	SocketDir string
	Port      int
}

// DSN is a connection string: by the unix socket without password, by TCP with one.
func (db *DB) DSN(user, password string) string {
	u := url.URL{Scheme: "postgres", Path: "/" + db.Name}
	if password == "" {
		u.User = url.User(user)
		u.RawQuery = url.Values{"host": {db.SocketDir}, "port": {strconv.Itoa(db.Port)}}.Encode()
		return u.String()
	}
	u.User = url.UserPassword(user, password)
	u.Host = fmt.Sprintf("127.0.0.1:%d", db.Port)
	u.RawQuery = "sslmode=disable"
	return u.String()
}

// Connect opens a connection by the unix socket, closed at the test's end. The user "postgres" is the superuser.
func (db *DB) Connect(t testing.TB, user string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.DSN(user, ""))
	if err != nil {
		t.Fatalf("connect to %s as %s: %v", db.Name, user, err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Database makes an empty database.
func Database(t testing.TB) *DB {
	t.Helper()
	return create(t, "template0")
}

type template struct {
	once sync.Once
	name string
	err  error
}

var templates sync.Map // name → *template

// Template makes a database as build leaves it. Build runs once per package run and name, as superuser, on a database
// that the others are copied from; it must close what else it opens.
func Template(t testing.TB, name string, build func(ctx context.Context, conn *pgx.Conn) error) *DB {
	t.Helper()
	v, _ := templates.LoadOrStore(name, &template{})
	tmpl := v.(*template)
	tmpl.once.Do(func() {
		tmpl.name = fmt.Sprintf("template_%d", counter.Add(1))
		tmpl.err = buildTemplate(tmpl.name, build)
	})
	if tmpl.err != nil {
		t.Fatalf("template %s: %v", name, tmpl.err)
	}
	return create(t, tmpl.name)
}

func buildTemplate(name string, build func(ctx context.Context, conn *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := admin(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, on(name).DSN("postgres", ""))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	return build(ctx, conn)
}

func on(name string) *DB { return &DB{Name: name, SocketDir: cluster.SocketDir, Port: cluster.Port} }

func create(t testing.TB, from string) *DB {
	t.Helper()
	if cluster == nil {
		t.Fatal("pgtest: no server; call pgtest.Main in TestMain")
	}
	name := fmt.Sprintf("test_%d", counter.Add(1))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := admin(ctx, "CREATE DATABASE "+name+" TEMPLATE "+from); err != nil {
		t.Fatalf("create database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := admin(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop database: %v", err)
		}
	})
	return on(name)
}

// copying a template needs it unconnected, and creating databases side by side is no faster.
var adminMu sync.Mutex

func admin(ctx context.Context, sql string) error {
	adminMu.Lock()
	defer adminMu.Unlock()
	conn, err := pgx.Connect(ctx, on("postgres").DSN("postgres", ""))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(ctx, sql)
	return err
}

// Client returns the path of a client program, and whether it is that of the running server's version: the one beside the
// server, else one in PATH. A machine without it fails.
func Client(t testing.TB, name string) (path string, same bool) {
	t.Helper()
	if path = filepath.Join(Binaries().Dir, name); isExecutable(path) {
		return path, true
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed", name)
	}
	return path, false
}

func isExecutable(path string) bool {
	_, err := exec.LookPath(path)
	return err == nil
}
