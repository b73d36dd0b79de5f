package operations

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// An id that is invalid for the column's type belongs to no row. The statement then asks for another id, which is valid
// for the type.
func TestImpossibleIDsAreNotFound(t *testing.T) {
	for typeName, ids := range map[string]map[string]bool{
		"text": {
			"abc": true, "Müller, 1. Gespräch": true, "'; DROP TABLE notes; --": true, strings.Repeat("x", 1024): true,
			"": false, "a\x00b": false, "\x00": false, "half a charact\xc3": false, "\xff": false, "two\nlines": false,
			"\x00\xff": false, strings.Repeat("x", 1025): false,
		},
		"character varying(9)": {"abc": true, "a\x00b": false, "\xff": false},
		"integer":              {"7": true, "-7": true, "0": true, "": false, "07": false, "+7": false, "7.0": false, "2147483648": false, "7\x00": false},
		"smallint":             {"32767": true, "32768": false},
		"bigint":               {"9223372036854775807": true, "9223372036854775808": false},
		"uuid": {"0198c0de-0000-4000-8000-00000000000a": true, "0198C0DE-0000-4000-8000-00000000000A": true,
			"0198c0de": false, "": false, "0198c0de-0000-4000-8000-00000000000\x00": false},
	} {
		for id, isPossible := range ids {
			key, isValid := keyValue(typeName, id)
			if isValid != isPossible {
				t.Errorf("%s %.30q: a row can have it: %t, want %t", typeName, id, isValid, isPossible)
			}
			text, isText := key.(string)
			if isText && (!utf8.ValidString(text) || strings.ContainsRune(text, 0)) || isPossible && isText && text != id {
				t.Errorf("%s %.30q: the database is asked for %.30q", typeName, id, text)
			}
		}
	}
}
