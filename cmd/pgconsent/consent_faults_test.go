package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/pgtest"
)

// The program is killed while it records consents. What it has acknowledged is there, nothing is there by halves, and the next
// call goes on: the anchor is neither ahead of the records nor behind what was acknowledged. PGCONSENT_KILLS says how often.
func TestKilledWhileConsentsAreRecorded(t *testing.T) {
	kills := 8
	if n, err := strconv.Atoi(os.Getenv("PGCONSENT_KILLS")); err == nil {
		kills = n
	}
	config, _ := consenting(t)
	began := time.Now()
	if _, errs, code := finished(t, "consent", "grant", "first", "--stream", "TEMPORARY", "-c", config); code != done {
		t.Fatal(errs)
	}
	took := time.Since(began)
	killed, acknowledged := 0, 0
	for i := range kills {
		subject := "subject-" + strconv.Itoa(i)
		cmd := exec.Command(os.Args[0], "consent", "grant", subject, "--stream", "TEMPORARY", "-c", config)
		cmd.Env = append(os.Environ(), "PGCONSENT_TEST_MAIN=1")
		var out strings.Builder
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The second half of its time is when it writes.
		time.Sleep(took/3 + time.Duration(rand.Int64N(int64(took))))
		_ = cmd.Process.Kill()
		var exit *exec.ExitError
		switch err := cmd.Wait(); {
		case err == nil:
		case errors.As(err, &exit) && exit.ExitCode() == -1:
			killed++
		default:
			t.Fatalf("%s: %v", subject, err)
		}
		_, errs, code := call(t, "", "consent", "status", subject, "-c", config)
		there := code == done
		if said := strings.Contains(out.String(), subject+": given TEMPORARY"); said {
			if acknowledged++; !there {
				t.Errorf("%s was acknowledged and is not there: %s", subject, errs)
			}
		}
		// Whatever became of it, sending it again leaves one consent.
		play(t, config, []played{
			{"consent grant " + subject + " --stream TEMPORARY", done, subject + ": given TEMPORARY"},
			{"consent status " + subject, done, "given"},
			{"audit verify", done, "records hold"},
		})
	}
	t.Logf("%d of %d were killed before their end, %d were acknowledged", killed, kills, acknowledged)
}

// An erasure leaves no trace of who it was: not in a dump of the database, not in a file of ours.
// seeds/001:191, 201.
func TestErasureLeavesNoTrace(t *testing.T) {
	config, db := consenting(t)
	const mark = "PLANTED77"
	play(t, config, []played{
		{"consent grant " + mark + "-a --stream TEMPORARY --reason " + mark + "-reason --evidence " + mark + "-evidence", done, "given"},
		{"consent guardian add " + mark + "-a --guardian " + mark + "-parent", done, ""},
		{"consent grant " + mark + "-a --grantee " + mark + "-to --scope ctx:" + mark + "-place --category ESSENTIAL --guardian " + mark + "-parent", done, "given"},
		{"consent upgrade " + mark + "-a --reason " + mark + "-why", done, "asked for"},
		{"consent refuse " + mark + "-a --scope table:" + mark, done, ""},
	})
	trace := func() (found []string) {
		dump, err := exec.Command(filepath.Join(pgtest.Binaries().Dir, "pg_dump"), "-h", pgtest.SocketDir(), "-p", fmt.Sprint(pgtest.Port()), "-U", "postgres", db.Name).CombinedOutput()
		if err != nil {
			t.Fatalf("pg_dump: %v: %s", err, dump)
		}
		for _, line := range strings.Split(string(dump), "\n") {
			if strings.Contains(line, mark) {
				found = append(found, "dump: "+line)
			}
		}
		err = filepath.WalkDir(filepath.Dir(config), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), mark) {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if len(trace()) == 0 {
		t.Fatal("nothing is found before the erasure: the test proves nothing")
	}
	for _, who := range []string{"-a", "-parent", "-to"} {
		play(t, config, []played{{"consent erase " + mark + who + " --yes", done, "erased"}})
	}
	if found := trace(); len(found) > 0 {
		t.Errorf("%d traces are left:\n%s", len(found), strings.Join(found, "\n"))
	}
	play(t, config, []played{
		{"audit verify", done, "records hold"},
		{"consent status " + mark + "-a", wrong, "ConsentNotFoundError"},
	})
}
