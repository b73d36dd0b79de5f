package policy

import (
	"fmt"
	"strings"
)

// Describe says in a few words how the values of a column come out; "": as they are.
func (c Shown) Describe() string {
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
