package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/serve"
)

type auditTailCmd struct {
	auditFilter
	Lines  int  `short:"n" default:"20" placeholder:"N" help:"How many. Default: ${default}."`
	Follow bool `short:"f" help:"Print new records as they are written, until interrupted."`
	Short  bool `help:"Shorten references to eight digits." default:"true" negatable:""`
}

func (auditTailCmd) Help() string {
	return `One line for each execution: who asked, on whose behalf, what, ` +
		`and what became of it. Persons are references; --subject looks one up.
With --json the records are printed as they are in the log, ` +
		`decisions and outcomes each by itself. Nothing is verified but each record's own hash.

  pgconsent audit tail --follow
  pgconsent audit tail -n 100 --table memories --verdict deny
  pgconsent audit tail --subject 6f1e0000-0000-4000-8000-000000000001 --since 7d`
}

func (t auditTailCmd) Run(s *session) error {
	if t.Lines < 0 {
		return usageError{errors.New("--lines cannot be below 0")}
	}
	c, err := s.auditConfig()
	if err != nil {
		return err
	}
	if err := t.prepare(s, c); err != nil {
		return err
	}
	return serve.AuditSource(s.ctx, c, c.Audit, true, func(source audit.Source) error { return t.printRecords(s, source) })
}

// printRecords prints the newest records. With --follow it then prints records as they are written.
func (t auditTailCmd) printRecords(s *session, source audit.Source) error {
	f := recordFilter{t.auditFilter, map[uint64]bool{}}
	countFilter := recordFilter{t.auditFilter, map[uint64]bool{}}
	var lines []tailLine
	cursor, err := audit.ReadNewest(source, t.Lines, func(r audit.Record) bool {
		e, err := readAuditRecord(r)
		return err == nil && e.Kind != audit.KindOutcome && countFilter.chooses(e)
	}, func(r audit.Record) error {
		e, err := readAuditRecord(r)
		if err != nil || !f.chooses(e) {
			return err
		}
		lines = append(lines, tailLine{e, string(r.Line)})
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there are no records in %s yet", source)
	}
	if err != nil {
		return err
	}
	lines = lastLines(lines, t.Lines)
	if s.jsonOutput {
		for _, l := range lines {
			fmt.Fprint(s.out, l.rawText)
		}
		if !t.Follow {
			return nil
		}
		return cursor.Follow(s.ctx, func(r audit.Record) error {
			e, err := readAuditRecord(r)
			if err == nil && f.chooses(e) {
				_, err = s.out.Write(r.Line)
			}
			return err
		})
	}
	p := &tailPrinter{out: s.out, shortenReferences: t.Short, pendingDecisions: map[uint64]auditRecord{}}
	if t.Follow { // make the columns wide enough for the values of later records
		p.widths = []int{19, 12, 8, 8, 20, 7, 4}
	}
	p.addHeader()
	for _, l := range lines {
		p.addRecord(l.auditRecord)
	}
	if !t.Follow {
		p.flushPending()
		return p.flush()
	}
	if err := p.flush(); err != nil {
		return err
	}
	return cursor.Follow(s.ctx, func(r audit.Record) error {
		e, err := readAuditRecord(r)
		if err != nil || !f.chooses(e) {
			return err
		}
		p.addRecord(e)
		return p.flush()
	})
}

// tailLine is a line of a log: the parsed record, and the text of the line.
type tailLine struct {
	auditRecord
	rawText string
}

// lastLines returns the last n lines that are not outcomes of statements, and the outcomes that belong to them.
func lastLines(lines []tailLine, n int) []tailLine {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].Kind == audit.KindOutcome {
			continue
		}
		if n == 0 {
			keptLines := lines[i+1:]
			firstSeq := ^uint64(0)
			if firstIndex := slices.IndexFunc(keptLines,
				func(l tailLine) bool { return l.Kind != audit.KindOutcome }); firstIndex >= 0 {
				firstSeq = keptLines[firstIndex].Seq
			}
			return slices.DeleteFunc(keptLines, func(l tailLine) bool {
				return l.Kind == audit.KindOutcome &&
					l.Decision < firstSeq
			})
		}
		n--
	}
	return lines
}

