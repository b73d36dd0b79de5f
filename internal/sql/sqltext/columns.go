package sqltext

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Columns finds every reference to a column in a tree.
func Columns(m proto.Message) []*ColumnRef {
	var out []*ColumnRef
	var visit func(m protoreflect.Message)
	visit = func(m protoreflect.Message) {
		if c, ok := m.Interface().(*ColumnRef); ok {
			out = append(out, c)
		}
		m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			switch {
			case f.Message() == nil || f.IsMap():
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
	return out
}
