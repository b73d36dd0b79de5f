package policy

import (
	"fmt"
	"io"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// Lifecycle says how rows of a table end. They are deleted or made anonymous when the consent of their subject has
// ended, and single columns change after some days of a countdown. The table's rule must hide such rows beforehand, so
// that agents never see a row disappear.
type Lifecycle struct {
	Subject    string            // the column with the registry's id of the person whom a row is about
	TimeColumn string            // the column with the time of the row; "": rows have no age
	Anonymise  bool              // rows stay and become anonymous, as Columns says; false: rows are deleted
	Columns    []LifecycleColumn // the columns that change, in the order of the table
	// HiddenFromDay is the first full day of a countdown on which the rule hides every row; [predicate.NeverDecays]: none.
	HiddenFromDay int
}

// LifecycleColumn says how a column changes.
type LifecycleColumn struct {
	VisibleColumn          // Null, Hash, Truncate, Prefix or Step; Plain means that Value takes its place
	Value         string   // the fixed value that the column gets, as text
	LastDay       int      // the last full day of a countdown on which the column is unchanged
	Categories    []string // the column's categories: it changes at once if a TEMPORARY subject does not list them
	Subject       bool     // the column names the subject
}

// hidesEnded tells whether a rule hides every row of a subject whose consent has ended.
func (l *Lifecycle) hidesEnded(n predicate.Node) bool { _, ok := l.hiddenFrom(n); return ok }

// hiddenFrom returns the first full day of a countdown on which the rule hides every row. ok is false if it shows rows
// whose consent has ended. If all conditions must hold, one that hides is enough; of alternatives, each must hide.
func (l *Lifecycle) hiddenFrom(n predicate.Node) (days int, ok bool) {
	switch n := n.(type) {
	case predicate.RegistryConsent:
		days = n.DecayDays
		if n.DataTimeColumn == "" {
			days = predicate.NeverDecays
			if !n.CountsInGroups {
				days = 0 // only rows of TEMPORARY and PARTNERED subjects are visible
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
// until then.
func (l *Lifecycle) columnHiddenFrom(t *Table, becomes VisibleColumn) (day int, where string) {
	column := becomes.Name
	rows, _ := l.hiddenFrom(t.Rows)
	grouped := false
	if a := t.Aggregate; a != nil && column != l.Subject {
		d := a.Dimension(column)
		// groups of agents already use the truncated value
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
	if column == l.Subject { // without the subject, the row belongs to nobody, visible or not
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
