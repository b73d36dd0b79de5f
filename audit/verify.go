package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"time"
)

// maxLine bounds a record when reading: a statement is at most 1 MiB, and its record smaller.
const maxLine = 8 << 20

// Report is what [Verify] found.
type Report struct {
	Segments   int
	Records    uint64
	LastSeq    uint64
	LastHash   string // keep it elsewhere: with it, a later Verify tells that nothing was cut off
	Recoveries int    // records that say the log went on after a crash or a broken disk
	Torn       int64  // bytes after the last whole record of the last segment: a write in progress or a crash
}

// Record is one line of the log.
type Record struct {
	Version int       `json:"v"`
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"`
	Prev    string    `json:"prev"`
	Kind    string    `json:"kind"`
	Hash    string    `json:"hash"`
	Line    []byte    `json:"-"` // the whole line; valid during the call only
}

// Broken says where the chain does not hold.
type Broken struct {
	Segment string
	Line    int
	Why     string
}

func (b *Broken) Error() string {
	if b.Line == 0 {
		return fmt.Sprintf("the audit chain is broken at %s: %s", b.Segment, b.Why)
	}
	return fmt.Sprintf("the audit chain is broken at %s line %d: %s", b.Segment, b.Line, b.Why)
}

// Verify walks the whole chain of a directory. It returns a *Broken for a record that was changed, dropped, added or
// moved. Cutting off the newest records leaves a chain that holds: compare LastSeq and LastHash with ones kept elsewhere.
func Verify(dir string) (Report, error) { return Walk(dir, nil) }

// Walk verifies and hands each record to fn, in order, as it goes.
func Walk(dir string, fn func(Record) error) (Report, error) {
	var r Report
	segments, err := listSegments(dir)
	if err != nil {
		return r, err
	}
	at := place{hash: genesis}
	for i, n := range segments {
		if n != i+1 {
			return r, &Broken{Segment: segmentName(i + 1), Why: "the segment is missing"}
		}
		at.segment, at.size = n, 0
		tail, err := walkSegment(dir, &at, func(rec Record) error {
			if rec.Kind == kindRecovery {
				r.Recoveries++
			}
			r.Records++
			if fn != nil {
				return fn(rec)
			}
			return nil
		})
		r.Segments, r.LastSeq, r.LastHash = n, at.seq, at.hash
		if err != nil {
			return r, err
		}
		if len(tail) > 0 && i != len(segments)-1 {
			return r, &Broken{Segment: segmentName(n), Why: "the segment ends within a record"}
		}
		r.Torn = int64(len(tail))
	}
	return r, nil
}

var segmentPattern = regexp.MustCompile(`^audit-([0-9]{6,})\.jsonl$`)

// listSegments returns the numbers of the segments, in order.
func listSegments(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("audit directory: %w", err)
	}
	var numbers []int
	for _, e := range entries {
		if m := segmentPattern.FindStringSubmatch(e.Name()); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil || segmentName(n) != e.Name() {
				return nil, &Broken{Segment: e.Name(), Why: "not a segment's name"}
			}
			numbers = append(numbers, n)
		}
	}
	sort.Ints(numbers)
	return numbers, nil
}

// readTail finds the end of the chain by the last segment alone, the one before it if that is still empty.
func readTail(dir string, segments []int) (place, []byte, error) {
	last := segments[len(segments)-1]
	first, err := firstRecord(dir, last)
	if err != nil {
		return place{}, nil, err
	}
	at := place{segment: last, hash: genesis}
	switch {
	case first != nil:
		at.seq, at.hash = first.Seq-1, first.Prev
	case len(segments) > 1:
		before, tail, err := readTail(dir, segments[:len(segments)-1])
		if err != nil {
			return place{}, nil, err
		}
		if len(tail) > 0 {
			return place{}, nil, &Broken{Segment: segmentName(before.segment), Why: "the segment ends within a record"}
		}
		at.seq, at.hash = before.seq, before.hash
	}
	tail, err := walkSegment(dir, &at, nil)
	return at, tail, err
}

// firstRecord returns the first record of a segment, or nil if it has no whole one.
func firstRecord(dir string, segment int) (*Record, error) {
	f, err := os.Open(filepath.Join(dir, segmentName(segment)))
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, maxLine)).ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	rec, why := parse(line)
	if why != "" {
		return nil, &Broken{Segment: segmentName(segment), Line: 1, Why: why}
	}
	return &rec, nil
}

// walkSegment checks one segment from at, which it moves, and returns what follows the last whole record.
func walkSegment(dir string, at *place, fn func(Record) error) ([]byte, error) {
	name := segmentName(at.segment)
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return line, nil
		}
		if err != nil {
			return nil, &Broken{Segment: name, Line: n, Why: err.Error()}
		}
		rec, why := parse(line)
		switch {
		case why != "":
		case rec.Seq != at.seq+1:
			why = fmt.Sprintf("record %d follows record %d", rec.Seq, at.seq)
		case rec.Prev != at.hash:
			why = "the record before it is not the one it names"
		}
		if why != "" {
			return nil, &Broken{Segment: name, Line: n, Why: why}
		}
		if fn != nil {
			if err := fn(rec); err != nil {
				return nil, err
			}
		}
		at.seq, at.hash, at.size = rec.Seq, rec.Hash, at.size+int64(len(line))
	}
}

// readLine returns a line with its newline, or the rest and io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, errors.New("the line is too long for a record")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

const hashMember = `,"hash":"`

// parse checks a line by itself and says what is wrong with it.
func parse(line []byte) (Record, string) {
	var rec Record
	end := len(line) - len("\"}\n")
	start := end - 2*sha256.Size
	cut := start - len(hashMember)
	if cut < 0 || !bytes.Equal(line[end:], []byte("\"}\n")) || string(line[cut:start]) != hashMember {
		return rec, "not a record"
	}
	sum := sha256.Sum256(line[:cut])
	if hex.EncodeToString(sum[:]) != string(line[start:end]) {
		return rec, "the record was changed: its hash does not fit"
	}
	if err := json.Unmarshal(line, &rec); err != nil {
		return rec, "not a record: " + err.Error()
	}
	rec.Line = line
	switch {
	case rec.Version != FormatVersion:
		return rec, fmt.Sprintf("format version %d is not one this pgconsent reads", rec.Version)
	case rec.Hash != string(line[start:end]):
		return rec, "not a record: two hashes"
	}
	switch rec.Kind {
	case kindDecision, kindOutcome, kindSession, kindRecovery, KindObservation:
		return rec, ""
	default:
		return rec, "unknown kind of record"
	}
}
