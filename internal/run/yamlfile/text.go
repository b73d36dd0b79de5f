package yamlfile

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// decodeText returns the file as UTF-8 text without a byte order mark, or an error if it is not text.
func decodeText(file string, data []byte) ([]byte, *Error) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return nil, Place{file, 1, 1}.Errorf("save it as UTF-8", "the file is UTF-16")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	place := Place{file, 1, 1}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return nil, place.Errorf("save the file as UTF-8", "the byte %#x is not UTF-8", data[i])
		case r == 0x7f, r < ' ' && r != '\n' && r != '\t' && r != '\r':
			return nil, place.Errorf("take it out", "the control character %U", r)
		case r == '\n':
			place.Line, place.Column = place.Line+1, 1
		default:
			place.Column++
		}
		i += size
	}
	return data, nil
}

// Bounds of a file's nesting. The parser goes down one call for each level, and a file of a megabyte could have a
// million.
const (
	maxDepth  = 64
	maxColumn = 2000 // the last column at which an entry of a list or a mapping may begin
)

// checkDepth returns an error if the tokens, which are not parsed yet, are nested too deeply.
func checkDepth(file string, tokens token.Tokens) *Error {
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Column > maxColumn {
				return placeOf(file, t).Errorf("", "an entry begins beyond column %d", maxColumn)
			}
		}
		if depth > maxDepth {
			return placeOf(file, t).Errorf("", "lists and mappings are more than %d deep here", maxDepth)
		}
	}
	return nil
}

// lineText returns a line of a file by its number, counted from 1; "" if there is none.
func lineText(data []byte, number int) string {
	for n, text := range strings.Split(string(data), "\n") {
		if n+1 == number {
			return text
		}
	}
	return ""
}

// hasOddSpace tells whether a name has an invisible character, or a space that YAML does not accept as one.
func hasOddSpace(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool {
		return r != ' ' && r != '\t' && unicode.IsSpace(r) || r == '\u200b' || r == '\ufeff'
	})
}
