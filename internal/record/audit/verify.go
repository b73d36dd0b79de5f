package audit

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"time"
)

// maxLine is how long a line may be. A statement may have 64 MiB, but its record does not contain the text.
const maxLine = 8 << 20

// Report is what [Verify] found.
type Report struct {
	Segments int
	Records  uint64
	FirstSeq uint64 // the number of the first record: 1, unless retention has removed segments
	LastSeq  uint64
	// the hash of the last record: with a copy stored elsewhere, a later Verify can tell that no record was cut off
	LastHash       string
	Authenticated  bool           // the newest record has a code, and every code fits the key
	HasCodes       bool           // the newest record has a code
	AnchoredRecord uint64         // the newest record that an anchor names and the log has; 0: none
	Recoveries     int            // the number of records that say that the log continued after a crash or a failed write
	Checkpoints    int            // the number of records that say which segments were removed
	Removed        []RemovedRange // the records that retention removed during the verification, before they were read
	// how many bytes follow the last complete record: a write in progress, or what a crash left
	TornBytes int64
}

// RemovedRange is a range of records, from the number First to the number Last.
type RemovedRange struct{ First, Last uint64 }

func (t RemovedRange) String() string {
	return fmt.Sprintf("records %d to %d were removed while they were being read: their time (audit.retention) "+
		"was over", t.First, t.Last)
}

// Record is one line of the log.
type Record struct {
	Version      int       `json:"v"`
	Seq          uint64    `json:"seq"`
	Time         time.Time `json:"time"`
	PreviousHash string    `json:"prev"`
	Kind         string    `json:"kind"`
	Hash         string    `json:"hash"`
	KeyID        string    `json:"kid"`
	MAC          string    `json:"mac"`
	Line         []byte    `json:"-"` // the whole line; valid only until the callback returns
}

// ChainError says where the chain is broken.
type ChainError struct {
	Segment string
	Line    int
	Reason  string
}

func (b *ChainError) Error() string {
	if b.Line == 0 {
		return fmt.Sprintf("the audit chain is broken at %s: %s", b.Segment, b.Reason)
	}
	return fmt.Sprintf("the audit chain is broken at %s line %d: %s", b.Segment, b.Line, b.Reason)
}

// VerifyOptions say against what a chain is verified.
type VerifyOptions struct {
	Key      Key                     // if it is set, every code must fit it, and the newest record must have one
	Heads    []RecordHead            // records that were certainly written; the chain must have them
	Progress func(done, total int64) // called from time to time with the number of bytes read; may be nil
}

// Verify verifies the whole chain of a directory. It returns a *ChainError for a record that was changed, removed,
// added or moved. Without [VerifyOptions] it cannot detect that the newest records were cut off or the whole chain
// rewritten.
func Verify(dir string) (Report, error) { return Walk(dir, nil) }

// Walk verifies the chain like [Verify], and calls fn with each record, in order, on the way.
func Walk(dir string, fn func(Record) error) (Report, error) { return VerifyOptions{}.Walk(dir, fn) }

// Walk is like [Walk] with these options. It may call fn with a record before it finds that a later one is missing.
func (a VerifyOptions) Walk(dir string, fn func(Record) error) (Report, error) {
	return a.Read(Folder(dir), fn)
}

// Read is like [VerifyOptions.Walk] for any source.
func (a VerifyOptions) Read(from Source, fn func(Record) error) (Report, error) {
	var r Report
	segments, err := from.Segments()
	if err != nil {
		return r, err
	}
	c := chainWalk{options: a, fn: fn, report: &r, position: chainPosition{previousHash: genesisHash}, source: from}
	if a.Progress != nil {
		for _, n := range segments {
			c.bytesTotal += from.Size(n)
		}
	}
	for i := 0; i < len(segments); i++ {
		n := segments[i]
		if i > 0 && n != segments[i-1]+1 {
			return r, &ChainError{Segment: segmentName(segments[i-1] + 1), Reason: "the segment is missing"}
		}
		before := c.position
		tail, err := c.checkSegment(n, i == 0)
		r.Segments, r.LastSeq, r.LastHash = len(segments), c.position.seq, c.position.previousHash
		// Retention may have removed the segment after it was listed.
		if errors.Is(err, fs.ErrNotExist) && c.position.size == 0 {
			c.position = before
			if segments, err = c.remainingSegments(n); err != nil {
				return r, err
			}
			i = -1
			continue
		}
		if err != nil {
			return r, err
		}
		if len(tail) > 0 && i != len(segments)-1 {
			return r, &ChainError{Segment: segmentName(n), Reason: "the segment ends within a record"}
		}
		r.TornBytes = int64(len(tail))
	}
	return r, c.checkEnd()
}

