package audit

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// Store stores the lines of one chain elsewhere than in a folder. One goroutine calls all methods except Remove, and
// each call must end after a limited time.
type Store interface {
	Source
	// LockChain connects and locks the chain for this process. It is called again after an error. It returns an error with
	// [ErrUnreachable] if only the connection failed.
	LockChain() error
	// InSnapshot calls f with the chain as it is at one moment, whatever is added and removed meanwhile.
	InSnapshot(f func(Source) error) error
	// Append adds lines; the first one has the record number first. After nil they are durable. After an error they may
	// have been written: the same lines are then sent again, and the store ignores those that it has.
	Append(first uint64, lines [][]byte) error
	// Remove removes the records up to the given one.
	Remove(through uint64) error
	// SegmentOf returns the number of the segment that has a record.
	SegmentOf(seq uint64) int
	Close()
}

// ErrUnreachable is wrapped in the error of a [Store] whose server cannot be reached now.
var ErrUnreachable = errors.New("not reachable")

// groupSize is how many lines one Append adds.
const groupSize = 1000

// storeSink writes records to a store. A store that has not answered may have written a group already. So the sink
// finishes a group that it has begun, with the same bytes, before it writes any other.
type storeSink struct {
	anchorSync
	lines        lineWriter
	store        Store
	isEndKnown   bool // open has found the end of the chain
	endPosition  chainPosition
	currentWrite *groupWrite
	startRecords []*Ticket // records about the start of the log, which are written first
	lastChecked  time.Time // when the retention of records was last checked
	removing     chan struct{}
}

// groupWrite is a group that is being written to the store.
type groupWrite struct {
	firstRecord uint64
	lines       [][]byte // the lines for which the store has not returned nil yet
	endPosition chainPosition
	oldestTime  time.Time
}

func newStoreSink(cfg Config) *storeSink {
	return &storeSink{anchorSync: anchorSync{cfg: cfg}, lines: newLineWriter(cfg.Key), store: cfg.Store, removing: make(chan struct{}, 1)}
}

// open locks the chain and finds its end.
func (s *storeSink) open() error {
	if err := s.store.LockChain(); err != nil {
		return err
	}
	position := chainPosition{segment: 1, previousHash: genesisHash}
	// Records may be removed meanwhile: PostgreSQL may still run a removal whose process was killed.
	err := s.store.InSnapshot(func(chain Source) error {
		segments, err := chain.Segments()
		if err != nil || len(segments) == 0 {
			return err
		}
		end, tail, err := readTail(chain, segments)
		if err == nil && len(tail) > 0 {
			err = &ChainError{Segment: segmentName(end.segment), Reason: "the segment ends within a record"}
		}
		position = end
		return err
	})
	var chainError *ChainError
	if errors.As(err, &chainError) {
		return fmt.Errorf("%w; keep the records as evidence and start with a new chain", err)
	}
	if err != nil {
		return err
	}
	recovery, err := s.attach(position)
	if err != nil {
		return err
	}
	if recovery != nil {
		s.cfg.Log.Warn("audit: there was no anchor; a new one begins here. If it was not you who removed it, "+
			"records may have been cut off", "anchor", s.cfg.AnchorFile)
		s.startRecords = append(s.startRecords, &Ticket{kind: KindRecovery, rareRecord: *recovery, recordedAt: s.cfg.Clock()})
	}
	s.endPosition, s.isEndKnown = position, true
	return nil
}

func (s *storeSink) append(group []*Ticket, _ bool) (time.Time, error) {
	if len(group) == 0 {
		return time.Time{}, nil
	}
	a := &groupWrite{firstRecord: s.endPosition.seq + 1, endPosition: s.endPosition, oldestTime: group[0].recordedAt}
	hash := []byte(s.endPosition.previousHash)
	for _, t := range append(s.startRecords, group...) {
		a.endPosition.seq++
		t.seq = a.endPosition.seq
		line, nextHash, err := s.lines.append(nil, hash, t)
		if err != nil {
			return time.Time{}, err
		}
		a.lines, hash = append(a.lines, line), nextHash
	}
	a.endPosition.previousHash = string(hash)
	s.startRecords, s.currentWrite = nil, a
	if err := s.flush(); err != nil {
		return time.Time{}, err
	}
	return a.oldestTime, nil
}

