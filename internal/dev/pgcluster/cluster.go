//go:build unix

package pgcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Config says which cluster to run. Only Dir is required.
type Config struct {
	Dir          string // the folder of the cluster, which is made if it is missing; a cluster in it is used again
	Superuser    string // name of the superuser; "": postgres
	Password     string // the superuser's password, required everywhere (SCRAM); "": the unix socket needs no password
	Port         int    // the port of the unix socket and of 127.0.0.1; 0: a free port
	ListensOnTCP bool   // the server also listens on 127.0.0.1, where every login needs a password
	NoSync       bool   // the server does not flush data to disk, for tests
	// the data folder with which a new cluster begins, made by CopyDataFolder; "": initdb makes it. Its passwords stay
	// valid
	InitialData     string
	DeletesExisting bool              // Start deletes an existing cluster and initialises a new one
	Settings        map[string]string // settings of postgresql.conf that replace the defaults
	Environment     []string          // further variables of the server's environment, as "NAME=value"
	Binaries        *Binaries         // the server's programs; nil: those that FindBinaries finds
	StopTimeout     time.Duration     // how long a fast shutdown may take before an immediate one; 0: 10 s
}

// Cluster is a running server.
type Cluster struct {
	Binaries       Binaries
	Superuser      string
	Port           int
	DataDir        string
	SocketDir      string
	LogFile        string
	WasInitialised bool // Start has initialised the cluster

	stopTimeout  time.Duration
	lock         *os.File
	server       *os.Process
	serverExited chan struct{} // closed when the server has ended
}

// Start initialises a cluster if the folder has none, and starts its server. The caller must call Stop, since the
// server is a child of this process.
func Start(ctx context.Context, c Config) (_ *Cluster, err error) {
	a, err := serverAccount()
	if err != nil {
		return nil, err
	}
	l, err := makeLayout(c.Dir, a)
	if err != nil {
		return nil, err
	}
	lock, err := lockFolder(l.lock)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	if err := waitForPreviousServer(ctx, l.dataFolder()); err != nil {
		return nil, err
	}
	if c.DeletesExisting {
		if pid := postmasterPID(l.dataFolder()); pid != 0 && isAlive(pid) {
			return nil, checkNotRunning(l.dataFolder())
		}
		if err := os.RemoveAll(l.dataFolder()); err != nil {
			return nil, err
		}
	}
	major, err := clusterMajor(l.dataFolder())
	if err != nil {
		return nil, err
	}
	var bin Binaries
	if c.Binaries != nil {
		bin = *c.Binaries
	} else if bin, err = findMajor(ctx, major, binaryDirs); err != nil {
		return nil, err
	}
	cl := &Cluster{
		Binaries: bin, Superuser: c.Superuser, Port: c.Port, DataDir: l.dataFolder(), SocketDir: l.socket,
		LogFile:     l.logFile(),
		stopTimeout: c.StopTimeout, lock: lock, serverExited: make(chan struct{}),
	}
	if cl.Superuser == "" {
		cl.Superuser = "postgres"
	}
	if cl.stopTimeout == 0 {
		cl.stopTimeout = 10 * time.Second
	}
	if major == 0 {
		initialise := initialise
		if c.InitialData != "" {
			initialise = initialiseFrom
		}
		if err := initialise(ctx, cl, c, a, l); err != nil {
			return nil, err
		}
		cl.WasInitialised = true
	}
	if cl.Port != 0 && c.ListensOnTCP {
		if err := CheckPortFree(net.JoinHostPort("127.0.0.1", strconv.Itoa(cl.Port))); err != nil {
			return nil, err
		}
	}
	startedAt := time.Now()
	for attempt := 0; ; attempt++ {
		port := cl.Port
		if port == 0 {
			if port, err = freePort(); err != nil {
				return nil, err
			}
		}
		err = launchServer(ctx, cl, c, a, port)
		if err == nil {
			cl.Port = port
			return cl, nil
		}
		if errors.Is(err, errProcessesLeft) && time.Since(startedAt) < crashRecoveryTimeout {
			if err := sleepOrCancel(ctx, 100*time.Millisecond); err != nil {
				return nil, err
			}
			attempt--
			continue
		}
		// Another program may have taken the port after it was found to be free.
		if !errors.Is(err, errPortTaken) || cl.Port != 0 || attempt == 4 {
			return nil, err
		}
	}
}

// clusterMajor returns the major version of the cluster in the folder data; 0: there is no cluster.
func clusterMajor(data string) (int, error) {
	b, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream, "%s is not a PostgreSQL cluster", data).
			WithHint("Name another folder, or delete this one to start over.")
	}
	return major, nil
}

