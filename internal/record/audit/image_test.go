package audit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/tier"
)

// image is a copy of a folder of records as a crash of the machine would leave it. It has the synced content of each
// file, and no file that was removed.
type image struct {
	t            *testing.T
	liveDir, dir string

	mu    sync.Mutex
	syncs int
}

func (i *image) file(path string) (file, error) {
	f, err := openFile(path)
	return imageFile{f, path, i}, err
}

type imageFile struct {
	file
	path string
	i    *image
}

func (f imageFile) Sync() error {
	f.i.mu.Lock()
	defer f.i.mu.Unlock()
	f.i.holds("before it is synced")
	if err := f.file.Sync(); err != nil {
		return err
	}
	text, err := os.ReadFile(f.path)
	if err == nil {
		err = os.WriteFile(filepath.Join(f.i.dir, filepath.Base(f.path)), text, 0o600)
	}
	if err != nil {
		f.i.t.Error(err)
	}
	f.i.syncs++
	f.i.holds("synced")
	return nil
}

// holds verifies the chain in the image. Only its end may be missing.
func (i *image) holds(description string) Report {
	i.t.Helper()
	files, err := os.ReadDir(i.dir)
	for _, f := range files {
		if _, statErr := os.Stat(filepath.Join(i.liveDir, f.Name())); errors.Is(statErr, fs.ErrNotExist) {
			err = errors.Join(err, os.Remove(filepath.Join(i.dir, f.Name())))
		}
	}
	if err != nil {
		i.t.Error(err)
	}
	report, err := Verify(i.dir)
	if err != nil {
		i.t.Errorf("%s for the %d. time: a crash would leave: %v", description, i.syncs, err)
	}
	return report
}

// Whenever the machine crashes, the remaining records are a valid chain, and a checkpoint is on disk before the records
// that it replaces are removed. When the log is closed, or has had time to sync, no record is missing.
func TestChainAfterACrash(t *testing.T) {
	for _, mode := range []Mode{ModeStrict, ModeBuffered} {
		t.Run(string(mode), func(t *testing.T) {
			i := &image{t: t, liveDir: t.TempDir(), dir: t.TempDir()}
			var clockOffset atomic.Int64
			cfg := Config{Mode: mode, Dir: i.liveDir, MaxSegment: 1, Retention: time.Hour, openFile: i.file,
				Clock: func() time.Time { return time.Now().Add(time.Duration(clockOffset.Load())) }}
			l := open(t, cfg)
			writeRecords := func(n int) {
				t.Helper()
				for range n {
					eventually(t, l, "s") // while the clock jumps, the disk seems not to answer
					time.Sleep(time.Millisecond)
				}
			}
			writeUntil := func(description string, isReached func(segments []int) bool) {
				t.Helper()
				for deadline := time.Now().Add(tier.Patience); ; {
					writeRecords(1)
					segments, err := listSegments(i.liveDir)
					if err != nil {
						t.Fatal(err)
					}
					if isReached(segments) {
						return
					}
					if time.Now().After(deadline) {
						t.Fatalf("%s: segments %v", description, segments)
					}
				}
			}
			writeUntil("some segments", func(segments []int) bool { return len(segments) > 4 })
			clockOffset.Store(int64(30 * time.Hour)) // the records so far have expired
			writeUntil("the first is removed", func(segments []int) bool { return segments[0] > 1 })
			writeRecords(1)
			time.Sleep(2 * syncInterval) // the last records are synced although no other follows
			closeLog(t, l)
			_, fullReport := sessions(t, i.liveDir)
			if imageReport := i.holds("closed"); imageReport.LastSeq != fullReport.LastSeq || fullReport.Checkpoints == 0 {
				t.Errorf("a crash leaves %d of %d records, with %d checkpoints", imageReport.LastSeq, fullReport.LastSeq, fullReport.Checkpoints)
			}
			if mode == ModeBuffered { // the log is closed right after a write
				cfg.MaxSegment = 0
				l = open(t, cfg)
				writeRecords(3)
				closeLog(t, l)
				_, fullReport := sessions(t, i.liveDir)
				if imageReport := i.holds("closed at once"); imageReport.LastSeq != fullReport.LastSeq {
					t.Errorf("a crash leaves %d of %d records", imageReport.LastSeq, fullReport.LastSeq)
				}
			}
		})
	}
}

// The queue in memory is limited. Closing a log returns an error if records are not on disk.
func TestQueueIsBounded(t *testing.T) {
	disk, hang, now := &failingDisk{}, make(chan struct{}), time.Now()
	// The clock stands still, so that no record is refused for waiting long.
	l := open(t, Config{Mode: ModeBuffered, Dir: t.TempDir(), Clock: func() time.Time { return now }, openFile: disk.file})
	disk.mu.Lock()
	disk.hanging = hang
	disk.mu.Unlock()
	refused := 0
	for range maxQueue + 100 {
		if err := l.Decision(decision("s")).Release(); err != nil {
			wantRefusal(t, err)
			refused++
		}
	}
	if refused < 90 || refused > 100 {
		t.Errorf("%d records more than fit, and %d were refused", 100, refused)
	}
	disk.mu.Lock()
	disk.hanging = nil
	disk.writeError = syscall.ENOSPC
	disk.mu.Unlock()
	close(hang)
	if err := l.Close(t.Context()); err == nil {
		t.Error("a log whose records could not be written is closed without a word")
	}
}

// When the anchor is reopened, one of its slots contains the newest head, whenever it was written.
func TestAnchorKeepsNewestHead(t *testing.T) {
	key := testKey(t, 'k')
	path := filepath.Join(t.TempDir(), "anchor")
	for seq := uint64(1); seq < 8; seq++ {
		before, _ := os.ReadFile(path)
		a, _, err := openAnchor(path, key)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.writeHead(RecordHead{seq, genesisHash}, time.Now()); err != nil {
			t.Fatal(err)
		}
		a.close()
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for slot := range 2 { // the slot that was written last is incomplete
			slotBytes := after[slot*slotSize : (slot+1)*slotSize]
			if seq == 1 || string(slotBytes) == string(before[slot*slotSize:(slot+1)*slotSize]) {
				continue
			}
			tornText := []byte(string(after))
			copy(tornText[slot*slotSize+20:], "\x00\x00\x00\x00")
			tornPath := filepath.Join(t.TempDir(), "torn")
			if err := os.WriteFile(tornPath, tornText, 0o600); err != nil {
				t.Fatal(err)
			}
			if h, err := ReadAnchor(tornPath, key); err != nil || h.Seq != seq-1 {
				t.Errorf("torn while head %d is written: %d, %v", seq, h.Seq, err)
			}
		}
	}
}
