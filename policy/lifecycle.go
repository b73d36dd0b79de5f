package policy

import (
	"fmt"
	"io"
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// Lifecycle says what becomes of the rows of a table: they go when the consent of their subject has ended, and their
// columns when they have decayed. The rule of the table hides what goes, so that nothing goes that agents see.
type Lifecycle struct {
	Subject   string            // the column that says, in the registry's words, whom a row is about
	At        string            // the column that says how old it is; "": rows have no age
	Anonymise bool              // where a consent has ended, every column of Columns becomes what it says, and the row stays
	Columns   []LifecycleColumn // in the order of the table
	// the first full day of a countdown on which the rule shows no row; [predicate.Forever]: it shows them all along
	HiddenFromDay int
}

// LifecycleColumn is what a column becomes.
type LifecycleColumn struct {
	VisibleColumn          // Null, Hash, Truncate, Prefix or Step; Plain: Value
	Value         string   // a fixed value, as text
	After         int      // the last full day of a countdown on which the column is as it was
	Categories    []string // its categories: where a subject who is TEMPORARY now does not list them, it goes at once
	Subject       bool     // it is the column that says whom the row is about
}

// hidesEnded tells whether a rule shows no row of a subject whose consent has ended.
func (l *Lifecycle) hidesEnded(n predicate.Node) bool { _, ok := l.hiddenFrom(n); return ok }

// hiddenFrom is the first full day of a countdown on which the rule shows no row any more; false: it shows rows whose consent
// has ended. Of several conditions one is enough, of several ways each counts.
func (l *Lifecycle) hiddenFrom(n predicate.Node) (days int, ok bool) {
	switch n := n.(type) {
	case predicate.Registered:
		days = n.Days
		if n.Since == "" {
			days = predicate.Forever
			if !n.Grouped {
				days = 0 // TEMPORARY and PARTNERED alone show
			}
		}
		return days, n.Of.Subject == l.Subject && len(n.Of.Steps) == 0 && len(n.Of.But) == 0 && (l.At == "" || n.Since == l.At)
	case predicate.All:
		days = predicate.Forever
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
				return predicate.Forever, false
			}
			days = max(days, d)
		}
		return days, true
	default:
		return predicate.Forever, false
	}
}

// columnHiddenFrom is the first full day on which no agent has the column any more, and how it is had until then.
func (l *Lifecycle) columnHiddenFrom(t *Table, becomes VisibleColumn) (day int, where string) {
	column := becomes.Name
	rows, _ := l.hiddenFrom(t.Rows)
	grouped := false
	if a := t.Aggregate; a != nil && column != l.Subject {
		d := a.Dimension(column)
		same := d != nil && becomes.Mask == Truncate && d.Unit == becomes.Unit // in groups it is what it was
		grouped = d != nil && !same || a.Measure(column) != nil
	}
	if t.Columns == nil {
		if grouped {
			return predicate.Forever, "counts in groups"
		}
		return rows, "shows"
	}
	shown, conditional := t.ConditionalColumn(column)
	listed := slices.ContainsFunc(t.Columns.Columns, func(s VisibleColumn) bool { return s.Name == column })
	if t.Columns.ByKey != nil {
		listed = listed || slices.ContainsFunc(t.Columns.ByKey.AllColumns, func(s VisibleColumn) bool { return s.Name == column })
	}
	day, where = rows, "shows"
	if column == l.Subject { // without whom the row is nobody's, shown or not
		return rows, "says whose a row is that shows"
	}
	if !listed {
		day = 0
	}
	if conditional {
		if n, ok := shown.Condition.(predicate.Registered); ok && n.Of.Subject == l.Subject && n.Since == l.At {
			day = min(day, n.Days)
		}
	}
	if grouped {
		counts := predicate.Forever
		if n, ok := shown.GroupCondition.(predicate.Registered); ok && conditional && n.Of.Subject == l.Subject && n.Since == l.At {
			counts = n.Days
		}
		if counts > day {
			day, where = counts, "counts in groups"
		}
	}
	return day, where
}

func (l *Lifecycle) describe(h io.Writer) {
	fmt.Fprintf(h, " lifecycle %q %q %t\n", l.Subject, l.At, l.Anonymise)
	for _, b := range l.Columns {
		fmt.Fprintf(h, "  %q %d %q %d %q %d %q\n", b.Name, b.Mask, b.Unit, b.Amount, b.Value, b.After, b.Categories)
	}
}
