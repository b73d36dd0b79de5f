package audit

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Expired segments are removed. The checkpoint proves the remaining records, for which the key is needed.
func TestRetention(t *testing.T) {
	dir, key := t.TempDir(), testKey(t, 'k')
	day := 24 * time.Hour
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cfg := Config{
		Dir: filepath.Join(dir, "audit"), Key: key, AnchorFile: filepath.Join(dir, "anchor"), MaxSegmentAge: day, Retention: 10 * day,
		Clock: func() time.Time { return now }, Log: quiet(), ReleaseTimeout: time.Hour,
	}
	for range 30 {
		filled(t, cfg, 1)
		now = now.Add(day + time.Minute)
	}
	segments, err := listSegments(cfg.Dir)
	if err != nil || len(segments) < 10 || len(segments) > 12 || segments[len(segments)-1] != 30 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	against := VerifyOptions{Key: key, Heads: heads(t, cfg.AnchorFile, key)}
	report, err := against.Walk(cfg.Dir, nil)
	if err != nil || report.Checkpoints < 5 || report.FirstSeq < 20 {
		t.Fatalf("%+v, %v", report, err)
	}
	now = now.Add(20 * day)
	filled(t, cfg, 1)
	if _, err := against.Walk(cfg.Dir, nil); err != nil {
		t.Fatal(err)
	}
	// Somebody removes one more segment than the checkpoint says.
	segments, err = listSegments(cfg.Dir)
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	filled(t, Config{Dir: cfg.Dir, Key: key, AnchorFile: cfg.AnchorFile, MaxSegment: 1, Clock: cfg.Clock, ReleaseTimeout: time.Hour}, 4)
	if err := os.Remove(filepath.Join(cfg.Dir, segmentName(segments[0]))); err != nil {
		t.Fatal(err)
	}
	if _, err := against.Walk(cfg.Dir, nil); err == nil || !strings.Contains(err.Error(), "no checkpoint stands for it") {
		t.Errorf("a segment more is gone: %v", err)
	}
}

// A segment is removed when its newest record is as old as the retention time, and not earlier.
func TestNoSegmentGoesEarly(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for age, goes := range map[time.Duration]bool{
		10*time.Hour - time.Hour: false, 10*time.Hour - time.Minute: false, 10*time.Hour - time.Nanosecond: false,
		10 * time.Hour: true, 11 * time.Hour: true,
	} {
		now := begin
		cfg := Config{
			Dir: t.TempDir(), Key: testKey(t, 'k'), MaxSegment: 1, Clock: func() time.Time { return now }, ReleaseTimeout: time.Hour,
		}
		filled(t, cfg, 3)
		now, cfg.Retention = begin.Add(age), 10*time.Hour
		filled(t, cfg, 1)
		segments, err := listSegments(cfg.Dir)
		if err != nil || len(segments) == 0 || (segments[0] > 1) != goes {
			t.Errorf("after %v of ten hours: segments %v, %v", age, segments, err)
		}
	}
}

