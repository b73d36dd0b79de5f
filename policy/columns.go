package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// VisibleColumns are the columns of a table that exist for agents, in the table's order. All other columns do not exist
// for agents, nor do columns that are added to the table later.
type VisibleColumns struct {
	Columns []VisibleColumn
	ByKey   *ByKey // the columns that exist only in statements that name a whole key; nil: there are none
}

// VisibleColumn is a column that exists for agents.
type VisibleColumn struct {
	Name string
	Type string // the type of the column, or for a domain its base type
	Mask Mask

	Unit   string // the unit of the mask Truncate: year, month or day
	Amount int    // the number of characters for the mask Prefix, or the size of a step for the mask Step
	Keys   []Key  // the keys that the mask Keys leaves, sorted by name

	Condition predicate.Node // a condition on the row; where it does not hold, agents see NULL; nil: no condition
	// a further condition for rows that agents see in groups only; if it does not hold, groups use NULL
	GroupCondition predicate.Node
}

// IsPlain tells whether agents see the values unchanged, in every row.
func (s VisibleColumn) IsPlain() bool { return s.Mask == Plain && s.Condition == nil }

// describeConditions returns a text with the conditions on a column's values, for the hash of the policy.
func (s VisibleColumn) describeConditions(r *catalog.Relation) string {
	if s.Condition == nil {
		return ""
	}
	return fmt.Sprintf(" %q %q", predicate.CheckSQL(s.Condition, r), predicate.CheckSQL(s.GroupCondition, r))
}

// ConditionalColumn returns the named column if agents see its values only under a condition.
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

// ColumnConditions returns the conditions under which agents see values of columns.
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

// Key is a key of a JSON object. Agents see it only if its value has the type that is named here.
type Key struct {
	Name string
	// "string", "number", "boolean" or "object", as json_typeof names them; with [] after it, a list of such values
	Type string
	Keys []Key // the keys of an object that agents see
}

// IsScalar tells whether the key's value is neither a list nor an object.
func (k Key) IsScalar() bool { return k.Keys == nil && !strings.HasSuffix(k.Type, "[]") }

// ItemType returns the type of a list's items; ok is false if the key's value is not a list.
func (k Key) ItemType() (element string, ok bool) { return strings.CutSuffix(k.Type, "[]") }

// Mask says how a column's values are changed before agents see them.
type Mask int

// The masks of a column.
const (
	Plain    Mask = iota // the value unchanged
	Null                 // NULL in place of the value
	Hash                 // a keyed hash: equal values have equal hashes, and only who has the key can test a guess
	Truncate             // a date or timestamp, truncated to the unit in UTC
	Prefix               // the first characters of a text
	Step                 // a number, rounded down to a multiple of the step
	Keys                 // some keys of a JSON object
)

// IsPlain tells whether agents see a column unchanged. A condition on such a column has the same result over
// pgconsent's view of the rows as over the table.
func (n *VisibleColumns) IsPlain(column string) bool {
	for _, c := range n.Columns {
		if c.Name == column {
			return c.IsPlain()
		}
	}
	return false
}

// HasPlainColumns tells whether agents see at least one column of the table unchanged in every statement.
func (t *Table) HasPlainColumns() bool {
	return t.Columns == nil || slices.ContainsFunc(t.Columns.Columns, VisibleColumn.IsPlain)
}

// Describe says in a few words how agents see the values of a column; "": unchanged.
func (c VisibleColumn) Describe() string {
	out := c.DescribeMask()
	if n, ok := c.Condition.(predicate.RegistryConsent); ok {
		if out != "" {
			out += ", "
		}
		out += "where the subject consents to " + strings.Join(n.Categories, " and ") + ", else null"
		if n.DecayDays < predicate.NeverDecays {
			out += fmt.Sprintf("; to day %d of a countdown", n.DecayDays-1)
		}
	}
	return out
}

// DescribeMask says in a few words how the mask changes a value; "": the mask does not change it.
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
