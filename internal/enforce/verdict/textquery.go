package verdict

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// to_tsquery parses a query language and raises an error for texts that are not in this language. SafeTextQuery accepts
// a subset of its grammar (gettoken_query_standard of PostgreSQL's tsquery.c) for which it never raises one. The subset
// has words of letters, digits and underscores, which :* may follow. They are joined by & | and <->, may have ! in
// front, and may be in parentheses. The tree of a query is no deeper than its number of operators.
const (
	maxTextQueryBytes = 500 // length of a text query
	maxOperators      = 40
	maxTextWordBytes  = 200 // length of a word of a text query
	maxParentheses    = 10  // depth of parentheses within each other
	maxNots           = 10  // number of ! in a row: PostgreSQL pushes them on a stack of 32 places (STACKDEPTH)
)

// SafeTextQuery reports whether to_tsquery certainly raises no error for this text.
func SafeTextQuery(text string) bool {
	if len(text) > maxTextQueryBytes || !utf8.ValidString(text) {
		return false
	}
	q := textQueryParser{rest: text}
	return q.operands(0) && q.rest == ""
}

// textQueryParser parses a text query; rest is the part that is not parsed yet.
type textQueryParser struct {
	rest      string
	operators int
}

// operands parses operands that operators join, up to the end of the text or a closing parenthesis.
func (q *textQueryParser) operands(nested int) bool {
	for {
		for nots := 1; q.skip("!"); nots++ {
			if q.operators++; q.operators > maxOperators || nots > maxNots {
				return false
			}
		}
		if !q.operand(nested) {
			return false
		}
		if !q.skip("&") && !q.skip("|") && !q.skip("<->") {
			return true
		}
		if q.operators++; q.operators > maxOperators {
			return false
		}
	}
}

// operand parses a word, or a query in parentheses.
func (q *textQueryParser) operand(nested int) bool {
	if q.skip("(") {
		return nested < maxParentheses && q.operands(nested+1) && q.skip(")")
	}
	end := strings.IndexFunc(q.rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	if end < 0 {
		end = len(q.rest)
	}
	if end == 0 || end > maxTextWordBytes {
		return false
	}
	if q.rest = q.rest[end:]; strings.HasPrefix(q.rest, ":") {
		q.rest = q.rest[1:]
		if !strings.HasPrefix(q.rest, "*") {
			return false
		}
		q.rest = q.rest[1:]
	}
	q.skipSpaces()
	return true
}

// skip consumes prefix, and spaces around it, if the rest begins with it.
func (q *textQueryParser) skip(prefix string) bool {
	q.skipSpaces()
	rest, ok := strings.CutPrefix(q.rest, prefix)
	if ok {
		q.rest = rest
		q.skipSpaces()
	}
	return ok
}

// skipSpaces consumes spaces.
func (q *textQueryParser) skipSpaces() { q.rest = strings.TrimLeft(q.rest, " ") }
