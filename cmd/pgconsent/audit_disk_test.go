package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/test/tier"
)

// installOnDisk puts the records of an installation, their key and their anchor on a file system that only serve sees.
func installOnDisk(t *testing.T) (i *installation, disk string, wrapper []string) {
	t.Helper()
	i = installWithAudit(t)
	disk = filepath.Join(i.dir(), "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(i.config)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("file: audit/"), []byte("file: disk/audit/, rotate: { size: 64KiB }"), 1)
	if err := os.WriteFile(i.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	wrapper = []string{"unshare", "-m", "sh", "-c", `mount -t tmpfs -o size=4m tmpfs ` + disk + ` && exec "$0" "$@"`}
	if out, err := exec.Command(wrapper[0], append(wrapper[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted for one process here: %v %s", err, out)
	}
	return i, disk, wrapper
}

// askedCounts counts the statements of two agents that run until they are stopped. A refused statement has the expected
// code, and its session goes on.
type askedCounts struct {
	answeredCount, refusedCount atomic.Int64
	answersByAddress            sync.Map // how many statements were answered, by the client's address
	stopAsking                  func()
}

func (i *installation) startAsking(t *testing.T, address, code string) *askedCounts {
	t.Helper()
	a := &askedCounts{}
	ctx, cancel := context.WithCancel(t.Context())
	var agents sync.WaitGroup
	for range 2 {
		conn := connect(t, i.dsn("chat", address))
		agents.Go(func() {
			answered := 0
			for ctx.Err() == nil {
				var count int
				err := conn.QueryRow(context.Background(), "SELECT count(*) FROM memories").Scan(&count)
				var e *pgconn.PgError
				switch {
				case err == nil:
					answered++
					a.answeredCount.Add(1)
				case errors.As(err, &e) && e.Code == code && strings.Contains(e.Hint, "No answer is given without a record"):
					a.refusedCount.Add(1)
				default:
					t.Errorf("an agent got %v", err)
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
			a.answersByAddress.Store(conn.PgConn().Conn().LocalAddr().String(), answered)
		})
	}
	a.stopAsking = func() { cancel(); agents.Wait() }
	t.Cleanup(a.stopAsking)
	return a
}

// awaitMore waits until the counter has grown by n.
func awaitMore(t *testing.T, label string, counter *atomic.Int64, n int64) {
	t.Helper()
	want := counter.Load() + n
	waitFor(t, "statements are "+label, func() bool { return counter.Load() >= want })
}

// On a full disk, agents are refused, also at login, and so are reports about persons; owners are served. When there is
// space again, the same sessions continue, and every answer has its record.
func TestServeOnAFullDisk(t *testing.T) {
	tier.All(t)
	for _, mode := range poolModes {
		t.Run(mode, func(t *testing.T) { serveOnAFullDisk(t, mode) })
	}
}

func serveOnAFullDisk(t *testing.T, mode string) {
	i, disk, wrapper := installOnDisk(t)
	i.setPool(t, mode)
	p, address := i.startServeThrough(t, wrapper)
	rootPath := fmt.Sprintf("/proc/%d/root%s", p.cmd.Process.Pid, disk)
	runInside := func(args ...string) (string, int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
		defer cancel()
		command := exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(p.cmd.Process.Pid), "-m", os.Args[0]}, args...)...)
		command.Env = append(os.Environ(), "PGCONSENT_TEST_MAIN=1")
		output, _ := command.CombinedOutput()
		return string(output), command.ProcessState.ExitCode()
	}
	a := i.startAsking(t, address, "58030")
	fillerPath := filepath.Join(rootPath, "filler")
	for range 2 {
		awaitMore(t, "answered", &a.answeredCount, 20)
		fillerSize := 1 << 23
		f, err := os.Create(fillerPath)
		if err != nil {
			t.Fatal(err)
		}
		for fillerSize > 0 {
			if _, err := f.Write(make([]byte, fillerSize)); err != nil {
				fillerSize /= 2
			}
		}
		f.Close()
		awaitMore(t, "refused", &a.refusedCount, 6)
		if conn, err := pgx.Connect(t.Context(), i.dsn("other", address)); err == nil {
			conn.Close(t.Context())
			t.Error("an agent logged in without a record")
		} else if !strings.Contains(err.Error(), "58030") {
			t.Errorf("a login is refused with %v", err)
		}
		if n := queryInt(t, connect(t, i.dsn("app_owner", address)), "SELECT count(*) FROM memories"); n != 2 {
			t.Errorf("the owner sees %d memories", n)
		}
		if output, code := runInside("dsar", "--subject", "nobody", "-c", i.config); code != exitError || !strings.Contains(output, "SQLSTATE 58030") {
			t.Errorf("a report without a record: %d %s", code, output)
		}
		if err := os.Remove(fillerPath); err != nil {
			t.Fatal(err)
		}
	}
	awaitMore(t, "answered", &a.answeredCount, 20)
	if output, code := runInside("dsar", "--subject", "nobody", "-c", i.config); code != exitError ||
		!strings.Contains(output, "there is no consent of this subject") {
		t.Errorf("a report when there is room again: %d %s", code, output)
	}
	a.stopAsking()
	if output, code := runInside("audit", "verify", "-c", i.config); code != exitOK {
		t.Errorf("audit verify: %d %s", code, output)
	}
	sessions, decisionsByAddress := map[string]string{}, map[string]int{}
	if _, err := (audit.VerifyOptions{}).Read(audit.Folder(filepath.Join(rootPath, "audit")), func(r audit.Record) error {
		e, err := readAuditRecord(r)
		switch {
		case e.Kind == audit.KindSession && e.Event == "open":
			sessions[e.Session] = e.Remote
		case e.Kind == audit.KindDecision && e.Verdict == "allow":
			decisionsByAddress[sessions[e.Session]]++
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	a.answersByAddress.Range(func(client, n any) bool {
		if decisionsByAddress[client.(string)] < n.(int) {
			t.Errorf("%s got %d answers, and has %d records", client, n, decisionsByAddress[client.(string)])
		}
		return true
	})
}
