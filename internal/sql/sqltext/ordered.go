package sqltext

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Ordered finds the relations in FROM that an operator's results may decide the order of: all of a tree that has one of
// the operators, but those of sub-selects in expressions that have none of them, by a walk that knows little of the
// grammar.
func Ordered(m proto.Message, operators []string) map[*RangeVar]bool {
	found, has := ordered(m.ProtoReflect(), operators, false)
	if !has {
		return nil
	}
	out := map[*RangeVar]bool{}
	for _, r := range found {
		out[r] = true
	}
	return out
}

func ordered(m protoreflect.Message, operators []string, from bool) (found []*RangeVar, has bool) {
	var selects, sublink bool
	switch n := m.Interface().(type) {
	case *RangeVar:
		if from {
			return []*RangeVar{n}, false
		}
	case *SelectStmt:
		selects = true
	case *SubLink:
		sublink = true
	case *String:
		// A name that reads like an operator cannot be told from one here, and is taken for one.
		has = slices.Contains(operators, n.Sval)
	}
	inner := from && (m.Descriptor().Name() == "Node" || m.Descriptor().Name() == "JoinExpr")
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Message() == nil || f.IsMap() {
			return true
		}
		visit := func(child protoreflect.Message) {
			below, too := ordered(child, operators, inner || selects && f.Name() == "from_clause")
			found, has = append(found, below...), has || too
		}
		if !f.IsList() {
			visit(v.Message())
			return true
		}
		for i := range v.List().Len() {
			visit(v.List().Get(i).Message())
		}
		return true
	})
	if sublink && !has {
		return nil, false
	}
	return found, has
}
