package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A contract may allow named statements only. A statement is a named one if it consists of the same tokens: the same
// words, names and constants in the same order. Where the named statement has a parameter, the client's statement may
// have a parameter or a constant.

// template is a named statement of the policy.
type template struct {
	text  string
	shape []string // the tokens in order; a parameter is "$"
}

const anyValue = "$"

func readTemplates(texts []string) []template {
	var out []template
	for _, text := range texts {
		if source, refusal := sqltext.Scan(text); refusal == nil {
			out = append(out, template{text, shapeOf(source, tokensBeforeEnd(source))})
		}
	}
	return out
}

// tokensBeforeEnd returns the number of tokens, not counting semicolons at the end.
func tokensBeforeEnd(source *sqltext.Source) int {
	n := len(source.Tokens)
	for n > 0 && source.Tokens[n-1].Kind == sqltext.Semicolon {
		n--
	}
	return n
}

func shapeOf(source *sqltext.Source, n int) []string {
	out := make([]string, 0, n)
	for _, t := range source.Tokens[:n] {
		s := source.TokenText(t)
		switch {
		case t.IsConstant() && strings.HasPrefix(s, "$") && !strings.HasSuffix(s, "$"):
			out = append(out, anyValue)
		case t.IsConstant(), s[0] == '"':
			out = append(out, s)
		default:
			out = append(out, strings.ToLower(s))
		}
	}
	return out
}

// templatesOf returns the texts of the named statements that a single statement matches. For PREPARE and DECLARE, the
// statement inside is compared.
func (w *walker) templatesOf(stmt *sqltext.Node) []string {
	if len(w.templates) == 0 {
		return nil
	}
	n := tokensBeforeEnd(w.source)
	first := w.queryStart(stmt, n)
	if first < 0 {
		return nil
	}
	shape := shapeOf(w.source, n)[first:]
	var out []string
	for _, t := range w.templates {
		if len(shape) != len(t.shape) {
			continue
		}
		hasSameVersion := true
		for i, want := range t.shape {
			if want == anyValue && w.source.Tokens[first+i].IsConstant() {
				continue
			}
			if hasSameVersion = shape[i] == want; !hasSameVersion {
				break
			}
		}
		if hasSameVersion && !slices.Contains(out, t.text) {
			out = append(out, t.text)
		}
	}
	return out
}

// queryStart returns the index of the token at which the query begins. In PREPARE and DECLARE that is the token behind
// PREPARE name (types) AS, or behind DECLARE name … CURSOR … FOR.
func (w *walker) queryStart(stmt *sqltext.Node, n int) int {
	word := ""
	switch {
	case stmt.GetPrepareStmt() != nil:
		word = "as"
	case stmt.GetDeclareCursorStmt() != nil:
		word = "for"
	default:
		return 0
	}
	depth := 0
	for i := 2; i < n; i++ {
		switch w.source.KindAt(i) {
		case sqltext.OpenParen:
			depth++
		case sqltext.CloseParen:
			depth--
		}
		if depth == 0 && strings.EqualFold(w.source.TokenText(w.source.Tokens[i]), word) {
			return i + 1
		}
	}
	return -1
}
