package policy

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Aggregate says which rows of a table count in aggregates although agents do not see them one by one. The dimensions
// divide the rows into cells: the rows with the same value in each dimension. A cell counts as a whole or not at all.
// Package rls writes the SQL for it.
type Aggregate struct {
	Rows       predicate.Node // the rows that count besides those that show
	Only       bool           // no row shows one by one: rows: none
	Subject    string         // the column that names the person whom a row is about
	Minimum    int            // a cell of fewer subjects does not count
	Share      int            // percent of a cell that one subject may have; cells beyond it do not count; 0: no bound
	Dimensions []Dimension    // sorted by column
	Measures   []Measure      // sorted by column
}

// Dimension is a column by which agents may group rows and choose groups.
type Dimension struct {
	Column string
	Type   string
	OID    uint32 // the OID of the type
	Unit   string // the finest unit of a date or time, in UTC; "": the column is of another type
	Closed bool   // rows of a period that is not over do not count
}

// Measure is a number that agents may add up. A value outside the bounds counts as the bound.
type Measure struct {
	Column    string
	Type      string
	Low, High string // numbers
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

// Units are the units to which agents may truncate the dimension: its own, and those that consist of whole ones.
func (d *Dimension) Units() []string { return coarser[d.Unit] }

var coarser = map[string][]string{
	"hour":    {"hour", "day", "week", "month", "quarter", "year"},
	"day":     {"day", "week", "month", "quarter", "year"},
	"week":    {"week"},
	"month":   {"month", "quarter", "year"},
	"quarter": {"quarter", "year"},
	"year":    {"year"},
}

func (a *Aggregate) describe(r *catalog.Relation) string {
	out := fmt.Sprintf("%q %q %d %d", predicate.Policy(a.Rows, r), a.Subject, a.Minimum, a.Share)
	for _, d := range a.Dimensions {
		out += fmt.Sprintf(" %q %q %t", d.Column, d.Unit, d.Closed)
	}
	return out + fmt.Sprintf(" %q", a.Measures)
}

// VisibilityRules are all conditions that decide whether agents see a row of the table, what they see of it, and
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
