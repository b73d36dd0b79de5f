package sqltext

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Relations returns every RangeVar of a tree, and the names of its WITH queries, by a walk that knows nothing of the
// grammar.
func Relations(m proto.Message) (relations []*RangeVar, queries map[string]bool) {
	queries = map[string]bool{}
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		switch n := m.Interface().(type) {
		case *RangeVar:
			relations = append(relations, n)
		case *CommonTableExpr:
			queries[n.Ctename] = true
		}
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			switch {
			case f.Message() == nil:
			case f.IsList():
				for i := range v.List().Len() {
					visit(v.List().Get(i).Message())
				}
			default:
				visit(v.Message())
			}
			return true
		})
	}
	visit(m.ProtoReflect())
	return relations, queries
}
