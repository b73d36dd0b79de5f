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
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// These are the outcomes of a recorded statement if the proxy decided it under this policy now.
const (
	OutcomeStaysAllowed   = "stays allowed"
	OutcomeBecomesRefused = "would be refused"
	OutcomeLosesColumns   = "would lose columns"
	OutcomeStaysRefused   = "stays refused"
	OutcomeBecomesAllowed = "would be allowed"
	OutcomeUnknown        = "cannot be told"
)

// StatementClass says how the policy would decide the recorded statements of one class: those with the same agent,
// shape and recorded answer.
type StatementClass struct {
	Agent           string   `json:"agent"`
	Tag             string   `json:"tag"`
	Fingerprint     string   `json:"fingerprint,omitempty"`
	Tables          []string `json:"tables,omitempty"`
	RecordedVerdict string   `json:"was"` // decision that was recorded: allow or deny
	NewOutcome      string   `json:"now"`
	Reason          string   `json:"why,omitempty"`
	Count           int64    `json:"count"`
}

// AuditReplay says how a policy would decide the statements whose decisions an audit log has. A record has the tables
// and columns that a statement reads, their sources, the agent and the contract, but not the text. So the replay tells
// which statements would certainly be refused or lose columns, and which refusals by contract would no longer happen.
// The outcome of other statements is unknown. The replay never tells which rows a statement would return, nor whether a
// limit would stop it.
type AuditReplay struct {
	Since     time.Time         `json:"since"`
	Until     time.Time         `json:"until"`
	Decisions int64             `json:"decisions"`
	Counts    map[string]int64  `json:"counts"` // the number of decisions, by their outcome under this policy
	Classes   []*StatementClass `json:"classes"`

	policy       *policy.Policy
	snapshot     *catalog.Snapshot
	database     string
	classesByKey map[string]*StatementClass
}

// NewAuditReplay returns a replay of the decisions in a database under a policy, given the database's catalog. It
// treats tables that the policy would only observe as enforced.
func NewAuditReplay(p *policy.Policy, snap *catalog.Snapshot, database string) *AuditReplay {
	return &AuditReplay{policy: p.Enforced(), snapshot: snap, database: database, Counts: map[string]int64{},
		classesByKey: map[string]*StatementClass{}}
}

// Read reads the decisions of an audit log since a time, and verifies the log's hash chain on the way.
func (r *AuditReplay) Read(from audit.Source, since time.Time) error {
	if _, err := (audit.VerifyOptions{}).Read(from, func(record audit.Record) error {
		if record.Kind != audit.KindDecision || record.Time.Before(since) {
			return nil
		}
		var decision audit.Decision
		if err := json.Unmarshal(record.Line, &decision); err != nil {
			return fmt.Errorf("record %d: %w", record.Seq, err)
		}
		if decision.Database != r.database {
			return nil
		}
		if r.Since.IsZero() {
			r.Since = record.Time
		}
		r.Until = record.Time
		r.add(decision)
		return nil
	}); err != nil {
		return err
	}
	ranks := []string{OutcomeBecomesRefused, OutcomeLosesColumns, OutcomeBecomesAllowed, OutcomeUnknown,
		OutcomeStaysAllowed, OutcomeStaysRefused}
	r.Classes = slices.SortedFunc(maps.Values(r.classesByKey), func(a, b *StatementClass) int {
		return cmp.Or(slices.Index(ranks, a.NewOutcome)-slices.Index(ranks, b.NewOutcome), cmp.Compare(b.Count, a.Count),
			strings.Compare(a.Agent, b.Agent), strings.Compare(a.Fingerprint, b.Fingerprint), strings.Compare(a.Reason,
				b.Reason))
	})
	return nil
}

func (r *AuditReplay) add(decision audit.Decision) {
	now, reason := r.newOutcome(decision)
	r.Decisions++
	r.Counts[now]++
	c := &StatementClass{Agent: decision.Agent, Tag: decision.Tag, Fingerprint: decision.Fingerprint,
		RecordedVerdict: decision.Verdict,
		NewOutcome:      now,
		Reason:          reason}
	for _, t := range decision.Tables {
		if !slices.Contains(c.Tables, t.Name) {
			c.Tables = append(c.Tables, t.Name)
		}
	}
	key := strings.Join(append([]string{c.Agent, c.Tag, c.Fingerprint, c.RecordedVerdict, c.NewOutcome, c.Reason},
		c.Tables...), "\x00")
	if found := r.classesByKey[key]; found != nil {
		found.Count++
		return
	}
	c.Count = 1
	r.classesByKey[key] = c
}

