package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// file is the file of a segment; tests replace it.
type file interface {
	WriteAt(p []byte, off int64) (int, error)
	Sync() error
	Truncate(size int64) error
	Size() (int64, error)
	Close() error
}

type segmentFile struct{ *os.File }

func openFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return segmentFile{f}, nil
}

// Sync makes the data and the size of the file durable.
func (f segmentFile) Sync() error {
	for {
		err := syncFile(f.File)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (f segmentFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink == 0 {
		return 0, errors.New("the segment was deleted")
	}
	return info.Size(), nil
}

// chainPosition is a position in the chain, after the record with the number seq.
type chainPosition struct {
	segment      int
	size         int64
	seq          uint64
	previousHash string // the hash of the record before the position
}

// fileSink writes the chain to files. Records up to durablePosition are synced to disk. The lines written after it are
// also in pendingBytes.
type fileSink struct {
	anchorSync
	lines           lineWriter
	lock            *os.File  // the locked lock file of the directory; nil: it is not locked yet
	isEndKnown      bool      // findEnd and attach have succeeded
	tornRecord      *Recovery // an incomplete last record that a crash left; nil: none
	startRecords    []*Ticket // records about the start of the log, which are written first
	file            file
	durablePosition chainPosition
	endPosition     chainPosition
	pendingBytes    []byte
	oldestPending   time.Time // when the oldest record in pendingBytes was made; zero: there is none
	segmentBegan    time.Time // the time of the segment's first record; zero: it has none
	lastChecked     time.Time // when the retention of segments was last checked
}

func tornFilePrefix(n int) string { return fmt.Sprintf("torn-%06d-", n) }

func segmentName(n int) string { return fmt.Sprintf("audit-%06d.jsonl", n) }

func newFileSink(cfg Config) *fileSink {
	return &fileSink{anchorSync: anchorSync{cfg: cfg}, lines: newLineWriter(cfg.Key)}
}

// open locks the directory, finds the end of the chain and moves an incomplete last record to a separate file.
func (w *fileSink) open() error {
	if w.lock == nil {
		if err := os.MkdirAll(w.cfg.Dir, 0o700); err != nil {
			return fmt.Errorf("audit directory: %w", err)
		}
		lock, err := lockDir(w.cfg.Dir)
		if err != nil {
			return err
		}
		w.lock = lock
	}
	if err := w.findEnd(); err != nil {
		return err
	}
	recovery, err := w.attach(w.endPosition)
	if err != nil {
		return errors.Join(err, w.file.Close())
	}
	queueStartRecord := func(r *Recovery) {
		w.startRecords = append(w.startRecords, &Ticket{kind: KindRecovery, rareRecord: *r, recordedAt: w.cfg.Clock()})
	}
	if w.tornRecord != nil {
		w.cfg.Log.Warn("audit: a crash had cut the last record; it was set aside", "bytes", w.tornRecord.Bytes, "kept",
			w.tornRecord.SavedAs)
		queueStartRecord(w.tornRecord)
	}
	if recovery != nil {
		w.cfg.Log.Warn("audit: there was no anchor; a new one begins here. If it was not you who removed it, "+
			"records may have been cut off", "anchor", w.cfg.AnchorFile)
		queueStartRecord(recovery)
	}
	w.isEndKnown = true
	return nil
}

// findEnd finds the end of the chain and opens the last segment. It can be called again after an error.
func (w *fileSink) findEnd() error {
	cfg := w.cfg
	segments, err := listSegments(cfg.Dir)
	if err != nil {
		return err
	}
	w.endPosition = chainPosition{segment: 1, previousHash: genesisHash}
	if n := len(segments); n > 0 {
		end, tail, err := readTail(Folder(cfg.Dir), segments)
		if chainError := (*ChainError)(nil); errors.As(err, &chainError) {
			return fmt.Errorf("%w; keep the directory as evidence and start with a new one", err)
		}
		if err != nil {
			return err
		}
		w.endPosition = end
		if len(tail) > 0 {
			if w.tornRecord, err = w.saveTornRecord(tail); err != nil {
				return fmt.Errorf("audit: set the torn record aside: %w", err)
			}
		}
	}
	w.durablePosition = w.endPosition
	if first, err := firstRecordOf(Folder(cfg.Dir), segments); err != nil {
		return err
	} else if first != nil {
		w.segmentBegan = first.Time
	}
	if err := w.openSegment(); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if err := errors.Join(w.file.Truncate(w.endPosition.size), w.file.Sync()); err != nil {
		w.file.Close()
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// saveTornRecord copies an incomplete last record to a separate file, before the record is cut off.
func (w *fileSink) saveTornRecord(tail []byte) (*Recovery, error) {
	sum := sha256.Sum256(tail)
	savedName := fmt.Sprintf("%s%d", tornFilePrefix(w.endPosition.segment), w.endPosition.size)
	f, err := os.OpenFile(filepath.Join(w.cfg.Dir, savedName), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(tail)
	if err = errors.Join(err, f.Sync(), f.Close(), syncDir(w.cfg.Dir)); err != nil {
		return nil, err
	}
	return &Recovery{Cause: "torn", Bytes: int64(len(tail)), SHA256: hex.EncodeToString(sum[:]), SavedAs: savedName}, nil
}

func (w *fileSink) openSegment() error {
	f, err := w.cfg.openFile(filepath.Join(w.cfg.Dir, segmentName(w.endPosition.segment)))
	if err != nil {
		return err
	}
	if err := syncDir(w.cfg.Dir); err != nil {
		f.Close()
		return err
	}
	w.file = f
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (w *fileSink) close() {
	if w.file != nil {
		w.file.Close()
	}
	w.anchorSync.close()
	if w.lock != nil {
		w.lock.Close()
	}
}

// holdsGroup returns false, because reopen cuts a failed group off.
func (w *fileSink) holdsGroup() bool { return false }

// oldestUnsynced returns when the oldest record was made that is not durable yet, startRecords included; zero: there is
// none.
func (w *fileSink) oldestUnsynced() time.Time {
	if w.oldestPending.IsZero() && len(w.startRecords) > 0 {
		return w.startRecords[0].recordedAt
	}
	return w.oldestPending
}

func (w *fileSink) mediumName() string { return "disk" }

// append writes a group of records. If sync is true, or the oldest record has waited long, it makes all written records
// durable and returns the time of the oldest. After an error only the file may have changed, and reopen restores it.
func (w *fileSink) append(group []*Ticket, sync bool) (time.Time, error) {
	if len(w.startRecords) > 0 {
		group = append(slices.Clone(w.startRecords), group...)
	}
	isSegmentOld := w.cfg.MaxSegmentAge > 0 && !w.segmentBegan.IsZero() &&
		w.cfg.Clock().Sub(w.segmentBegan) > w.cfg.MaxSegmentAge
	if len(group) > 0 && (w.endPosition.size > w.cfg.MaxSegment || isSegmentOld && w.endPosition.size > 0) {
		if err := w.rotate(); err != nil {
			return time.Time{}, err
		}
	}
	nextPosition := w.endPosition
	// The lines of this group follow those that are written but not durable yet.
	lines, hash := w.pendingBytes, []byte(w.endPosition.previousHash)
	for _, t := range group {
		nextPosition.seq++
		t.seq = nextPosition.seq
		var err error
		if lines, hash, err = w.lines.append(lines, hash, t); err != nil {
			return time.Time{}, err
		}
	}
	buf := lines[len(w.pendingBytes):]
	nextPosition.previousHash, nextPosition.size = string(hash), nextPosition.size+int64(len(buf))
	if len(buf) > 0 {
		size, err := w.file.Size()
		if err != nil {
			return time.Time{}, err
		}
		if size != w.endPosition.size {
			return time.Time{}, fmt.Errorf("%s has %d bytes, not the %d that were written: somebody else wrote to it",
				segmentName(w.endPosition.segment), size, w.endPosition.size)
		}
		if _, err := w.file.WriteAt(buf, w.endPosition.size); err != nil {
			return time.Time{}, err
		}
	}
	oldest := w.oldestPending
	if oldest.IsZero() && len(group) > 0 {
		oldest = group[0].recordedAt
	}
	if w.endPosition.size == 0 && len(group) > 0 {
		w.segmentBegan = group[0].recordedAt
	}
	if !sync && w.cfg.Clock().Sub(oldest) < syncInterval {
		w.endPosition, w.oldestPending, w.pendingBytes, w.startRecords = nextPosition, oldest, lines, nil
		return time.Time{}, nil
	}
	if nextPosition.seq != w.durablePosition.seq {
		if err := w.file.Sync(); err != nil {
			return time.Time{}, err
		}
	}
	w.endPosition, w.durablePosition = nextPosition, nextPosition
	w.oldestPending, w.pendingBytes, w.startRecords = time.Time{}, reusableBuffer(lines), nil
	w.writeHead(w.durablePosition)
	return oldest, nil
}

// rotate makes the current segment durable and begins the next one.
func (w *fileSink) rotate() error {
	if len(w.pendingBytes) > 0 {
		if err := w.file.Sync(); err != nil {
			return err
		}
		w.durablePosition, w.oldestPending, w.pendingBytes = w.endPosition, time.Time{}, reusableBuffer(w.pendingBytes)
	}
	oldFile := w.file
	oldEnd := w.endPosition
	w.endPosition.segment, w.endPosition.size = w.endPosition.segment+1, 0
	if err := w.openSegment(); err != nil {
		w.endPosition = oldEnd
		return err
	}
	w.durablePosition = w.endPosition
	oldFile.Close()
	return nil
}

// reopen cuts the segment back to durablePosition, and writes pendingBytes again. After a failed sync the kernel may
// have dropped written pages, so nothing that was written since the last successful sync can be trusted.
func (w *fileSink) reopen() error {
	if !w.isEndKnown {
		return w.open()
	}
	w.file.Close()
	f, err := w.cfg.openFile(filepath.Join(w.cfg.Dir, segmentName(w.endPosition.segment)))
	if err != nil {
		return err
	}
	w.file = f
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size < w.durablePosition.size {
		return fmt.Errorf("%s has %d bytes: durable records are missing", segmentName(w.endPosition.segment), size)
	}
	if err := f.Truncate(w.durablePosition.size); err != nil {
		return err
	}
	if len(w.pendingBytes) > 0 {
		if _, err := f.WriteAt(w.pendingBytes, w.durablePosition.size); err != nil {
			return err
		}
	}
	if err := errors.Join(f.Sync(), syncDir(w.cfg.Dir)); err != nil {
		return err
	}
	w.durablePosition, w.pendingBytes, w.oldestPending = w.endPosition, reusableBuffer(w.pendingBytes), time.Time{}
	return nil
}

// A buffer of at most smallBuffer bytes is always used again. A larger one is used again while it is needed, up to
// maxReusedBuffer: as many lines come between two syncs of a busy log, and a new buffer would have to grow each time.
const (
	smallBuffer     = 1 << 20
	maxReusedBuffer = 32 << 20
)

// reusableBuffer returns the buffer for the next lines: that of these lines, or nil if they fill too little of it.
func reusableBuffer(lines []byte) []byte {
	if size := cap(lines); size > maxReusedBuffer || size > smallBuffer && len(lines) < size/4 {
		return nil
	}
	return lines[:0]
}
