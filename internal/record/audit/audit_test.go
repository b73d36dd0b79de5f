package audit

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("PGCONSENT_AUDIT_CHILD"); dir != "" {
		runChild(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func open(t *testing.T, cfg Config) *Log {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = quiet()
	}
	if cfg.ReleaseTimeout == 0 { // a busy machine must not cause refusals
		cfg.ReleaseTimeout = tier.Patience
	}
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func closeLog(t *testing.T, l *Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func decision(session string) Decision {
	return Decision{
		Session: session, Agent: "caregiver", Database: "memories", Attributes: map[string]string{"user": "u-1"},
		Protocol: "simple", Tag: "SELECT", Fingerprint: "00ff", Verdict: "allow", Path: "rls", Policy: "p1", Catalog: "c1",
		Tables: []Table{{Name: "public.memories", Columns: []string{"id", "title"}, DataSource: "structured"}},
	}
}

// sessions returns how many decisions each session has in a directory, and verifies the chain.
func sessions(t *testing.T, dir string) (map[string]int, Report) {
	t.Helper()
	found := map[string]int{}
	report, err := Walk(dir, func(r Record) error {
		if r.Kind != KindDecision {
			return nil
		}
		var d Decision
		if err := json.Unmarshal(r.Line, &d); err != nil {
			return err
		}
		found[d.Session]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, report
}

func TestRecords(t *testing.T) {
	for _, mode := range []Mode{ModeStrict, ModeBuffered} {
		t.Run(string(mode), func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, Config{Mode: mode, Dir: dir})
			if err := l.Session(Session{Session: "s1", Agent: "caregiver", Database: "memories", Event: "open"}).Release(); err != nil {
				t.Fatal(err)
			}
			ticket := l.Decision(decision("s1"))
			if err := ticket.Release(); err != nil {
				t.Fatal(err)
			}
			ticket.RecordOutcome(Outcome{Rows: 3, Bytes: 99, SQLState: "00000"})
			closeLog(t, l)

			var kinds []string
			report, err := Walk(dir, func(r Record) error {
				kinds = append(kinds, r.Kind)
				if r.Kind == KindOutcome {
					var o Outcome
					if err := json.Unmarshal(r.Line, &o); err != nil {
						return err
					}
					if want := (Outcome{Decision: 2, Session: "s1", Rows: 3, Bytes: 99, SQLState: "00000"}); fmt.Sprint(o) != fmt.Sprint(want) {
						t.Errorf("outcome %+v, want %+v", o, want)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(kinds, " "); got != "session decision outcome" {
				t.Errorf("records: %s", got)
			}
			if report.Records != 3 || report.LastSeq != 3 || report.Segments != 1 || report.TornBytes != 0 {
				t.Errorf("report %+v", report)
			}
		})
	}
}

func TestOffWritesNothing(t *testing.T) {
	l := open(t, Config{Mode: ModeOff})
	ticket := l.Decision(decision("s1"))
	if err := ticket.Release(); err != nil {
		t.Fatal(err)
	}
	ticket.RecordOutcome(Outcome{})
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	open(t, Config{Dir: dir})
	regular := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(regular, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		cfg  Config
		want string
	}{
		"in use":       {Config{Dir: dir}, "in use by another pgconsent"},
		"no directory": {Config{}, "needs a directory"},
		"a file":       {Config{Dir: regular}, "audit directory"},
		"unknown mode": {Config{Mode: "sometimes", Dir: dir}, "not one of strict"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Open(tc.cfg)
			if err == nil {
				_ = l.Close(context.Background())
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestConcurrentSessions(t *testing.T) {
	for _, mode := range []Mode{ModeStrict, ModeBuffered} {
		dir := t.TempDir()
		l := open(t, Config{Mode: mode, Dir: dir, MaxSegment: 16 << 10})
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				for j := range 20 {
					ticket := l.Decision(decision(fmt.Sprintf("%d-%d", i, j)))
					if err := ticket.Release(); err != nil {
						t.Error(err)
					}
					ticket.RecordOutcome(Outcome{SQLState: "00000"})
				}
			})
		}
		group.Wait()
		closeLog(t, l)
		found, report := sessions(t, dir)
		if len(found) != 400 || report.Records != 800 {
			t.Errorf("%s: %d decisions, %d records; want 400, 800", mode, len(found), report.Records)
		}
	}
}

// runChild writes as fast as it can, and prints the name of each decision that was released.
func runChild(dir string) {
	l, err := Open(Config{Dir: dir, MaxSegment: 64 << 10, Log: quiet()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var mu sync.Mutex
	round := os.Getenv("PGCONSENT_AUDIT_ROUND")
	for i := range 8 {
		go func() {
			for j := 0; ; j++ {
				name := fmt.Sprintf("%s.%d.%d", round, i, j)
				ticket := l.Decision(decision(name))
				if ticket.Release() != nil {
					os.Exit(1)
				}
				mu.Lock()
				_, _ = os.Stdout.WriteString(name + "\n")
				mu.Unlock()
				ticket.RecordOutcome(Outcome{Rows: 1, SQLState: "00000"})
			}
		}()
	}
	select {}
}

// If a process is killed at any moment, every decision that it released is in the file, and the next process continues
// the chain.
func TestKilledWriterKeepsTheChain(t *testing.T) {
	dir := t.TempDir()
	releasedCount, random := 0, tier.Rand(1)
	for round := range tier.Count(8, 30, 300) {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "PGCONSENT_AUDIT_CHILD="+dir, fmt.Sprintf("PGCONSENT_AUDIT_ROUND=%d", round))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(out)
		var names []string
		first := make(chan bool)
		outputRead := make(chan struct{})
		go func() {
			defer close(outputRead)
			for in.Scan() {
				names = append(names, in.Text())
				if len(names) == 1 {
					close(first)
				}
			}
		}()
		select {
		case <-first:
		case <-outputRead:
			t.Fatal("the child ended by itself")
		}
		time.Sleep(time.Duration(random.IntN(30_000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-outputRead
		_ = cmd.Wait()

		found, _ := sessions(t, dir)
		for _, name := range names {
			if found[name] != 1 {
				t.Fatalf("round %d: %s was released and has %d records", round, name, found[name])
			}
		}
		releasedCount += len(names)
	}
	if releasedCount < 100 {
		t.Errorf("only %d decisions were released: the test proves little", releasedCount)
	}
	closeLog(t, open(t, Config{Dir: dir}))
	if report, err := Verify(dir); err != nil || report.TornBytes != 0 {
		t.Errorf("after the last round: %+v, %v", report, err)
	}
}

// An incomplete last record, left by a crash, is moved to a file of its own. The chain says so, and goes on.
func TestTornRecord(t *testing.T) {
	for name, damage := range map[string]func(fullText []byte) []byte{
		"half a line":        func(b []byte) []byte { return b[:len(b)-40] },
		"without newline":    func(b []byte) []byte { return b[:len(b)-1] },
		"zeros of a crash":   func(b []byte) []byte { return append(b, make([]byte, 100)...) },
		"first record":       func(b []byte) []byte { return b[:20] },
		"nothing was synced": func(b []byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, Config{Dir: dir})
			for i := range 2 {
				if err := l.Decision(decision(fmt.Sprint(i))).Release(); err != nil {
					t.Fatal(err)
				}
			}
			closeLog(t, l)
			path := filepath.Join(dir, segmentName(1))
			fullText, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tornText := damage(fullText)
			if err := os.WriteFile(path, tornText, 0o600); err != nil {
				t.Fatal(err)
			}
			before, err := Verify(dir)
			if err != nil {
				t.Fatal(err)
			}
			l = open(t, Config{Dir: dir})
			if err := l.Decision(decision("after")).Release(); err != nil {
				t.Fatal(err)
			}
			closeLog(t, l)
			found, after := sessions(t, dir)
			if found["after"] != 1 {
				t.Error("the chain did not go on")
			}
			if before.TornBytes == 0 {
				if after.Recoveries != 0 {
					t.Error("a recovery was recorded and there was none")
				}
				return
			}
			tornFiles, err := filepath.Glob(filepath.Join(dir, "torn-*"))
			if err != nil || len(tornFiles) != 1 || after.Recoveries != 1 {
				t.Fatalf("kept %v, %d recovery records (%v)", tornFiles, after.Recoveries, err)
			}
			if b, err := os.ReadFile(tornFiles[0]); err != nil || int64(len(b)) != before.TornBytes {
				t.Errorf("%d bytes kept, %d were torn (%v)", len(b), before.TornBytes, err)
			}
		})
	}
}

// A changed record in the last segment is not treated as a crash: the log refuses to append to it.
func TestOpenRefusesABrokenChain(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir})
	for i := range 3 {
		if err := l.Decision(decision(fmt.Sprint(i))).Release(); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	path := filepath.Join(dir, segmentName(1))
	fullText, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(fullText), "caregiver", "caretaker", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var chainError *ChainError
	if _, err := Open(Config{Dir: dir, Log: quiet()}); !errors.As(err, &chainError) || chainError.Line != 1 {
		t.Errorf("Open: %v", err)
	}
}

func TestVerifyFindsTampering(t *testing.T) {
	source := t.TempDir()
	l := open(t, Config{Dir: source, MaxSegment: 2000})
	for i := range 20 {
		if err := l.Decision(decision(fmt.Sprint(i))).Release(); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, l)
	segments, err := listSegments(source)
	if err != nil || len(segments) < 4 {
		t.Fatalf("segments %v, %v", segments, err)
	}

	lines := func(f func([]string) []string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, segmentName(2))
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			allLines := strings.SplitAfter(string(b), "\n")
			if err := os.WriteFile(path, []byte(strings.Join(f(allLines[:len(allLines)-1]), "")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	rename := func(fromIndex, toIndex int) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, segmentName(fromIndex)), filepath.Join(dir, segmentName(toIndex))); err != nil {
				t.Fatal(err)
			}
		}
	}
	lastSegment := segments[len(segments)-1]
	for name, tc := range map[string]struct {
		tamper func(*testing.T, string)
		found  bool
	}{
		"untouched":                {func(*testing.T, string) {}, false},
		"a word changed":           {lines(func(l []string) []string { l[1] = strings.Replace(l[1], "allow", "deny", 1); return l }), true},
		"a hash changed":           {lines(func(l []string) []string { l[0] = strings.Replace(l[0], `,"hash":"`, `,"hash":"0`, 1); return l }), true},
		"a space added":            {lines(func(l []string) []string { l[0] = strings.Replace(l[0], ":", ": ", 1); return l }), true},
		"a word changed, rehashed": {lines(func(l []string) []string { l[0] = withRightHash(strings.Replace(l[0], "allow", "deny", 1)); return l }), true},
		"renumbered, rehashed": {func(t *testing.T, dir string) {
			path := filepath.Join(dir, segmentName(lastSegment))
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(withRightHash(strings.Replace(string(b), `"seq":`, `"seq":9`, 1))), 0o600); err != nil {
				t.Fatal(err)
			}
		}, true},
		"a record dropped":      {lines(func(l []string) []string { return append(l[:1], l[2:]...) }), true},
		"the segment's last":    {lines(func(l []string) []string { return l[:len(l)-1] }), true},
		"two records swapped":   {lines(func(l []string) []string { l[0], l[1] = l[1], l[0]; return l }), true},
		"a record twice":        {lines(func(l []string) []string { return append(l, l[len(l)-1]) }), true},
		"a line of garbage":     {lines(func(l []string) []string { return append(l, "garbage\n") }), true},
		"an empty line":         {lines(func(l []string) []string { return append(l, "\n") }), true},
		"a torn middle segment": {lines(func(l []string) []string { l[len(l)-1] = l[len(l)-1][:30]; return l }), true},
		"a segment emptied":     {lines(func([]string) []string { return nil }), true},
		"a segment dropped":     {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, segmentName(2))) }, true},
		"the first dropped":     {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, segmentName(1))) }, true},
		"a segment renamed":     {rename(lastSegment, lastSegment+1), true},
		"the newest segment gone": {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, segmentName(lastSegment))) },
			false}, // only an anchor shows this
		"the whole directory gone": {func(t *testing.T, dir string) { _ = os.RemoveAll(dir) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
				t.Fatal(err)
			}
			tc.tamper(t, dir)
			if _, err := Verify(dir); (err != nil) != tc.found {
				t.Errorf("Verify: %v, want an error: %v", err, tc.found)
			}
		})
	}
}

