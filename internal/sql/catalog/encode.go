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

// ErrOtherFormat is the error of [Decode] for a snapshot that another version of pgconsent has encoded in another
// format.
var ErrOtherFormat = errors.New("the snapshot has the form of another version")

// encodedSnapshot is the value that [Snapshot.Encode] writes.
type encodedSnapshot struct {
	Format string // a description of the fields of Spec
	Spec   Spec
}

// Encode returns a snapshot as bytes, from which [Decode] makes an equal snapshot.
func (s *Snapshot) Encode() ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("encode the catalogs: %w", err)
	}
	if err := json.NewEncoder(zip).Encode(encodedSnapshot{specFormat, s.spec}); err != nil {
		return nil, fmt.Errorf("encode the catalogs: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("encode the catalogs: %w", err)
	}
	return out.Bytes(), nil
}

// maxDecodedBytes is the largest size of an encoded snapshot, in bytes.
const maxDecodedBytes = 1 << 30

// Decode returns the snapshot that [Snapshot.Encode] has written as data. It returns [ErrOtherFormat] if a version of
// pgconsent wrote it whose snapshots have other fields.
func Decode(data []byte) (*Snapshot, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode the catalogs: %w", err)
	}
	decoder := json.NewDecoder(io.LimitReader(zip, maxDecodedBytes))
	var e encodedSnapshot
	if err := decoder.Decode(&e); err != nil {
		return nil, fmt.Errorf("decode the catalogs: %w", err)
	}
	if e.Format != specFormat {
		return nil, ErrOtherFormat
	}
	return NewSnapshot(e.Spec), nil
}

// specFormat describes the fields of Spec and of all types in it. Decode compares the descriptions, so that it does not
// misread a snapshot that another version of pgconsent has encoded.
var specFormat = func() string {
	var out strings.Builder
	seenTypes := map[reflect.Type]bool{}
	var writeType func(t reflect.Type)
	writeType = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			if t.Kind() == reflect.Map {
				writeType(t.Key())
			}
			writeType(t.Elem())
		case reflect.Struct:
			if seenTypes[t] {
				return
			}
			seenTypes[t] = true
			fmt.Fprintf(&out, "%s{", t)
			for i := range t.NumField() {
				fmt.Fprintf(&out, "%s %s;", t.Field(i).Name, t.Field(i).Type)
			}
			out.WriteString("}")
			for i := range t.NumField() {
				writeType(t.Field(i).Type)
			}
		}
	}
	writeType(reflect.TypeFor[Spec]())
	return out.String()
}()
