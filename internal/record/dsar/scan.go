package dsar

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
)

// LogScan scans one audit log for what agents have read about one subject.
type LogScan struct {
	Source   audit.Source
	Database string // the database's name in audit records
	// for each table name that records have: the subject's tables whose rows a statement reads by this name
	Tables            map[string][]string
	SubjectReferences []string            // how audit records refer to the subject
	Key               audit.Key           // the key of the records; with the zero Key, codes are not checked
	Heads             []audit.RecordHead  // records that were certainly written; the log must have them
	OnCall            func(InterfaceCall) // called for each call about the subject; may be nil
	// called for each statement that returned rows and used one of the tables, in the order of the log
	OnAccess func(Access)
	Progress func(done, total int64)
}

// Access is a statement that used a table with rows of the subject, and returned rows or has no recorded outcome.
type Access struct {
	Record     uint64 // the number of the decision's record
	At         time.Time
	Session    string
	Agent      string
	Purpose    string
	OnBehalfOf string // a reference to the person on whose behalf the agent acted
	Tag        string
	Tables     []string
	Rows       int64
	Finished   bool // the log has the statement's outcome
	keys       []keys
}

// ScanResult says what a scan found out about the log.
type ScanResult struct {
	Records     uint64
	Segments    int
	FirstRecord uint64 // the number of the oldest record that the log still has
	LastRecord  uint64
	From, To    time.Time
	Decisions   uint64
	TornBytes   int64
	Problem     string // why the chain fails verification; "": it does not
}

const blockSize = 1 << 20

// logBlock has complete lines of a log. Workers parse blocks in parallel, and scanState checks them in order.
type logBlock struct {
	data          []byte
	beginsSegment bool // the block begins a segment
	followsGap    bool // retention removed the segments before this block after they were listed
	tailBytes     int  // how many bytes follow the last complete line
	bytesRead     int64
	err           error

	done        chan struct{}
	first, last auditLine
	records     uint64
	decisions   uint64
	events      []scanEvent
	problem     string
}

// scanEvent is a decision, an outcome or a call that a block contains.
type scanEvent struct {
	decision *decision
	call     *InterfaceCall
	outcome  outcome
}

