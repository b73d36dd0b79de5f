package sqltext

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Parse parses a text that Scan has accepted. Its error has SQLSTATE 42601 and the parser's position.
func (s *Source) Parse() (*ParseResult, *sqlstate.Error) {
	if len(s.Text) > largeTextBytes {
		largeTextSlot <- struct{}{}
		defer func() { <-largeTextSlot }()
	}
	text := s.parserText()
	tree, err := pg_query.Parse(text)
	if err != nil {
		refusal := parseError(err)
		// The parser counts positions in characters. In its text, a blank replaces each byte of some comments.
		if refusal.Position > 0 && len(text) == len(s.Text) && text != s.Text {
			refusal.Position = utf8.RuneCountInString(s.Text[:byteOffset(text, refusal.Position)]) + 1
		}
		return nil, s.hideLiteral(refusal)
	}
	if s.mayNestCopies() && expandedNodes(tree) > maxExpandedNodes {
		return nil, sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
			"statement compares what compares too often").
			WithHint("The server copies the left side of IN and BETWEEN for each value: compute it in a sub-select.")
	}
	return tree, nil
}

// unicodeLiteralEnd returns the end of a U& literal or name that begins at start and ends before the offset before.
func unicodeLiteralEnd(text string, start, before int32) int32 {
	open := start + int32(len("U&"))
	for i := open + 1; i < before; i++ {
		if text[i] != text[open] {
			continue
		}
		if i+1 < before && text[i+1] == text[open] {
			i++
			continue
		}
		return i + 1
	}
	return before
}

// byteOffset returns the byte offset of the character at a position, counted from 1.
func byteOffset(text string, position int) int {
	for offset := range text {
		if position--; position == 0 {
			return offset
		}
	}
	return len(text)
}

// lookaheadWords lists the words that the parser's lexer combines with the next word. The lexer also combines U&
// literals and names with a UESCAPE after them.
var lookaheadWords = map[string]string{
	"not": "between in like ilike similar", "nulls": "first last", "with": "time ordinality", "without": "time",
	"format": "json",
}

// parserText returns the text with some comments replaced by blanks, so that all offsets stay the same. PostgreSQL
// combines two words such as NULLS FIRST also if a comment is between them, but this parser does not.
func (s *Source) parserText() string {
	var out []byte
	for i := 0; i+1 < len(s.Tokens); i++ {
		a, b := s.Tokens[i], s.Tokens[i+1]
		mayHaveUescape := a.Kind == unicodeStringConst || a.Kind == unicodeIdent
		if mayHaveUescape && a.End <= a.Start { // the scanner returns such a token for a literal before UESCAPE
			a.End = unicodeLiteralEnd(s.Text, a.Start, b.Start)
		}
		if b.Start-a.End < 3 || !mayHaveUescape && a.End-a.Start > 7 || strings.TrimSpace(s.Text[a.End:b.Start]) == "" {
			continue
		}
		secondWords := "uescape"
		if !mayHaveUescape {
			secondWords = lookaheadWords[strings.ToLower(s.TokenText(a))]
		}
		if !slices.Contains(strings.Fields(secondWords), strings.ToLower(s.TokenText(b))) {
			continue
		}
		if out == nil {
			out = []byte(s.Text)
		}
		for j := a.End; j < b.Start; j++ {
			out[j] = ' '
		}
	}
	if out == nil {
		return s.Text
	}
	return string(out)
}

// WithoutLiterals returns the text without comments, and with a blank in place of each literal.
func (s *Source) WithoutLiterals() string {
	var remaining strings.Builder
	for _, t := range s.Tokens {
		if !t.IsConstant() {
			remaining.WriteString(s.TokenText(t))
		}
		remaining.WriteByte(' ')
	}
	return remaining.String()
}

// hideLiteral removes the literal from a message "syntax error at or near …", since messages are logged and literals
// must not be.
func (s *Source) hideLiteral(e *sqlstate.Error) *sqlstate.Error {
	before, _, hasToken := strings.Cut(e.Message, " at or near ")
	if !hasToken {
		return e
	}
	chars := 0
	for offset := range s.Text {
		if chars++; chars == e.Position {
			if i := s.TokenAt(int32(offset)); i >= 0 && s.Tokens[i].IsConstant() {
				e.Message = before + " at or near a literal"
			}
			break
		}
	}
	return e
}

// Parse checks the bounds of a text and parses it.
func Parse(text string) (*ParseResult, *sqlstate.Error) {
	source, err := Scan(text)
	if err != nil {
		return nil, err
	}
	return source.Parse()
}

// parseError converts an error of the parser to the error that PostgreSQL would send.
func parseError(err error) *sqlstate.Error {
	var e *parser.Error
	if !errors.As(err, &e) {
		// The tree could not be decoded: it is too deep, or a name in it is not UTF-8 (U&'\D800', a truncated identifier).
		return sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonSyntax, "the statement could not be read").
			WithHint("Names and literals must be valid UTF-8 once escapes are resolved, and names at most 63 " +
				"bytes long.").WithCause(err)
	}
	if strings.Contains(e.Message, "memory exhausted") || strings.Contains(e.Message, "stack depth") {
		return sqlstate.New(sqlstate.StatementTooComplex, sqlstate.ReasonBounds, "statement is nested too deeply").
			WithHint("Divide the statement.")
	}
	return sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonSyntax, "%s", e.Message).WithPosition(e.Cursorpos)
}
