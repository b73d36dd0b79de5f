package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/tier"
)

// Real disks that are full, read-only and frozen. Each test runs in a process that has mounts of its own, so that
// nothing is left of them whatever becomes of it.

// apartName is the variable that holds the name of the test that is to run; apartWatch its descriptor that ends with
// the process that started it.
const (
	apartName  = "PGCONSENT_AUDIT_APART"
	apartWatch = 3
)

// apart tells that this process has mounts of its own. If not, it runs the test in one that has.
func apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(apartName) == t.Name() {
		return true
	}
	me := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	for _, attr := range []*syscall.SysProcAttr{
		{Unshareflags: syscall.CLONE_NEWNS},
		{Unshareflags: syscall.CLONE_NEWNS, Cloneflags: syscall.CLONE_NEWUSER, UidMappings: me(os.Getuid()), GidMappings: me(os.Getgid())},
	} {
		watch, hold, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=3m")
		cmd.Env = append(os.Environ(), apartName+"="+t.Name())
		cmd.SysProcAttr, cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = attr, []*os.File{watch}, &out, &out
		cmd.Cancel = func() error { hold.Close(); return cmd.Process.Kill() } // one that waits for a frozen disk ends when that is thawed
		cmd.WaitDelay = 10 * time.Second
		err = cmd.Start()
		started := err == nil
		if started {
			err = cmd.Wait()
		}
		cancel()
		watch.Close()
		hold.Close()
		said := out.String()
		switch {
		case !started:
			continue // not allowed
		case err != nil:
			t.Errorf("%v:\n%s", err, said)
		case strings.Contains(said, "--- SKIP: "):
			_, reason, _ := strings.Cut(said, "--- SKIP: ")
			t.Skip(reason)
		case !strings.Contains(said, "--- PASS: "+t.Name()):
			t.Errorf("the test did not run:\n%s", said)
		}
		return false
	}
	t.Skip("SKIPPED: no process with mounts of its own can be started here (root or user namespaces), so that no " +
		"full, read-only or frozen disk was tried")
	return false
}

// memory mounts a file system of this size, and perhaps of so many files.
func memory(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("cannot mount a tmpfs here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill takes what room is left, and returns how it is given back.
func fill(t *testing.T, dir string) (empty func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := 4096; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// asking is agents that ask until they are stopped: what was released, by its session.
type asking struct {
	released sync.Map
	answers  atomic.Int64
	refused  atomic.Int64
	stop     chan struct{}
	agents   sync.WaitGroup
}

func ask(t *testing.T, l *Log) *asking {
	a := &asking{stop: make(chan struct{})}
	for agent := range 3 {
		a.agents.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-a.stop:
					return
				default:
				}
				name := fmt.Sprintf("%d-%d", agent, n)
				ticket := l.Decision(decision(name))
				if err := ticket.Release(); err != nil {
					wantRefusal(t, err)
					a.refused.Add(1)
					time.Sleep(5 * time.Millisecond)
					continue
				}
				a.released.Store(name, true)
				a.answers.Add(1)
				ticket.RecordOutcome(Outcome{SQLState: "00000"})
				time.Sleep(10 * time.Millisecond) // the room is for what the tests put there
			}
		})
	}
	t.Cleanup(a.end)
	return a
}

func (a *asking) end() {
	select {
	case <-a.stop:
	default:
		close(a.stop)
	}
	a.agents.Wait()
}

// more waits until a number has grown by n.
func more(t *testing.T, what string, of *atomic.Int64, n int64) {
	t.Helper()
	want := of.Load() + n
	for deadline := time.Now().Add(tier.Patience); of.Load() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no more statements are %s", what)
		}
	}
}

// recorded checks that each that was released is in the log, once.
func (a *asking) recorded(t *testing.T, cfg Config) Report {
	t.Helper()
	found, report := verified(t, cfg)
	a.released.Range(func(name, _ any) bool {
		if found[name.(string)] != 1 {
			t.Errorf("the statement of %s was answered, and has %d records", name, found[name.(string)])
		}
		return true
	})
	return report
}

