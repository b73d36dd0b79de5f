package dsar

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// SubjectRows are the subject's present rows in one table.
type SubjectRows struct {
	Table SubjectTable
	Key   []string   // the columns of the primary key; empty: the table has none
	Keys  [][]string // the keys of the rows, as PostgreSQL prints them
	Count int
	Copy  [][]byte // the rows as JSON, if a copy was requested
}

// CommitFunc returns the function that computes a log's commitments to row keys; nil: the audit key is missing.
type CommitFunc func(session, table string) func(key ...string) string

// These are reasons why it is not certain whether a statement returned the subject's rows.
const (
	ReasonNotRecorded = "the keys of the rows of this table are not recorded"
	ReasonNotExact    = "the statement did not return the keys of the rows"
	ReasonNoKey       = "the key of the audit is missing, without which recorded keys cannot be recognised"
	ReasonNotFinished = "the outcome of the statement is not recorded"
	ReasonDeleted     = "rows have been deleted since, whose recorded keys cannot be recognised any more"
)

// Collector decides for each access in the logs whether it retrieved the subject's rows, and lists the retrievals.
type Collector struct {
	Log          string // the name of the log that is read
	Rows         []SubjectRows
	OnBehalfOf   []string // how audit records refer to the subject
	Commit       CommitFunc
	LastDeletion time.Time // when the subject's rows were last deleted or anonymised; zero: never
	MaxPossible  int       // how many possible retrievals and calls are listed; 0: all

	recipients         map[string]*recipient
	purposes           map[string]uint64
	exactRetrievals    []Retrieval
	possibleRetrievals []Retrieval
	possibleCount      uint64 // how many possible retrievals there were, also those that the list leaves out

	calls     []InterfaceCall
	callCount uint64

	commitments     map[[2]string]map[string]int // the row of each commitment, by session and table
	commitmentCount int                          // how many commitments are cached
}

type recipient struct {
	Recipient
	purposes, tables map[string]bool
	days             map[string]*Day
}

// AddAccess adds what a statement retrieved; [LogScan] calls this method.
func (c *Collector) AddAccess(a Access) {
	r := Retrieval{At: a.At, Agent: a.Agent, Purpose: strings.Join(splitList(a.Purpose), ", "), Statement: a.Tag,
		Rows: a.Rows, Log: c.Log, Record: a.Record,
		ForYou: a.OnBehalfOf != "" && slices.Contains(c.OnBehalfOf, a.OnBehalfOf)}
	for _, table := range a.Tables {
		if t, ok := c.judgeTable(a, table); ok {
			if t.Certainty == CertaintyExact {
				r.Certainty = CertaintyExact
			}
			r.Tables = append(r.Tables, t)
		}
	}
	if len(r.Tables) == 0 {
		return
	}
	if r.Certainty == "" {
		r.Certainty = CertaintyPossible
	}
	c.countRetrieval(r, splitList(a.Purpose))
	if r.Certainty == CertaintyExact {
		c.exactRetrievals = append(c.exactRetrievals, r)
		return
	}
	c.possibleCount++
	c.possibleRetrievals = append(c.possibleRetrievals, r)
	if c.MaxPossible > 0 && len(c.possibleRetrievals) >= 2*c.MaxPossible+1024 {
		c.trimPossible()
	}
}

// trimPossible drops all but the newest MaxPossible possible retrievals.
func (c *Collector) trimPossible() {
	slices.SortStableFunc(c.possibleRetrievals, func(a, b Retrieval) int { return a.At.Compare(b.At) })
	if c.MaxPossible > 0 && len(c.possibleRetrievals) > c.MaxPossible {
		c.possibleRetrievals = slices.Clone(c.possibleRetrievals[len(c.possibleRetrievals)-c.MaxPossible:])
	}
}

// judgeTable decides whether a statement retrieved the subject's rows of one table. ok is false if it certainly did
// not.
func (c *Collector) judgeTable(a Access, judgeTable string) (TableAccess, bool) {
	possibleAccess := func(reason string) (TableAccess, bool) {
		return TableAccess{Table: judgeTable, Certainty: CertaintyPossible, Why: reason}, true
	}
	if !a.Finished {
		return possibleAccess(ReasonNotFinished)
	}
	i := slices.IndexFunc(c.Rows, func(r SubjectRows) bool { return r.Table.Relation.Name.String() == judgeTable })
	if i < 0 {
		return possibleAccess(ReasonNotRecorded)
	}
	rows := c.Rows[i]
	hasRecordedKeys, inexact := false, false
	found := map[int]bool{}
	for _, k := range a.keys {
		if !slices.Contains(rows.Table.Names, k.Table) {
			continue
		}
		hasRecordedKeys = true
		if c.Commit == nil {
			return possibleAccess(ReasonNoKey)
		}
		inexact = inexact || !k.Exact
		sums := c.commitmentsOf(a.Session, k.Table, rows)
		for _, row := range k.Rows {
			if n, ok := sums[row]; ok {
				found[n] = true
			}
		}
	}
	switch {
	case !hasRecordedKeys:
		return possibleAccess(ReasonNotRecorded)
	case inexact:
		return possibleAccess(ReasonNotExact)
	case len(found) > 0:
		t := TableAccess{Table: judgeTable, Certainty: CertaintyExact}
		for _, n := range slices.Sorted(maps.Keys(found)) {
			t.Keys = append(t.Keys, rows.Keys[n])
		}
		return t, true
	case a.At.Before(c.LastDeletion):
		return possibleAccess(ReasonDeleted)
	default:
		return TableAccess{}, false
	}
}

