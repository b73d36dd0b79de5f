package sqltext

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

// RelationsOrderedBy returns the relations in FROM whose rows may be sorted by one of the operators. The result is nil
// if the tree has none of the operators. Subqueries in expressions without these operators are left out.
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
		// The tree does not tell a column from an operator of the same name, so any such string counts as the operator.
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
