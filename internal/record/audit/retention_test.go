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
		writeDecisions(t, cfg, 1)
		now = now.Add(day + time.Minute)
	}
	segments, err := listSegments(cfg.Dir)
	if err != nil || len(segments) < 10 || len(segments) > 12 || segments[len(segments)-1] != 30 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	options := VerifyOptions{Key: key, Heads: heads(t, cfg.AnchorFile, key)}
	report, err := options.Walk(cfg.Dir, nil)
	if err != nil || report.Checkpoints < 5 || report.FirstSeq < 20 {
		t.Fatalf("%+v, %v", report, err)
	}
	now = now.Add(20 * day)
	writeDecisions(t, cfg, 1)
	if _, err := options.Walk(cfg.Dir, nil); err != nil {
		t.Fatal(err)
	}
	// Somebody removes one more segment than the checkpoint says.
	segments, err = listSegments(cfg.Dir)
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	writeDecisions(t, Config{Dir: cfg.Dir, Key: key, AnchorFile: cfg.AnchorFile, MaxSegment: 1, Clock: cfg.Clock,
		ReleaseTimeout: time.Hour}, 4)
	if err := os.Remove(filepath.Join(cfg.Dir, segmentName(segments[0]))); err != nil {
		t.Fatal(err)
	}
	if _, err := options.Walk(cfg.Dir, nil); err == nil || !strings.Contains(err.Error(), "no checkpoint stands for it") {
		t.Errorf("a segment more is gone: %v", err)
	}
}

// A segment is removed when its newest record is as old as the retention time, and not earlier.
func TestNoSegmentGoesEarly(t *testing.T) {
	startTime := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for age, isRemoved := range map[time.Duration]bool{
		10*time.Hour - time.Hour: false, 10*time.Hour - time.Minute: false, 10*time.Hour - time.Nanosecond: false,
		10 * time.Hour: true, 11 * time.Hour: true,
	} {
		now := startTime
		cfg := Config{
			Dir: t.TempDir(), Key: testKey(t, 'k'), MaxSegment: 1, Clock: func() time.Time { return now }, ReleaseTimeout: time.Hour,
		}
		writeDecisions(t, cfg, 3)
		now, cfg.Retention = startTime.Add(age), 10*time.Hour
		writeDecisions(t, cfg, 1)
		segments, err := listSegments(cfg.Dir)
		if err != nil || len(segments) == 0 || (segments[0] > 1) != isRemoved {
			t.Errorf("after %v of ten hours: segments %v, %v", age, segments, err)
		}
	}
}

// A removal that is interrupted at any point leaves a chain that verifies.
func TestRetentionInterrupted(t *testing.T) {
	dir, key := t.TempDir(), testKey(t, 'k')
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: key, MaxSegment: 1, Clock: func() time.Time { return now }, ReleaseTimeout: time.Hour}
	writeDecisions(t, cfg, 5)
	originalDir := filepath.Join(dir, "whole")
	if err := os.CopyFS(originalDir, os.DirFS(cfg.Dir)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour * 24)
	cfg.Retention = time.Hour
	writeDecisions(t, cfg, 1)
	segments, err := listSegments(cfg.Dir)
	if err != nil || len(segments) != 2 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	for i := segments[0] - 1; i > 0; i-- {
		b, err := os.ReadFile(filepath.Join(originalDir, segmentName(i)))
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
	day, startTime := 24*time.Hour, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := startTime
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: key, AnchorFile: filepath.Join(dir, "anchor"), MaxSegment: 1,
		Retention: 10 * day, Clock: func() time.Time { return now }, ReleaseTimeout: time.Hour}
	writeDecisions(t, cfg, 3)
	now = startTime.Add(-8000 * day)
	writeDecisions(t, cfg, 3)
	now = startTime.Add(2 * day)
	writeDecisions(t, cfg, 1)
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
	now = startTime.Add(13 * day)
	writeDecisions(t, cfg, 1)
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
	writeDecisions(t, cfg, 3)
	now = now.Add(time.Hour * 24)
	writeDecisions(t, cfg, 5)
	originalDir := filepath.Join(dir, "whole")
	if err := os.CopyFS(originalDir, os.DirFS(cfg.Dir)); err != nil {
		t.Fatal(err)
	}
	for recordNumber := uint64(1); recordNumber <= 8; recordNumber++ {
		for description, remove := range map[string]func() error{
			"retention": func() error {
				now = now.Add(time.Hour * 2)
				retentionConfig := cfg
				retentionConfig.Retention = time.Hour
				writeDecisions(t, retentionConfig, 1)
				return nil
			},
			"somebody": func() error { return os.Remove(filepath.Join(cfg.Dir, segmentName(int(recordNumber)+1))) },
		} {
			if err := os.RemoveAll(cfg.Dir); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(cfg.Dir, os.DirFS(originalDir)); err != nil {
				t.Fatal(err)
			}
			if recordNumber == 8 && description == "somebody" {
				continue
			}
			var readNumbers []uint64
			report, err := VerifyOptions{Key: key}.Walk(cfg.Dir, func(r Record) error {
				if readNumbers = append(readNumbers, r.Seq); r.Seq == recordNumber {
					return remove()
				}
				return nil
			})
			chainError := (*ChainError)(nil)
			if description == "somebody" {
				if !errors.As(err, &chainError) {
					t.Errorf("at %d: a segment that somebody removed is not missed: %v", recordNumber, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("at %d: %v", recordNumber, err)
				continue
			}
			missingNumbers := map[uint64]bool{}
			for _, removedRange := range report.Removed {
				for seq := removedRange.First; seq <= removedRange.Last; seq++ {
					missingNumbers[seq] = true
				}
			}
			for seq := uint64(1); seq <= 8; seq++ {
				if slices.Contains(readNumbers, seq) == missingNumbers[seq] {
					t.Errorf("at %d: record %d was read %v, and is told to be gone %v", recordNumber, seq, !missingNumbers[seq], missingNumbers[seq])
				}
			}
			if recordNumber < 7 && len(missingNumbers) == 0 {
				t.Errorf("at %d: nothing was removed: the test proves nothing", recordNumber)
			}
		}
	}
}

// removingFolder is a folder from which segments are removed again, right after they are listed for the second time.
type removingFolder struct {
	Folder
	listCount int
	remove    func()
}

func (r *removingFolder) Segments() ([]int, error) {
	segments, err := r.Folder.Segments()
	if r.listCount++; r.listCount == 2 {
		r.remove()
	}
	return segments, err
}

// Segments may be removed once more before the first remaining one is opened.
func TestRetentionTwiceWhileTheChainIsRead(t *testing.T) {
	dir, key := t.TempDir(), testKey(t, 'k')
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: key, MaxSegment: 1, Clock: func() time.Time { return now }, ReleaseTimeout: time.Hour}
	writeDecisions(t, cfg, 8)
	retain := func() {
		now = now.Add(2 * time.Hour)
		retentionConfig := cfg
		retentionConfig.Retention = 3 * time.Hour
		writeDecisions(t, retentionConfig, 3)
	}
	from := &removingFolder{Folder: Folder(cfg.Dir), remove: retain}
	lastNumber := uint64(0)
	report, err := VerifyOptions{Key: key}.Read(from, func(r Record) error {
		if r.Seq == 3 {
			retain()
			retain()
		}
		lastNumber = r.Seq
		return nil
	})
	if err != nil || from.listCount < 3 || len(report.Removed) == 0 || lastNumber != report.LastSeq || lastNumber <= 8 {
		t.Errorf("%+v, %v; listed %d times, the last record read is %d", report, err, from.listCount, lastNumber)
	}
}
