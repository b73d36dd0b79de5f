// Package observe tells what a policy would do before it is enforced. It reads the audit records about tables that the
// policy only observes, and the statements of a PostgreSQL log.
//
// This package runs no statement. Its output has no literal and no row, and the text of a statement only on request.
package observe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pgconsent/pgconsent/internal/record/audit"
)

// Report is what the audit records say about tables that the policy only observes.
type Report struct {
	Since      time.Time    `json:"since"`
	Until      time.Time    `json:"until"`
	Tables     []Table      `json:"tables"`
	Statements []*Statement `json:"statements"`
}

// Table sums up the recorded statements over one observed table.
type Table struct {
	Database   string `json:"database"`
	Name       string `json:"name"`
	Executions int64  `json:"executions"`
	Refused    int64  `json:"refused"` // executions that the policy would have refused
	// executions that name, or return by *, columns that the policy would hide or mask
	ColumnChanges       int64 `json:"columns"`
	ComparedExecutions  int64 `json:"compared"` // how many executions were run a second time under the policy, as a sample
	DifferingExecutions int64 `json:"differs"`  // how many of these returned other rows under the policy
	RowsLost            int64 `json:"gone"`     // rows of the differing executions that the policy would have hidden
	// executions of shapes that were never compared and would not have been refused
	NeverCompared int64 `json:"unknown"`
}

// IsSafe reports whether enforcing the policy would have changed no observed result, and every shape was compared.
func (t Table) IsSafe() bool {
	return t.Executions > 0 && t.Refused == 0 && t.ColumnChanges == 0 && t.DifferingExecutions == 0 && t.NeverCompared == 0
}

// Statement sums up the recorded statements of one shape and one agent.
type Statement struct {
	Agent               string           `json:"agent"`
	Database            string           `json:"database"`
	Fingerprint         string           `json:"fingerprint"`
	Tag                 string           `json:"tag"`
	Tables              []string         `json:"tables"`
	Hidden              []string         `json:"hidden,omitempty"`
	Masked              []string         `json:"masked,omitempty"`
	Executions          int64            `json:"executions"`
	Rows                int64            `json:"rows"`
	Refusals            map[string]int64 `json:"refusals,omitempty"` // the number of refusals, by SQLSTATE and reason
	ComparedExecutions  int64            `json:"compared"`
	DifferingExecutions int64            `json:"differs"`
	RowsLost            int64            `json:"gone"`
	// number of executions that were not compared, by the reason
	Skipped       map[string]int64 `json:"skipped,omitempty"`
	LastExecution time.Time        `json:"last"`
}

func (s *Statement) refusedExecutions() (n int64) {
	for _, k := range s.Refusals {
		n += k
	}
	return n
}

