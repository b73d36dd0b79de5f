package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/test/tier"
)

// serve starts after a crash that truncated the last record, on a disk that is full or read-only. Owners are served and
// agents are refused; readyz and the doctor say why. When there is space, agents are served. Old and new records form
// one chain.
func TestServeStartsOnABrokenDisk(t *testing.T) {
	tier.All(t)
	i, disk, _ := installOnDisk(t)
	p, address := i.startServe(t)
	if n := queryInt(t, connect(t, i.dsn("chat", address)), "SELECT count(*) FROM memories"); n == 0 {
		t.Fatal("an agent sees nothing")
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.awaitEnd(t); code != exitOK {
		t.Fatalf("serve ended with %d:\n%s", code, p.errs.String())
	}
	segment := filepath.Join(disk, "audit", "audit-000001.jsonl")
	text, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segment, append(text, text[:77]...), 0o600); err != nil {
		t.Fatal(err)
	}
	savedPath := disk + ".saved"
	for label, fault := range map[string]struct{ breakCommand, mendCommand, wantDoctor string }{
		"full":      {"head -c 9000000 /dev/zero > " + disk + "/filler; true", "rm " + disk + "/filler", "the disk of the audit is full"},
		"read-only": {"mount -o remount,ro " + disk, "mount -o remount,rw " + disk, "records cannot be written to " + disk},
	} {
		t.Run(label, func(t *testing.T) {
			mount := fmt.Sprintf(
				`cp -a %[1]s %[2]s && mount -t tmpfs -o size=2m tmpfs %[1]s && cp -a %[2]s/. %[1]s/ && rm -r %[2]s && { %[3]s; `+
					`} 2>/dev/null && exec "$0" "$@"`, disk, savedPath, fault.breakCommand)
			p, address := i.startServeThrough(t, []string{"unshare", "-m", "sh", "-c", mount})
			runInside := func(args ...string) (string, int) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
				defer cancel()
				command := exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(p.cmd.Process.Pid), "-m"}, args...)...)
				command.Env = append(os.Environ(), "PGCONSENT_TEST_MAIN=1")
				output, _ := command.CombinedOutput()
				return string(output), command.ProcessState.ExitCode()
			}
			if n := queryInt(t, connect(t, i.dsn("app_owner", address)), "SELECT count(*) FROM memories"); n != 2 {
				t.Errorf("the owner sees %d memories", n)
			}
			login := func() error {
				conn, err := pgx.Connect(t.Context(), i.dsn("chat", address))
				if err == nil {
					_, err = conn.Exec(t.Context(), "SELECT count(*) FROM memories")
					conn.Close(t.Context())
				}
				return err
			}
			if err := login(); err == nil || !strings.Contains(err.Error(), "58030") {
				t.Errorf("an agent got %v", err)
			}
			if !strings.Contains(p.errs.String(), "records cannot be written yet") {
				t.Errorf("the log does not say it:\n%s", p.errs.String())
			}
			if output, code := runInside(os.Args[0], "doctor", "-c", i.config); code == exitOK || !strings.Contains(output, fault.wantDoctor) {
				t.Errorf("the doctor: %d %s", code, output)
			}
			if output, code := runInside("sh", "-c", fault.mendCommand); code != 0 {
				t.Fatalf("%d %s", code, output)
			}
			// The test waits, because a refused statement would add to the numbers in its own record.
			waitFor(t, "records can be written", func() bool { return strings.Contains(p.errs.String(), "writing works again") })
			if err := login(); err != nil {
				t.Errorf("an agent gets %v when records can be written again", err)
			}
			output, code := runInside(os.Args[0], "audit", "verify", "-c", i.config)
			if code != exitOK || !strings.Contains(output, "2 times the log continued after a crash, after a failed write") {
				t.Errorf("audit verify: %d %s", code, output)
			}
			p.signal(t, syscall.SIGTERM)
			p.awaitEnd(t)
		})
	}
}
