package policy

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Aggregate says which rows of a table count in aggregates although agents do not see them one by one. The dimensions
// divide the rows into cells: rows with the same value in each dimension are in one cell. A cell counts as a whole or
// not at all. Package rls generates the SQL for it.
type Aggregate struct {
	Rows         predicate.Node // the rows that count in aggregates besides the rows that agents see one by one
	NoSingleRows bool           // agents see no row one by one: the policy says `rows: none`
	Subject      string         // the column that names the person whom a row is about
	MinSubjects  int            // a cell with rows about fewer subjects does not count
	// a cell does not count if more than this percentage of its rows is about one subject; 0: any percentage counts
	MaxSharePercent int
	Dimensions      []Dimension // the dimensions, sorted by column
	Measures        []Measure   // the measures, sorted by column
}

// Dimension is a column by which agents may group rows and choose groups.
type Dimension struct {
	Column          string
	Type            string
	OID             uint32 // the OID of the column's type
	Unit            string // the finest unit of a date or time, in UTC; "": the column is of another type
	OnlyPastPeriods bool   // rows of the current period, which is not over yet, do not count
}

// Measure is a number that agents may add up. A value outside of the bounds counts as the nearer bound.
type Measure struct {
	Column    string
	Type      string
	Low, High string // the bounds of the values, as decimal numbers
}

// Dimension returns the dimension of that column, or nil.
func (a *Aggregate) Dimension(column string) *Dimension {
	for i := range a.Dimensions {
		if a.Dimensions[i].Column == column {
			return &a.Dimensions[i]
		}
	}
	return nil
}

// Measure returns the measure of that column, or nil.
func (a *Aggregate) Measure(column string) *Measure {
	for i := range a.Measures {
		if a.Measures[i].Column == column {
			return &a.Measures[i]
		}
	}
	return nil
}

// Units returns the units to which agents may truncate the dimension in GROUP BY: its finest unit, and the units that
// consist of whole finest units.
func (d *Dimension) Units() []string { return truncationUnits[d.Unit] }

// truncationUnits lists for each unit of time the unit itself and all coarser units.
var truncationUnits = map[string][]string{
	"hour":    {"hour", "day", "week", "month", "quarter", "year"},
	"day":     {"day", "week", "month", "quarter", "year"},
	"week":    {"week"},
	"month":   {"month", "quarter", "year"},
	"quarter": {"quarter", "year"},
	"year":    {"year"},
}

// describe returns a text with everything that the aggregate says, so that different aggregates have different texts.
func (a *Aggregate) describe(r *catalog.Relation) string {
	out := fmt.Sprintf("%q %q %d %d", predicate.RowPolicySQL(a.Rows, r), a.Subject, a.MinSubjects, a.MaxSharePercent)
	for _, d := range a.Dimensions {
		out += fmt.Sprintf(" %q %q %t", d.Column, d.Unit, d.OnlyPastPeriods)
	}
	return out + fmt.Sprintf(" %q", a.Measures)
}

// VisibilityRules returns all conditions that decide whether agents see a row of the table, which values they see, and
// whether it counts in aggregates.
func (t *Table) VisibilityRules() predicate.Node {
	out := predicate.All{t.Rows}
	if t.Aggregate != nil {
		out = append(out, t.Aggregate.Rows)
	}
	if out = append(out, t.ColumnConditions()...); len(out) == 1 {
		return t.Rows
	}
	return out
}
