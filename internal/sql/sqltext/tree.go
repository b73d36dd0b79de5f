package sqltext

import "google.golang.org/protobuf/proto"

// Messages calls f for each message directly inside another, in the order of the fields, with the name of the field that
// holds it. It knows nothing of the grammar, so it passes over no part of it.
func Messages(m proto.Message, f func(field string, child proto.Message)) {
	if n, is := m.(*Node); is { // which has hundreds of fields, of which one is set
		if content := Content(n); content != nil {
			f("node", content)
		}
		return
	}
	r := m.ProtoReflect()
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		switch {
		case field.Message() == nil || field.IsMap() || !r.Has(field):
		case field.IsList():
			list := r.Get(field).List()
			for k := range list.Len() {
				f(string(field.Name()), list.Get(k).Message().Interface())
			}
		default:
			f(string(field.Name()), r.Get(field).Message().Interface())
		}
	}
}

// Walk calls enter for a message and for the messages inside those for which enter returns true.
func Walk(m proto.Message, enter func(proto.Message) bool) {
	if enter(m) {
		Messages(m, func(_ string, child proto.Message) { Walk(child, enter) })
	}
}

// Children calls f for each Node inside a message that is in no other Node inside it. A Node itself has those of its
// content.
func Children(m proto.Message, f func(*Node)) {
	if n, is := m.(*Node); is {
		if m = Content(n); m == nil {
			return
		}
	}
	Messages(m, func(_ string, child proto.Message) {
		if n, is := child.(*Node); is {
			f(n)
		} else {
			Children(child, f)
		}
	})
}

// Columns finds every reference to a column in a tree.
func Columns(m proto.Message) []*ColumnRef {
	var out []*ColumnRef
	Walk(m, func(m proto.Message) bool {
		if c, is := m.(*ColumnRef); is {
			out = append(out, c)
		}
		return true
	})
	return out
}

// Relations returns every RangeVar of a tree, and the names of its WITH queries.
func Relations(m proto.Message) (relations []*RangeVar, queries map[string]bool) {
	queries = map[string]bool{}
	Walk(m, func(m proto.Message) bool {
		switch n := m.(type) {
		case *RangeVar:
			relations = append(relations, n)
		case *CommonTableExpr:
			queries[n.Ctename] = true
		}
		return true
	})
	return relations, queries
}

// Count counts the messages of a tree by kind ("RangeVar", "FuncCall" …), without the Nodes around them. The second
// result is false if the tree has a field that this version of the parser does not know.
func Count(m proto.Message) (map[string]int, bool) {
	counts, known := map[string]int{}, true
	Walk(m, func(m proto.Message) bool {
		r := m.ProtoReflect()
		if name := string(r.Descriptor().Name()); name != "Node" {
			counts[name]++
		}
		known = known && len(r.GetUnknown()) == 0
		return true
	})
	return counts, known
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
