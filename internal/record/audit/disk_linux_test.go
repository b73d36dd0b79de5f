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

// These tests use real file systems that are full, read-only or frozen. Each runs in a process with mounts of its own,
// which disappear with it.

// apartVariable is the environment variable with the name of the test to run in such a process. apartWatch is a file
// descriptor that closes when the parent process ends.
const (
	apartVariable = "PGCONSENT_AUDIT_APART"
	apartWatch    = 3
)

// isInOwnMounts returns true in a process with mounts of its own. Otherwise it starts one for the test, and returns
// false.
func isInOwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(apartVariable) == t.Name() {
		return true
	}
	ownIDMapping := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	for _, attr := range []*syscall.SysProcAttr{
		{Unshareflags: syscall.CLONE_NEWNS},
		{Unshareflags: syscall.CLONE_NEWNS, Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ownIDMapping(os.Getuid()),
			GidMappings: ownIDMapping(os.Getgid())},
	} {
		watch, hold, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=3m")
		cmd.Env = append(os.Environ(), apartVariable+"="+t.Name())
		cmd.SysProcAttr, cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = attr, []*os.File{watch}, &out, &out
		cmd.Cancel = func() error { hold.Close(); return cmd.Process.Kill() } // closing the pipe thaws a frozen disk, so that the process can end
		cmd.WaitDelay = 10 * time.Second
		err = cmd.Start()
		hasStarted := err == nil
		if hasStarted {
			err = cmd.Wait()
		}
		cancel()
		watch.Close()
		hold.Close()
		output := out.String()
		switch {
		case !hasStarted:
			continue // this kind of namespace is not permitted
		case err != nil:
			t.Errorf("%v:\n%s", err, output)
		case strings.Contains(output, "--- SKIP: "):
			_, reason, _ := strings.Cut(output, "--- SKIP: ")
			t.Skip(reason)
		case !strings.Contains(output, "--- PASS: "+t.Name()):
			t.Errorf("the test did not run:\n%s", output)
		}
		return false
	}
	t.Skip("SKIPPED: no process with mounts of its own can be started here (root or user namespaces), so that no " +
		"full, read-only or frozen disk was tried")
	return false
}

// mountTmpfs mounts a tmpfs with these options, such as its size and its number of inodes.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("cannot mount a tmpfs here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill writes files until no space is left. It returns a function that removes them.
func fill(t *testing.T, dir string) (emptyDisk func()) {
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

// askingAgents is a number of agents that write decisions until they are stopped. It stores what was released, by
// session.
type askingAgents struct {
	released      sync.Map
	answeredCount atomic.Int64
	refusedCount  atomic.Int64
	stop          chan struct{}
	agents        sync.WaitGroup
}

func ask(t *testing.T, l *Log) *askingAgents {
	a := &askingAgents{stop: make(chan struct{})}
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
					a.refusedCount.Add(1)
					time.Sleep(5 * time.Millisecond)
					continue
				}
				a.released.Store(name, true)
				a.answeredCount.Add(1)
				ticket.RecordOutcome(Outcome{SQLState: "00000"})
				time.Sleep(10 * time.Millisecond) // the agents should not fill the disk themselves
			}
		})
	}
	t.Cleanup(a.end)
	return a
}

func (a *askingAgents) end() {
	select {
	case <-a.stop:
	default:
		close(a.stop)
	}
	a.agents.Wait()
}

// awaitMore waits until a counter has grown by n.
func awaitMore(t *testing.T, description string, counter *atomic.Int64, n int64) {
	t.Helper()
	want := counter.Load() + n
	for deadline := time.Now().Add(tier.Patience); counter.Load() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no more statements are %s", description)
		}
	}
}

// recorded checks that each released decision is in the log exactly once.
func (a *askingAgents) recorded(t *testing.T, cfg Config) Report {
	t.Helper()
	found, report := verifyLog(t, cfg)
	a.released.Range(func(name, _ any) bool {
		if found[name.(string)] != 1 {
			t.Errorf("the statement of %s was answered, and has %d records", name, found[name.(string)])
		}
		return true
	})
	return report
}

// awaitWriteFailure waits until the log reports that it cannot write. A small record may still find space.
func awaitWriteFailure(t *testing.T, l *Log) {
	t.Helper()
	for deadline := time.Now().Add(tier.Patience); l.WriteFailure() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody is told that records cannot be written")
		}
	}
}

// A disk becomes full, and larger again. Statements are refused in between.
func TestFullFilesystem(t *testing.T) {
	if !isInOwnMounts(t) {
		return
	}
	dir := mountTmpfs(t, "size=64k")
	l := open(t, Config{Dir: filepath.Join(dir, "audit")})
	releasedCount := 0
	for range 1000 {
		err := l.Decision(decision(fmt.Sprint(releasedCount))).Release()
		if err != nil {
			wantRefusal(t, err)
			break
		}
		releasedCount++
	}
	if releasedCount == 0 || releasedCount == 1000 {
		t.Fatalf("%d decisions released on 64 KiB", releasedCount)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=256k"); err != nil {
		t.Fatal(err)
	}
	eventually(t, l, "after")
	closeLog(t, l)
	found, _ := sessions(t, filepath.Join(dir, "audit"))
	if found["after"] != 1 || len(found) != releasedCount+1 {
		t.Errorf("%d decisions in the file, %d were released", len(found), releasedCount+1)
	}
}