// tailPrinter prints a table of records. It prints the decision on a statement when it has read the statement's
// outcome.
type tailPrinter struct {
	out           io.Writer
	unprintedRows [][]string // the rows that have not been printed yet
	// the widths of the columns in all rows so far; with --follow, later rows get the same widths as the headings
	widths            []int
	shortenReferences bool
	pendingDecisions  map[uint64]auditRecord
}

func (p *tailPrinter) addHeader() {
	p.addRow("TIME", "AGENT", "FOR", "WHAT", "TABLES", "VERDICT", "ROWS", "NOTE")
}

func (p *tailPrinter) addRow(cells ...string) {
	p.unprintedRows = append(p.unprintedRows, cells)
	for i, c := range cells {
		if i == len(p.widths) {
			p.widths = append(p.widths, 0)
		}
		p.widths[i] = max(p.widths[i], utf8.RuneCountInString(c))
	}
}

// flush prints the collected rows, without spaces at the ends of lines.
func (p *tailPrinter) flush() error {
	var out strings.Builder
	for _, cells := range p.unprintedRows {
		line := ""
		for i, c := range cells {
			line += fmt.Sprintf("%-*s", p.widths[i]+2, c)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	p.unprintedRows = nil
	_, err := io.WriteString(p.out, out.String())
	return err
}

func (p *tailPrinter) addRecord(e auditRecord) {
	switch {
	case e.Kind == audit.KindDecision && e.Verdict == "allow":
		p.pendingDecisions[e.Seq] = e
	case e.Kind == audit.KindDecision:
		p.addDecision(e, "", strings.TrimSpace(e.SQLState+" "+e.Reason))
	case e.Kind == audit.KindOutcome:
		d, ok := p.pendingDecisions[e.Decision]
		if !ok {
			return // the outcome belongs to a refused statement, or to a decision before the first printed line
		}
		delete(p.pendingDecisions, e.Decision)
		note := ""
		if e.SQLState != "00000" {
			note = e.SQLState
		}
		p.addDecision(d, strconv.FormatInt(e.Rows, 10), note)
	case e.Kind == audit.KindSession:
		p.addRow(formatLocalTime(e.Time), e.Agent, "", "session "+e.Event, "", "", "",
			strings.TrimSpace(e.SQLState+" "+e.Reason))
	case e.Kind == audit.KindCall:
		subjects := "everybody"
		if !e.Everybody {
			subjects = p.personsText(e.About)
		}
		verdict := "allow"
		if e.Outcome != audit.OutcomeDone {
			verdict = e.Outcome
		}
		p.addRow(formatLocalTime(e.Time), p.personText(e.By), subjects, e.Role+": "+e.Operation, "", verdict, "", e.Code)
	case e.Kind == audit.KindObservation:
		p.addRow(formatLocalTime(e.Time), e.Agent, "", "observed "+e.Tag, "", "", "", "")
	default:
		p.addRow(formatLocalTime(e.Time), "", "", e.Kind, "", "", "", e.Cause)
	}
}

// flushPending prints the decisions whose outcomes have not been read.
func (p *tailPrinter) flushPending() {
	var seqs []uint64
	for seq := range p.pendingDecisions {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	for _, seq := range seqs {
		p.addDecision(p.pendingDecisions[seq], "?", "no outcome yet")
	}
}

func (p *tailPrinter) addDecision(e auditRecord, rows, note string) {
	var tables []string
	for _, t := range e.Tables {
		if !slices.Contains(tables, t.Name) {
			tables = append(tables, t.Name)
		}
	}
	p.addRow(formatLocalTime(e.Time), e.Agent, p.personText(e.OnBehalfOf), e.Tag, strings.Join(tables, " "), e.Verdict,
		rows, note)
}

// personText returns the name of a person in a record. If the user asked for that, it shortens references.
func (p *tailPrinter) personText(name string) string {
	if ref, ok := strings.CutPrefix(name, "ref:"); ok && p.shortenReferences && len(ref) > 8 {
		return ref[:8]
	}
	return name
}

func (p *tailPrinter) personsText(names []string) string {
	shortNames := make([]string, len(names))
	for i, name := range names {
		shortNames[i] = p.personText(name)
	}
	return strings.Join(shortNames, " ")
}

func formatLocalTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
