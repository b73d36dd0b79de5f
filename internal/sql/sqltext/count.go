package sqltext

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Count counts the messages of a tree by kind ("RangeVar", "FuncCall" …), Node wrappers left out, by a walk that knows
// nothing of the grammar. The second result is false if the tree has a field this version of the parser does not know.
func Count(m proto.Message) (map[string]int, bool) {
	counts := map[string]int{}
	ok := count(m.ProtoReflect(), counts)
	return counts, ok
}

func count(m protoreflect.Message, counts map[string]int) bool {
	if name := string(m.Descriptor().Name()); name != "Node" {
		counts[name]++
	}
	ok := len(m.GetUnknown()) == 0
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			list := v.List()
			for i := range list.Len() {
				ok = count(list.Get(i).Message(), counts) && ok
			}
		default:
			ok = count(v.Message(), counts) && ok
		}
		return true
	})
	return ok
}

// Content returns the message in a Node, or nil.
func Content(n *Node) proto.Message {
	m := n.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if field == nil {
		return nil
	}
	return m.Get(field).Message().Interface()
}

// Kind returns the parser's name of a node's kind, such as "InsertStmt", or "Node" for an empty one.
func Kind(n *Node) string {
	content := Content(n)
	if content == nil {
		return "Node"
	}
	return string(content.ProtoReflect().Descriptor().Name())
}