// told waits until the log says that it cannot be written. A small record may still have found room.
func told(t *testing.T, l *Log) {
	t.Helper()
	for deadline := time.Now().Add(tier.Patience); l.WriteFailure() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody is told that records cannot be written")
		}
	}
}

// A disk that fills up and becomes larger.
func TestFullFilesystem(t *testing.T) {
	if !apart(t) {
		return
	}
	dir := memory(t, "size=64k")
	l := open(t, Config{Dir: filepath.Join(dir, "audit")})
	released := 0
	for range 1000 {
		err := l.Decision(decision(fmt.Sprint(released))).Release()
		if err != nil {
			wantRefusal(t, err)
			break
		}
		released++
	}
	if released == 0 || released == 1000 {
		t.Fatalf("%d decisions released on 64 KiB", released)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=256k"); err != nil {
		t.Fatal(err)
	}
	eventually(t, l, "after")
	closeLog(t, l)
	found, _ := sessions(t, filepath.Join(dir, "audit"))
	if found["after"] != 1 || len(found) != released+1 {
		t.Errorf("%d decisions in the file, %d were released", len(found), released+1)
	}
}

// A disk is full again and again, at any place of a segment and between two, with the anchor on it; agents go on asking.
func TestFullDiskWhileAgentsAsk(t *testing.T) {
	if !apart(t) {
		return
	}
	for _, mode := range []Mode{ModeStrict, ModeBuffered} {
		for what, options := range map[string]string{"no room": "size=16m", "no more files": "size=64m,nr_inodes=40"} {
			t.Run(string(mode)+", "+what, func(t *testing.T) {
				dir := memory(t, options)
				cfg := Config{Mode: mode, Dir: filepath.Join(dir, "audit"), Key: testKey(t, 'k'),
					AnchorFile: filepath.Join(dir, "anchor"), MaxSegment: 20000, Log: quiet()}
				l := open(t, cfg)
				a := ask(t, l)
				for round := range 3 {
					more(t, "answered", &a.answers, int64(10+3*round))
					empty := func() {
						names, err := filepath.Glob(filepath.Join(dir, "taken-*"))
						for _, name := range names {
							err = errors.Join(err, os.Remove(name))
						}
						if err != nil {
							t.Fatal(err)
						}
					}
					if what == "no room" {
						empty = fill(t, dir)
					} else {
						for i := 0; ; i++ { // the next segment has no place
							f, err := os.Create(filepath.Join(dir, fmt.Sprintf("taken-%d", i)))
							if err != nil {
								break
							}
							f.Close()
						}
					}
					more(t, "refused", &a.refused, 5)
					told(t, l)
					empty()
				}
				more(t, "answered", &a.answers, 5)
				a.end()
				closeLog(t, l)
				if report := a.recorded(t, cfg); report.Recoveries == 0 || report.Segments < 2 {
					t.Errorf("the log proves little: %+v", report)
				}
			})
		}
	}
}

// Segments whose time is over go as soon as their checkpoint can be written, though it could not when it was looked for
// them.
func TestRetentionOfAFullDisk(t *testing.T) {
	if !apart(t) {
		return
	}
	dir := memory(t, "size=1m")
	var later atomic.Int64
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: testKey(t, 'k'), AnchorFile: filepath.Join(dir, "anchor"),
		MaxSegment: 4096, Retention: time.Hour, Log: quiet(),
		Clock: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }}
	l := open(t, cfg)
	for i := range 30 {
		if err := l.Decision(decision(fmt.Sprint(i))).Release(); err != nil {
			t.Fatal(err)
		}
	}
	empty := fill(t, dir)
	for i := 0; l.WriteFailure() == nil; i++ { // until the room that is left in the segment is used up
		if err := l.Decision(decision(fmt.Sprint("full ", i))).Release(); err != nil {
			wantRefusal(t, err)
		}
	}
	later.Store(int64(25 * time.Hour))
	time.Sleep(3 * retryInterval) // it looks, and cannot write what it found
	before, err := listSegments(cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	empty()
	eventually(t, l, "after")
	closeLog(t, l)
	after, err := listSegments(cfg.Dir)
	if err != nil || len(after) >= len(before) {
		t.Errorf("segments %v before, %v when there is room again: %v", before, after, err)
	}
	if _, report := verified(t, cfg); report.Checkpoints == 0 {
		t.Errorf("no checkpoint: %+v", report)
	}
}

