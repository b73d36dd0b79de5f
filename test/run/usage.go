package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// usageVariable is the environment variable with the folder for the durations of packages. If it is set, this program
// runs one test binary and writes its duration to that folder.
const usageVariable = "PGCONSENT_TEST_USAGE"

// temporaryVariable is the environment variable with the folder for temporary files of tests. It becomes TMPDIR only
// for test binaries, so that the compiler uses another folder.
const temporaryVariable = "PGCONSENT_TEST_TMPDIR"

// packageUsage has the duration of a package's test binary. CPU is the CPU time of the binary and of the processes that
// it has waited for, including its PostgreSQL server.
type packageUsage struct {
	Package      string // folder of the package
	CPU, Elapsed time.Duration
}

// runMeasured runs a test binary, writes its duration to a file in dir, and returns its exit code.
func runMeasured(dir string, args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "TMPDIR="+os.Getenv(temporaryVariable))
	endWithParent(cmd)
	began := time.Now()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	_ = cmd.Wait()
	folder, err := os.Getwd()
	if err == nil {
		u := packageUsage{Package: folder, CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), Elapsed: time.Since(began)}
		err = u.write(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1
}

func (u packageUsage) write(dir string) error {
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "*.json")
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(text)
	return err
}

// readUsage reads the durations of all packages.
func readUsage(dir string) []packageUsage {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	var out []packageUsage
	for _, file := range files {
		var u packageUsage
		text, err := os.ReadFile(file)
		if err == nil && json.Unmarshal(text, &u) == nil {
			out = append(out, u)
		}
	}
	return out
}
