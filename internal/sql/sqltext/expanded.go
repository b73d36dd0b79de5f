package sqltext

import "google.golang.org/protobuf/proto"

// PostgreSQL converts x BETWEEN a AND b, and x IN (a, b), to several comparisons, each with a copy of x
// (transformAExprBetween and transformAExprIn, parse_expr.c). If x contains further BETWEEN or IN, the copies multiply.
// For a text of 1 KB, the server has allocated half a gigabyte a second, and no timeout stops it.

// maxExpandedNodes is the largest number of nodes that a tree may have when each copy is counted.
const maxExpandedNodes = 2_000_000

// mayNestCopies tells whether a text contains IN or BETWEEN at least twice, so that one may be inside the other.
func (s *Source) mayNestCopies() bool {
	n := 0
	for _, t := range s.Tokens {
		if t.Kind == kwIn || t.Kind == kwBetween {
			n++
		}
	}
	return n > 1
}

// expandedNodes estimates how many nodes PostgreSQL makes from a tree, copies included.
func expandedNodes(m proto.Message) float64 {
	copies := 1.0
	if x, ok := m.(*A_Expr); ok {
		switch x.Kind {
		case AEXPR_IN:
			for _, item := range x.Rexpr.GetList().GetItems() { // PostgreSQL makes one array of all constants
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
		if field == "lexpr" || copies == 4 { // BETWEEN SYMMETRIC copies its bounds as well
			total += copies * expandedNodes(child)
		} else {
			total += expandedNodes(child)
		}
	})
	return total
}
