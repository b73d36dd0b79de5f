package sqltext

import (
	"reflect"

	"google.golang.org/protobuf/proto"
)

// EachMessage calls f for each message directly inside another message, in the order of the fields, with the name of
// the field that holds it. It handles every kind of message alike, so that it leaves out no part of the tree.
func EachMessage(m proto.Message, f func(field string, child proto.Message)) {
	if node, ok := m.(*Node); ok { // a Node has hundreds of fields, one of which is set
		if content := NodeContent(node); content != nil {
			f("node", content)
		}
		return
	}
	if reflect.ValueOf(m).IsNil() {
		return
	}
	fields, v := messageFieldsOf(m)
	for _, field := range fields.messages {
		switch fieldValue := v.Field(field.index); {
		case field.isList:
			for k := range fieldValue.Len() {
				f(field.name, fieldValue.Index(k).Interface().(proto.Message))
			}
		case fieldValue.IsNil():
		case field.name == "":
			if name, child := oneofMessage(fieldValue); child != nil {
				f(name, child)
			}
		default:
			f(field.name, fieldValue.Interface().(proto.Message))
		}
	}
}

// Walk calls enter for a message. If enter returns true, Walk continues with the messages inside it.
func Walk(m proto.Message, enter func(proto.Message) bool) {
	if enter(m) {
		EachMessage(m, func(_ string, child proto.Message) { Walk(child, enter) })
	}
}

// EachChild calls f for each Node inside a message that is not inside another of these Nodes. For a Node, these are the
// Nodes inside its content.
func EachChild(m proto.Message, f func(*Node)) {
	if node, ok := m.(*Node); ok {
		if m = NodeContent(node); m == nil {
			return
		}
	}
	EachMessage(m, func(_ string, child proto.Message) {
		if node, ok := child.(*Node); ok {
			f(node)
		} else {
			EachChild(child, f)
		}
	})
}

// ColumnRefs returns every ColumnRef of a tree.
func ColumnRefs(m proto.Message) []*ColumnRef {
	var out []*ColumnRef
	Walk(m, func(m proto.Message) bool {
		if c, ok := m.(*ColumnRef); ok {
			out = append(out, c)
		}
		return true
	})
	return out
}

// RangeVars returns every RangeVar of a tree, and the names of the tree's WITH queries.
func RangeVars(m proto.Message) (relations []*RangeVar, queries map[string]bool) {
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

// CountNodeKinds counts the messages of a tree by kind ("RangeVar", "FuncCall" …), without the Nodes that wrap them.
// The second result is false if the tree has a field that this version of the parser does not know.
func CountNodeKinds(m proto.Message) (map[string]int, bool) {
	counts, complete := map[string]int{}, true
	Walk(m, func(m proto.Message) bool {
		if fields, _ := messageFieldsOf(m); fields.kind != "Node" {
			counts[fields.kind]++
		}
		complete = complete && len(m.ProtoReflect().GetUnknown()) == 0
		return true
	})
	return counts, complete
}

// NodeContent returns the message that a Node wraps, or nil.
func NodeContent(n *Node) proto.Message {
	if n == nil || n.Node == nil {
		return nil
	}
	return reflect.ValueOf(n.Node).Elem().Field(0).Interface().(proto.Message)
}

// NodeKind returns the parser's name of a node's kind, such as "InsertStmt", or "Node" for an empty one.
func NodeKind(n *Node) string {
	content := NodeContent(n)
	if content == nil {
		return "Node"
	}
	fields, _ := messageFieldsOf(content)
	return fields.kind
}