// maxCommitments is how many commitments are cached. Commitments that were dropped are computed again when needed.
const maxCommitments = 1 << 20

// commitmentsOf returns, for one session, the commitments to the keys of the subject's rows, with the index of each
// row.
func (c *Collector) commitmentsOf(session, table string, rows SubjectRows) map[string]int {
	key := [2]string{session, table}
	if sums, ok := c.commitments[key]; ok {
		return sums
	}
	if c.commitmentCount += len(rows.Keys); c.commitments == nil || c.commitmentCount > maxCommitments {
		c.commitments, c.commitmentCount = map[[2]string]map[string]int{}, len(rows.Keys)
	}
	sums := make(map[string]int, len(rows.Keys))
	commit := c.Commit(session, table)
	for n, key := range rows.Keys {
		sums[commit(key...)] = n
	}
	c.commitments[key] = sums
	return sums
}

func (c *Collector) countRetrieval(r Retrieval, purposes []string) {
	if c.recipients == nil {
		c.recipients, c.purposes = map[string]*recipient{}, map[string]uint64{}
	}
	receiver, ok := c.recipients[r.Agent]
	if !ok {
		receiver = &recipient{Recipient: Recipient{Agent: r.Agent}, purposes: map[string]bool{}, tables: map[string]bool{},
			days: map[string]*Day{}}
		c.recipients[r.Agent] = receiver
	}
	for _, word := range purposes {
		receiver.purposes[word] = true
		c.purposes[word]++
	}
	for _, t := range r.Tables {
		receiver.tables[t.Table] = true
	}
	name := r.At.UTC().Format(time.DateOnly)
	day, ok := receiver.days[name]
	if !ok {
		day = &Day{Day: name}
		receiver.days[name] = day
	}
	if r.Certainty == CertaintyExact {
		receiver.Exact.add(r.At)
		day.Exact++
	} else {
		receiver.Possible.add(r.At)
		day.Possible++
	}
}

// splitList returns the values of an attribute, which may be one value or an array.
func splitList(value string) []string {
	if value == "" {
		return nil
	}
	elements, ok := predicate.ParseArray(value)
	if !ok {
		return []string{value}
	}
	var out []string
	for _, e := range elements {
		if e != nil {
			out = append(out, *e)
		}
	}
	return out
}

func (c *Count) add(at time.Time) {
	c.Number++
	if c.First == nil || at.Before(*c.First) {
		c.First = optionalTime(at)
	}
	if c.Last == nil || at.After(*c.Last) {
		c.Last = optionalTime(at)
	}
}

// fillReport writes the collected retrievals into a report.
func (c *Collector) fillReport(r *Report) {
	for _, agent := range slices.Sorted(maps.Keys(c.recipients)) {
		recipient := c.recipients[agent]
		out := recipient.Recipient
		out.Purposes = nonNil(slices.Sorted(maps.Keys(recipient.purposes)))
		out.Tables = nonNil(slices.Sorted(maps.Keys(recipient.tables)))
		for _, day := range slices.Sorted(maps.Keys(recipient.days)) {
			out.Days = append(out.Days, *recipient.days[day])
		}
		r.Recipients = append(r.Recipients, out)
	}
	c.trimPossible()
	retrievals := append(slices.Clone(c.exactRetrievals), c.possibleRetrievals...)
	slices.SortStableFunc(retrievals, func(a, b Retrieval) int { return a.At.Compare(b.At) })
	c.trimCalls()
	r.Calls = Calls{Number: c.callCount, Left: c.callCount - uint64(len(c.calls)), List: slices.Clone(c.calls)}
	r.Retrievals = Retrievals{Exact: uint64(len(c.exactRetrievals)), Possible: c.possibleCount,
		Left: c.possibleCount - uint64(len(c.possibleRetrievals)), List: retrievals}
}
