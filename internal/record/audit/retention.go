package audit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// retentionInterval is how often the log searches for segments whose retention is over.
const retentionInterval = time.Hour

// isRecentCheck reports whether the last check was less than retentionInterval ago. It returns false if the clock has
// gone back.
func isRecentCheck(checkedAt, now time.Time) bool {
	since := now.Sub(checkedAt)
	return since >= 0 && since < retentionInterval
}

// findExpired returns a checkpoint that names the segments whose newest record is older than the retention, or nil if
// there are none.
func (w *fileSink) findExpired() *Checkpoint {
	now := w.cfg.Clock()
	if w.cfg.Retention <= 0 || isRecentCheck(w.lastChecked, now) {
		return nil
	}
	segments, err := listSegments(w.cfg.Dir)
	cp := Checkpoint{Retention: w.cfg.Retention.String()}
	var newest time.Time // the newest time so far, because the clock may have gone back between records
	for i := 0; err == nil && i+1 < len(segments); i++ {
		var current, following *Record
		if current, err = firstRecord(Folder(w.cfg.Dir), segments[i]); current == nil {
			break
		}
		if following, err = firstRecord(Folder(w.cfg.Dir), segments[i+1]); following == nil {
			break
		}
		for _, r := range []*Record{current, following} {
			if r.Time.After(newest) {
				newest = r.Time
			}
		}
		if now.Sub(newest) < w.cfg.Retention {
			break
		}
		cp.RemovedSegments = append(cp.RemovedSegments, RemovedSegment{segments[i], following.Seq - 1,
			following.PreviousHash})
	}
	if err != nil {
		w.cfg.Log.Error("audit: old segments are not removed", "error", err)
	}
	if err != nil || len(cp.RemovedSegments) == 0 {
		w.lastChecked = now
		return nil
	}
	return &cp // lastChecked stays: if the checkpoint cannot be written, the next record tries again
}

// removeExpired removes the segments that a durable checkpoint names, oldest first.
func (w *fileSink) removeExpired(cp Checkpoint) {
	w.lastChecked = w.cfg.Clock()
	for _, r := range cp.RemovedSegments {
		name := segmentName(r.Segment)
		tornFiles, err := filepath.Glob(filepath.Join(w.cfg.Dir, tornFilePrefix(r.Segment)+"*"))
		for _, path := range append(tornFiles, filepath.Join(w.cfg.Dir, name)) {
			if e := os.Remove(path); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		if err != nil {
			w.cfg.Log.Error("audit: a segment whose time is over was not removed; the next look tries again",
				"segment", name, "error", err)
			return
		}
	}
	if err := syncDir(w.cfg.Dir); err != nil {
		w.cfg.Log.Error("audit: the removal of old segments may not be durable", "error", err)
	}
	w.cfg.Log.Info("audit: segments were removed, their time was over", "segments", len(cp.RemovedSegments), "retention",
		cp.Retention)
}