// initialise runs initdb in a temporary folder and renames the folder when it is complete, so that an interrupted run
// starts over.
func initialise(ctx context.Context, cl *Cluster, c Config, a osAccount, l clusterFolders) error {
	fresh := l.dataFolder() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	auth := "trust"
	if c.Password != "" {
		auth = "scram-sha-256"
	}
	args := []string{"-D", fresh, "-U", cl.Superuser, "--encoding=UTF8", "--auth-local=" + auth,
		"--auth-host=scram-sha-256", "--no-instructions"}
	if c.NoSync {
		args = append(args, "--no-sync")
	}
	if c.Password != "" {
		file := filepath.Join(l.home, "password.new")
		if err := os.WriteFile(file, []byte(c.Password+"\n"), 0o600); err != nil {
			return err
		}
		defer os.Remove(file)
		if err := a.takeOwnership(file); err != nil {
			return err
		}
		args = append(args, "--pwfile="+file)
	}
	var out []byte
	var err error
	for _, locale := range []string{"C.UTF-8", "C"} { // some systems lack the locale C.UTF-8
		cmd := exec.CommandContext(ctx, filepath.Join(cl.Binaries.Dir, "initdb"), append(args, "--locale="+locale)...)
		cmd.Dir, cmd.Env = l.home, serverEnvironment(l.home)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential, Setpgid: true}
		if out, err = cmd.CombinedOutput(); err == nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		os.RemoveAll(fresh)
	}
	if err != nil {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream, "initdb failed: %s", lastLines(out, 5)).
			WithHint("Check free space and permissions of %s.", l.home).WithCause(err)
	}
	hba := "local all all " + auth + "\nhost all all 127.0.0.1/32 scram-sha-256\nhost all all ::1/128 scram-sha-256\n" +
		"local replication all " + auth + "\n"
	if err := os.WriteFile(filepath.Join(fresh, "pg_hba.conf"), []byte(hba), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, l.dataFolder())
}

// serverSettings returns the server's settings, in the order of its command line.
func serverSettings(cl *Cluster, c Config, port int) []string {
	s := map[string]string{
		"unix_socket_directories": cl.SocketDir,
		"listen_addresses":        "",
		"password_encryption":     "scram-sha-256",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"logging_collector":       "off",
		"log_destination":         "stderr",
		"cluster_name":            "pgconsent",
		"shared_buffers":          "64MB",
		// Examples and tests are small, so that compiling a query would take longer than running it.
		"jit": "off",
	}
	if c.ListensOnTCP {
		s["listen_addresses"] = "127.0.0.1"
	}
	if c.NoSync {
		s["fsync"], s["synchronous_commit"], s["full_page_writes"] = "off", "off", "off"
	}
	maps.Copy(s, c.Settings)
	s["port"] = strconv.Itoa(port)
	var args []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		args = append(args, "-c", name+"="+s[name])
	}
	return args
}

// serverEnvironment returns the environment of the server: that of this process without variables such as PGPORT and
// LC_ALL, which would change how the server works.
func serverEnvironment(home string) []string {
	return []string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"}
}

var (
	errPortTaken = errors.New("port taken")
	// errProcessesLeft says that processes of a crashed server are still running, and use its shared memory.
	errProcessesLeft = errors.New("processes of a crashed server have not ended yet")
)

// crashRecoveryTimeout is how long Start waits until the processes of a crashed server end, or a server that shuts
// down. The processes notice the crash within a second, or later on a busy machine.
const crashRecoveryTimeout = 30 * time.Second

// launchServer starts the server and waits until it accepts connections.
func launchServer(ctx context.Context, cl *Cluster, c Config, a osAccount, port int) error {
	logFile, err := os.OpenFile(cl.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	if err := a.takeOwnership(cl.LogFile); err != nil {
		return err
	}
	start, err := logFile.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(cl.Binaries.Dir, "postgres"),
		append([]string{"-D", cl.DataDir}, serverSettings(cl, c, port)...)...)
	cmd.Dir, cmd.Env = cl.DataDir, slices.Concat(serverEnvironment(cl.DataDir), c.Environment)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	// The server gets a process group of its own, so that Ctrl-C in a terminal does not end it before its clients.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential, Setpgid: true}
	signal := syscall.SIGINT
	if c.NoSync {
		signal = syscall.SIGQUIT
	}
	killWithParent(cmd.SysProcAttr, signal)

	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel sends the signal when the thread that started the server ends. So this thread must live as long as the
		// server.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(exited)
	}()
	if err := <-started; err != nil {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream, "%s cannot be started: %v", cmd.Path, err).
			WithHint("Check that the user the server runs as may read and execute it.")
	}
	cl.server, cl.serverExited = cmd.Process, exited

	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-exited:
			return startFailure(cl, start, port)
		case <-ctx.Done():
			_ = cl.sendSignal(syscall.SIGQUIT)
			<-exited
			return ctx.Err()
		case <-tick.C:
			if isReady(cl.DataDir, cmd.Process.Pid) {
				return nil
			}
		}
	}
}