// withRightHash returns a changed line with a hash that is right.
func withRightHash(line string) string {
	body, _, _ := strings.Cut(line, hashMember)
	return fmt.Sprintf("%s%s%x\"}\n", body, hashMember, sha256.Sum256([]byte(body)))
}

// failingDisk is a disk that a test can make fail.
type failingDisk struct {
	mu                               sync.Mutex
	writeError, syncError, openError error
	hanging                          chan struct{}
}

func (s *failingDisk) set(writeError, syncError error) {
	s.mu.Lock()
	s.writeError, s.syncError = writeError, syncError
	s.mu.Unlock()
}

func (s *failingDisk) file(path string) (file, error) {
	s.mu.Lock()
	err := s.openError
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f, err := openFile(path)
	return sickFile{f, s}, err
}

type sickFile struct {
	file
	s *failingDisk
}

func (f sickFile) WriteAt(p []byte, off int64) (int, error) {
	f.s.mu.Lock()
	err, hang := f.s.writeError, f.s.hanging
	f.s.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if err != nil { // a full disk writes only a part
		n, _ := f.file.WriteAt(p[:len(p)/2], off)
		return n, err
	}
	return f.file.WriteAt(p, off)
}

func (f sickFile) Sync() error {
	f.s.mu.Lock()
	err := f.s.syncError
	f.s.mu.Unlock()
	if err != nil {
		return err
	}
	return f.file.Sync()
}

