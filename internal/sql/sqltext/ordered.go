package sqltext

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

// Ordered finds the relations in FROM whose order the result of one of the operators may decide, in a tree that has one.
// Sub-selects in expressions that have none of the operators are left out.
func Ordered(m proto.Message, operators []string) map[*RangeVar]bool {
	found, has := ordered(m, operators, false)
	if !has {
		return nil
	}
	out := map[*RangeVar]bool{}
	for _, r := range found {
		out[r] = true
	}
	return out
}

func ordered(m proto.Message, operators []string, inFrom bool) (found []*RangeVar, has bool) {
	inner := false
	switch n := m.(type) {
	case *RangeVar:
		if inFrom {
			return []*RangeVar{n}, false
		}
	case *Node, *JoinExpr:
		inner = inFrom
	case *String:
		// A name that reads like an operator cannot be told from one here, and is taken for one.
		has = slices.Contains(operators, n.Sval)
	}
	_, isSelect := m.(*SelectStmt)
	Messages(m, func(field string, child proto.Message) {
		below, belowHas := ordered(child, operators, inner || isSelect && field == "from_clause")
		found, has = append(found, below...), has || belowHas
	})
	if _, isSublink := m.(*SubLink); isSublink && !has {
		return nil, false
	}
	return found, has
}