// The disk with log and anchor becomes full again and again, within a segment or between two, while agents go on
// writing.
func TestFullDiskWhileAgentsAsk(t *testing.T) {
	if !isInOwnMounts(t) {
		return
	}
	for _, mode := range []Mode{ModeStrict, ModeBuffered} {
		for description, options := range map[string]string{"no room": "size=16m", "no more files": "size=64m,nr_inodes=40"} {
			t.Run(string(mode)+", "+description, func(t *testing.T) {
				dir := mountTmpfs(t, options)
				cfg := Config{Mode: mode, Dir: filepath.Join(dir, "audit"), Key: testKey(t, 'k'),
					AnchorFile: filepath.Join(dir, "anchor"), MaxSegment: 20000, Log: quiet()}
				l := open(t, cfg)
				a := ask(t, l)
				for round := range 3 {
					awaitMore(t, "answered", &a.answeredCount, int64(10+3*round))
					emptyDisk := func() {
						names, err := filepath.Glob(filepath.Join(dir, "taken-*"))
						for _, name := range names {
							err = errors.Join(err, os.Remove(name))
						}
						if err != nil {
							t.Fatal(err)
						}
					}
					if description == "no room" {
						emptyDisk = fill(t, dir)
					} else {
						for i := 0; ; i++ { // there is no space for the next segment
							f, err := os.Create(filepath.Join(dir, fmt.Sprintf("taken-%d", i)))
							if err != nil {
								break
							}
							f.Close()
						}
					}
					awaitMore(t, "refused", &a.refusedCount, 5)
					awaitWriteFailure(t, l)
					emptyDisk()
				}
				awaitMore(t, "answered", &a.answeredCount, 5)
				a.end()
				closeLog(t, l)
				if report := a.recorded(t, cfg); report.Recoveries == 0 || report.Segments < 2 {
					t.Errorf("the log proves little: %+v", report)
				}
			})
		}
	}
}

// Expired segments are removed as soon as their checkpoint can be written, even if that failed when the expiry was
// noticed.
func TestRetentionOfAFullDisk(t *testing.T) {
	if !isInOwnMounts(t) {
		return
	}
	dir := mountTmpfs(t, "size=1m")
	var clockOffset atomic.Int64
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: testKey(t, 'k'), AnchorFile: filepath.Join(dir, "anchor"),
		MaxSegment: 4096, Retention: time.Hour, Log: quiet(),
		Clock: func() time.Time { return time.Now().Add(time.Duration(clockOffset.Load())) }}
	l := open(t, cfg)
	for i := range 30 {
		if err := l.Decision(decision(fmt.Sprint(i))).Release(); err != nil {
			t.Fatal(err)
		}
	}
	emptyDisk := fill(t, dir)
	for i := 0; l.WriteFailure() == nil; i++ { // until the remaining space of the segment is used
		if err := l.Decision(decision(fmt.Sprint("full ", i))).Release(); err != nil {
			wantRefusal(t, err)
		}
	}
	clockOffset.Store(int64(25 * time.Hour))
	time.Sleep(3 * retryInterval) // the log notices the expiry, and cannot write the checkpoint
	before, err := listSegments(cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	emptyDisk()
	eventually(t, l, "after")
	closeLog(t, l)
	after, err := listSegments(cfg.Dir)
	if err != nil || len(after) >= len(before) {
		t.Errorf("segments %v before, %v when there is room again: %v", before, after, err)
	}
	if _, report := verifyLog(t, cfg); report.Checkpoints == 0 {
		t.Errorf("no checkpoint: %+v", report)
	}
}

// If the folder becomes read-only, no new segment can be created, and statements are refused.
func TestReadOnlyFolder(t *testing.T) {
	if !isInOwnMounts(t) {
		return
	}
	dir := mountTmpfs(t, "size=4m")
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: testKey(t, 'k'), AnchorFile: filepath.Join(dir, "anchor"), MaxSegment: 20000, Log: quiet()}
	l := open(t, cfg)
	a := ask(t, l)
	awaitMore(t, "answered", &a.answeredCount, 10)
	if err := syscall.Mount(cfg.Dir, cfg.Dir, "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", cfg.Dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	awaitMore(t, "refused", &a.refusedCount, 5)
	if err := syscall.Unmount(cfg.Dir, syscall.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	awaitMore(t, "answered", &a.answeredCount, 5)
	a.end()
	closeLog(t, l)
	a.recorded(t, cfg)
}

const (
	freeze = 0xC0045877 // FIFREEZE
	thaw   = 0xC0045878 // FITHAW
)

// mountFreezable mounts a file system that can be frozen. A process that writes to it then waits, and no signal ends
// it.
func mountFreezable(t *testing.T) (dir string, setFrozen func(uintptr)) {
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
	setFrozen = func(request uintptr) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, 0); errno != 0 {
			t.Fatal(errno)
		}
	}
	// If this process ends in any way, the guard thaws the file system.
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
	return dir, setFrozen
}

