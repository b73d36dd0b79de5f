package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// VisibleColumns says which columns of a table exist for agents, in the table's order, and how their values come out. A column
// that is not in it does not exist, one that the table gets later included.
type VisibleColumns struct {
	Columns []VisibleColumn
	ByKey   *ByKey // nil: no column besides these
}

// VisibleColumn is a column that exists for agents.
type VisibleColumn struct {
	Name string
	Type string // of the table's column; of a domain, the type under it
	Mask Mask

	Unit   string // of Truncate: year, month or day
	Amount int    // of Prefix, how many characters; of Step, the step
	Keys   []Key  // of Keys, sorted by name

	Condition      predicate.Node // of the row: else the value is NULL; nil: always
	GroupCondition predicate.Node // beside When: else it is NULL in rows that count in groups only
}

// Plain tells whether values come out as they are, in every row.
func (s VisibleColumn) Plain() bool { return s.Mask == Plain && s.Condition == nil }

// needs describes the conditions on a column's values.
func (s VisibleColumn) needs(r *catalog.Relation) string {
	if s.Condition == nil {
		return ""
	}
	return fmt.Sprintf(" %q %q", predicate.Check(s.Condition, r), predicate.Check(s.GroupCondition, r))
}

// ConditionalColumn returns the column if its values have a condition.
func (t *Table) ConditionalColumn(column string) (VisibleColumn, bool) {
	if t.Columns != nil {
		columns := t.Columns.Columns
		if t.Columns.ByKey != nil {
			columns = t.Columns.ByKey.AllColumns
		}
		for _, s := range columns {
			if s.Name == column && s.Condition != nil {
				return s, true
			}
		}
	}
	return VisibleColumn{}, false
}

// ColumnConditions are those on the values of columns.
func (t *Table) ColumnConditions() []predicate.Node {
	if t.Columns == nil {
		return nil
	}
	columns := t.Columns.Columns
	if t.Columns.ByKey != nil {
		columns = t.Columns.ByKey.AllColumns
	}
	var out []predicate.Node
	for _, s := range columns {
		if s.Condition != nil {
			out = append(out, s.Condition, s.GroupCondition)
		}
	}
	return out
}

// Key is a key of a JSON object that comes out where its value is of the type.
type Key struct {
	Name string
	Type string // string, number or boolean, as json_typeof says
}

// Mask is what becomes of a column's values.
type Mask int

// The masks.
const (
	Plain    Mask = iota // as they are
	Null                 // NULL
	Hash                 // a keyed hash: equal values have equal ones, and guesses cannot be checked without the key
	Truncate             // a date or timestamp, down to the unit in UTC
	Prefix               // the first characters
	Step                 // a number, down to a multiple of the step
	Keys                 // of a JSON object some keys
)

// Plain tells whether the column of the table is shown as it is, so that a predicate may stand over the row view.
func (n *VisibleColumns) Plain(column string) bool {
	for _, c := range n.Columns {
		if c.Name == column {
			return c.Plain()
		}
	}
	return false
}

// HasPlainColumns tells whether agents see columns of a table as they are, whatever the statement.
func (t *Table) HasPlainColumns() bool {
	return t.Columns == nil || slices.ContainsFunc(t.Columns.Columns, VisibleColumn.Plain)
}

// Describe says in a few words how the values of a column come out; "": as they are.
func (c VisibleColumn) Describe() string {
	out := c.DescribeMask()
	if n, ok := c.Condition.(predicate.Registered); ok {
		if out != "" {
			out += ", "
		}
		out += "where the subject consents to " + strings.Join(n.Categories, " and ") + ", else null"
		if n.Days < predicate.Forever {
			out += fmt.Sprintf("; to day %d of a countdown", n.Days-1)
		}
	}
	return out
}

// DescribeMask says how a value is changed; "": it is not.
func (c VisibleColumn) DescribeMask() string {
	switch c.Mask {
	case Plain:
		return ""
	case Null:
		return "null"
	case Hash:
		return "a keyed hash"
	case Truncate:
		return "down to the " + c.Unit
	case Prefix:
		return fmt.Sprintf("its first %d characters", c.Amount)
	case Step:
		return fmt.Sprintf("down to a multiple of %d", c.Amount)
	case Keys:
		var names []string
		for _, k := range c.Keys {
			names = append(names, k.Name)
		}
		return "its keys " + strings.Join(names, ", ")
	default:
		return "masked"
	}
}
