package policy

import (
	"fmt"
	"io"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// Lifecycle says what happens to rows of a table when the consent of their subject has ended: they are deleted or made
// anonymous, and single columns change after some days of a countdown. The table's rule must hide the rows before that,
// so that agents never see a row disappear.
type Lifecycle struct {
	Subject    string            // the column with the id of the person whom a row is about, as in the registry
	TimeColumn string            // the column with the time of the row; "": rows have no time, and so no age
	Anonymise  bool              // rows stay and become anonymous by changes of Columns; false: rows are deleted
	Columns    []LifecycleColumn // the columns that change, in the order of the table
	// HiddenFromDay is the first full day of a countdown on which the rule hides every row; [predicate.NeverDecays] if
	// there is no such day.
	HiddenFromDay int
}

// LifecycleColumn says how a column changes.
type LifecycleColumn struct {
	VisibleColumn        // the mask: Null, Hash, Truncate, Prefix or Step; with Plain, the column gets Value
	Value         string // the fixed value that the column gets, as text
	LastDay       int    // the last full day of a countdown on which the column is unchanged
	// the categories of the column: if a TEMPORARY subject has not consented to them, the column changes at once
	Categories []string
	Subject    bool // the column names the subject
}

// hidesEnded tells whether a rule hides every row of a subject whose consent has ended.
func (l *Lifecycle) hidesEnded(n predicate.Node) bool { _, ok := l.hiddenFrom(n); return ok }

// hiddenFrom returns the first full day of a countdown on which the rule hides every row. ok is false if the rule shows
// rows of subjects whose consent has ended. In a conjunction, one condition that hides the rows is enough; in a
// disjunction, each condition must hide them.
func (l *Lifecycle) hiddenFrom(n predicate.Node) (days int, ok bool) {
	switch n := n.(type) {
	case predicate.RegistryConsent:
		days = n.DecayDays
		if n.DataTimeColumn == "" {
			days = predicate.NeverDecays
			if !n.CountsInGroups {
				days = 0 // agents see only rows of TEMPORARY and PARTNERED subjects
			}
		}
		return days, n.Subjects.Subject == l.Subject && len(n.Subjects.Steps) == 0 && len(n.Subjects.ExceptCallers) == 0 &&
			(l.TimeColumn == "" || n.DataTimeColumn == l.TimeColumn)
	case predicate.All:
		days = predicate.NeverDecays
		for _, part := range n {
			if d, hides := l.hiddenFrom(part); hides {
				days, ok = min(days, d), true
			}
		}
		return days, ok
	case predicate.Any:
		for _, part := range n {
			d, hides := l.hiddenFrom(part)
			if !hides {
				return predicate.NeverDecays, false
			}
			days = max(days, d)
		}
		return days, true
	default:
		return predicate.NeverDecays, false
	}
}

// columnHiddenFrom returns the first full day of a countdown on which no agent sees the column, and how agents see it
// before that day.
func (l *Lifecycle) columnHiddenFrom(t *Table, becomes VisibleColumn) (day int, where string) {
	column := becomes.Name
	rows, _ := l.hiddenFrom(t.Rows)
	grouped := false
	if a := t.Aggregate; a != nil && column != l.Subject {
		d := a.Dimension(column)
		// groups use the truncated value already, so the change does not affect them
		isSameMask := d != nil && becomes.Mask == Truncate && d.Unit == becomes.Unit
		grouped = d != nil && !isSameMask || a.Measure(column) != nil
	}
	if t.Columns == nil {
		if grouped {
			return predicate.NeverDecays, "counts in groups"
		}
		return rows, "shows"
	}
	shown, conditional := t.ConditionalColumn(column)
	isList := slices.ContainsFunc(t.Columns.Columns, func(s VisibleColumn) bool { return s.Name == column })
	if t.Columns.ByKey != nil {
		isList = isList || slices.ContainsFunc(t.Columns.ByKey.AllColumns,
			func(s VisibleColumn) bool { return s.Name == column })
	}
	day, where = rows, "shows"
	// a row without its subject belongs to nobody, so the subject must stay as long as the row shows
	if column == l.Subject {
		return rows, "says whose a row is that shows"
	}
	if !isList {
		day = 0
	}
	if conditional {
		if n, ok := shown.Condition.(predicate.RegistryConsent); ok && n.Subjects.Subject == l.Subject &&
			n.DataTimeColumn == l.TimeColumn {
			day = min(day, n.DecayDays)
		}
	}
	if grouped {
		counts := predicate.NeverDecays
		if n, ok := shown.GroupCondition.(predicate.RegistryConsent); ok && conditional && n.Subjects.Subject == l.Subject &&
			n.DataTimeColumn == l.TimeColumn {
			counts = n.DecayDays
		}
		if counts > day {
			day, where = counts, "counts in groups"
		}
	}
	return day, where
}

func (l *Lifecycle) describe(h io.Writer) {
	fmt.Fprintf(h, " lifecycle %q %q %t\n", l.Subject, l.TimeColumn, l.Anonymise)
	for _, b := range l.Columns {
		fmt.Fprintf(h, "  %q %d %q %d %q %d %q\n", b.Name, b.Mask, b.Unit, b.Amount, b.Value, b.LastDay, b.Categories)
	}
}
