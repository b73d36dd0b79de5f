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

// usageVariable is set for the test binaries that run through this program: the folder for what they
// took.
const usageVariable = "PGCONSENT_TEST_USAGE"

// temporaryVariable is set beside it: the folder for what tests leave while they run. The compiler's is another one.
const temporaryVariable = "PGCONSENT_TEST_TMPDIR"

// usage is what the test binary of a package took: its own processor time and that of the processes that it started and
// waited for, a PostgreSQL server of its own among them, and the time that passed.
type usage struct {
	Package  string // the folder
	CPU, All time.Duration
}

// measured runs a test binary, writes down what it took, and returns its exit code.
func measured(dir string, args []string) int {
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
		u := usage{Package: folder, CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), All: time.Since(began)}
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

func (u usage) write(dir string) error {
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

// readUsage returns what the packages took.
func readUsage(dir string) []usage {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	var out []usage
	for _, file := range files {
		var u usage
		text, err := os.ReadFile(file)
		if err == nil && json.Unmarshal(text, &u) == nil {
			out = append(out, u)
		}
	}
	return out
}
