package sqltext

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// PostgreSQL makes of x BETWEEN a AND b, and of x IN (a, b), comparisons of which each has a copy of x
// (transformAExprBetween and transformAExprIn of its parse_expr.c). In x there may be another: 1 KB of text has taken
// the server's memory at half a gigabyte a second, and no timeout stops that.

// maxExpanded is how many nodes a text may come to, copies counted.
const maxExpanded = 2_000_000

// copied tells whether a text has several of what copies.
func (s *Source) copied() bool {
	n := 0
	for _, t := range s.Tokens {
		if t.Kind == kwIn || t.Kind == kwBetween {
			n++
		}
	}
	return n > 1
}

// expanded is about how many nodes PostgreSQL makes of a tree.
func expanded(m proto.Message) float64 { return expand(m.ProtoReflect()) }

func expand(m protoreflect.Message) float64 {
	copies := 1.0
	if x, is := m.Interface().(*A_Expr); is {
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
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			list := v.List()
			for i := range list.Len() {
				total += expand(list.Get(i).Message())
			}
		case f.Name() == "lexpr" || copies == 4: // of the symmetric form the bounds are copied too
			total += copies * expand(v.Message())
		default:
			total += expand(v.Message())
		}
		return true
	})
	return total
}
