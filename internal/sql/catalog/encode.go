package catalog

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// ErrOtherForm is the error of [Decode] for what another version of the program has encoded.
var ErrOtherForm = errors.New("the snapshot has the form of another version")

// encoded is what [Snapshot.Encode] writes.
type encoded struct {
	Form string // the form of Spec
	Spec Spec
}

// Encode returns a snapshot as bytes, from which [Decode] makes one that answers the same.
func (s *Snapshot) Encode() ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if err := json.NewEncoder(zip).Encode(encoded{form, s.spec}); err != nil {
		return nil, fmt.Errorf("encode the catalogs: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("encode the catalogs: %w", err)
	}
	return out.Bytes(), nil
}

// maxDecoded is the most that a snapshot may have, in bytes.
const maxDecoded = 1 << 30

// Decode makes a snapshot of what Encode returned. It returns [ErrOtherForm] where a version of the program encoded it
// whose snapshots have other fields.
func Decode(data []byte) (*Snapshot, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode the catalogs: %w", err)
	}
	in := json.NewDecoder(io.LimitReader(zip, maxDecoded))
	var e encoded
	if err := in.Decode(&e); err != nil {
		return nil, fmt.Errorf("decode the catalogs: %w", err)
	}
	if e.Form != form {
		return nil, ErrOtherForm
	}
	return NewSnapshot(e.Spec), nil
}

// form describes the fields of Spec and of all types in it. Decode compares it, so that it does not misread a snapshot
// that another version of pgconsent has encoded.
var form = func() string {
	var out strings.Builder
	seen := map[reflect.Type]bool{}
	var write func(t reflect.Type)
	write = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			if t.Kind() == reflect.Map {
				write(t.Key())
			}
			write(t.Elem())
		case reflect.Struct:
			if seen[t] {
				return
			}
			seen[t] = true
			fmt.Fprintf(&out, "%s{", t)
			for i := range t.NumField() {
				fmt.Fprintf(&out, "%s %s;", t.Field(i).Name, t.Field(i).Type)
			}
			out.WriteString("}")
			for i := range t.NumField() {
				write(t.Field(i).Type)
			}
		}
	}
	write(reflect.TypeFor[Spec]())
	return out.String()
}()