// checkSegment verifies one segment. first is true for the segment with which the verification begins, and for the
// first one after removed segments.
func (c *chainWalk) checkSegment(n int, first bool) ([]byte, error) {
	c.position.size = 0 // no byte of this segment was read yet
	if first {
		if err := c.beginAt(n); err != nil {
			return nil, err
		}
	}
	c.position.segment = n
	return walkSegment(c.source, &c.position, c.checkNext)
}

// remainingSegments returns the segments that still exist if the given one is gone. Retention removes the oldest first.
// So if an older segment still exists, somebody else has removed this one, which is an error.
func (c *chainWalk) remainingSegments(missingSegment int) ([]int, error) {
	segments, err := c.source.Segments()
	if err != nil {
		return nil, err
	}
	if len(segments) == 0 || segments[0] <= missingSegment {
		return nil, &ChainError{Segment: segmentName(missingSegment), Reason: "the segment is missing"}
	}
	c.hasCheckpoint = false // another checkpoint must name the segments that were removed now
	return segments, nil
}

// chainWalk is the state of a verification in progress.
type chainWalk struct {
	source                Source
	options               VerifyOptions
	fn                    func(Record) error
	report                *Report
	position              chainPosition
	lastRemoved           RemovedSegment // the newest segment that was removed
	needsCheckpoint       bool           // records before the first segment are missing, so a checkpoint must name them
	hasCheckpoint         bool           // a checkpoint that names the missing records was read
	bytesRead, bytesTotal int64
}

// beginAt goes to the first segment. If the segment does not begin with record 1, a later checkpoint must name the
// missing records.
func (c *chainWalk) beginAt(segment int) error {
	first, err := firstRecord(c.source, segment)
	switch {
	case segment > 1 && err == nil && (first == nil || first.Seq == 0):
		return &ChainError{Segment: segmentName(1), Reason: "the segment is missing"}
	case segment > 1 && err != nil:
		return err
	case err != nil || first == nil || first.Seq <= 1 && segment == 1: // checkSegment reports the error
		return nil
	}
	if c.report.Records > 0 { // segments were removed during the verification
		if first.Seq <= c.position.seq+1 {
			return nil
		}
		removedRange := RemovedRange{c.position.seq + 1, first.Seq - 1}
		if n := len(c.report.Removed); n > 0 && c.report.Removed[n-1].First == removedRange.First { // the range grows
			c.report.Removed = c.report.Removed[:n-1]
		}
		c.report.Removed = append(c.report.Removed, removedRange)
	}
	c.needsCheckpoint = true
	c.position.seq, c.position.previousHash = first.Seq-1, first.PreviousHash
	c.lastRemoved = RemovedSegment{segment - 1, c.position.seq, c.position.previousHash}
	return nil
}

