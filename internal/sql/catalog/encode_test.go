package catalog

import (
	"reflect"
	"testing"
)

// JSON leaves out unexported fields, and cannot decode a value into an interface. So Spec and its parts have neither.
func TestEverythingIsEncoded(t *testing.T) {
	seenTypes := map[reflect.Type]bool{}
	var inspect func(reflect.Type)
	inspect = func(u reflect.Type) {
		if seenTypes[u] {
			return
		}
		seenTypes[u] = true
		switch u.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			inspect(u.Elem())
		case reflect.Map:
			inspect(u.Key())
			inspect(u.Elem())
		case reflect.Struct:
			for i := range u.NumField() {
				f := u.Field(i)
				if !f.IsExported() || f.Tag.Get("json") == "-" {
					t.Errorf("%s.%s is not encoded", u, f.Name)
				}
				inspect(f.Type)
			}
		case reflect.Interface, reflect.Func, reflect.Chan, reflect.Float32, reflect.Float64:
			t.Errorf("%s may not be encoded exactly", u)
		}
	}
	inspect(reflect.TypeFor[Spec]())
	if len(seenTypes) < 10 {
		t.Errorf("only %d types", len(seenTypes))
	}
}

func TestOtherFormsAreRefused(t *testing.T) {
	snap := NewSnapshot(Spec{Database: "app", Relations: []*Relation{{Name: Name{"public", "people"}}}})
	data, err := snap.Encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(data)
	if err != nil || decoded.Version() != snap.Version() {
		t.Errorf("%v, %v", decoded, err)
	}
	before := specFormat
	specFormat += " Next string;"
	defer func() { specFormat = before }()
	if _, err := Decode(data); err != ErrOtherFormat {
		t.Errorf("another form: %v", err)
	}
	if _, err := Decode(data[:len(data)-9]); err == nil {
		t.Error("half of it is decoded")
	}
}
