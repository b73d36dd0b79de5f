package sqltext

import (
	"errors"
	"regexp"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"

	"github.com/pgconsent/pgconsent/sqlstate"
)

// Parse parses a text that Scan has accepted. Its error is 42601 with the parser's position.
func (s *Source) Parse() (*ParseResult, *sqlstate.Error) {
	if len(s.Text) > largeText {
		large <- struct{}{}
		defer func() { <-large }()
	}
	tree, err := pg_query.Parse(s.Text)
	if err != nil {
		return nil, withNewerSyntax(s.withoutLiteral(parseError(err)), s)
	}
	return tree, nil
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
			WithHint("Names and literals must be valid UTF-8 once escapes are resolved, and names at most 63 bytes long.").WithCause(err)
	}
	if strings.Contains(e.Message, "memory exhausted") || strings.Contains(e.Message, "stack depth") {
		return sqlstate.New(sqlstate.StatementTooComplex, sqlstate.ReasonBounds, "statement is nested too deeply").
			WithHint("Divide the statement.")
	}
	return sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonSyntax, "%s", e.Message).At(e.Cursorpos)
}

// newerSyntax recognises what PostgreSQL 17 and 18 added and the parser does not know.
var newerSyntax = []struct {
	pattern *regexp.Regexp
	what    string
}{
	{regexp.MustCompile(`(?i)\bjson_table\s*\(`), "JSON_TABLE"},
	{regexp.MustCompile(`(?i)\bjson_(value|query|exists)\s*\(`), "JSON_VALUE, JSON_QUERY and JSON_EXISTS"},
	{regexp.MustCompile(`(?i)\bjson_(serialize|scalar)\s*\(`), "JSON_SERIALIZE and JSON_SCALAR"},
	{regexp.MustCompile(`(?i)\bat\s+local\b`), "AT LOCAL"},
	{regexp.MustCompile(`(?i)\breturning\s+with\s*\(`), "RETURNING WITH"},
	{regexp.MustCompile(`(?i)\bnot\s+matched\s+by\s+source\b`), "WHEN NOT MATCHED BY SOURCE"},
}

func withNewerSyntax(e *sqlstate.Error, s *Source) *sqlstate.Error {
	if e.Code != sqlstate.SyntaxError || e.Hint != "" {
		return e
	}
	var bare strings.Builder // the text without literals and comments
	for _, t := range s.Tokens {
		if !t.IsConstant() {
			bare.WriteString(s.String(t))
		}
		bare.WriteByte(' ')
	}
	for _, syntax := range newerSyntax {
		if syntax.pattern.MatchString(bare.String()) {
			return e.WithHint("pgconsent reads the grammar of PostgreSQL 16; %s came later. Write it with the functions and operators of version 16.", syntax.what)
		}
	}
	return e
}