// A removal that is interrupted at any point leaves a chain that verifies.
func TestRetentionInterrupted(t *testing.T) {
	dir, key := t.TempDir(), testKey(t, 'k')
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: key, MaxSegment: 1, Clock: func() time.Time { return now }, ReleaseTimeout: time.Hour}
	filled(t, cfg, 5)
	whole := filepath.Join(dir, "whole")
	if err := os.CopyFS(whole, os.DirFS(cfg.Dir)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour * 24)
	cfg.Retention = time.Hour
	filled(t, cfg, 1)
	segments, err := listSegments(cfg.Dir)
	if err != nil || len(segments) != 2 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	for i := segments[0] - 1; i > 0; i-- {
		b, err := os.ReadFile(filepath.Join(whole, segmentName(i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cfg.Dir, segmentName(i)), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (VerifyOptions{Key: key}).Walk(cfg.Dir, nil); err != nil {
			t.Errorf("with the segments from %d on: %v", i, err)
		}
	}
}

// The clock is far behind for a while. The records of that time verify, and earlier segments with newer times are kept
// until they expire.
func TestRetentionWhenTheClockGoesBack(t *testing.T) {
	dir, key := t.TempDir(), testKey(t, 'k')
	day, begin := 24*time.Hour, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := begin
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: key, AnchorFile: filepath.Join(dir, "anchor"), MaxSegment: 1,
		Retention: 10 * day, Clock: func() time.Time { return now }, ReleaseTimeout: time.Hour}
	filled(t, cfg, 3)
	now = begin.Add(-8000 * day)
	filled(t, cfg, 3)
	now = begin.Add(2 * day)
	filled(t, cfg, 1)
	first := func() uint64 {
		t.Helper()
		report, err := VerifyOptions{Key: key, Heads: heads(t, cfg.AnchorFile, key)}.Walk(cfg.Dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		return report.FirstSeq
	}
	if seq := first(); seq != 1 {
		t.Errorf("records before %d are gone on the third day of ten", seq)
	}
	now = begin.Add(13 * day)
	filled(t, cfg, 1)
	if seq := first(); seq < 7 {
		t.Errorf("the first record is %d when the time of seven is over", seq)
	}
}

// A reader gets the remaining records while retention removes the oldest ones, and is told what was removed. A segment
// that is removed without a checkpoint is reported as missing.
func TestRetentionWhileTheChainIsRead(t *testing.T) {
	dir, key := t.TempDir(), testKey(t, 'k')
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: key, MaxSegment: 1, Clock: func() time.Time { return now }, ReleaseTimeout: time.Hour}
	filled(t, cfg, 3)
	now = now.Add(time.Hour * 24)
	filled(t, cfg, 5)
	whole := filepath.Join(dir, "whole")
	if err := os.CopyFS(whole, os.DirFS(cfg.Dir)); err != nil {
		t.Fatal(err)
	}
	for at := uint64(1); at <= 8; at++ {
		for what, remove := range map[string]func() error{
			"retention": func() error {
				now = now.Add(time.Hour * 2)
				keeping := cfg
				keeping.Retention = time.Hour
				filled(t, keeping, 1)
				return nil
			},
			"somebody": func() error { return os.Remove(filepath.Join(cfg.Dir, segmentName(int(at)+1))) },
		} {
			if err := os.RemoveAll(cfg.Dir); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(cfg.Dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if at == 8 && what == "somebody" {
				continue
			}
			var read []uint64
			report, err := VerifyOptions{Key: key}.Walk(cfg.Dir, func(r Record) error {
				if read = append(read, r.Seq); r.Seq == at {
					return remove()
				}
				return nil
			})
			broken := (*ChainError)(nil)
			if what == "somebody" {
				if !errors.As(err, &broken) {
					t.Errorf("at %d: a segment that somebody removed is not missed: %v", at, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("at %d: %v", at, err)
				continue
			}
			missing := map[uint64]bool{}
			for _, gone := range report.Removed {
				for seq := gone.First; seq <= gone.Last; seq++ {
					missing[seq] = true
				}
			}
			for seq := uint64(1); seq <= 8; seq++ {
				if slices.Contains(read, seq) == missing[seq] {
					t.Errorf("at %d: record %d was read %v, and is told to be gone %v", at, seq, !missing[seq], missing[seq])
				}
			}
			if at < 7 && len(missing) == 0 {
				t.Errorf("at %d: nothing was removed: the test proves nothing", at)
			}
		}
	}
}

// racing is a folder from which segments are removed again, right after they are listed for the second time.
type racing struct {
	Folder
	listed int
	remove func()
}

func (r *racing) Segments() ([]int, error) {
	segments, err := r.Folder.Segments()
	if r.listed++; r.listed == 2 {
		r.remove()
	}
	return segments, err
}

// Segments may be removed once more before the first remaining one is opened.
func TestRetentionTwiceWhileTheChainIsRead(t *testing.T) {
	dir, key := t.TempDir(), testKey(t, 'k')
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: key, MaxSegment: 1, Clock: func() time.Time { return now }, ReleaseTimeout: time.Hour}
	filled(t, cfg, 8)
	retain := func() {
		now = now.Add(2 * time.Hour)
		keeping := cfg
		keeping.Retention = 3 * time.Hour
		filled(t, keeping, 3)
	}
	from := &racing{Folder: Folder(cfg.Dir), remove: retain}
	last := uint64(0)
	report, err := VerifyOptions{Key: key}.Read(from, func(r Record) error {
		if r.Seq == 3 {
			retain()
			retain()
		}
		last = r.Seq
		return nil
	})
	if err != nil || from.listed < 3 || len(report.Removed) == 0 || last != report.LastSeq || last <= 8 {
		t.Errorf("%+v, %v; listed %d times, the last record read is %d", report, err, from.listed, last)
	}
}
