//go:build unix

// Package pgtest gives tests a real PostgreSQL: one server for a whole run or for a package, a database of its own for
// each test.
//
// A run of all packages starts one server and names its folder in [ClusterVariable] (package test/run does). Without
// that, as under plain `go test`, each package starts a server of its own. It trusts every user on its unix socket,
// whose folder is private to the user it runs as, and asks for SCRAM passwords on 127.0.0.1. It ends with the process
// that started it, on Linux even when that is killed. Roles belong to the whole server: tests that make some share them
// with the tests of other packages (see [Lock]). Import it from _test files only.
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

// server is that of the tests of this process.
var server *Server

// Main runs the package's tests with a server: that of the run, or one of its own. A machine without PostgreSQL fails:
// it is no reason to skip.
func Main(m *testing.M) { os.Exit(run(m, os.Getenv(ClusterVariable))) }

// MainAlone is Main for packages whose tests change what belongs to the whole server, as the rights of roles and
// settings: no other package uses their server.
func MainAlone(m *testing.M) { os.Exit(run(m, "")) }

// atEnd is what is to be done when all tests are over and the server is still there.
var (
	atEndMu sync.Mutex
	atEnd   []func() error
)

// AtEnd has f called when all tests of this process are over, before their server stops. An error fails the run.
func AtEnd(f func() error) {
	atEndMu.Lock()
	defer atEndMu.Unlock()
	atEnd = append(atEnd, f)
}

// end does what is to be done after the tests, and returns the exit code.
func end(code int) int {
	for _, f := range slices.Backward(atEnd) {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

func run(m *testing.M, shared string) int {
	if shared != "" {
		var err error
		if server, err = join(shared); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return 1
		}
		code := end(m.Run())
		if err = dropDiscarded(); err == nil {
			err = dropTemplates()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return 1
		}
		return code
	}
	// Within the folder of the run, if there is one: that goes away with the run, also when this process is killed.
	dir, err := folderIn(os.Getenv(ClusterVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	running, err := StartServer(ctx, dir, initialised(os.Getenv(ClusterVariable)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest: cannot start PostgreSQL:", err)
		return 1
	}
	defer running.Stop()
	server = running.Server
	return end(m.Run())
}

// SocketDir is the folder of the server's unix socket.
func SocketDir() string { return server.SocketDir }

// Port is the port in the name of the unix socket.
func Port() int { return server.Port }

// TCPPort is the port on 127.0.0.1.
func TCPPort() int { return server.Port }

// LogFile is where the server writes its log.
func LogFile() string { return server.LogFile }

// Binaries are those of the running server: psql and pg_dump are often in the same folder.
func Binaries() pgcluster.Binaries { return server.Binaries }

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
