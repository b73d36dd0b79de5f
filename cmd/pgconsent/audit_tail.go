package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/serve"
)

type auditTailCmd struct {
	auditFilter
	Lines  int  `short:"n" default:"20" placeholder:"N" help:"How many. Default: ${default}."`
	Follow bool `short:"f" help:"Then each new one, until it is stopped."`
	Short  bool `help:"Whole references are shortened to eight digits." default:"true" negatable:""`
}

func (auditTailCmd) Help() string {
	return `One line for each execution: who asked, on whose behalf, what, and what became of it. Persons are references; --subject looks one up.
With --json the records are printed as they are in the log, decisions and outcomes each by itself. Nothing is verified but each record's own hash.

  pgconsent audit tail --follow
  pgconsent audit tail -n 100 --table memories --verdict deny
  pgconsent audit tail --subject 6f1e0000-0000-4000-8000-000000000001 --since 7d`
}

func (t auditTailCmd) Run(s *session) error {
	if t.Lines < 0 {
		return usageError{errors.New("--lines cannot be below 0")}
	}
	c, err := s.audited()
	if err != nil {
		return err
	}
	if err := t.prepare(s, c); err != nil {
		return err
	}
	return serve.AuditSource(s.ctx, c, c.Audit, true, func(from audit.Source) error { return t.print(s, from) })
}

// print writes the newest records, and those that come.
func (t auditTailCmd) print(s *session, from audit.Source) error {
	f := filtering{t.auditFilter, map[uint64]bool{}}
	counting := filtering{t.auditFilter, map[uint64]bool{}}
	var lines []line
	cursor, err := audit.Newest(from, t.Lines, func(r audit.Record) bool {
		e, err := readEntry(r)
		return err == nil && e.Kind != audit.KindOutcome && counting.wants(e)
	}, func(r audit.Record) error {
		e, err := readEntry(r)
		if err != nil || !f.wants(e) {
			return err
		}
		lines = append(lines, line{e, string(r.Line)})
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there are no records in %s yet", from)
	}
	if err != nil {
		return err
	}
	lines = newest(lines, t.Lines)
	if s.json {
		for _, l := range lines {
			fmt.Fprint(s.out, l.raw)
		}
		if !t.Follow {
			return nil
		}
		return cursor.Follow(s.ctx, func(r audit.Record) error {
			e, err := readEntry(r)
			if err == nil && f.wants(e) {
				_, err = s.out.Write(r.Line)
			}
			return err
		})
	}
	p := &tailing{table: tabwriter.NewWriter(&trimmed{to: s.out}, 0, 0, 2, ' ', 0), short: t.Short,
		waiting: map[uint64]entry{}}
	p.head()
	for _, l := range lines {
		p.add(l.entry)
	}
	if !t.Follow {
		p.rest()
		return p.table.Flush()
	}
	if err := p.table.Flush(); err != nil {
		return err
	}
	return cursor.Follow(s.ctx, func(r audit.Record) error {
		e, err := readEntry(r)
		if err != nil || !f.wants(e) {
			return err
		}
		p.add(e)
		return p.table.Flush()
	})
}

type line struct {
	entry
	raw string
}

// newest keeps the last n that are no outcomes, and what belongs to them.
func newest(lines []line, n int) []line {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].Kind == audit.KindOutcome {
			continue
		}
		if n == 0 {
			kept := lines[i+1:]
			first := ^uint64(0)
			if at := slices.IndexFunc(kept, func(l line) bool { return l.Kind != audit.KindOutcome }); at >= 0 {
				first = kept[at].Seq
			}
			return slices.DeleteFunc(kept, func(l line) bool { return l.Kind == audit.KindOutcome && l.Decision < first })
		}
		n--
	}
	return lines
}

// tailing prints a decision when its outcome is known.
type tailing struct {
	table   *tabwriter.Writer
	short   bool
	waiting map[uint64]entry
}

func (p *tailing) head() {
	p.row("TIME", "AGENT", "FOR", "WHAT", "TABLES", "VERDICT", "ROWS", "")
}

// row keeps empty cells: a column ends where a line has none.
func (p *tailing) row(cells ...string) {
	fmt.Fprintln(p.table, strings.Join(cells, "\t"))
}

// trimmed leaves out the spaces at the end of lines, which come in pieces.
type trimmed struct {
	to   io.Writer
	held int // spaces that are the line's end, or are not
}

func (t *trimmed) Write(b []byte) (int, error) {
	var out strings.Builder
	for _, c := range b {
		switch c {
		case ' ':
			t.held++
			continue
		case '\n':
			t.held = 0
		}
		out.WriteString(strings.Repeat(" ", t.held))
		out.WriteByte(c)
		t.held = 0
	}
	_, err := io.WriteString(t.to, out.String())
	return len(b), err
}

func (p *tailing) add(e entry) {
	switch {
	case e.Kind == audit.KindDecision && e.Verdict == "allow":
		p.waiting[e.Seq] = e
	case e.Kind == audit.KindDecision:
		p.decision(e, "", strings.TrimSpace(e.SQLState+" "+e.Reason))
	case e.Kind == audit.KindOutcome:
		d, ok := p.waiting[e.Decision]
		if !ok {
			return // of a refusal, or of a decision before the first line
		}
		delete(p.waiting, e.Decision)
		note := ""
		if e.SQLState != "00000" {
			note = e.SQLState
		}
		p.decision(d, strconv.FormatInt(e.Rows, 10), note)
	case e.Kind == audit.KindSession:
		p.row(stamp(e.Time), e.Agent, "", "session "+e.Event, "", "", "", strings.TrimSpace(e.SQLState+" "+e.Reason))
	case e.Kind == audit.KindCall:
		about := "everybody"
		if !e.Everybody {
			about = p.persons(e.About)
		}
		verdict := "allow"
		if e.Outcome != audit.Done {
			verdict = e.Outcome
		}
		p.row(stamp(e.Time), p.person(e.By), about, e.Role+": "+e.Operation, "", verdict, "", e.Code)
	case e.Kind == audit.KindObservation:
		p.row(stamp(e.Time), e.Agent, "", "observed "+e.Tag, "", "", "", "")
	default:
		p.row(stamp(e.Time), "", "", e.Kind, "", "", "", e.Cause)
	}
}

// rest prints the decisions whose outcome is not known.
func (p *tailing) rest() {
	var seqs []uint64
	for seq := range p.waiting {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	for _, seq := range seqs {
		p.decision(p.waiting[seq], "?", "no outcome yet")
	}
}

func (p *tailing) decision(e entry, rows, note string) {
	var tables []string
	for _, t := range e.Tables {
		if !slices.Contains(tables, t.Name) {
			tables = append(tables, t.Name)
		}
	}
	p.row(stamp(e.Time), e.Agent, p.person(e.OnBehalfOf), e.Tag, strings.Join(tables, " "), e.Verdict, rows, note)
}

// person is a reference as it is printed, or another name.
func (p *tailing) person(name string) string {
	if ref, ok := strings.CutPrefix(name, "ref:"); ok && p.short && len(ref) > 8 {
		return ref[:8]
	}
	return name
}

func (p *tailing) persons(names []string) string {
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = p.person(name)
	}
	return strings.Join(short, " ")
}

func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
