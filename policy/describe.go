package policy

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

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