// newOutcome returns how the policy would decide the recorded statement, and why.
func (r *AuditReplay) newOutcome(decision audit.Decision) (now, reason string) {
	isAllowed := decision.Verdict == "allow"
	if reason := r.alwaysRefusedReason(decision); reason != "" {
		if isAllowed {
			return OutcomeBecomesRefused, reason
		}
		return OutcomeStaysRefused, reason
	}
	refused, isUncertain := r.evaluateContracts(decision)
	switch {
	case refused != "" && isAllowed:
		return OutcomeBecomesRefused, refused
	case refused != "":
		return OutcomeStaysRefused, refused
	case !isAllowed && decision.Reason != "contract":
		return OutcomeUnknown, "it was refused for another reason than a contract (" +
			strings.TrimSpace(decision.SQLState+" "+decision.Reason) + "), which depends on its text or its moment"
	case isUncertain != "":
		return OutcomeUnknown, isUncertain
	}
	for _, t := range decision.Tables {
		if table, ok := r.table(t.Name); ok && table.Aggregate != nil {
			return OutcomeUnknown, "rows of " + t.Name + " show in groups only: whether it asks for groups is not recorded"
		}
	}
	if lostColumns := r.missingColumns(decision); lostColumns != "" {
		return OutcomeLosesColumns, lostColumns
	}
	if isAllowed {
		return OutcomeStaysAllowed, ""
	}
	return OutcomeBecomesAllowed, ""
}

// alwaysRefusedReason returns why the policy refuses every statement with these tables and functions, or "" if it
// allows some.
func (r *AuditReplay) alwaysRefusedReason(decision audit.Decision) string {
	for _, t := range decision.Tables {
		name, ok := nameOf(t.Name)
		if !ok || name.Schema == "pg_catalog" || name.Schema == "information_schema" {
			continue
		}
		relation, exists := r.snapshot.Relation(name)
		if !exists {
			return t.Name + " does not exist any more"
		}
		table, isListed := r.policy.Table(name)
		_, view := r.policy.View(name)
		if !isListed && !view && !slices.ContainsFunc(r.policy.Children(),
			func(c *policy.Child) bool { return c.Relation.Name == name && c.ReadableByName }) {
			return "the policy does not list " + t.Name
		}
		if t.IsWritten && isListed && table.Write == nil {
			return "agents may not write " + t.Name
		}
		for _, column := range t.Columns {
			switch {
			case relation.Column(column) == nil:
				return t.Name + "." + column + " does not exist any more"
			case isListed && !t.ByKey && table.Columns != nil && table.Columns.ByKey.Has(column):
				return t.Name + "." + column + " exists by key only"
			}
		}
	}
	for _, f := range decision.Functions {
		name, ok := nameOf(f)
		if !ok || name.Schema == "pg_catalog" {
			continue
		}
		if _, isListed := r.policy.Function(name); !isListed {
			return "the policy does not list the function " + f
		}
	}
	return ""
}

// nameOf splits a name at the point between schema and name, as audit records write it.
func nameOf(text string) (catalog.Name, bool) {
	schema, name, ok := strings.Cut(text, ".")
	return catalog.Name{Schema: schema, Name: name}, ok
}

func (r *AuditReplay) table(text string) (*policy.Table, bool) {
	name, _ := nameOf(text)
	return r.policy.Table(name)
}

