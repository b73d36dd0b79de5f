//go:build unix

package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

func ctx(t *testing.T) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return c
}

// folder is one that the server's account can enter.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pgcluster")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func start(t *testing.T, c Config) *Cluster {
	t.Helper()
	c.NoSync = true
	cl, err := Start(ctx(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cl.StopNow(); err != nil {
			t.Error(err)
		}
		if home := filepath.Dir(cl.DataDir); strings.HasPrefix(home, "/var/tmp/pgconsent-") {
			os.RemoveAll(home)
		}
	})
	return cl
}

func connect(t *testing.T, cl *Cluster, host, password string) (*pgx.Conn, error) {
	t.Helper()
	u := url.URL{Scheme: "postgres", User: url.UserPassword(cl.Superuser, password), Path: "/postgres",
		RawQuery: url.Values{"host": {host}, "port": {strconv.Itoa(cl.Port)}, "sslmode": {"disable"}}.Encode()}
	conn, err := pgx.Connect(ctx(t), u.String())
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

func hint(err error) string {
	var e *sqlstate.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

func TestStartStopAndReuse(t *testing.T) {
	tier.All(t)
	dir := folder(t)
	cl := start(t, Config{Dir: dir, ListensOnTCP: true, Password: "s e'cret"})
	if !cl.WasInitialised {
		t.Error("a new folder was not initialised")
	}
	for _, host := range []string{cl.SocketDir, "127.0.0.1"} {
		if _, err := connect(t, cl, host, "wrong"); err == nil {
			t.Errorf("%s: a wrong password was taken", host)
		}
	}
	conn, err := connect(t, cl, cl.SocketDir, "s e'cret")
	if err != nil {
		t.Fatal(err)
	}
	var encoding, locale string
	if err := conn.QueryRow(ctx(t),
		"SELECT pg_encoding_to_char(encoding), datcollate FROM pg_database WHERE datname = 'postgres'").Scan(&encoding, &locale); err != nil {
		t.Fatal(err)
	}
	if encoding != "UTF8" || locale != "C.UTF-8" && locale != "C" {
		t.Errorf("encoding %s, locale %s", encoding, locale)
	}
	if _, err := conn.Exec(ctx(t), "CREATE TABLE kept (n int)"); err != nil {
		t.Fatal(err)
	}

	// One process at a time.
	if _, err := Start(ctx(t), Config{Dir: dir, NoSync: true}); err == nil || !strings.Contains(err.Error(), "in use by another") || hint(err) == "" {
		t.Errorf("a second start on the same folder: %v", err)
	}
	if err := cl.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := cl.Stop(); err != nil {
		t.Errorf("the second Stop: %v", err)
	}
	if isAlive(cl.PID()) {
		t.Error("the server lives on after Stop")
	}

	again := start(t, Config{Dir: dir, ListensOnTCP: true, Password: "another"})
	if again.WasInitialised {
		t.Error("the folder was initialised twice")
	}
	conn, err = connect(t, again, "127.0.0.1", "s e'cret")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx(t), "SELECT n FROM kept"); err != nil {
		t.Errorf("the second start lost data: %v", err)
	}
	if err := again.Stop(); err != nil {
		t.Fatal(err)
	}

	fresh := start(t, Config{Dir: dir, ListensOnTCP: true, Password: "another", DeletesExisting: true})
	if conn, err = connect(t, fresh, "127.0.0.1", "another"); err != nil || !fresh.WasInitialised {
		t.Fatalf("a fresh start: %v", err)
	}
	if _, err := conn.Exec(ctx(t), "SELECT n FROM kept"); err == nil {
		t.Error("a fresh start kept data")
	}
}

func TestCrashedServerIsResumed(t *testing.T) {
	tier.All(t)
	dir := folder(t)
	cl := start(t, Config{Dir: dir})
	if err := syscall.Kill(cl.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-cl.Exited()
	if _, err := os.Stat(filepath.Join(cl.DataDir, "postmaster.pid")); err != nil {
		t.Fatalf("the crash left no stale postmaster.pid: %v", err)
	}
	if err := cl.Stop(); err != nil {
		t.Errorf("Stop after a crash: %v", err)
	}
	start(t, Config{Dir: dir})
}

func TestInterruptedInitStartsOver(t *testing.T) {
	tier.All(t)
	dir := folder(t)
	cancelled, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if cl, err := Start(cancelled, Config{Dir: dir, NoSync: true}); err == nil {
		_ = cl.StopNow()
		t.Skip("NOT TESTED: an initdb that is interrupted, since this machine is through with it in 300 ms")
	}
	if cl := start(t, Config{Dir: dir}); !cl.WasInitialised {
		t.Error("half a cluster was taken for a whole one")
	}
}

func TestPortInUse(t *testing.T) {
	tier.All(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	port := ln.Addr().(*net.TCPAddr).Port
	_, err = Start(ctx(t), Config{Dir: folder(t), ListensOnTCP: true, Port: port, NoSync: true})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("127.0.0.1:%d is in use", port)) || !strings.Contains(hint(err), "lsof") {
		t.Errorf("got %v", err)
	}
}

// fake makes a folder with a postgres that prints this version.
func fake(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho 'postgres (PostgreSQL) "+version+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFind(t *testing.T) {
	old, v15, v17 := fake(t, "14.9"), fake(t, "15.20 (Debian 15.20-1)"), fake(t, "17beta1")
	for name, c := range map[string]struct {
		env, path string
		globs     []string
		major     int
		want, err string
	}{
		"newest":              {globs: []string{v15, old, v17}, want: v17},
		"PATH first":          {path: v15, globs: []string{v17}, want: v15},
		"PATH too old":        {path: old, globs: []string{v15}, want: v15},
		"PG_BIN above all":    {env: v15, path: v17, want: v15},
		"PG_BIN too old":      {env: old, globs: []string{v17}, err: "14.9 in " + old + " is too old: 15 or later"},
		"PG_BIN without":      {env: t.TempDir(), globs: []string{v17}, err: "has no PostgreSQL server"},
		"none":                {err: "no PostgreSQL server binaries"},
		"only old":            {globs: []string{old}, err: "too old"},
		"that major":          {major: 15, globs: []string{v15, v17}, want: v15},
		"that major, PATH":    {major: 15, path: v17, globs: []string{v15}, want: v15},
		"another major":       {major: 15, globs: []string{v17}, err: "made by PostgreSQL 15"},
		"that major, nothing": {major: 15, err: "no PostgreSQL 15"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PG_BIN", c.env)
			t.Setenv("PATH", c.path+":/nonexistent")
			if c.path != "" || c.env != "" || len(c.globs) > 0 {
				t.Setenv("PATH", c.path+":/bin") // sh
			}
			if _, err := exec.LookPath("postgres"); err == nil && c.path == "" {
				t.Skip("NOT TESTED: PostgreSQL that is not in PATH, since this machine has it in /bin")
			}
			b, err := findMajor(ctx(t), c.major, c.globs)
			if b.Dir != c.want || (err == nil) != (c.err == "") {
				t.Fatalf("%q, %v; want %q, %q", b.Dir, err, c.want, c.err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want …%s…", err, c.err)
				}
				if c.env == "" && !strings.Contains(hint(err), "apt-get install postgresql") {
					t.Errorf("the hint %q does not say how to install", hint(err))
				}
			}
		})
	}
}

func TestOtherMajorIsRefused(t *testing.T) {
	tier.All(t)
	dir := folder(t)
	cl := start(t, Config{Dir: dir})
	if err := cl.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cl.DataDir, "PG_VERSION"), []byte("11\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(ctx(t), Config{Dir: dir, NoSync: true}); err == nil || !strings.Contains(err.Error(), "PostgreSQL 11") {
		t.Errorf("got %v", err)
	}
}