// Strict mode promises to answer or refuse within two seconds; a busy machine may add some time.
func TestDeadlineLeavesRoom(t *testing.T) {
	l, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if l.cfg.ReleaseTimeout > 1500*time.Millisecond {
		t.Errorf("the log waits %v", l.cfg.ReleaseTimeout)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func wantRefusal(t *testing.T, err *sqlstate.Error) {
	t.Helper()
	if err == nil || err.Code != sqlstate.IOError || err.Reason != sqlstate.ReasonAudit || err.Hint == "" {
		t.Errorf("released with %v, want 58030 with a hint", err)
	}
}

// eventually waits until a decision is released.
func eventually(t *testing.T, l *Log, name string) {
	t.Helper()
	for deadline := time.Now().Add(tier.Patience); ; time.Sleep(20 * time.Millisecond) {
		err := l.Decision(decision(name)).Release()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log did not recover: %v", err)
		}
	}
}

// When the disk fails, statements are refused at once. When it works again, so does the log.
func TestBrokenDisk(t *testing.T) {
	for _, mode := range []Mode{ModeStrict, ModeBuffered} {
		for name, failure := range map[string]struct{ writeError, syncError error }{
			"full":        {writeError: syscall.ENOSPC},
			"read-only":   {writeError: syscall.EROFS},
			"sync fails":  {syncError: syscall.EIO},
			"quota spent": {syncError: syscall.EDQUOT},
		} {
			t.Run(string(mode)+"/"+name, func(t *testing.T) {
				dir := t.TempDir()
				disk := &failingDisk{}
				l := open(t, Config{Mode: mode, Dir: dir, openFile: disk.file})
				before := l.Decision(decision("before"))
				if err := before.Release(); err != nil {
					t.Fatal(err)
				}
				disk.set(failure.writeError, failure.syncError)
				if mode == ModeBuffered { // the failure is noticed in the background
					for deadline := time.Now().Add(tier.Patience); l.WriteFailure() == nil && time.Now().Before(deadline); {
						l.Decision(decision("during"))
						time.Sleep(10 * time.Millisecond)
					}
				}
				for range 5 {
					wantRefusal(t, l.Decision(decision("refused")).Release())
				}
				before.RecordOutcome(Outcome{Rows: 7, SQLState: "00000"})
				disk.set(nil, nil)
				eventually(t, l, "after")
				closeLog(t, l)

				found, report := sessions(t, dir)
				if found["before"] != 1 || found["after"] != 1 || found["refused"] != 0 {
					t.Errorf("decisions in the file: %v", found)
				}
				if report.Recoveries == 0 {
					t.Error("the chain does not say that writing had failed")
				}
				outcomes := 0
				if _, err := Walk(dir, func(r Record) error {
					if r.Kind == KindOutcome {
						outcomes++
					}
					return nil
				}); err != nil || outcomes != 1 {
					t.Errorf("%d outcomes, want the one of the released decision (%v)", outcomes, err)
				}
			})
		}
	}
}

func TestHungDisk(t *testing.T) {
	for _, mode := range []Mode{ModeStrict, ModeBuffered} {
		t.Run(string(mode), func(t *testing.T) {
			dir := t.TempDir()
			disk := &failingDisk{}
			l := open(t, Config{Mode: mode, Dir: dir, ReleaseTimeout: 300 * time.Millisecond, openFile: disk.file})
			eventually(t, l, "before")
			hang := make(chan struct{})
			disk.mu.Lock()
			disk.hanging = hang
			disk.mu.Unlock()
			if mode == ModeBuffered {
				beforePause := l.Decision(decision("recorded before the client pauses"))
				time.Sleep(maxBufferedLag)
				wantRefusal(t, beforePause.Release())
			}
			wantRefusal(t, l.Decision(decision("hung")).Release())
			time.Sleep(350 * time.Millisecond)
			wantRefusal(t, l.Decision(decision("refused")).Release())

			disk.mu.Lock()
			disk.hanging = nil
			disk.mu.Unlock()
			close(hang)
			eventually(t, l, "after")
			closeLog(t, l)
			found, _ := sessions(t, dir)
			if found["after"] != 1 || found["refused"] != 0 {
				t.Errorf("decisions in the file: %v", found)
			}
		})
	}
}

func TestCloseDoesNotHang(t *testing.T) {
	disk := &failingDisk{}
	hang := make(chan struct{})
	l := open(t, Config{Dir: t.TempDir(), openFile: disk.file})
	disk.mu.Lock()
	disk.hanging = hang
	disk.mu.Unlock()
	l.Decision(decision("s"))
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := l.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
	wantRefusal(t, l.Decision(decision("late")).Release())
	close(hang)
}

// If somebody deletes or shortens the file that the log writes to, the log stops.
func TestSegmentDeletedOrShortened(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"deleted":   os.Remove,
		"shortened": func(path string) error { return os.Truncate(path, 10) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, Config{Dir: dir})
			if err := l.Decision(decision("before")).Release(); err != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(dir, segmentName(1))); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				wantRefusal(t, l.Decision(decision("after")).Release())
				time.Sleep(retryInterval)
			}
			_ = l.Close(context.Background())
		})
	}
}

