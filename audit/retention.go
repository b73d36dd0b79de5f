package audit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// retainEvery is the time between two looks for segments whose time is over.
const retainEvery = time.Hour

// expired returns the checkpoint for the segments whose newest record is older than the retention; nil: there are none.
func (w *writer) expired() *Checkpoint {
	now := w.cfg.Now()
	if w.cfg.Retention <= 0 || now.Sub(w.looked) < retainEvery {
		return nil
	}
	segments, err := listSegments(w.cfg.Dir)
	cp := Checkpoint{Retention: w.cfg.Retention.String()}
	for i := 0; err == nil && i+1 < len(segments); i++ {
		// What follows a segment is not older than it.
		var after *Record
		if after, err = firstRecord(Folder(w.cfg.Dir), segments[i+1]); after == nil || now.Sub(after.Time) < w.cfg.Retention {
			break
		}
		cp.Removed = append(cp.Removed, Removed{segments[i], after.Seq - 1, after.Prev})
	}
	if err != nil {
		w.cfg.Log.Error("audit: old segments are not removed", "error", err)
	}
	if err != nil || len(cp.Removed) == 0 {
		w.looked = now
		return nil
	}
	return &cp // looked is set when it is durable: on a full disk the next try comes with the next record
}

// remove takes away, oldest first, what a durable checkpoint stands for.
func (w *writer) remove(cp Checkpoint) {
	w.looked = w.cfg.Now()
	for _, r := range cp.Removed {
		name := segmentName(r.Segment)
		torn, err := filepath.Glob(filepath.Join(w.cfg.Dir, tornPrefix(r.Segment)+"*"))
		for _, path := range append(torn, filepath.Join(w.cfg.Dir, name)) {
			if e := os.Remove(path); e != nil && !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		if err != nil {
			w.cfg.Log.Error("audit: a segment whose time is over was not removed; the next look tries again", "segment", name, "error", err)
			return
		}
	}
	if err := syncDir(w.cfg.Dir); err != nil {
		w.cfg.Log.Error("audit: the removal of old segments may not be durable", "error", err)
	}
	w.cfg.Log.Info("audit: segments were removed, their time was over", "segments", len(cp.Removed), "retention", cp.Retention)
}