func TestLongAndClosedFoldersMove(t *testing.T) {
	tier.All(t)
	a, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(folder(t), strings.Repeat("long/", 25))
	l, err := makeLayout(long, a)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(filepath.Dir(l.socket))
	if !strings.HasPrefix(l.home, long) || !strings.HasPrefix(l.socket, "/var/tmp/pgconsent-") {
		t.Errorf("a long path: home %s, socket %s", l.home, l.socket)
	}
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: folders of another user, which need root")
	}
	closed := filepath.Join(folder(t), "closed", "demo")
	if err := os.MkdirAll(filepath.Dir(closed), 0o700); err != nil {
		t.Fatal(err)
	}
	cl := start(t, Config{Dir: closed})
	if !strings.HasPrefix(cl.DataDir, "/var/tmp/pgconsent-") {
		t.Errorf("the data of a closed folder are in %s", cl.DataDir)
	}
	info, err := os.Stat(filepath.Dir(cl.DataDir))
	if err != nil || info.Mode().Perm() != 0o700 || info.Sys().(*syscall.Stat_t).Uid != a.uid {
		t.Errorf("it is not private to the server's account: %v, %v", info.Mode(), err)
	}
}

// /var/tmp is everybody's: a folder that somebody put there beforehand must not become ours.
func TestForeignFolderIsRefused(t *testing.T) {
	a, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	for name, prepare := range map[string]func(path string) error{
		"open":    func(p string) error { _ = os.Mkdir(p, 0o700); _ = a.takeOwnership(p); return os.Chmod(p, 0o777) },
		"symlink": func(p string) error { return os.Symlink(t.TempDir(), p) },
		"file":    func(p string) error { return os.WriteFile(p, nil, 0o600) },
	} {
		path := filepath.Join(folder(t), "x")
		if err := prepare(path); err != nil {
			t.Fatal(err)
		}
		if err := makePrivate(path, a); err == nil || hint(err) == "" {
			t.Errorf("%s: taken (%v)", name, err)
		}
	}
}

// The test binary starts itself as a process that starts a cluster, and kills it.
func TestServerEndsWithItsProcess(t *testing.T) {
	tier.All(t)
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: a server that ends with its process, which only Linux ends")
	}
	if dir := os.Getenv("PGCLUSTER_TEST_CHILD"); dir != "" {
		cl, err := Start(ctx(t), Config{Dir: dir, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("pid=%d\n", cl.PID())
		select {}
	}
	dir := folder(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestServerEndsWithItsProcess$")
	cmd.Env = append(os.Environ(), "PGCLUSTER_TEST_CHILD="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanf(out, "pid=%d\n", &pid); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for deadline := time.Now().Add(tier.Patience); isAlive(pid); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGQUIT)
			t.Fatal("the server lives on after its process was killed")
		}
	}
	start(t, Config{Dir: dir})
}
