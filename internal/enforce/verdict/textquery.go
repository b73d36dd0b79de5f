package verdict

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// to_tsquery parses a language of its own and raises an error for other texts. This is a subset of its grammar
// (gettoken_query_standard of PostgreSQL's tsquery.c) that never fails. It has words of letters, digits and
// underscores, as prefixes with :* behind them, joined by & | and <->, with ! in front, and in parentheses. Its tree is
// no deeper than the number of operators.
const (
	maxTextQueryBytes = 500 // length of a text query
	maxOperators      = 40
	maxTextWordBytes  = 200 // length of a word of a text query
	maxParentheses    = 10  // depth of parentheses within each other
	maxNots           = 10  // number of ! in a row: they wait on a stack of 32 places (STACKDEPTH)
)

// SafeTextQuery reports whether a text is in the safe subset of text queries above.
func SafeTextQuery(text string) bool {
	if len(text) > maxTextQueryBytes || !utf8.ValidString(text) {
		return false
	}
	q := textQueryParser{rest: text}
	return q.operands(0) && q.rest == ""
}

// textQueryParser parses the rest of a text.
type textQueryParser struct {
	rest      string
	operators int
}

// operands reads the parts that operators join, up to the end or a closing parenthesis.
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

// operand reads a word, or a query in parentheses, with the ! before it.
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

// skip reads a given text, and spaces around it.
func (q *textQueryParser) skip(prefix string) bool {
	q.skipSpaces()
	rest, ok := strings.CutPrefix(q.rest, prefix)
	if ok {
		q.rest = rest
		q.skipSpaces()
	}
	return ok
}

// skipSpaces skips spaces.
func (q *textQueryParser) skipSpaces() { q.rest = strings.TrimLeft(q.rest, " ") }
