// Package strictjson refuses JSON that two parsers could read differently, and JSON that is made to exhaust a parser.
//
// Guarantee: data that passes [Check] is one JSON value of RFC 8259 in UTF-8, nested no deeper than the given depth. No
// object has the same name twice, even if one is written with escapes, and no surrogate is unpaired. The caller has to
// limit the size of the data before.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MaxDepth is how deeply the JSON of a request may be nested.
const MaxDepth = 32

// Check returns an error that says what is wrong with data, and nil if nothing is. The error quotes nothing of data.
func Check(data []byte, depth int) error {
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	if !json.Valid(data) {
		return errors.New("it is not one JSON value")
	}
	if hasHalfPair(data) {
		return errors.New("it has half of a surrogate pair")
	}
	return checkNames(data, depth)
}

// checkNames checks that no object has a name twice and that the value is not nested deeper than depth.
func checkNames(data []byte, depth int) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	type openLevel struct {
		seenNames  map[string]bool // names of the object so far; nil: the level is an array
		nameIsNext bool            // the next token is the name of a member
	}
	var openLevels []openLevel
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("it is not one JSON value")
		}
		top := len(openLevels) - 1
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{', '[':
				if top >= 0 {
					openLevels[top].nameIsNext = openLevels[top].seenNames != nil
				}
				if len(openLevels) == depth {
					return fmt.Errorf("it is nested deeper than %d levels", depth)
				}
				l := openLevel{}
				if t == '{' {
					l = openLevel{map[string]bool{}, true}
				}
				openLevels = append(openLevels, l)
			default:
				openLevels = openLevels[:top]
			}
		case string:
			if top >= 0 && openLevels[top].nameIsNext {
				if openLevels[top].seenNames[t] {
					return errors.New("an object has the same name twice")
				}
				openLevels[top].seenNames[t], openLevels[top].nameIsNext = true, false
				continue
			}
			if top >= 0 {
				openLevels[top].nameIsNext = openLevels[top].seenNames != nil
			}
		default:
			if top >= 0 {
				openLevels[top].nameIsNext = openLevels[top].seenNames != nil
			}
		}
	}
}

// hasHalfPair reports whether valid JSON has an escape from \uD800 to \uDFFF without the other half of its surrogate
// pair. Go would read such an escape as U+FFFD.
func hasHalfPair(data []byte) bool {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++
		if data[i] != 'u' {
			continue
		}
		switch r := parseHex(data[i+1 : i+5]); {
		case r >= 0xDC00 && r <= 0xDFFF:
			return true
		case r >= 0xD800 && r <= 0xDBFF:
			if i+10 >= len(data) || data[i+5] != '\\' || data[i+6] != 'u' {
				return true
			}
			if low := parseHex(data[i+7 : i+11]); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 6
		}
		i += 4
	}
	return false
}

func parseHex(digits []byte) (r rune) {
	for _, c := range digits {
		r <<= 4
		switch {
		case c <= '9':
			r |= rune(c - '0')
		case c <= 'F':
			r |= rune(c - 'A' + 10)
		default:
			r |= rune(c - 'a' + 10)
		}
	}
	return r
}