// Run reads the log once and verifies its hash chain on the way. If the chain is broken, Run continues, and
// [ScanResult.Problem] says so.
func (s LogScan) Run(ctx context.Context) (ScanResult, error) {
	numbers, err := s.Source.Segments()
	if err != nil {
		return ScanResult{}, err
	}
	r := scanState{LogScan: s, openDecisions: map[uint64]*decision{}}
	r.result.Segments = len(numbers)
	for i := range numbers {
		if s.Progress != nil {
			r.bytesTotal += s.Source.Size(numbers[i])
		}
		if i > 0 && numbers[i] != numbers[i-1]+1 {
			r.result.Problem = fmt.Sprintf("segment %d is missing", numbers[i-1]+1)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := max(1, runtime.GOMAXPROCS(0))
	work, order := make(chan *logBlock, workers), make(chan *logBlock, 2*workers)
	go sendBlocks(ctx, s.Source, numbers, work, order)
	filter := s.tableNeedles()
	for range workers {
		go func() {
			for b := range work {
				b.parseLines(s, filter)
				close(b.done)
			}
		}()
	}
	for b := range order {
		select {
		case <-b.done:
		case <-ctx.Done():
			return r.result, ctx.Err()
		}
		if b.err != nil {
			return r.result, b.err
		}
		r.checkBlock(b)
		r.deliverEvents(b)
		blockBuffers.Put(&b.data)
		if r.bytesDone += b.bytesRead; s.Progress != nil {
			s.Progress(r.bytesDone, r.bytesTotal)
		}
	}
	if err := ctx.Err(); err != nil {
		return r.result, err
	}
	r.finishScan()
	return r.result, nil
}

// scanState is the state of a scan in progress.
type scanState struct {
	LogScan
	result        ScanResult
	openDecisions map[uint64]*decision // decisions whose outcome has not been read yet
	lastHash      []byte               // the hash of the last record
	hasCodes      bool                 // a record with a code was read
	bytesDone     int64                // bytes read so far
	bytesTotal    int64
}

// checkBlock checks that a block continues the chain.
func (r *scanState) checkBlock(b *logBlock) {
	if r.result.TornBytes > 0 && b.beginsSegment {
		r.result.setProblem("a segment ends within a record")
	}
	r.result.TornBytes = int64(b.tailBytes)
	if b.problem != "" {
		r.result.setProblem(b.problem)
	}
	if b.records > 0 {
		if r.result.Records == 0 {
			r.result.FirstRecord, r.result.From = b.first.seq, b.first.timestamp()
		} else if !(b.followsGap && b.first.seq > r.result.LastRecord+1) &&
			(!bytes.Equal(b.first.previousHash, r.lastHash) || b.first.seq != r.result.LastRecord+1) {
			r.result.setProblem(fmt.Sprintf("record %d does not follow record %d", b.first.seq, r.result.LastRecord))
		}
		// The code of a record covers a hash that depends on all records before it, so one code in each block is enough.
		// Records of format 1 have no codes.
		if r.hasCodes = r.hasCodes || len(b.last.mac) > 0; r.hasCodes {
			if reason := r.Key.CheckCode(string(b.last.hash), string(b.last.keyID), string(b.last.mac)); reason != "" {
				r.result.setProblem(fmt.Sprintf("record %d: %s", b.last.seq, reason))
			}
		}
		r.result.LastRecord, r.result.To, r.lastHash = b.last.seq, b.last.timestamp(), bytes.Clone(b.last.hash)
	}
	b.first, b.last = auditLine{}, auditLine{}
	r.result.Records += b.records
	r.result.Decisions += b.decisions
}

// deliverEvents calls OnAccess and OnCall for the events of a block.
func (r *scanState) deliverEvents(b *logBlock) {
	for _, e := range b.events {
		if e.call != nil {
			if r.OnCall != nil {
				r.OnCall(*e.call)
			}
			continue
		}
		if e.decision != nil {
			r.openDecisions[e.decision.seq] = e.decision
			continue
		}
		if d, ok := r.openDecisions[e.outcome.decision]; ok {
			delete(r.openDecisions, d.seq)
			if e.outcome.rows > 0 {
				r.OnAccess(d.newAccess(e.outcome, true))
			}
		}
	}
}

// finishScan checks the end of the log, and delivers the decisions that have no outcome.
func (r *scanState) finishScan() {
	if !r.hasCodes && r.result.Records > 0 && r.Key.ID() != "" {
		r.result.setProblem(fmt.Sprintf("record %d was written without the key", r.result.LastRecord))
	}
	for _, h := range r.Heads {
		if h.Seq > r.result.LastRecord {
			r.result.setProblem(fmt.Sprintf(
				"the log ends at record %d, and record %d had been written: the newest records were cut off", r.result.LastRecord,
				h.Seq))
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(r.openDecisions)) {
		r.OnAccess(r.openDecisions[seq].newAccess(outcome{}, false))
	}
}

func (r *ScanResult) setProblem(reason string) {
	if r.Problem == "" {
		r.Problem = reason
	}
}

func (d *decision) newAccess(o outcome, isFinished bool) Access {
	return Access{d.seq, d.decidedAt, d.session, d.agent, d.purpose, d.onBehalfOf, d.tag, d.tables, o.rows, isFinished,
		o.keys}
}

var everybodyMember = []byte(`"everybody":true`)

// decodeCall decodes a call record, or returns nil if the call was not about the subject.
func decodeCall(l auditLine, s LogScan) *InterfaceCall {
	concerns := bytes.Contains(l.body, everybodyMember)
	for i := 0; i < len(s.SubjectReferences) && !concerns; i++ {
		concerns = bytes.Contains(l.body, []byte(`"`+s.SubjectReferences[i]+`"`))
	}
	if !concerns {
		return nil
	}
	var c audit.Call
	if json.Unmarshal(l.text, &c) != nil || c.Database != s.Database {
		return nil
	}
	if !c.AboutEverybody && !slices.ContainsFunc(c.Subjects,
		func(ref string) bool { return slices.Contains(s.SubjectReferences, ref) }) {
		return nil
	}
	return &InterfaceCall{At: l.timestamp(), Face: c.Interface, By: c.CallerName, Role: c.Role, Operation: c.Operation,
		Written:   c.MayChangeData,
		Everybody: c.AboutEverybody, Outcome: c.Outcome, Record: l.seq}
}

// sendBlocks reads the segments and sends their lines in blocks: to work for parsing, and to order for checking.
func sendBlocks(ctx context.Context, from audit.Source, segments []int, work, order chan<- *logBlock) {
	defer close(order)
	defer close(work)
	send := func(b *logBlock) bool {
		b.done = make(chan struct{})
		if b.err != nil {
			close(b.done)
		} else {
			select {
			case work <- b:
			case <-ctx.Done():
				return false
			}
		}
		select {
		case order <- b:
		case <-ctx.Done():
			return false
		}
		return b.err == nil
	}
	gap := false
	for len(segments) > 0 {
		n := segments[0]
		segments = segments[1:]
		f, err := from.Open(n, 0, 0)
		if errors.Is(err, fs.ErrNotExist) { // Retention removes the oldest segments first.
			if remaining, e := from.Segments(); e == nil && len(remaining) > 0 && remaining[0] > n {
				segments, gap = remaining, true
				continue
			}
		}
		if err != nil {
			send(&logBlock{err: err})
			return
		}
		in := bufio.NewReaderSize(f, 1<<16)
		for isFirst := true; ; isFirst = false {
			b, end := readBlock(in)
			b.beginsSegment, b.followsGap = isFirst, isFirst && gap
			gap = gap && !isFirst
			ok := send(b)
			if !ok || end {
				f.Close()
				if !ok {
					return
				}
				break
			}
		}
	}
}

// blockBuffers are used again, so nothing that outlives a block may point into its data.
var blockBuffers = sync.Pool{New: func() any { b := make([]byte, blockSize, blockSize+1<<14); return &b }}

// readBlock reads a block of complete lines. The second result is true if the segment ends with them.
func readBlock(in *bufio.Reader) (*logBlock, bool) {
	data := (*blockBuffers.Get().(*[]byte))[:blockSize]
	n, err := io.ReadFull(in, data)
	data = data[:n]
	if err == nil {
		var remaining []byte
		remaining, err = in.ReadBytes('\n')
		data = append(data, remaining...)
	}
	b := &logBlock{data: data, bytesRead: int64(len(data))}
	switch {
	case err == nil:
		return b, false
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		completeBytes := bytes.LastIndexByte(data, '\n') + 1
		b.data, b.tailBytes = data[:completeBytes], len(data)-completeBytes
		return b, true
	default:
		b.err = fmt.Errorf("audit: %w", err)
		return b, true
	}
}

// tableNeedle is a table's name in the form that a line has it, and the subject's tables that the name reads.
type tableNeedle struct {
	text   []byte
	tables []string
}

// tableNeedles returns the needles by table name. A decision matters only if its line has one of them.
func (s LogScan) tableNeedles() map[string]tableNeedle {
	out := map[string]tableNeedle{}
	for name, tables := range s.Tables {
		quotedName, _ := json.Marshal(name)
		out[name] = tableNeedle{append([]byte(`"name":`), quotedName...), tables}
	}
	return out
}

// parseLines parses the lines of a block and checks them against each other.
func (b *logBlock) parseLines(s LogScan, filter map[string]tableNeedle) {
	data := b.data
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		l, reason := parseLine(data[:end+1])
		data = data[end+1:]
		if reason != "" {
			b.setProblem(reason)
			continue
		}
		if b.records > 0 && (!bytes.Equal(l.previousHash, b.last.hash) || l.seq != b.last.seq+1) {
			b.setProblem(fmt.Sprintf("record %d does not follow record %d", l.seq, b.last.seq))
		}
		if b.records == 0 {
			b.first = l
		}
		b.records++
		b.last = l
		for _, h := range s.Heads {
			if h.Seq == l.seq && h.Hash != string(l.hash) {
				b.setProblem(fmt.Sprintf("record %d is not the one that the anchor names", l.seq))
			}
		}
		switch l.kind {
		case "call":
			if c := decodeCall(l, s); c != nil {
				b.events = append(b.events, scanEvent{call: c})
			}
		case "decision":
			b.decisions++
			if d := decodeDecision(l, s.Database, filter); d != nil {
				b.events = append(b.events, scanEvent{decision: d})
			}
		case "outcome":
			o, ok := readOutcome(l)
			if !ok {
				b.setProblem(fmt.Sprintf("record %d is not an outcome", l.seq))
				continue
			}
			b.events = append(b.events, scanEvent{outcome: o})
		}
	}
}

func (b *logBlock) setProblem(reason string) {
	if b.problem == "" {
		b.problem = reason
	}
}

var allowedVerdict = []byte(`"verdict":"allow"`)

// decodeDecision decodes a decision record, or returns nil if the statement was refused or used none of the tables.
func decodeDecision(l auditLine, database string, filter map[string]tableNeedle) *decision {
	if !bytes.Contains(l.body, allowedVerdict) {
		return nil
	}
	isRelevant := false
	for _, n := range filter {
		if isRelevant = bytes.Contains(l.body, n.text); isRelevant {
			break
		}
	}
	if !isRelevant {
		return nil
	}
	r, names, ok := splitDecision(l)
	if !ok {
		if json.Unmarshal(l.text, &r) != nil {
			return nil
		}
		names = nil
		for _, t := range r.Tables {
			names = append(names, t.Name)
		}
	}
	if r.Verdict != "allow" || r.Database != database {
		return nil
	}
	d := &decision{seq: l.seq, decidedAt: l.timestamp(), session: r.Session, agent: r.Agent, purpose: r.Purpose,
		onBehalfOf: r.OnBehalfOf, tag: r.Tag}
	for _, n := range names {
		for _, name := range filter[n].tables {
			if !slices.Contains(d.tables, name) {
				d.tables = append(d.tables, name)
			}
		}
	}
	if len(d.tables) == 0 {
		return nil
	}
	return d
}

// ReportEntry returns the entry about the log in a report.
func (r ScanResult) ReportEntry(name string) Log {
	return Log{Name: name, Records: r.Records, Decisions: r.Decisions, From: optionalTime(r.From), To: optionalTime(r.To),
		First: r.FirstRecord, Intact: r.Problem == "", Problem: r.Problem}
}
