package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// However policy test ends, the databases and roles that it has created are removed.
func TestPolicyTestLeavesNothing(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	dsn := fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", pgtest.SocketDir(), pgtest.Port())
	for name, endProgram := range map[string]func(*exec.Cmd, *os.File) error{
		"the output is cut": func(_ *exec.Cmd, out *os.File) error { return out.Close() },
		"interrupted":       func(c *exec.Cmd, _ *os.File) error { return c.Process.Signal(os.Interrupt) },
		"hung up":           func(c *exec.Cmd, _ *os.File) error { return c.Process.Signal(syscall.SIGHUP) },
	} {
		t.Run(name, func(t *testing.T) {
			reader, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			var errs bytes.Buffer
			cmd := exec.Command(os.Args[0], "policy", "test", "--postgres", dsn, "../../internal/tool/policytest/testdata/small")
			cmd.Env = append(os.Environ(), "PGCONSENT_TEST_MAIN=1")
			cmd.Stdout, cmd.Stderr = write, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			write.Close()
			firstLine, err := bufio.NewReader(reader).ReadString('\n')
			if err != nil || !strings.Contains(firstLine, "5 tests of") {
				t.Errorf("%q %v", firstLine, err)
			}
			if err := endProgram(cmd, reader); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitError {
				t.Errorf("it ends with %v: %s", err, errs.String())
			}
			var leftObjects []string
			if err := conn.QueryRow(t.Context(), `SELECT array(SELECT datname::text FROM pg_database WHERE datname LIKE 'pgconsent_test_%'
				UNION ALL SELECT rolname::text FROM pg_roles WHERE rolname LIKE 'pgconsent_test_%')`).Scan(&leftObjects); err != nil ||
				len(leftObjects) != 0 {
				t.Errorf("%q are left (%v): %s", leftObjects, err, errs.String())
			}
		})
	}
}
