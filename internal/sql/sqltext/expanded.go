package sqltext

import "google.golang.org/protobuf/proto"

// PostgreSQL makes of x BETWEEN a AND b, and of x IN (a, b), comparisons of which each has a copy of x
// (transformAExprBetween and transformAExprIn of its parse_expr.c). x may hold another of them: A text of 1 KB has
// taken the server's memory at half a gigabyte a second, and no timeout stops that.

// maxExpandedNodes is how many nodes a tree may have, with each copy counted.
const maxExpandedNodes = 2_000_000

// mayNestCopies tells whether IN or BETWEEN occurs twice in a text, so that one may be inside the other.
func (s *Source) mayNestCopies() bool {
	n := 0
	for _, t := range s.Tokens {
		if t.Kind == kwIn || t.Kind == kwBetween {
			n++
		}
	}
	return n > 1
}

// expandedNodes estimates how many nodes PostgreSQL makes of a tree.
func expandedNodes(m proto.Message) float64 {
	copies := 1.0
	if x, ok := m.(*A_Expr); ok {
		switch x.Kind {
		case AEXPR_IN:
			for _, item := range x.Rexpr.GetList().GetItems() { // constants become one array
				if item.GetAConst() == nil && item.GetParamRef() == nil {
					copies++
				}
			}
		case AEXPR_BETWEEN, AEXPR_NOT_BETWEEN:
			copies = 2
		case AEXPR_BETWEEN_SYM, AEXPR_NOT_BETWEEN_SYM:
			copies = 4
		}
	}
	total := 1.0
	EachMessage(m, func(field string, child proto.Message) {
		if field == "lexpr" || copies == 4 { // the symmetric form copies its bounds as well
			total += copies * expandedNodes(child)
		} else {
			total += expandedNodes(child)
		}
	})
	return total
}