// A folder that has become read-only takes no new segment.
func TestReadOnlyFolder(t *testing.T) {
	if !apart(t) {
		return
	}
	dir := memory(t, "size=4m")
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: testKey(t, 'k'), AnchorFile: filepath.Join(dir, "anchor"), MaxSegment: 20000, Log: quiet()}
	l := open(t, cfg)
	a := ask(t, l)
	more(t, "answered", &a.answers, 10)
	if err := syscall.Mount(cfg.Dir, cfg.Dir, "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", cfg.Dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	more(t, "refused", &a.refused, 5)
	if err := syscall.Unmount(cfg.Dir, syscall.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	more(t, "answered", &a.answers, 5)
	a.end()
	closeLog(t, l)
	a.recorded(t, cfg)
}

const (
	freeze = 0xC0045877 // FIFREEZE
	thaw   = 0xC0045878 // FITHAW
)

// freezing mounts a file system that can be frozen: what writes to it waits, and no signal ends it.
func freezing(t *testing.T) (dir string, set func(uintptr)) {
	t.Helper()
	dir = t.TempDir()
	image := filepath.Join(t.TempDir(), "image")
	for _, command := range [][]string{{"truncate", "-s", "32M", image}, {"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no file system that can be frozen: %s: %v %s", command[0], err, bytes.TrimSpace(out))
		}
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", "-d", dir).Run() })
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	set = func(how uintptr) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), how, 0); errno != 0 {
			t.Fatal(errno)
		}
	}
	// Whatever happens to this process, it is thawed when the one that started it ends.
	guard := exec.Command("sh", "-c", "cat <&3 >/dev/null; exec fsfreeze -u "+dir)
	guard.ExtraFiles = []*os.File{os.NewFile(apartWatch, "watch")}
	if err := guard.Start(); err != nil {
		t.Skip("SKIPPED: no shell that thaws a frozen disk can be started, so that none was tried: ", err)
	}
	t.Cleanup(func() {
		_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), thaw, 0)
		f.Close()
		_ = guard.Process.Kill()
		_ = guard.Wait()
	})
	return dir, set
}