// checkNext checks a record against the record before it and against the options.
func (c *chainWalk) checkNext(rec Record) error {
	r := c.report
	if r.Records == 0 {
		r.FirstSeq = rec.Seq
	}
	r.Records++
	reason := ""
	switch {
	case rec.MAC == "" && r.HasCodes:
		reason = "the record has no code, and those before it have"
	case rec.MAC == "" || c.options.Key.secret == nil:
	case rec.KeyID != c.options.Key.ID():
		reason = fmt.Sprintf("the record was authenticated with key %s, which is not the one given", rec.KeyID)
	case !hmac.Equal([]byte(rec.MAC), []byte(c.options.Key.recordCode(rec.Hash))):
		reason = "the record was not written with the key: its code does not fit"
	}
	r.HasCodes = rec.MAC != ""
	for _, h := range c.options.Heads {
		if h.Seq == rec.Seq && h.Hash != rec.Hash {
			reason = fmt.Sprintf("record %d is not the one that the anchor names", rec.Seq)
		}
		if h.Seq == rec.Seq {
			r.AnchoredRecord = max(r.AnchoredRecord, h.Seq)
		}
	}
	if reason != "" {
		return &ChainError{Segment: segmentName(c.position.segment), Reason: fmt.Sprintf("record %d: %s", rec.Seq, reason)}
	}
	switch rec.Kind {
	case KindRecovery:
		r.Recoveries++
	case KindCheckpoint: // it may also name segments that still exist, if their removal was interrupted
		r.Checkpoints++
		var cp Checkpoint
		if err := json.Unmarshal(rec.Line, &cp); err != nil {
			return &ChainError{Segment: segmentName(c.position.segment), Reason: fmt.Sprintf("record %d is not a checkpoint",
				rec.Seq)}
		}
		c.hasCheckpoint = c.hasCheckpoint || slices.ContainsFunc(cp.RemovedSegments, func(r RemovedSegment) bool {
			return r == c.lastRemoved || c.lastRemoved.Seq < r.Seq && r.Seq < rec.Seq
		})
	}
	if c.bytesRead += int64(len(rec.Line)); c.options.Progress != nil && r.Records%8192 == 0 {
		c.options.Progress(c.bytesRead, c.bytesTotal)
	}
	if c.fn != nil {
		return c.fn(rec)
	}
	return nil
}

// checkEnd checks what must be true after the last record was read.
func (c *chainWalk) checkEnd() error {
	r := c.report
	r.Authenticated = r.HasCodes && c.options.Key.secret != nil
	switch {
	case c.needsCheckpoint && !c.hasCheckpoint && c.lastRemoved.Segment == 0:
		return &ChainError{Segment: segmentName(1),
			Reason: fmt.Sprintf("record %d is the first that is there, and no checkpoint stands for those before",
				c.lastRemoved.Seq+1)}
	case c.needsCheckpoint && !c.hasCheckpoint:
		return &ChainError{Segment: segmentName(c.lastRemoved.Segment),
			Reason: "the segment is missing, and no checkpoint stands for it"}
	case c.options.Key.secret != nil && r.Records > 0 && !r.HasCodes:
		return &ChainError{Segment: segmentName(c.position.segment),
			Reason: fmt.Sprintf("record %d has no code: it was written without the key", r.LastSeq)}
	}
	for _, h := range c.options.Heads {
		if h.Seq > r.LastSeq {
			return &ChainError{Segment: segmentName(max(c.position.segment, 1)),
				Reason: fmt.Sprintf(
					"the log ends at record %d, and record %d had been written: the newest records were cut off", r.LastSeq, h.Seq)}
		}
	}
	return nil
}

var segmentPattern = regexp.MustCompile(`^audit-([0-9]{6,})\.jsonl$`)

// listSegments returns the numbers of the segments in a directory, in order.
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
				return nil, &ChainError{Segment: e.Name(), Reason: "not a segment's name"}
			}
			numbers = append(numbers, n)
		}
	}
	sort.Ints(numbers)
	return numbers, nil
}

// readTail finds the end of the chain in the last segment, or in the one before if the last one has no record yet. It
// also returns the bytes after the last complete record.
func readTail(from Source, segments []int) (chainPosition, []byte, error) {
	lastSegment := segments[len(segments)-1]
	first, err := firstRecord(from, lastSegment)
	if err != nil {
		return chainPosition{}, nil, err
	}
	position := chainPosition{segment: lastSegment, previousHash: genesisHash}
	switch {
	case first != nil:
		position.seq, position.previousHash = first.Seq-1, first.PreviousHash
	case len(segments) > 1:
		before, tail, err := readTail(from, segments[:len(segments)-1])
		if err != nil {
			return chainPosition{}, nil, err
		}
		if len(tail) > 0 {
			return chainPosition{}, nil, &ChainError{Segment: segmentName(before.segment),
				Reason: "the segment ends within a record"}
		}
		position.seq, position.previousHash = before.seq, before.previousHash
	}
	tail, err := walkSegment(from, &position, nil)
	return position, tail, err
}