func BenchmarkStrict(b *testing.B) {
	l, err := Open(Config{Dir: b.TempDir(), Log: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := l.Decision(decision("s")).Release(); err != nil {
				b.Error(err)
			}
		}
	})
	_ = l.Close(context.Background())
}

// BenchmarkBuffered writes both records of an execution, with codes. With one processor, the time is that of the caller
// and the writer together.
func BenchmarkBuffered(b *testing.B) {
	key, err := NewKey(make([]byte, 32))
	if err != nil {
		b.Fatal(err)
	}
	l, err := Open(Config{Mode: ModeBuffered, Dir: b.TempDir(), Key: key, Log: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	d := Decision{
		Session: "26f2d208fc76569d", Agent: "chat", AccessedBy: "chat", OnBehalfOf: "ref:d9015e68-a5e6-4f90-af11-4aad08ea66d3", Database: "arcive",
		Attributes: map[string]string{"user": "ref:d9015e68-a5e6-4f90-af11-4aad08ea66d3"}, Protocol: "extended",
		Tag: "SELECT", Fingerprint: "8f1c0b6c29a1a0c1",
		Tables: []Table{{Name: "public.memories", Columns: []string{"id", "title"}, DataSource: "structured",
			ByKey: true}}, Functions: []string{"pg_catalog.lower"},
		Verdict: "allow", Path: "rls", Policy: "c0ffee0123456789", Catalog: "c0ffee0123456789", Epoch: 42,
		Encoding: &StatementEncoding{},
	}
	b.ReportAllocs()
	for b.Loop() {
		t := l.Decision(d)
		for t.Release() != nil { // the writer is behind
			time.Sleep(time.Millisecond)
			t = l.Decision(d)
		}
		t.RecordOutcome(Outcome{Rows: 1, Bytes: 30, SQLState: "00000"})
	}
	_ = l.Close(context.Background())
}
