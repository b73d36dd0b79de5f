package sqltext

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

// RelationsOrderedBy returns the relations in FROM whose order may depend on one of the operators, or nil if the tree
// has none. Subqueries in expressions without these operators are left out.
func RelationsOrderedBy(m proto.Message, operators []string) map[*RangeVar]bool {
	relations, hasRelation := relationsOrderedBy(m, operators, false)
	if !hasRelation {
		return nil
	}
	out := map[*RangeVar]bool{}
	for _, r := range relations {
		out[r] = true
	}
	return out
}

func relationsOrderedBy(m proto.Message, operators []string, inFrom bool) (relations []*RangeVar, hasOperator bool) {
	childInFrom := false
	switch n := m.(type) {
	case *RangeVar:
		if inFrom {
			return []*RangeVar{n}, false
		}
	case *Node, *JoinExpr:
		childInFrom = inFrom
	case *String:
		// A name that reads like an operator cannot be told from one here, and is taken for one.
		hasOperator = slices.Contains(operators, n.Sval)
	}
	_, isSelect := m.(*SelectStmt)
	EachMessage(m, func(field string, child proto.Message) {
		childRelations, childHas := relationsOrderedBy(child, operators, childInFrom || isSelect && field == "from_clause")
		relations, hasOperator = append(relations, childRelations...), hasOperator || childHas
	})
	if _, isSublink := m.(*SubLink); isSublink && !hasOperator {
		return nil, false
	}
	return relations, hasOperator
}