// evaluateContracts evaluates the contracts with the recorded attributes of the session. It returns why a contract
// refuses the statement, and why a contract cannot be evaluated.
func (r *AuditReplay) evaluateContracts(decision audit.Decision) (refused, undecided string) {
	values := map[string]string{}
	for name, value := range decision.Attributes {
		if !strings.Contains(value, "ref:") {
			values[name] = value
		}
	}
	var missingAttributes []string
	for _, c := range decision.Contracts {
		switch {
		case c.Attribute == "":
		case c.Value == "":
			missingAttributes = append(missingAttributes, c.Attribute)
			delete(values, c.Attribute)
		case !strings.Contains(c.Value, "ref:"):
			values[c.Attribute] = c.Value
		}
	}
	s := policy.Statement{Tag: decision.Tag}
	for _, t := range decision.Tables {
		name, ok := nameOf(t.Name)
		if !ok {
			return "", "the record names " + t.Name
		}
		a := policy.Access{Relation: name, Columns: t.Columns, Source: t.DataSource, ByKey: t.ByKey, Written: t.IsWritten}
		if !r.readsSource(&a) && r.policy.HasContracts() {
			return "", "whether it searches " + t.Name + " by likeness is not recorded"
		}
		s.Accesses = append(s.Accesses, a)
	}
	err, undecided := r.policy.JudgeRecorded(s, values, missingAttributes)
	if err != nil {
		return err.Message, ""
	}
	return "", undecided
}

// readsSource sets a.Source to metadata or structured data, as this policy classifies the columns that the statement
// read. It returns false if the record does not tell the source.
func (r *AuditReplay) readsSource(a *policy.Access) bool {
	object := r.policy.Object(a.Relation)
	switch {
	case object == nil || a.Source == policy.SourceWrite || a.Source == policy.SourceFunction ||
		a.Source == policy.SourceVector:
		return true
	case slices.ContainsFunc(object.EmbeddingColumns,
		func(c string) bool { return a.Columns == nil || slices.Contains(a.Columns, c) }):
		return false // The record does not tell whether the statement returned or compared the embedding.
	}
	a.Source = policy.SourceMetadata
	columns := a.Columns
	if columns == nil {
		if relation, ok := r.snapshot.Relation(a.Relation); ok {
			for _, c := range relation.Columns {
				columns = append(columns, c.Name)
			}
		}
	}
	if slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(object.MetadataColumns, c) }) {
		a.Source = policy.SourceStructured
	}
	return true
}

// missingColumns returns the columns of the statement that the policy hides or masks.
func (r *AuditReplay) missingColumns(decision audit.Decision) string {
	var missingNames, maskedColumns []string
	for _, t := range decision.Tables {
		table, ok := r.table(t.Name)
		if !ok {
			continue
		}
		h, m := table.HiddenAndMasked(t.Columns)
		for _, c := range h {
			missingNames = append(missingNames, t.Name+"."+c)
		}
		for _, c := range m {
			maskedColumns = append(maskedColumns, t.Name+"."+c)
		}
	}
	var parts []string
	if len(missingNames) > 0 {
		parts = append(parts, "no column "+strings.Join(missingNames, ", "))
	}
	if len(maskedColumns) > 0 {
		parts = append(parts, "masked "+strings.Join(maskedColumns, ", "))
	}
	return strings.Join(parts, "; ")
}

// Print writes the replay as text.
func (r *AuditReplay) Print(out io.Writer) {
	if r.Decisions == 0 {
		fmt.Fprintln(out, "The audit has no decision of this database.")
		return
	}
	fmt.Fprintf(out, "%d decisions of %d classes, from %s to %s.\n", r.Decisions, len(r.Classes),
		r.Since.UTC().Format(time.DateTime), r.Until.UTC().Format(time.DateTime))
	for _, outcome := range []string{OutcomeBecomesRefused, OutcomeLosesColumns, OutcomeBecomesAllowed, OutcomeUnknown,
		OutcomeStaysAllowed, OutcomeStaysRefused} {
		if n := r.Counts[outcome]; n > 0 {
			fmt.Fprintf(out, "  %d %s\n", n, outcome)
		}
	}
	fmt.Fprintln(out, "Records have no texts: which rows would come, and what limits would stop, they do not tell.")
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COUNT\tAGENT\tSTATEMENT\t\tTABLES\tWAS\tWITH THE CANDIDATE\tWHY")
	for _, c := range r.Classes {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Count, c.Agent, c.Tag, shortFingerprint(c.Fingerprint),
			strings.Join(c.Tables, " "), c.RecordedVerdict, c.NewOutcome, c.Reason)
	}
	_ = w.Flush()
}
