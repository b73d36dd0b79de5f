package audit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"
)

// followInterval is how often [Cursor.Follow] checks for new records.
const followInterval = 200 * time.Millisecond

// Cursor is a position in a log. Records are read from it without verification of the chain.
type Cursor struct {
	source     Source
	segment    int
	lastRecord uint64 // the number of the last record before the position; 0: the position is the segment's beginning
	offset     int64
}

// ReadNewest calls fn with the newest records, oldest first: enough segments that isWanted accepts at least n of their
// records, if the log has so many. It returns a cursor behind the newest record. It checks only the hash of each line.
func ReadNewest(from Source, n int, isWanted func(Record) bool, fn func(Record) error) (*Cursor, error) {
	segments, err := from.Segments()
	if err != nil {
		return nil, err
	}
	firstSegment, found := len(segments), 0
	for firstSegment > 0 && found < n {
		firstSegment--
		c := Cursor{source: from, segment: segments[firstSegment]}
		err := c.readSegment(func(r Record) error {
			if isWanted(r) {
				found++
			}
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) { // retention has removed this segment and all before it
			firstSegment++
			break
		}
		if err != nil {
			return nil, err
		}
	}
	c := &Cursor{source: from, segment: 1}
	for _, segment := range segments[firstSegment:] {
		c.segment, c.lastRecord, c.offset = segment, 0, 0
		if err := c.readSegment(fn); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if firstSegment == len(segments) && len(segments) > 0 { // the caller wants no records
		c.segment = segments[len(segments)-1]
		if err := c.readSegment(func(Record) error { return nil }); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// readSegment calls fn with every complete record from the cursor to the end of its segment, and moves the cursor
// behind them.
func (c *Cursor) readSegment(fn func(Record) error) error {
	f, err := c.source.Open(c.segment, c.lastRecord, c.offset)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	for {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if errors.Is(err, errLineTooLong) {
			return &ChainError{Segment: segmentName(c.segment), Reason: err.Error()}
		}
		if err != nil {
			return err
		}
		rec, reason := parseLine(line)
		if reason != "" {
			return &ChainError{Segment: segmentName(c.segment), Reason: reason}
		}
		c.lastRecord, c.offset = rec.Seq, c.offset+int64(len(line))
		if err := fn(rec); err != nil {
			return err
		}
	}
}

// ReadRest calls fn with the records that were written after the cursor, and returns.
func (c *Cursor) ReadRest(fn func(Record) error) error {
	for {
		if hasMore, err := c.readRestOfSegment(fn); err != nil || !hasMore {
			return err
		}
	}
}

// Follow calls fn with each record after the cursor as it is written, until ctx ends.
func (c *Cursor) Follow(ctx context.Context, fn func(Record) error) error {
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	for {
		hasMore, err := c.readRestOfSegment(fn)
		switch {
		case err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled): // the caller has ended ctx
			return nil
		case err != nil:
			return err
		case hasMore:
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// readRestOfSegment calls fn with the rest of the segment. If there is a next segment, it moves there and returns true.
func (c *Cursor) readRestOfSegment(fn func(Record) error) (hasMore bool, err error) {
	segments, err := c.source.Segments()
	if err != nil {
		return false, err
	}
	if err := c.readSegment(fn); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	// The list of segments was read first: if it has a next segment, nothing more is written to this one.
	i := slices.IndexFunc(segments, func(n int) bool { return n > c.segment })
	if i < 0 {
		return false, nil
	}
	c.segment, c.lastRecord, c.offset = segments[i], 0, 0
	return true, nil
}
