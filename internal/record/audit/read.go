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

// followEvery is how often Follow looks for new records.
const followEvery = 200 * time.Millisecond

// Cursor is a place in a log that is read without being verified.
type Cursor struct {
	from    Source
	segment int
	after   uint64 // the last record before it in the segment; 0: none
	offset  int64
}

// Newest hands the newest records to fn, oldest first, at least n of those that want accepts if there are as many. It
// reads whole segments, from the last one back. What it returns goes on from there. Nothing is verified but each line's
// own hash.
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
		if errors.Is(err, fs.ErrNotExist) { // its time was over, and that of all before it
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
	if begin == len(segments) && len(segments) > 0 { // nothing was asked for
		c.segment = segments[len(segments)-1]
		if err := c.read(func(Record) error { return nil }); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// read hands on every whole record from the cursor to the end of its segment, and moves it there.
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

// Rest hands on what has been written since, and returns.
func (c *Cursor) Rest(fn func(Record) error) error {
	for {
		if more, err := c.step(fn); err != nil || !more {
			return err
		}
	}
}

// Follow hands on each record that is written from now on, until ctx ends.
func (c *Cursor) Follow(ctx context.Context, fn func(Record) error) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		more, err := c.step(fn)
		switch {
		case err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled): // it was stopped while it read
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

// step hands on the rest of the segment, and goes to the next one if there is one.
func (c *Cursor) step(fn func(Record) error) (more bool, err error) {
	segments, err := c.from.Segments()
	if err != nil {
		return false, err
	}
	if err := c.read(fn); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	// The segments were listed before: what was in this one when there was a next one has been read.
	i := slices.IndexFunc(segments, func(n int) bool { return n > c.segment })
	if i < 0 {
		return false, nil
	}
	c.segment, c.after, c.offset = segments[i], 0, 0
	return true, nil
}
