package audit

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgconsent/pgconsent/test/property"
)

// oddTexts are texts that an encoder may write differently from encoding/json.
var oddTexts = []string{
	"", "a", `"`, `\`, "<b>&amp;</b>", "\x00\x01\b\f\n\r\t\x1f\x20\x7f\u0080", "\u2028\u2029\u202a", "é日本𝄞",
	"\xff", "a\xc3", "\xe2\x80", "\xed\xa0\x80", "\ufffd", "\xf4\x90\x80\x80",
	strings.Repeat("x", 300), "ref:" + strings.Repeat("0", 36), "0",
}

// texts generates texts from bytes, runes and odd texts.
func texts() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(oddTexts),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom(oddTexts), 0, 4), func(s []string) string { return strings.Join(s, "") }),
	)
}

// setRandomFields gives every field of a record a random value by its type, so that new fields are covered as well.
func setRandomFields(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts().Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int64:
		v.SetInt(rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, math.MaxInt64, math.MinInt64})).Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Struct:
		for i := range v.NumField() {
			setRandomFields(t, v.Field(i))
		}
	case reflect.Slice:
		n := rapid.IntRange(-1, 3).Draw(t, "elements") // -1: nil
		if n < 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			setRandomFields(t, v.Index(i))
		}
	case reflect.Map:
		n := rapid.IntRange(-1, 12).Draw(t, "members")
		if n < 0 {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range n {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			setRandomFields(t, key)
			setRandomFields(t, value)
			v.SetMapIndex(key, value)
		}
	case reflect.Pointer: // a decision's Encoding, which the record does not show
	default:
		t.Fatalf("a record has a member of kind %s, which this test cannot draw", v.Kind())
	}
}

// This package's encoder writes the same JSON as encoding/json, so records of older and newer versions have the same
// form.
func TestEncodesAsJSON(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		var d Decision
		setRandomFields(t, reflect.ValueOf(&d).Elem())
		same(t, d, string(d.appendMembers([]byte("{")))+"}")

		d.Encoding = &StatementEncoding{}
		for range 3 { // The second decision of a statement keeps what the third one uses.
			same(t, d, string(d.appendMembers([]byte("{")))+"}")
		}

		var o Outcome
		setRandomFields(t, reflect.ValueOf(&o).Elem())
		ownJSON := string(o.appendMembers(appendMember(fmt.Appendf(nil, `{"decision":%d`, o.Decision), `,"session":`,
			o.Session))) + "}"
		same(t, o, ownJSON)
	})
}

// A decision that differs from earlier ones about its statement in one member is encoded anew.
func TestKeptEncodingIsOfEqualMembers(t *testing.T) {
	columns, values := []string{"id", "title"}, []string{"pg_catalog.lower"}
	d := Decision{Session: "s", Protocol: "simple", Tag: "SELECT", Fingerprint: "f", Functions: values, Verdict: "allow",
		Path: "rls", Policy: "p", Catalog: "c", Encoding: &StatementEncoding{},
		Tables:    []Table{{Name: "public.memories", Columns: columns, DataSource: "structured"}},
		Contracts: []Contract{{Name: "retrieval", Attribute: "stage", Value: "2", Verdict: "allow"}}}
	check := func(name string) {
		t.Helper()
		want, err := json.Marshal(d)
		if got := string(d.appendMembers([]byte("{"))) + "}"; err != nil || got != string(want) {
			t.Errorf("%s: encoded as\n%s\nand by encoding/json\n%s, %v", name, got, want, err)
		}
	}
	for range 3 {
		check("equal decisions")
	}
	if d.Encoding.kept.Load() == nil {
		t.Fatal("nothing is kept")
	}
	var change func(name string, v reflect.Value)
	change = func(name string, v reflect.Value) {
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		switch v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.Slice: // an element less, one more, and, in place, another one
			v.Set(v.Slice(0, v.Len()-1))
			check(name + " without an element")
			v.Set(reflect.Append(old, old.Index(0)))
			check(name + " with a further element")
			v.Set(old)
			for i := range v.Len() {
				change(name, v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				change(name+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]string{"user": "u"}))
		case reflect.Pointer:
			return
		default:
			t.Fatalf("%s is of kind %s, which this test cannot change", name, v.Kind())
		}
		check(name)
		v.Set(old)
	}
	change("Decision", reflect.ValueOf(&d).Elem())
	check("equal decisions again")
}

// Each odd text and each single character, before and after another text, is encoded as encoding/json encodes it.
func TestEncodesTextAsJSON(t *testing.T) {
	checkText := func(s string) {
		t.Helper()
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendString(nil, s); string(got) != string(want) {
			t.Fatalf("%q is %s, not %s", s, got, want)
		}
	}
	for _, s := range oddTexts {
		for _, oddText := range oddTexts {
			checkText(s + oddText)
		}
	}
	for c := range 256 {
		checkText(string([]byte{byte(c)}))
		checkText(string([]byte{'a', byte(c), 'b'}))
	}
	for r := rune(0); r < 0x10ffff; r += 1 + r/0x3000*7 {
		checkText(string(r))
	}
}

func same(t *rapid.T, record any, got string) {
	want, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Fatalf("encoded as\n%s\nand by encoding/json\n%s", got, want)
	}
}

// A byte that needs an escape is found at each of eight positions, whatever the bytes around it are.
func TestIsPlainFindsEveryEscape(t *testing.T) {
	for _, around := range []byte{' ', '!', '#', '%', '\'', ';', '=', '?', '[', ']', 'a', '~', 0x7f} {
		for position := range 8 {
			for c := range 256 {
				text := []byte(strings.Repeat(string(rune(around)), 8))
				text[position] = byte(c)
				needsNone := c < len(plainBytes) && plainBytes[c]
				if isPlain(string(text)) != needsNone {
					t.Errorf("isPlain(%q) is %v", text, !needsNone)
				}
			}
		}
	}
}

// The time of a line is as [time.Time.Format] writes it, also where the text of the second before is kept.
func TestTimesOfLines(t *testing.T) {
	var w lineWriter
	at := time.Date(2026, 2, 28, 23, 59, 58, 0, time.FixedZone("", 3600))
	for _, step := range []time.Duration{0, 999, time.Microsecond, 999_998 * time.Microsecond, time.Microsecond, -time.Microsecond,
		time.Second, 90 * time.Second, -time.Hour, 30 * 24 * time.Hour, 10*time.Microsecond + 1, -100 * 365 * 24 * time.Hour} {
		at = at.Add(step)
		if got, want := string(w.appendTime(nil, at)), at.UTC().Format("2006-01-02T15:04:05.000000Z"); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// A buffer that is much larger than what is written into it is freed, and one that a busy log fills is used again.
func TestBuffersAreFreedWhenTheyAreNotNeeded(t *testing.T) {
	for _, c := range []struct {
		length, capacity int
		isReused         bool
	}{
		{0, smallBuffer, true}, {100, smallBuffer, true}, {100, smallBuffer + 1, false}, {1 << 20, 4 << 20, true},
		{1 << 20, 5 << 20, false}, {maxReusedBuffer, maxReusedBuffer, true}, {maxReusedBuffer, maxReusedBuffer + 1, false},
	} {
		if got := reusableBuffer(make([]byte, c.length, c.capacity)) != nil; got != c.isReused {
			t.Errorf("%d bytes in a buffer of %d: used again: %v", c.length, c.capacity, got)
		}
	}
}