// isReady tells whether postmaster.pid says that the server is ready. The first line of the file has the process id,
// and the eighth has the state.
func isReady(data string, pid int) bool {
	b, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(b), "\n")
	return len(lines) >= 8 && strings.TrimSpace(lines[0]) == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) == "ready"
}

// startFailure returns why the server ended, from the part of its log after offset.
func startFailure(cl *Cluster, offset int64, port int) error {
	var text []byte
	if f, err := os.Open(cl.LogFile); err == nil {
		defer f.Close()
		text, _ = io.ReadAll(io.NewSectionReader(f, offset, 1<<16))
	}
	switch {
	case bytes.Contains(text, []byte("Address already in use")), bytes.Contains(text, []byte(".lock\" already exists")):
		e := newPortInUseError(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		e.Cause = errPortTaken
		return e
	case bytes.Contains(text, []byte(`lock file "postmaster.pid" already exists`)):
		return checkNotRunning(cl.DataDir)
	}
	e := sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonUpstream, "PostgreSQL did not start: %s",
		lastLines(text, 4)).
		WithHint("The whole log is in %s.", cl.LogFile)
	// PostgreSQL writes this text in InternalIpcMemoryCreate (sysv_shmem.c).
	if bytes.Contains(text, []byte("pre-existing shared memory block")) {
		e.Cause = errProcessesLeft
	}
	return e
}

// waitForPreviousServer waits until a server in the folder whose parent process has died has shut down.
func waitForPreviousServer(ctx context.Context, data string) error {
	deadline := time.Now().Add(crashRecoveryTimeout)
	for {
		pid := postmasterPID(data)
		if pid == 0 || !isAlive(pid) {
			return nil
		}
		if time.Now().After(deadline) {
			return nil // another process has the process id now, or a server is still running; starting the cluster tells which
		}
		if err := sleepOrCancel(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func postmasterPID(data string) int {
	b, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0
	}
	return pid
}

func isAlive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

func checkNotRunning(data string) error {
	pid := postmasterPID(data)
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
		"a PostgreSQL that this process did not start (pid %d) is running in %s", pid, data).
		WithHint("Stop it first: kill -INT %d", pid)
}

// Stop ends all sessions, flushes data and stops the server. It may be called more than once.
func (cl *Cluster) Stop() error { return cl.stopWithSignal(syscall.SIGINT) }

// StopNow stops the server without flushing data, like a crash. The next start recovers the data.
func (cl *Cluster) StopNow() error { return cl.stopWithSignal(syscall.SIGQUIT) }

func (cl *Cluster) stopWithSignal(sig syscall.Signal) error {
	defer cl.lock.Close()
	for _, s := range []syscall.Signal{sig, syscall.SIGQUIT, syscall.SIGKILL} {
		if err := cl.sendSignal(s); err != nil {
			return err
		}
		select {
		case <-cl.serverExited:
			return nil
		case <-time.After(cl.stopTimeout):
		}
	}
	return fmt.Errorf("PostgreSQL in %s does not end", cl.DataDir)
}

func (cl *Cluster) sendSignal(s syscall.Signal) error {
	if err := cl.server.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Exited returns a channel that is closed when the server has ended, for whatever reason.
func (cl *Cluster) Exited() <-chan struct{} { return cl.serverExited }

// PID returns the process id of the server.
func (cl *Cluster) PID() int { return cl.server.Pid }

// CheckPortFree returns an error with a hint if it is not possible to listen on the address now.
func CheckPortFree(address string) error {
	ln, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return newPortInUseError(address)
	}
	if err != nil {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream, "cannot listen on %s: %v", address, err).
			WithHint("Name another address.")
	}
	return ln.Close()
}

func newPortInUseError(address string) *sqlstate.Error {
	_, port, _ := net.SplitHostPort(address)
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream, "%s is in use", address).
		WithHint("Stop what listens there (lsof -i :%s shows it), or name another port.", port)
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// sleepOrCancel waits for a time, or until ctx ends.
func sleepOrCancel(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func lastLines(text []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "; ")
}
