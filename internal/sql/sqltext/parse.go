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

// Parse parses a text that Scan has accepted. Its error is 42601 with the parser's position.
func (s *Source) Parse() (*ParseResult, *sqlstate.Error) {
	if len(s.Text) > largeText {
		large <- struct{}{}
		defer func() { <-large }()
	}
	text := s.parsable()
	tree, err := pg_query.Parse(text)
	if err != nil {
		refusal := parseError(err)
		// Positions are in characters; blanks have replaced each byte of a comment.
		if refusal.Position > 0 && len(text) == len(s.Text) && text != s.Text {
			refusal.Position = utf8.RuneCountInString(s.Text[:byteOf(text, refusal.Position)]) + 1
		}
		return nil, s.withoutLiteral(refusal)
	}
	if s.nestsCopies() && expanded(tree) > maxExpandedNodes {
		return nil, sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
			"statement compares what compares too often").
			WithHint("The server copies the left side of IN and BETWEEN for each value: compute it in a sub-select.")
	}
	return tree, nil
}

// closed is where a literal or name of U& ends that begins at start and ends before another offset.
func closed(text string, start, before int32) int32 {
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

// byteOf is the byte offset of a character, counted from 1.
func byteOf(text string, position int) int {
	for offset := range text {
		if position--; position == 0 {
			return offset
		}
	}
	return len(text)
}

// lookahead lists words that the parser's lexer joins with the word behind them. It does the same with literals and
// names of U& before UESCAPE.
var lookahead = map[string]string{
	"not": "between in like ilike similar", "nulls": "first last", "with": "time ordinality", "without": "time",
	"format": "json",
}

// parsable is the text with some comments turned into blanks, which keeps every offset. PostgreSQL joins two words, as
// NULLS FIRST, also across a comment; this parser does not.
func (s *Source) parsable() string {
	var out []byte
	for i := 0; i+1 < len(s.Tokens); i++ {
		a, b := s.Tokens[i], s.Tokens[i+1]
		escaped := a.Kind == usconst || a.Kind == uident
		if escaped && a.End <= a.Start { // the scanner says so of one that UESCAPE follows
			a.End = closed(s.Text, a.Start, b.Start)
		}
		if b.Start-a.End < 3 || !escaped && a.End-a.Start > 7 || strings.TrimSpace(s.Text[a.End:b.Start]) == "" {
			continue
		}
		seconds := "uescape"
		if !escaped {
			seconds = lookahead[strings.ToLower(s.String(a))]
		}
		if !slices.Contains(strings.Fields(seconds), strings.ToLower(s.String(b))) {
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

// Bare is the text without comments, and with a blank in place of each literal.
func (s *Source) Bare() string {
	var bare strings.Builder
	for _, t := range s.Tokens {
		if !t.IsConstant() {
			bare.WriteString(s.String(t))
		}
		bare.WriteByte(' ')
	}
	return bare.String()
}

// withoutLiteral takes a literal out of "syntax error at or near": messages are logged, literals are not.
func (s *Source) withoutLiteral(e *sqlstate.Error) *sqlstate.Error {
	before, _, quotes := strings.Cut(e.Message, " at or near ")
	if !quotes {
		return e
	}
	chars := 0
	for offset := range s.Text {
		if chars++; chars == e.Position {
			if i := s.At(int32(offset)); i >= 0 && s.Tokens[i].IsConstant() {
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

// parseError turns an error of the parser into PostgreSQL's.
func parseError(err error) *sqlstate.Error {
	var e *parser.Error
	if !errors.As(err, &e) {
		// The tree could not be decoded: too deep, or a name that is no UTF-8 (U&'\D800', a truncated identifier).
		return sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonSyntax, "the statement could not be read").
			WithHint("Names and literals must be valid UTF-8 once escapes are resolved, and names at most 63 " +
				"bytes long.").WithCause(err)
	}
	if strings.Contains(e.Message, "memory exhausted") || strings.Contains(e.Message, "stack depth") {
		return sqlstate.New(sqlstate.StatementTooComplex, sqlstate.ReasonBounds, "statement is nested too deeply").
			WithHint("Divide the statement.")
	}
	return sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonSyntax, "%s", e.Message).At(e.Cursorpos)
}
