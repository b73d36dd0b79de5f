//go:build unix

// Package pgtest gives tests a real PostgreSQL: one server for a run or for a package, and a database for each test.
//
// A run of all packages starts one server and passes its folder in [ClusterVariable] (package test/run does).
// Otherwise, as with plain `go test`, each package starts its own. The server trusts every user on its unix socket,
// whose folder is private to the user it runs as, and requires SCRAM passwords on 127.0.0.1. It ends with the process
// that started it, on Linux even if that is killed. Roles belong to the whole server: tests that make roles share them
// with tests of other packages (see [Lock]). Import it from _test files only.
package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgcluster"
)

// server is the server of this process's tests.
var server *Server

// Main runs the package's tests with a server: the server of the run, or one of its own. Without PostgreSQL on the
// machine the tests fail; they are not skipped.
func Main(m *testing.M) { os.Exit(runTests(m, os.Getenv(ClusterVariable))) }

// MainAlone does what Main does, for packages whose tests change properties of the whole server, such as rights of
// roles and settings. No other package uses their server.
func MainAlone(m *testing.M) { os.Exit(runTests(m, "")) }

// atEnd are the functions to call after all tests, while the server still runs.
var (
	atEndMu sync.Mutex
	atEnd   []func() error
)

// AtEnd registers a function to call when all tests of this process are over, before their server stops. Its error
// fails the run.
func AtEnd(f func() error) {
	atEndMu.Lock()
	defer atEndMu.Unlock()
	atEnd = append(atEnd, f)
}

// runAtEnd calls the functions that [AtEnd] has registered, and returns the exit code.
func runAtEnd(code int) int {
	for _, f := range slices.Backward(atEnd) {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

func runTests(m *testing.M, shared string) int {
	if shared != "" {
		var err error
		if server, err = readServer(shared); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return 1
		}
		code := runAtEnd(m.Run())
		if err = dropDiscarded(); err == nil {
			err = dropTemplates()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return 1
		}
		return code
	}
	// The folder is inside the folder of the run, if there is one, and so is removed with it, also if this process is
	// killed.
	dir, err := folderIn(os.Getenv(ClusterVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	running, err := StartServer(ctx, dir, initialDataFolder(os.Getenv(ClusterVariable)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest: cannot start PostgreSQL:", err)
		return 1
	}
	defer running.Stop()
	server = running.Server
	return runAtEnd(m.Run())
}

// SocketDir returns the folder of the server's unix socket.
func SocketDir() string { return server.SocketDir }

// Port returns the port in the name of the unix socket.
func Port() int { return server.Port }

// TCPPort returns the port on 127.0.0.1.
func TCPPort() int { return server.Port }

// LogFile returns the path of the server's log.
func LogFile() string { return server.LogFile }

// Binaries returns the programs of the running server; psql and pg_dump are often in the same folder.
func Binaries() pgcluster.Binaries { return server.Binaries }

// ClientProgram returns the path of a client program, and whether its version is that of the running server: the
// program beside the server, else one in PATH. If there is none, the test fails.
func ClientProgram(t testing.TB, name string) (path string, isSameMajor bool) {
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
