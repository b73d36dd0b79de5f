//go:build unix

package pgtest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgcluster"
)

// ClusterVariable is the environment variable with the folder of the server that all packages of a run share.
const ClusterVariable = "PGCONSENT_TEST_CLUSTER"

// Server describes a running server. For a shared server, its folder contains the description as JSON.
type Server struct {
	Binaries  pgcluster.Binaries
	SocketDir string
	Port      int // the port of the unix socket and of 127.0.0.1
	LogFile   string
	// a copy of the data folder, made before any test ran, with which packages start servers of their own
	InitialData string
}

// RunningServer is a server that this process has started.
type RunningServer struct {
	*Server
	cluster *pgcluster.Cluster
	dir     string
}

const serverFile = "server.json"

// StartServer starts a server for tests in dir. The server begins with a copy of the data folder initial, or after
// initdb if initial is "".
func StartServer(ctx context.Context, dir, initial string) (*RunningServer, error) {
	return startServer(ctx, dir, serverConfig(dir, initial))
}

func startServer(ctx context.Context, dir string, config pgcluster.Config) (*RunningServer, error) {
	if err := os.Chmod(dir, 0o711); err != nil { // another user of the operating system may run the server
		return nil, err
	}
	cluster, err := pgcluster.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	return &RunningServer{
		Server:  &Server{Binaries: cluster.Binaries, SocketDir: cluster.SocketDir, Port: cluster.Port, LogFile: cluster.LogFile},
		cluster: cluster, dir: dir,
	}, nil
}

// StartShared starts a server for all packages of a run. The caller sets [ClusterVariable] to dir.
func StartShared(ctx context.Context, dir string) (*RunningServer, error) {
	first, err := StartServer(ctx, dir, "")
	if err != nil {
		return nil, err
	}
	first.compressByLZ4(ctx)
	config := serverConfig(dir, "")
	config.Environment = keptHeap
	initial := first.cluster.DataDir + ".initial"
	if err := first.cluster.Stop(); err != nil {
		return nil, err
	}
	if err := pgcluster.CopyDataFolder(ctx, first.cluster.DataDir, initial); err != nil {
		return nil, err
	}
	r, err := startServer(ctx, dir, config)
	if err != nil {
		return nil, err
	}
	r.InitialData = initial
	text, err := json.Marshal(r.Server)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, serverFile), text, 0o600)
	}
	if err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// keptHeap are variables by which glibc keeps the heap of a server process, instead of returning it to the kernel and
// asking for it again. This setting and that of compressByLZ4 make the tests take less processor time, and change no
// answer.
var keptHeap = []string{"MALLOC_TOP_PAD_=1048576", "MALLOC_TRIM_THRESHOLD_=134217728"}

// compressByLZ4 lets the server compress by lz4 if it was built with it: the definitions of views are stored faster. The
// setting stays in the data folder, and so in the copies with which packages start servers of their own.
func (r *RunningServer) compressByLZ4(ctx context.Context) {
	conn, err := pgx.Connect(ctx, (&DB{Name: "postgres", SocketDir: r.SocketDir, Port: r.Port}).DSN("postgres", ""))
	if err != nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, _ = conn.Exec(ctx, "ALTER SYSTEM SET default_toast_compression = 'lz4'")
}

func serverConfig(dir, initial string) pgcluster.Config {
	return pgcluster.Config{
		Dir: dir, ListensOnTCP: true, NoSync: true, InitialData: initial,
		// Autovacuum is off: it might analyze one of two equal databases, which would then get other plans. Tests compare
		// plans and costs.
		Settings: map[string]string{
			"max_connections": "400", "max_worker_processes": "16", "shared_buffers": "128MB", "autovacuum": "off",
			"max_wal_size": "4GB", "checkpoint_timeout": "1h",
		},
	}
}

// Stop stops the server immediately and removes its data.
func (r *RunningServer) Stop() {
	_ = r.cluster.StopNow()
	if home := filepath.Dir(r.cluster.DataDir); !strings.HasPrefix(home, r.dir) {
		_ = os.RemoveAll(home)
	}
}

// readServer reads the description of the server that another process has started in dir.
func readServer(dir string) (*Server, error) {
	text, err := os.ReadFile(filepath.Join(dir, serverFile))
	if err != nil {
		return nil, err
	}
	var s Server
	return &s, json.Unmarshal(text, &s)
}

// initialDataFolder returns the initial data folder of the run's server; "": there is no such run.
func initialDataFolder(dir string) string {
	if dir == "" {
		return ""
	}
	s, err := readServer(dir)
	if err != nil {
		return "" // without it, initdb makes a new one
	}
	return s.InitialData
}
