package pgchain

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	process "os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/test/tier"
)

// writing is the environment variable, with the DSN of the database, that makes a process write until it is killed.
// writingSince is the time at which its clock began.
const (
	writingVariable = "PGCONSENT_PGCHAIN_WRITING"
	writingSince    = "PGCONSENT_PGCHAIN_SINCE"
	writingRound    = "PGCONSENT_PGCHAIN_ROUND"
	writingDir      = "PGCONSENT_PGCHAIN_DIR"
)

// A process is killed at any moment while it adds records and removes expired ones. The server ends its connections,
// and another process reads the chain. Every released record is in the chain, or was removed under a checkpoint. The
// chain verifies with key and anchor.
func TestKillWhileRecordsAreRemoved(t *testing.T) {
	tier.All(t)
	if dsn := os.Getenv(writingVariable); dsn != "" {
		nano, err := strconv.ParseInt(os.Getenv(writingSince), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		write(dsn, time.Unix(0, nano))
	}
	db, dir, since := database(t), t.TempDir(), time.Now()
	dba := db.Connect(t, "postgres")
	verifyOptions := func() audit.VerifyOptions {
		t.Helper()
		head, err := audit.ReadAnchor(filepath.Join(dir, "anchor"), killKey())
		if err != nil {
			t.Fatal(err)
		}
		return audit.VerifyOptions{Key: killKey(), Heads: []audit.RecordHead{head}}
	}
	releasedSeqs, removedSeq := map[string]uint64{}, uint64(0)
	random := tier.Rand(1)
	for round := range 6 {
		cmd := process.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), writingVariable+"="+db.DSN("pgconsent_control", ""), writingDir+"="+dir,
			fmt.Sprintf("%s=%d", writingSince, since.UnixNano()), fmt.Sprintf("%s=%d", writingRound, round))
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
				if n++; n == 60 {
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
		var background sync.WaitGroup
		reader, ender := db.Connect(t, "pgconsent_control"), db.Connect(t, "postgres")
		background.Go(func() {
			for {
				select {
				case <-killDone:
					return
				default:
				}
				err := NewReader(t.Context(), reader, "app", "here").InSnapshot(func(from audit.Source) error {
					_, err := audit.VerifyOptions{Key: killKey()}.Read(from, nil)
					return err
				})
				if err != nil {
					t.Errorf("round %d: read beside it: %v", round, err)
					return
				}
			}
		})
		if round%2 == 1 {
			background.Go(func() {
				random := tier.Rand(uint64(100 + round))
				for {
					select {
					case <-killDone:
						return
					case <-time.After(time.Duration(random.IntN(30)) * time.Millisecond):
					}
					if _, err := ender.Exec(t.Context(),
						"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "+
							"'pgconsent audit' AND datname = current_database()"); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(50_000+random.IntN(400_000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-outputRead
		_ = cmd.Wait()
		close(killDone)
		background.Wait()
		awaitIdleServer(t, dba)

		found := map[string]int{}
		report, err := verifyOptions().Read(NewReader(t.Context(), dba, "app", "here"), func(r audit.Record) error {
			if r.Kind == audit.KindDecision {
				found[sessionOf(r)]++
			}
			return nil
		})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for name, seq := range releasedSeqs {
			switch {
			case found[name] == 1 && seq >= report.FirstSeq, found[name] == 0 && seq < report.FirstSeq:
			default:
				t.Fatalf("round %d: %s was released as record %d, and is there %d times; the chain begins at %d", round, name, seq, found[name], report.FirstSeq)
			}
		}
		removedSeq = max(removedSeq, report.FirstSeq-1)
	}
	if removedSeq == 0 {
		t.Error("no record was removed: the test proves little")
	}
}

// awaitIdleServer waits until the server has finished the statements of the killed process.
func awaitIdleServer(t *testing.T, dba *pgx.Conn) {
	t.Helper()
	for deadline := time.Now().Add(tier.Patience); ; time.Sleep(10 * time.Millisecond) {
		var n int
		if err := dba.QueryRow(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgconsent audit' AND datname = current_database()").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the connections of the killed process do not end")
		}
	}
}

func sessionOf(r audit.Record) string {
	_, afterPrefix, _ := bytes.Cut(r.Line, []byte(`"session":"`))
	name, _, _ := bytes.Cut(afterPrefix, []byte(`"`))
	return string(name)
}

func killKey() audit.Key {
	key, err := audit.NewKey(bytes.Repeat([]byte{9}, 32))
	if err != nil {
		panic(err)
	}
	return key
}

// write adds records until it is killed, with a clock that advances an hour in 20 ms. It prints the name and number of
// each released record.
func write(dsn string, since time.Time) {
	exitAfter := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		exitAfter(err)
	}
	l, err := audit.Open(audit.Config{
		Store: New(cfg, "app", "here"), Key: killKey(), AnchorFile: filepath.Join(os.Getenv(writingDir),
			"anchor"), Retention: 10 * time.Hour, ReleaseTimeout: 1e6 * time.Hour,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Clock: func() time.Time { now := time.Now(); return now.Add(now.Sub(since) * 180_000) },
	})
	if err != nil {
		exitAfter(err)
	}
	var mu sync.Mutex
	for i := range 4 {
		go func() {
			for j := 0; ; j++ {
				name := fmt.Sprintf("%s.%d.%d", os.Getenv(writingRound), i, j)
				ticket := l.Decision(audit.Decision{Session: name, Verdict: "allow"})
				if err := ticket.Release(); err != nil {
					time.Sleep(time.Millisecond) // the server has ended the connection
					continue
				}
				mu.Lock()
				fmt.Printf("%s %d\n", name, ticket.Seq())
				mu.Unlock()
				ticket.RecordOutcome(audit.Outcome{Rows: 1, SQLState: "00000"})
			}
		}()
	}

	select {}
}