// A log is opened on a disk that cannot be written. Statements are refused until it can. Then an incomplete last record
// from a crash is moved away as usual.
func TestOpenOnABrokenDisk(t *testing.T) {
	if !isInOwnMounts(t) {
		return
	}
	readonly := func(t *testing.T, path string) (mendDisk func()) {
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
	for description, breakDisk := range map[string]func(t *testing.T, cfg Config) (mendDisk func()){
		"full":             func(t *testing.T, cfg Config) func() { return fill(t, filepath.Dir(cfg.Dir)) },
		"folder read-only": func(t *testing.T, cfg Config) func() { return readonly(t, cfg.Dir) },
		"all read-only":    func(t *testing.T, cfg Config) func() { return readonly(t, filepath.Dir(cfg.Dir)) },
		"a missing part": func(t *testing.T, cfg Config) func() {
			movedDir := filepath.Dir(cfg.Dir) + "/moved"
			if err := errors.Join(os.Rename(cfg.Dir, movedDir), os.Symlink("nowhere/at/all", cfg.Dir)); err != nil {
				t.Fatal(err)
			}
			return func() {
				// The folder is replaced in one step, because the log retries meanwhile, and would create a missing
				// folder.
				if err := errors.Join(os.Symlink(movedDir, cfg.Dir+".new"), os.Rename(cfg.Dir+".new", cfg.Dir)); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		for _, mode := range []Mode{ModeStrict, ModeBuffered} {
			t.Run(string(mode)+", "+description, func(t *testing.T) {
				dir := mountTmpfs(t, "size=2m")
				cfg := Config{Mode: mode, Dir: filepath.Join(dir, "audit"), Key: testKey(t, 'k'), AnchorFile: filepath.Join(dir, "anchor"), Log: quiet()}
				l := open(t, cfg)
				for i := range 20 {
					if err := l.Decision(decision(fmt.Sprint("before ", i))).Release(); err != nil {
						t.Fatal(err)
					}
				}
				closeLog(t, l)
				// After a crash, the disk is broken.
				segment := filepath.Join(cfg.Dir, segmentName(1))
				text, err := os.ReadFile(segment)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(segment, append(text, text[:100]...), 0o600); err != nil {
					t.Fatal(err)
				}
				mendDisk := breakDisk(t, cfg)
				l = open(t, cfg)
				if l.WriteFailure() == nil {
					t.Error("nobody is told that records cannot be written")
				}
				refused := l.Decision(decision("refused"))
				wantRefusal(t, refused.Release())
				refused.RecordOutcome(Outcome{SQLState: "58030"})
				time.Sleep(2 * retryInterval) // the log retries without success
				wantRefusal(t, l.Decision(decision("refused")).Release())
				mendDisk()
				eventually(t, l, "after")
				closeLog(t, l)
				found, report := verifyLog(t, cfg)
				if len(found) != 21 || found["after"] != 1 || found["refused"] != 0 || report.Recoveries < 2 {
					t.Errorf("%d sessions, %+v", len(found), report)
				}
				if segmentText, err := os.ReadFile(filepath.Join(cfg.Dir,
					fmt.Sprintf("%s%d", tornFilePrefix(1), len(text)))); err != nil || string(segmentText) != string(text[:100]) {
					t.Errorf("what the crash left was not kept: %q, %v", segmentText, err)
				}
			})
		}
	}
}

// Failures that waiting cannot repair are reported at once: another process uses the folder, the path is not a folder,
// or the chain does not verify.
func TestOpenReportsPermanentFailures(t *testing.T) {
	for description, prepare := range map[string]func(cfg Config) error{
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
		if l, err := Open(cfg); err == nil || l != nil || !strings.Contains(err.Error(), description) {
			t.Errorf("%s: %v", description, err)
		}
	}
}

// While the disk does not answer, statements are refused and the log can be closed. When it answers again, the log goes
// on.
func TestFrozenDisk(t *testing.T) {
	tier.All(t)
	if !isInOwnMounts(t) {
		return
	}
	dir, setFrozen := mountFreezable(t)
	for _, mode := range []Mode{ModeStrict, ModeBuffered} {
		t.Run(string(mode), func(t *testing.T) {
			logDir := filepath.Join(dir, string(mode))
			cfg := Config{Mode: mode, Dir: logDir, Key: testKey(t, 'k'),
				AnchorFile: filepath.Join(dir, string(mode)+".anchor"), MaxSegment: 20000, ReleaseTimeout: time.Second, Log: quiet()}
			l := open(t, cfg)
			a := ask(t, l)
			awaitMore(t, "answered", &a.answeredCount, 10)
			setFrozen(freeze)
			awaitMore(t, "refused", &a.refusedCount, 10)
			awaitWriteFailure(t, l)
			setFrozen(thaw)
			awaitMore(t, "answered", &a.answeredCount, 10)
			a.end()
			closeLog(t, l)
			a.recorded(t, cfg)
		})
	}
}
