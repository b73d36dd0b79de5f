// Package strictjson refuses JSON that two parsers could understand differently, or that is made to exhaust one.
//
// Guarantee: data that passes [Check] is one value of RFC 8259 in UTF-8, nested no deeper than asked; no object has a
// name twice (also not in different escapes), and no surrogate is unpaired. Limit the size before.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Depth is the nesting limit of requests.
const Depth = 32

// Check returns what is wrong with data; nil: nothing. The errors quote nothing of it.
func Check(data []byte, depth int) error {
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	if !json.Valid(data) {
		return errors.New("it is not one JSON value")
	}
	if halfPair(data) {
		return errors.New("it has half of a surrogate pair")
	}
	return names(data, depth)
}

// names walks the tokens. It keeps the names of each open object, and nil for an open array.
func names(data []byte, depth int) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	type level struct {
		seen map[string]bool // nil: an array
		name bool            // a name is next
	}
	var open []level
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("it is not one JSON value")
		}
		top := len(open) - 1
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{', '[':
				if top >= 0 {
					open[top].name = open[top].seen != nil
				}
				if len(open) == depth {
					return fmt.Errorf("it is nested deeper than %d levels", depth)
				}
				l := level{}
				if t == '{' {
					l = level{map[string]bool{}, true}
				}
				open = append(open, l)
			default:
				open = open[:top]
			}
		case string:
			if top >= 0 && open[top].name {
				if open[top].seen[t] {
					return errors.New("an object has the same name twice")
				}
				open[top].seen[t], open[top].name = true, false
				continue
			}
			if top >= 0 {
				open[top].name = open[top].seen != nil
			}
		default:
			if top >= 0 {
				open[top].name = open[top].seen != nil
			}
		}
	}
}

// halfPair reports whether valid JSON has one of \uD800 to \uDFFF without its other half. Go reads it as U+FFFD.
func halfPair(data []byte) bool {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++
		if data[i] != 'u' {
			continue
		}
		switch r := hex(data[i+1 : i+5]); {
		case r >= 0xDC00 && r <= 0xDFFF:
			return true
		case r >= 0xD800 && r <= 0xDBFF:
			if i+10 >= len(data) || data[i+5] != '\\' || data[i+6] != 'u' {
				return true
			}
			if low := hex(data[i+7 : i+11]); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 6
		}
		i += 4
	}
	return false
}

func hex(digits []byte) (r rune) {
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
