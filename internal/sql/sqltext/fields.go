package sqltext

import (
	"reflect"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
)

// messageFields lists the fields of a kind of protobuf message, found in its Go struct. Reading messages by these
// fields takes a tenth of the time of protobuf's own reflection. A field of an unknown type panics at the first message
// of its kind, so that no part of a tree is left out.
type messageFields struct {
	kind     string // the parser's name of the kind, such as "RangeVar"
	messages []messageField

	// the indexes of the other fields: those with a value, and those with a list of values
	scalars, scalarLists []int
}

// messageField is a field that holds other messages.
type messageField struct {
	index int
	// the name in the grammar's .proto file, such as "target_list"; "": the field holds one of several kinds of messages
	name   string
	isList bool
}

var fieldsByType sync.Map // a *messageFields for each struct type

// messageFieldsOf returns the fields of a message's kind, and the message's struct value.
func messageFieldsOf(m proto.Message) (*messageFields, reflect.Value) {
	v := reflect.ValueOf(m).Elem()
	t := v.Type()
	if f, ok := fieldsByType.Load(t); ok {
		return f.(*messageFields), v
	}
	f := readFields(t)
	fieldsByType.Store(t, f)
	return f, v
}

var messageType = reflect.TypeFor[proto.Message]()

func readFields(t reflect.Type) *messageFields {
	f := &messageFields{kind: t.Name()}
	for i := range t.NumField() {
		field := t.Field(i)
		name := protobufName(field)
		switch fieldType := field.Type; {
		case !field.IsExported(): // a field of the protobuf library
		case fieldType.Kind() == reflect.Interface:
			f.messages = append(f.messages, messageField{index: i})
		case fieldType.Implements(messageType):
			f.messages = append(f.messages, messageField{index: i, name: name})
		case fieldType.Kind() == reflect.Slice && fieldType.Elem().Implements(messageType):
			f.messages = append(f.messages, messageField{index: i, name: name, isList: true})
		case fieldType.Kind() == reflect.Int32 && (name == "location" || name == "stmt_location" || name == "stmt_len"):
			// The location and length of a node in the text do not matter.
		case isScalar(fieldType):
			f.scalars = append(f.scalars, i)
		case fieldType.Kind() == reflect.Slice && isScalar(fieldType.Elem()):
			f.scalarLists = append(f.scalarLists, i)
		default:
			panic("sqltext: a field of a type that is not known: " + t.Name() + "." + field.Name)
		}
	}
	return f
}

func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32, reflect.Uint64, reflect.Float64, reflect.String:
		return true
	}
	return false
}

// protobufName returns the name that a struct field has in the .proto file.
func protobufName(field reflect.StructField) string {
	for part := range strings.SplitSeq(field.Tag.Get("protobuf"), ",") {
		if name, ok := strings.CutPrefix(part, "name="); ok {
			return name
		}
	}
	return ""
}

// oneofMessage returns the message in a field that holds one of several kinds, and its field name. The message is nil
// if the field is empty, or holds no message.
func oneofMessage(v reflect.Value) (string, proto.Message) {
	if v.IsNil() {
		return "", nil
	}
	wrapper := v.Elem().Elem()
	m, ok := wrapper.Field(0).Interface().(proto.Message)
	if !ok {
		return "", nil
	}
	return protobufName(wrapper.Type().Field(0)), m
}