// A log is opened on a disk that takes nothing: statements are refused until it does, and what a crash left of the last
// record is set aside then, as ever.
func TestOpenOnABrokenDisk(t *testing.T) {
	if !apart(t) {
		return
	}
	readonly := func(t *testing.T, path string) (mend func()) {
		if err := syscall.Mount(path, path, "", syscall.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("", path, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
		}
	}
	for what, broken := range map[string]func(t *testing.T, cfg Config) (mend func()){
		"full":             func(t *testing.T, cfg Config) func() { return fill(t, filepath.Dir(cfg.Dir)) },
		"folder read-only": func(t *testing.T, cfg Config) func() { return readonly(t, cfg.Dir) },
		"all read-only":    func(t *testing.T, cfg Config) func() { return readonly(t, filepath.Dir(cfg.Dir)) },
		"a missing part": func(t *testing.T, cfg Config) func() {
			moved := filepath.Dir(cfg.Dir) + "/moved"
			if err := errors.Join(os.Rename(cfg.Dir, moved), os.Symlink("nowhere/at/all", cfg.Dir)); err != nil {
				t.Fatal(err)
			}
			return func() {
				// In one step: the log looks for its folder meanwhile, and makes it where there is nothing.
				if err := errors.Join(os.Symlink(moved, cfg.Dir+".new"), os.Rename(cfg.Dir+".new", cfg.Dir)); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		for _, mode := range []Mode{ModeStrict, ModeBuffered} {
			t.Run(string(mode)+", "+what, func(t *testing.T) {
				dir := memory(t, "size=2m")
				cfg := Config{Mode: mode, Dir: filepath.Join(dir, "audit"), Key: testKey(t, 'k'), AnchorFile: filepath.Join(dir, "anchor"), Log: quiet()}
				l := open(t, cfg)
				for i := range 20 {
					if err := l.Decision(decision(fmt.Sprint("before ", i))).Release(); err != nil {
						t.Fatal(err)
					}
				}
				closeLog(t, l)
				// A crash, then a disk that is broken.
				segment := filepath.Join(cfg.Dir, segmentName(1))
				text, err := os.ReadFile(segment)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(segment, append(text, text[:100]...), 0o600); err != nil {
					t.Fatal(err)
				}
				mend := broken(t, cfg)
				l = open(t, cfg)
				if l.WriteFailure() == nil {
					t.Error("nobody is told that records cannot be written")
				}
				refused := l.Decision(decision("refused"))
				wantRefusal(t, refused.Release())
				refused.RecordOutcome(Outcome{SQLState: "58030"})
				time.Sleep(2 * retryInterval) // it is tried again, in vain
				wantRefusal(t, l.Decision(decision("refused")).Release())
				mend()
				eventually(t, l, "after")
				closeLog(t, l)
				found, report := verified(t, cfg)
				if len(found) != 21 || found["after"] != 1 || found["refused"] != 0 || report.Recoveries < 2 {
					t.Errorf("%d sessions, %+v", len(found), report)
				}
				if torn, err := os.ReadFile(filepath.Join(cfg.Dir,
					fmt.Sprintf("%s%d", tornFilePrefix(1), len(text)))); err != nil || string(torn) != string(text[:100]) {
					t.Errorf("what the crash left was not kept: %q, %v", torn, err)
				}
			})
		}
	}
}

// What no waiting mends is told at once: another process has the folder, the path is none, the records do not hold.
func TestOpenReportsPermanentFailures(t *testing.T) {
	for what, prepare := range map[string]func(cfg Config) error{
		"in use by another pgconsent": func(cfg Config) error {
			l := open(t, cfg)
			t.Cleanup(func() { closeLog(t, l) })
			return nil
		},
		"not a directory": func(cfg Config) error { return os.WriteFile(cfg.Dir, nil, 0o600) },
		"keep the directory as evidence": func(cfg Config) error {
			return errors.Join(os.Mkdir(cfg.Dir, 0o700), os.WriteFile(filepath.Join(cfg.Dir, segmentName(1)), []byte("{}\n"), 0o600))
		},
	} {
		cfg := Config{Dir: filepath.Join(t.TempDir(), "audit"), Log: quiet()}
		if err := prepare(cfg); err != nil {
			t.Fatal(err)
		}
		if l, err := Open(cfg); err == nil || l != nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A disk that does not answer: statements are refused meanwhile, the log can be left alone, and goes on when the disk
// does.
func TestFrozenDisk(t *testing.T) {
	tier.All(t)
	if !apart(t) {
		return
	}
	dir, set := freezing(t)
	for _, mode := range []Mode{ModeStrict, ModeBuffered} {
		t.Run(string(mode), func(t *testing.T) {
			at := filepath.Join(dir, string(mode))
			cfg := Config{Mode: mode, Dir: at, Key: testKey(t, 'k'),
				AnchorFile: filepath.Join(dir, string(mode)+".anchor"), MaxSegment: 20000, ReleaseTimeout: time.Second, Log: quiet()}
			l := open(t, cfg)
			a := ask(t, l)
			more(t, "answered", &a.answers, 10)
			set(freeze)
			more(t, "refused", &a.refused, 10)
			told(t, l)
			set(thaw)
			more(t, "answered", &a.answers, 10)
			a.end()
			closeLog(t, l)
			a.recorded(t, cfg)
		})
	}
}