// firstRecordOf returns the first record of the last segment, or nil if there is none.
func firstRecordOf(from Source, segments []int) (*Record, error) {
	if len(segments) == 0 {
		return nil, nil
	}
	return firstRecord(from, segments[len(segments)-1])
}

// firstRecord returns the first record of a segment, or nil if the segment has no complete record.
func firstRecord(from Source, segment int) (*Record, error) {
	f, err := from.Open(segment, 0, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readFirst(f, segmentName(segment))
}

func readFirst(f io.Reader, segment string) (*Record, error) {
	line, err := bufio.NewReader(io.LimitReader(f, maxLine)).ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	rec, reason := parseLine(line)
	if reason != "" {
		return nil, &ChainError{Segment: segment, Line: 1, Reason: reason}
	}
	return &rec, nil
}

// walkSegment verifies the segment at position and moves position to its end. It returns the bytes after the last
// complete record.
func walkSegment(from Source, position *chainPosition, fn func(Record) error) ([]byte, error) {
	name := segmentName(position.segment)
	f, err := from.Open(position.segment, 0, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			return line, nil
		}
		if errors.Is(err, errLineTooLong) {
			return nil, &ChainError{Segment: name, Line: n, Reason: err.Error()}
		}
		if err != nil { // the disk or the server failed, which says nothing about the chain
			return nil, fmt.Errorf("audit: read %s: %w", name, err)
		}
		rec, reason := parseLine(line)
		switch {
		case reason != "":
		case rec.Seq != position.seq+1:
			reason = fmt.Sprintf("record %d follows record %d", rec.Seq, position.seq)
		case rec.PreviousHash != position.previousHash:
			reason = "the record before it is not the one it names"
		}
		if reason != "" {
			return nil, &ChainError{Segment: name, Line: n, Reason: reason}
		}
		if fn != nil {
			if err := fn(rec); err != nil {
				var chainError *ChainError
				if errors.As(err, &chainError) && chainError.Line == 0 {
					chainError.Line = n
				}
				return nil, err
			}
		}
		position.seq, position.previousHash, position.size = rec.Seq, rec.Hash, position.size+int64(len(line))
	}
}

var errLineTooLong = errors.New("the line is too long for a record")

// readLine returns a line with its newline. At the end it returns the remaining bytes and io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, errLineTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

const (
	hashMember = `,"hash":"`
	kidMember  = `","kid":"`
	macMember  = `","mac":"`
	kidLen     = 8
)

// parseLine parses a line and checks its hash; the second result says what is wrong with it. The code of the hash is
// checked elsewhere, with the key.
func parseLine(line []byte) (Record, string) {
	var rec Record
	end := len(line) - len("\"}\n")
	if macStart := end - 2*sha256.Size - len(macMember); macStart > 0 &&
		string(line[macStart:macStart+len(macMember)]) == macMember {
		end = macStart - kidLen - len(kidMember)
		if end < 0 || string(line[end:end+len(kidMember)]) != kidMember {
			return rec, "not a record"
		}
	}
	start := end - 2*sha256.Size
	hashStart := start - len(hashMember)
	if hashStart < 0 || !bytes.HasSuffix(line, []byte("\"}\n")) || string(line[hashStart:start]) != hashMember {
		return rec, "not a record"
	}
	sum := sha256.Sum256(line[:hashStart])
	if hex.EncodeToString(sum[:]) != string(line[start:end]) {
		return rec, "the record was changed: its hash does not fit"
	}
	if err := json.Unmarshal(line, &rec); err != nil {
		return rec, "not a record: " + err.Error()
	}
	rec.Line = line
	switch {
	case rec.Version < 1 || rec.Version > FormatVersion:
		return rec, fmt.Sprintf("format version %d is not one this pgconsent reads", rec.Version)
	case rec.Hash != string(line[start:end]):
		return rec, "not a record: two hashes"
	case (rec.MAC != "") != (len(line)-len("\"}\n") != end) || rec.Version == 1 && rec.MAC != "":
		return rec, "not a record: a code in the wrong place"
	}
	switch rec.Kind {
	case KindDecision, KindOutcome, KindSession, KindRecovery, KindCheckpoint, KindObservation, KindSubjectReport, KindCall:
		return rec, ""
	default:
		return rec, "unknown kind of record"
	}
}