// flush writes the remaining lines of currentWrite.
func (s *storeSink) flush() error {
	a := s.currentWrite
	for a != nil && len(a.lines) > 0 {
		n := min(len(a.lines), groupSize)
		lines := make([][]byte, n)
		for i, line := range a.lines[:n] {
			lines[i] = bytes.TrimSuffix(line, []byte("\n"))
		}
		if err := s.store.Append(a.firstRecord, lines); err != nil {
			return err
		}
		a.firstRecord, a.lines = a.firstRecord+uint64(n), a.lines[n:]
	}
	if a != nil {
		s.endPosition, s.currentWrite = a.endPosition, nil
		s.endPosition.segment = s.store.SegmentOf(s.endPosition.seq)
		s.writeHead(s.endPosition)
	}
	return nil
}

func (s *storeSink) holdsGroup() bool { return s.currentWrite != nil }

func (s *storeSink) oldestUnsynced() time.Time {
	if s.currentWrite == nil {
		return time.Time{}
	}
	return s.currentWrite.oldestTime
}

func (s *storeSink) reopen() error {
	if !s.isEndKnown {
		return s.open()
	}
	if err := s.store.LockChain(); err != nil {
		return err
	}
	return s.flush()
}

// findExpired searches by bisection for the newest record that is older than the retention. Records are in the order of
// their times.
func (s *storeSink) findExpired() *Checkpoint {
	now := s.cfg.Clock()
	if s.cfg.Retention <= 0 || isRecentCheck(s.lastChecked, now) {
		return nil
	}
	through, err := s.newestBefore(now.Add(-s.cfg.Retention))
	if err != nil {
		s.cfg.Log.Error("audit: old records are not removed", "error", err)
	}
	if err != nil || through == nil {
		s.lastChecked = now
		return nil
	}
	// Verify expects that the checkpoint names the segment before the first remaining record.
	return &Checkpoint{Retention: s.cfg.Retention.String(),
		RemovedSegments: []RemovedSegment{{s.store.SegmentOf(through.Seq+1) - 1, through.Seq, through.Hash}}}
}

// newestBefore returns the newest record before a time, or nil if there is none. It never returns the last record of
// all.
func (s *storeSink) newestBefore(limit time.Time) (*Record, error) {
	segments, err := s.store.Segments()
	if err != nil || len(segments) == 0 {
		return nil, err
	}
	first, err := s.recordAfter(segments[0], 0)
	if err != nil || first == nil || !first.Time.Before(limit) {
		return nil, err
	}
	found := first
	for low, high := first.Seq, s.endPosition.seq; high-low > 1; {
		middleSeq := low + (high-low)/2
		rec, err := s.recordAfter(s.store.SegmentOf(middleSeq), middleSeq-1)
		if err != nil || rec == nil {
			return nil, err
		}
		if rec.Time.Before(limit) {
			low, found = middleSeq, rec
		} else {
			high = middleSeq
		}
	}
	if found.Seq >= s.endPosition.seq {
		return nil, nil
	}
	return found, nil
}

// recordAfter returns the first record of a segment whose number is greater than after.
func (s *storeSink) recordAfter(segment int, after uint64) (*Record, error) {
	in, err := s.store.Open(segment, after, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return readFirst(in, segmentName(segment))
}

// removeExpired removes records in a separate goroutine.
func (s *storeSink) removeExpired(cp Checkpoint) {
	s.lastChecked = s.cfg.Clock()
	select {
	case s.removing <- struct{}{}:
	default:
		return // the previous removal is still running; the next check removes the rest
	}
	go func() {
		defer func() { <-s.removing }()
		for _, r := range cp.RemovedSegments {
			if err := s.store.Remove(r.Seq); err != nil {
				s.cfg.Log.Error("audit: records whose time is over were not removed; the next look tries again", "error", err)
				return
			}
			s.cfg.Log.Info("audit: records were removed, their time was over", "through", r.Seq, "retention", cp.Retention)
		}
	}()
}

func (s *storeSink) close() {
	s.removing <- struct{}{} // waits for a removal in progress
	s.anchorSync.close()
	s.store.Close()
}

func (s *storeSink) mediumName() string { return "database" }
