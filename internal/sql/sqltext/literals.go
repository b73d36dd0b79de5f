package sqltext

import "strings"

// Literal is a plain literal in a text: an integer that PostgreSQL reads as int4, without a sign, or a string in single
// quotes that contains neither quotes nor backslashes. Start and End are byte offsets; a string includes its quotes.
type Literal struct{ Start, End int }

// IsString tells whether the literal of a text is a string.
func (l Literal) IsString(text string) bool { return text[l.Start] == '\'' }

// Value returns the characters of the literal, without quotes.
func (l Literal) Value(text string) string {
	if l.IsString(text) {
		return text[l.Start+1 : l.End-1]
	}
	return text[l.Start:l.End]
}

const (
	maxShapedText = 8 << 10 // the largest number of bytes of a text that TextShape reads
	maxLiterals   = 64
	maxInt4       = "2147483647" // PostgreSQL reads a larger number as int8 or numeric
)

// TextShape finds the plain literals of a text, and returns the shape: the text with a placeholder for each literal.
// Two texts with the same shape differ only in these literals. TextShape does not parse, so an apparent literal may be
// part of a comment or of a quoted name. The caller must ask [Source.HasLiterals] about one text of each shape. The
// shape is "" for a text without plain literals, with other strings, or with parameters.
func TextShape(text string) (shape string, literals []Literal) {
	if len(text) > maxShapedText || strings.ContainsAny(text, "\x00$") {
		return "", nil
	}
	var out []byte
	copied := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c != '\'' && (c < '0' || c > '9') {
			i++
			continue
		}
		before := i == 0 || mayPrecedeLiteral[text[i-1]]
		end := i + 1
		if c == '\'' {
			length := strings.IndexAny(text[end:], `'\`)
			if length < 0 || text[end+length] != '\'' || !before {
				return "", nil
			}
			end += length + 1
			if end < len(text) && !mayFollowLiteral[text[end]] {
				return "", nil
			}
		} else {
			for end < len(text) && text[end] >= '0' && text[end] <= '9' {
				end++
			}
			if !before || !isInt4(text[i:end]) || end < len(text) && !mayFollowLiteral[text[end]] {
				i = end
				continue
			}
		}
		if len(literals) == maxLiterals {
			return "", nil
		}
		if out == nil {
			out, literals = make([]byte, 0, len(text)), make([]Literal, 0, 8)
		}
		literals = append(literals, Literal{i, end})
		out = append(append(out, text[copied:i]...), 0, '0')
		if c == '\'' {
			out[len(out)-1] = '\''
		}
		copied, i = end, end
	}
	if literals == nil {
		return "", nil
	}
	return string(append(out, text[copied:]...)), literals
}

// isInt4 reports whether PostgreSQL reads these digits as int4.
func isInt4(digits string) bool {
	return len(digits) < len(maxInt4) || len(digits) == len(maxInt4) && digits <= maxInt4
}

// These are the characters that may stand directly before and after a plain literal. Others could make it part of a
// longer token, or of a string with a prefix such as E.
var (
	mayPrecedeLiteral = byteSet(" \t\r\n(,=<>")
	mayFollowLiteral  = byteSet(" \t\r\n),;")
)

func byteSet(bytes string) (set [256]bool) {
	for _, c := range []byte(bytes) {
		set[c] = true
	}
	return set
}

// HasLiterals tells whether the literals that [TextShape] found are tokens of the text. Then the same holds for each
// text of the same shape, since the lexer is in the same state where each literal begins.
func (s *Source) HasLiterals(literals []Literal) bool {
	for _, l := range literals {
		i := s.TokenAt(int32(l.Start))
		if i < 0 || int(s.Tokens[i].End) != l.End {
			return false
		}
		if kind := s.Tokens[i].Kind; kind != integerConst && kind != Sconst {
			return false
		}
	}
	return true
}
