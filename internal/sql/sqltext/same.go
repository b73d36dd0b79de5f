package sqltext

import (
	"reflect"

	"google.golang.org/protobuf/proto"
)

// equalTrees tells whether two trees are equal, apart from locations and the nesting of ANDs. Trees with a field that
// this version of the parser does not know are never equal.
func equalTrees(a, b proto.Message) bool {
	fields, va := messageFieldsOf(a)
	if reflect.TypeOf(a) != reflect.TypeOf(b) || hasUnknownFields(a) || hasUnknownFields(b) {
		return false
	}
	if conjunction, ok := a.(*BoolExpr); ok && conjunction.Boolop == AND_EXPR {
		other := b.(*BoolExpr)
		return other.Boolop == AND_EXPR && equalNodeLists([]*Node{conjunction.Xpr}, []*Node{other.Xpr}) &&
			equalNodeLists(conjuncts(conjunction), conjuncts(other))
	}
	vb := reflect.ValueOf(b).Elem()
	for _, i := range fields.scalars {
		if !va.Field(i).Equal(vb.Field(i)) {
			return false
		}
	}
	for _, i := range fields.scalarLists {
		la, lb := va.Field(i), vb.Field(i)
		if la.Len() != lb.Len() {
			return false
		}
		for k := range la.Len() {
			if !la.Index(k).Equal(lb.Index(k)) {
				return false
			}
		}
	}
	for _, field := range fields.messages {
		if !equalFields(field, va.Field(field.index), vb.Field(field.index)) {
			return false
		}
	}
	return true
}

func equalFields(field messageField, a, b reflect.Value) bool {
	switch {
	case field.isList:
		if a.Len() != b.Len() {
			return false
		}
		for k := range a.Len() {
			if !equalPointers(a.Index(k), b.Index(k)) {
				return false
			}
		}
		return true
	case field.name != "":
		return equalPointers(a, b)
	case a.IsNil() || b.IsNil():
		return a.IsNil() && b.IsNil()
	}
	// The field holds one of several kinds of messages, each in a wrapper struct of its own.
	wa, wb := a.Elem(), b.Elem()
	if wa.Type() != wb.Type() {
		return false
	}
	ca, cb := wa.Elem().Field(0), wb.Elem().Field(0)
	if ca.Kind() == reflect.Pointer {
		return equalPointers(ca, cb)
	}
	return ca.Equal(cb)
}

func equalPointers(a, b reflect.Value) bool {
	if a.IsNil() || b.IsNil() {
		return a.IsNil() && b.IsNil()
	}
	return equalTrees(a.Interface().(proto.Message), b.Interface().(proto.Message))
}

func hasUnknownFields(m proto.Message) bool { return len(m.ProtoReflect().GetUnknown()) > 0 }

// conjuncts returns the conditions that an AND joins, including those of the ANDs inside it.
func conjuncts(and *BoolExpr) []*Node {
	var out []*Node
	for _, n := range and.Args {
		if isAnd(n) && !hasUnknownFields(n) && !hasUnknownFields(n.GetBoolExpr()) && n.GetBoolExpr().Xpr == nil {
			out = append(out, conjuncts(n.GetBoolExpr())...)
		} else {
			out = append(out, n)
		}
	}
	return out
}

func isAnd(n *Node) bool { return n.GetBoolExpr().GetBoolop() == AND_EXPR && n.GetBoolExpr() != nil }

func equalNodeLists(a, b []*Node) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] == nil || b[i] == nil {
			if a[i] != b[i] {
				return false
			}
		} else if !equalTrees(a[i], b[i]) {
			return false
		}
	}
	return true
}
