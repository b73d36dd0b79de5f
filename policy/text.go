package policy

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// readable returns the file as UTF-8 text without a byte order mark, or where it is not text.
func readable(file string, data []byte) ([]byte, *Error) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return nil, place{file, 1, 1}.errorf("save it as UTF-8", "the file is UTF-16")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	at := place{file, 1, 1}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return nil, at.errorf("save the file as UTF-8", fmt.Sprintf("the byte %#x is not UTF-8", data[i]))
		case r == 0x7f, r < ' ' && r != '\n' && r != '\t' && r != '\r':
			return nil, at.errorf("take it out", fmt.Sprintf("the control character %U", r))
		case r == '\n':
			at.line, at.column = at.line+1, 1
		default:
			at.column++
		}
		i += size
	}
	return data, nil
}

// Bounds of a file's shape. The parser goes down one call for each level, and a file of a megabyte could have a million.
const (
	maxDepth  = 64
	maxColumn = 2000 // at which an entry of a list or a mapping may begin
)

// tooDeep looks at the tokens before they are parsed.
func tooDeep(file string, tokens token.Tokens) *Error {
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Column > maxColumn {
				return at(file, t).errorf("", fmt.Sprintf("an entry begins beyond column %d", maxColumn))
			}
		}
		if depth > maxDepth {
			return at(file, t).errorf("", fmt.Sprintf("lists and mappings are more than %d deep here", maxDepth))
		}
	}
	return nil
}

// reference is how shells and many configurations name a variable of the environment.
var reference = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*([:?+=-][^}]*)?\}`)

// fromEnvironment refuses what looks like a variable: whoever reads a policy must see what it says.
func fromEnvironment(here place, value string) *Error {
	found := reference.FindString(value)
	if found == "" {
		return nil
	}
	return here.errorf("what differs between agents is an attribute, which the configuration gives them; "+
		"passwords stand under secrets there",
		found+" is not replaced: a policy takes nothing from the environment")
}

// line is one line of a file, of which the first is 1; empty where there is none.
func line(data []byte, number int) string {
	for n, text := range strings.Split(string(data), "\n") {
		if n+1 == number {
			return text
		}
	}
	return ""
}

var twice = regexp.MustCompile(`mapping key "(.*)" already defined at \[(\d+:\d+)\]`)

// inPlainWords returns a suggestion and the parser's message, for people who do not write parsers.
func inPlainWords(message string) (suggestion, plain string) {
	switch {
	case twice.MatchString(message):
		m := twice.FindStringSubmatch(message)
		return "", "the key " + quote(m[1]) + " is there twice, first at " + m[2]
	case strings.Contains(message, "found character '\t'"), strings.Contains(message, "tab character"):
		return "indent with spaces", "YAML is not indented with tabs"
	case strings.Contains(message, "must be specified"):
		return "close the bracket, or add what is missing before it", message
	case strings.Contains(message, "unexpected key name"):
		return "write name: with a colon behind it; a comment begins with #", "this is no name of a mapping"
	case strings.Contains(message, "not allowed in this context"):
		return "entries of one mapping begin at one column: look at the indentation here and above", message
	}
	return "", message
}
