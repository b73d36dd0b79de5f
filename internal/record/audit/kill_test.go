package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/tier"
)

// rotatingName is the environment variable that makes a process write until it is killed. Its clock begins at
// rotatingSince.
const (
	rotatingName  = "PGCONSENT_AUDIT_ROTATING"
	rotatingSince = "PGCONSENT_AUDIT_SINCE"
)

// A process is killed at any moment while it rotates segments and removes expired ones, and another process exports the
// log. Every released record is in the chain, or was removed under a checkpoint. The chain verifies with key and
// anchor.
func TestKillWhileItRotates(t *testing.T) {
	tier.All(t)
	if dir := os.Getenv(rotatingName); dir != "" {
		nano, err := strconv.ParseInt(os.Getenv(rotatingSince), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		writeUntilKilled(rotatingConfig(dir, time.Unix(0, nano)))
	}
	dir, since := t.TempDir(), time.Now()
	cfg := rotatingConfig(dir, since)
	releasedSeqs, removedSeq := map[string]uint64{}, uint64(0)
	random := tier.Rand(1)
	for round := range 8 {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), rotatingName+"="+dir, fmt.Sprintf("%s=%d", rotatingSince, since.UnixNano()),
			fmt.Sprintf("PGCONSENT_AUDIT_ROUND=%d", round))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		someReleased, outputRead := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(outputRead)
			n := 0
			for in := bufio.NewScanner(out); in.Scan(); {
				var name string
				var seq uint64
				if _, err := fmt.Sscan(in.Text(), &name, &seq); err != nil {
					continue // the line is incomplete
				}
				releasedSeqs[name] = seq
				if n++; n == 50 {
					close(someReleased)
				}
			}
		}()
		select {
		case <-someReleased:
		case <-outputRead:
			t.Fatal("the process ended by itself")
		}
		killDone := make(chan struct{})
		var export sync.WaitGroup
		export.Go(func() {
			for {
				select {
				case <-killDone:
					return
				default:
				}
				// A segment may be removed while the chain is read. What is read verifies, and the report says what was
				// not read.
				if _, err := (VerifyOptions{Key: cfg.Key}).Walk(cfg.Dir, func(Record) error { return nil }); err != nil &&
					(round > 0 || !errors.Is(err, fs.ErrNotExist)) {
					t.Errorf("round %d: exported beside it: %v", round, err)
					return
				}
			}
		})
		time.Sleep(time.Duration(random.IntN(60_000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-outputRead
		_ = cmd.Wait()
		close(killDone)
		export.Wait()

		found, report := verifyLog(t, cfg)
		for name, seq := range releasedSeqs {
			switch {
			case found[name] == 1 && seq >= report.FirstSeq, found[name] == 0 && seq < report.FirstSeq:
			default:
				t.Fatalf("round %d: %s was released as record %d, and is there %d times; the chain begins at %d", round, name, seq, found[name], report.FirstSeq)
			}
		}
		removedSeq = report.FirstSeq - 1
	}
	if removedSeq == 0 {
		t.Error("no segment was removed: the test proves little")
	}
	closeLog(t, open(t, cfg))
	if _, report := verifyLog(t, cfg); report.TornBytes != 0 {
		t.Errorf("after the last round: %+v", report)
	}
}

// rotatingConfig has small segments, and a clock that advances an hour in 20 ms.
func rotatingConfig(dir string, since time.Time) Config {
	key, err := NewKey(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	return Config{
		Dir: filepath.Join(dir, "audit"), Key: key, AnchorFile: filepath.Join(dir,
			"anchor"), MaxSegment: 8 << 10, Retention: 10 * time.Hour, ReleaseTimeout: 1e6 * time.Hour, Log: quiet(),
		Clock: func() time.Time { now := time.Now(); return now.Add(now.Sub(since) * 180_000) },
	}
}

// writeUntilKilled writes until it is killed, and prints the name and number of each released record.
func writeUntilKilled(cfg Config) {
	l, err := Open(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var mu sync.Mutex
	for i := range 4 {
		go func() {
			for j := 0; ; j++ {
				name := fmt.Sprintf("%s.%d.%d", os.Getenv("PGCONSENT_AUDIT_ROUND"), i, j)
				ticket := l.Decision(decision(name))
				if err := ticket.Release(); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				mu.Lock()
				fmt.Printf("%s %d\n", name, ticket.Seq())
				mu.Unlock()
				ticket.RecordOutcome(Outcome{Rows: 1, SQLState: "00000"})
			}
		}()
	}
	select {}
}

// verifyLog verifies a log with its key and anchor, and returns how many decisions each session has.
func verifyLog(t *testing.T, cfg Config) (map[string]int, Report) {
	t.Helper()
	options := VerifyOptions{Key: cfg.Key}
	if cfg.AnchorFile != "" {
		options.Heads = heads(t, cfg.AnchorFile, cfg.Key)
	}
	report, err := options.Walk(cfg.Dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := sessions(t, cfg.Dir)
	return found, report
}
