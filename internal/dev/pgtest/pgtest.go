//go:build unix

// Package pgtest gives tests a real PostgreSQL: one server for a run or for a package, and a database for each test.
//
// A run of all packages starts one server and passes its folder in [ClusterVariable] (package test/run does so).
// Otherwise, for example with plain `go test`, each package starts its own server. On its unix socket the server
// accepts every user without a password, but only the user who runs it can enter the socket's folder. On 127.0.0.1 it
// requires SCRAM passwords. The server ends with the process that started it, on Linux even if that process is killed.
// Roles belong to the whole server, so tests that make roles share them with tests of other packages (see [Lock]). Only
// _test files may import this package.
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

// server is the server that the tests of this process use.
var server *Server

// Main runs the package's tests with a server: that of the run, or one that Main starts. If the machine has no
// PostgreSQL, the tests fail, and are not skipped.
func Main(m *testing.M) { os.Exit(runTests(m, os.Getenv(ClusterVariable))) }

// MainAlone does the same as Main with a server that no other package uses. It is for packages whose tests change the
// whole server, such as rights of roles and settings.
func MainAlone(m *testing.M) { os.Exit(runTests(m, "")) }

// atEnd are the functions to call after all tests, before the server stops.
var (
	atEndMu sync.Mutex
	atEnd   []func() error
)

// AtEnd registers a function to call after all tests of this process, before their server stops. If the function
// returns an error, the run fails.
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
	// If there is a folder of the run, this folder is inside it. So it is removed with the run's folder even if this
	// process is killed.
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

// Port returns the port number in the file name of the unix socket.
func Port() int { return server.Port }

// TCPPort returns the port on which the server listens on 127.0.0.1.
func TCPPort() int { return server.Port }

// LogFile returns the path of the server's log.
func LogFile() string { return server.LogFile }

// Binaries returns the programs of the running server. psql and pg_dump are often in the same folder.
func Binaries() pgcluster.Binaries { return server.Binaries }

// ClientProgram returns the path of a client program: the one beside the server's programs, or else one in PATH.
// isSameMajor tells whether it has the server's major version. If there is no such program, the test fails.
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
