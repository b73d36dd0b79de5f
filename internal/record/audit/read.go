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

// followEvery is how often Follow checks for new records.
const followEvery = 200 * time.Millisecond

// Cursor is a position in a log that is read without verification.
type Cursor struct {
	from    Source
	segment int
	after   uint64 // the last record before it in the segment; 0: none
	offset  int64
}

// Newest passes the newest records to fn, oldest first: at least n that want accepts, if there are as many. It reads
// whole segments from the last one back, and returns a cursor behind the newest record. Only the hash of each line is
// checked.
func Newest(from Source, n int, want func(Record) bool, fn func(Record) error) (*Cursor, error) {
	segments, err := from.Segments()
	if err != nil {
		return nil, err
	}
	begin, found := len(segments), 0
	for begin > 0 && found < n {
		begin--
		c := Cursor{from: from, segment: segments[begin]}
		err := c.read(func(r Record) error {
			if want(r) {
				found++
			}
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) { // retention has removed it, and all before it
			begin++
			break
		}
		if err != nil {
			return nil, err
		}
	}
	c := &Cursor{from: from, segment: 1}
	for _, segment := range segments[begin:] {
		c.segment, c.after, c.offset = segment, 0, 0
		if err := c.read(fn); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if begin == len(segments) && len(segments) > 0 { // n is 0
		c.segment = segments[len(segments)-1]
		if err := c.read(func(Record) error { return nil }); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// read passes every complete record from the cursor to the end of its segment, and moves the cursor there.
func (c *Cursor) read(fn func(Record) error) error {
	f, err := c.from.Open(c.segment, c.after, c.offset)
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
		if errors.Is(err, errLong) {
			return &ChainError{Segment: segmentName(c.segment), Why: err.Error()}
		}
		if err != nil {
			return err
		}
		rec, why := parse(line)
		if why != "" {
			return &ChainError{Segment: segmentName(c.segment), Why: why}
		}
		c.after, c.offset = rec.Seq, c.offset+int64(len(line))
		if err := fn(rec); err != nil {
			return err
		}
	}
}

// Rest passes the records that were written since, and returns.
func (c *Cursor) Rest(fn func(Record) error) error {
	for {
		if more, err := c.step(fn); err != nil || !more {
			return err
		}
	}
}

// Follow passes each record that is written from now on, until ctx ends.
func (c *Cursor) Follow(ctx context.Context, fn func(Record) error) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		more, err := c.step(fn)
		switch {
		case err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled): // the caller has stopped it
			return nil
		case err != nil:
			return err
		case more:
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// step passes the rest of the segment, and moves to the next segment if there is one.
func (c *Cursor) step(fn func(Record) error) (more bool, err error) {
	segments, err := c.from.Segments()
	if err != nil {
		return false, err
	}
	if err := c.read(fn); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	// The list of segments was read before: if there was a next segment, this one has been read to its end.
	i := slices.IndexFunc(segments, func(n int) bool { return n > c.segment })
	if i < 0 {
		return false, nil
	}
	c.segment, c.after, c.offset = segments[i], 0, 0
	return true, nil
}