// ReadReport reads the records of an audit log since a time, and verifies the log's hash chain on the way.
func ReadReport(from audit.Source, since time.Time) (*Report, error) {
	type key struct{ agent, database, fingerprint string }
	found := map[key]*Statement{}
	r := &Report{}
	_, err := audit.VerifyOptions{}.Read(from, func(record audit.Record) error {
		if record.Kind != audit.KindObservation || record.Time.Before(since) {
			return nil
		}
		var observation audit.Observation
		if err := json.Unmarshal(record.Line, &observation); err != nil {
			return fmt.Errorf("record %d: %w", record.Seq, err)
		}
		if r.Since.IsZero() {
			r.Since = record.Time
		}
		r.Until = record.Time
		k := key{observation.Agent, observation.Database, observation.Fingerprint}
		s := found[k]
		if s == nil {
			s = &Statement{Agent: observation.Agent, Database: observation.Database, Fingerprint: observation.Fingerprint,
				Tag:    observation.Tag,
				Tables: observation.Tables, Hidden: observation.HiddenColumns, Masked: observation.MaskedColumns,
				Refusals: map[string]int64{}, Skipped: map[string]int64{}}
			found[k] = s
		}
		s.add(observation, record.Time)
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.Statements = slices.SortedFunc(maps.Values(found), func(a, b *Statement) int {
		return cmp.Or(cmp.Compare(b.refusedExecutions()+b.DifferingExecutions, a.refusedExecutions()+a.DifferingExecutions),
			cmp.Compare(b.Executions, a.Executions), strings.Compare(a.Agent, b.Agent),
			strings.Compare(a.Fingerprint, b.Fingerprint))
	})
	r.Tables = tableReports(r.Statements)
	return r, nil
}

func (s *Statement) add(observation audit.Observation, at time.Time) {
	s.LastExecution = at
	if observation.Compared != nil {
		s.ComparedExecutions++
		if observation.Compared.Differs {
			s.DifferingExecutions++
		}
		s.RowsLost += max(0, observation.Compared.Rows-observation.Compared.VisibleRows)
		return
	}
	if observation.Session == "" || observation.SkipReason == audit.ComparisonFailed {
		s.Skipped[observation.SkipReason]++
		return
	}
	s.Executions++
	s.Rows += observation.Rows
	if observation.SQLState != "" {
		reason := observation.SQLState + " " + observation.Reason
		if observation.Contract != "" {
			reason += " " + observation.Contract
		}
		s.Refusals[reason]++
	} else if observation.SkipReason != "" && observation.SkipReason != audit.ComparedSeparately {
		s.Skipped[observation.SkipReason]++
	}
}

func tableReports(statements []*Statement) []Table {
	found := map[[2]string]*Table{}
	for _, s := range statements {
		for _, name := range s.Tables {
			k := [2]string{s.Database, name}
			if found[k] == nil {
				found[k] = &Table{Database: s.Database, Name: name}
			}
			t := found[k]
			t.Executions += s.Executions
			t.Refused += s.refusedExecutions()
			if slices.ContainsFunc(append(slices.Clone(s.Hidden), s.Masked...),
				func(c string) bool { return strings.HasPrefix(c, name+".") }) {
				t.ColumnChanges += s.Executions
			}
			t.ComparedExecutions += s.ComparedExecutions
			t.DifferingExecutions += s.DifferingExecutions
			t.RowsLost += s.RowsLost
			if s.ComparedExecutions == 0 {
				t.NeverCompared += s.Executions - s.refusedExecutions()
			}
		}
	}
	var out []Table
	for _, t := range found {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b Table) int {
		return cmp.Or(strings.Compare(a.Database, b.Database), strings.Compare(a.Name, b.Name))
	})
	return out
}

// Print writes the report as text.
func (r *Report) Print(out io.Writer) {
	if len(r.Statements) == 0 {
		fmt.Fprintln(out, "Nothing was observed: no agent has sent a statement over a table that the policy observes.")
		return
	}
	fmt.Fprintf(out, "Observed from %s to %s.\n\n", r.Since.UTC().Format(time.DateTime), r.Until.UTC().Format(time.DateTime))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TABLE\tEXECUTIONS\tWOULD BE REFUSED\tCOLUMNS GONE\tCOMPARED\tDIFFER\tROWS GONE\tNOT "+
		"COMPARED\tENFORCING IT")
	for _, t := range r.Tables {
		verdict := "changes answers"
		switch {
		case t.IsSafe():
			verdict = "changes nothing that was seen"
		case t.Refused == 0 && t.ColumnChanges == 0 && t.DifferingExecutions == 0:
			verdict = "is not known to change anything; not all was compared"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", t.Name, t.Executions, t.Refused, t.ColumnChanges,
			t.ComparedExecutions,
			t.DifferingExecutions, t.RowsLost, t.NeverCompared, verdict)
	}
	_ = w.Flush()
	fmt.Fprintln(out)
	fmt.Fprintln(w, "AGENT\tSTATEMENT\t\tTABLES\tEXECUTIONS\tCOMPARED\tDIFFER\tROWS GONE\tWHAT WOULD CHANGE")
	for _, s := range r.Statements {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", s.Agent, s.Tag, shortFingerprint(s.Fingerprint),
			strings.Join(s.Tables, " "), s.Executions, s.ComparedExecutions, s.DifferingExecutions, s.RowsLost,
			s.changeSummary())
	}
	_ = w.Flush()
	if skippedReads := r.notCompared(); len(skippedReads) > 0 {
		fmt.Fprintln(out)
		fmt.Fprintln(w, "NOT COMPARED\tEXECUTIONS")
		for _, reason := range slices.Sorted(maps.Keys(skippedReads)) {
			fmt.Fprintf(w, "%s\t%d\n", reason, skippedReads[reason])
		}
		_ = w.Flush()
	}
	fmt.Fprintln(out, "\nA sample is compared: each shape of an agent's statements once a minute at most, SELECTs "+
		"without parameters only. Rows gone are those of the sample.")
}

// notCompared returns the number of executions that were not compared and would not have been refused, by the reason.
func (r *Report) notCompared() map[string]int64 {
	out := map[string]int64{}
	for _, s := range r.Statements {
		for reason, n := range s.Skipped {
			out[reason] += n
		}
	}
	return out
}

// changeSummary says how the policy would change the statement's results.
func (s *Statement) changeSummary() string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(s.Refusals)) {
		parts = append(parts, fmt.Sprintf("%d refused (%s)", s.Refusals[reason], reason))
	}
	if len(s.Hidden) > 0 {
		parts = append(parts, "no column "+strings.Join(s.Hidden, ", "))
	}
	if len(s.Masked) > 0 {
		parts = append(parts, "masked "+strings.Join(s.Masked, ", "))
	}
	if s.DifferingExecutions > 0 {
		parts = append(parts, "other rows")
	}
	switch {
	case len(parts) > 0:
	case s.ComparedExecutions == 0:
		parts = append(parts, "not known")
	default:
		parts = append(parts, "nothing")
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Skipped)) {
		parts = append(parts, fmt.Sprintf("%d not compared: %s", s.Skipped[reason], reason))
	}
	return strings.Join(parts, "; ")
}

func shortFingerprint(fingerprint string) string {
	if len(fingerprint) > 12 {
		return fingerprint[:12]
	}
	return fingerprint
}
