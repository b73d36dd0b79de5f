package yamlfile

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// decodeText returns the text of a file without a byte order mark. It returns an error if the file is not valid UTF-8
// text.
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

// Limits of the nesting of a file. The parser is recursive, and a file of 1 MB could have a million levels.
const (
	maxDepth  = 64
	maxColumn = 2000 // largest column at which an item of a list or a mapping may begin
)

// checkDepth returns an error if the tokens of a file are nested too deeply. The parser has not seen them yet.
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

// lineText returns the line with the given number, counted from 1, and "" if there is no such line.
func lineText(data []byte, number int) string {
	for n, text := range strings.Split(string(data), "\n") {
		if n+1 == number {
			return text
		}
	}
	return ""
}

// hasOddSpace reports whether a name has an invisible character, or a space that is not one in YAML.
func hasOddSpace(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool {
		return r != ' ' && r != '\t' && unicode.IsSpace(r) || r == '\u200b' || r == '\ufeff'
	})
}
