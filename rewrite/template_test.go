package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// matchesTemplate returns whether a text matches the template. A text that does not parse does not match.
func matchesTemplate(t *testing.T, template, text string) bool {
	t.Helper()
	source, refusal := sqltext.Scan(text)
	if refusal != nil {
		return false
	}
	tree, refusal := source.Parse()
	if refusal != nil || len(tree.Stmts) != 1 {
		return false
	}
	w := newWalker(&Rewriter{templates: readTemplates([]string{template, "SELECT 1"})}, source)
	found := w.templatesOf(tree.Stmts[0].GetStmt())
	if len(found) > 1 || len(found) == 1 && found[0] != template {
		t.Errorf("%s is %q", text, found)
	}
	return len(found) == 1
}

// A statement matches a named statement token by token: words in any case, and a constant or a parameter for each of
// its parameters. Everything else must be as written. The test changes each token in turn.
func TestNamedStatementsToTheToken(t *testing.T) {
	const template = `SELECT "Title", body AS b, $tag$Abc$tag$ FROM event AS e ` +
		`WHERE body = 'Abc' AND n > 3 AND id = $1 AND (n, 1.5) = ($2, 1.5) OR e."For" = E'Abc' ORDER BY 1`
	source, refusal := sqltext.Scan(template)
	if refusal != nil {
		t.Fatal(refusal)
	}
	replaceToken := func(i int, text string) string {
		token := source.Tokens[i]
		return template[:token.Start] + text + template[token.End:]
	}
	otherCase := strings.NewReplacer("a", "A", "A", "a", "t", "T", "T", "t", "f", "F", "F", "f")
	for i, token := range source.Tokens {
		s := source.TokenText(token)
		parameter := strings.HasPrefix(s, "$") && !strings.HasSuffix(s, "$")
		literal := token.IsConstant() || s[0] == '"'
		matchingTokens := map[string]bool{otherCase.Replace(s): parameter || !literal, strings.ToUpper(s): parameter || !literal ||
			strings.ToUpper(s) == s}
		for _, constant := range []string{"$7", "5", "'x'", "1.5", "$q$x$q$"} {
			matchingTokens[constant] = parameter || constant == s
		}
		for _, otherToken := range []string{"id", "NULL", "(5)", "-5", "5 + 1", "now()", "$1::text", "(SELECT 5)",
			"", s + " " + s, s + ", 1", "xyz", `"xyz"`, "<", "2", "'Abd'", "E'Abd'"} {
			if _, isKnown := matchingTokens[otherToken]; !isKnown {
				matchingTokens[otherToken] = strings.EqualFold(otherToken, s) && !literal || parameter &&
					(otherToken == "2" || otherToken == "'Abd'" || otherToken == "E'Abd'")
			}
		}
		matchingTokens[s] = true
		for text, want := range matchingTokens {
			sql := replaceToken(i, text)
			if tree, refusal := sqltext.Parse(sql); refusal != nil || len(tree.Stmts) != 1 {
				continue
			}
			if matchesTemplate(t, template, sql) != want {
				t.Errorf("%s: %v", sql, !want)
			}
		}
	}
	for variant, want := range map[string]bool{
		"{}": true, "{};": true, " {} ;;": true, "/* a */ {} -- b": true,
		"PREPARE p AS {}": true, "PREPARE p (integer, text) AS {}": true, `PREPARE "as" AS {};`: true, "PREPARE p (numeric(3, 2)) AS {}": true,
		"DECLARE c CURSOR FOR {}": true, `DECLARE "for" BINARY NO SCROLL CURSOR WITH HOLD FOR {}`: true,
		"COPY ({}) TO STDOUT": false, "EXPLAIN {}": false, "({})": false, "{} LIMIT 1": false,
		"SELECT 1 UNION {}": false, "WITH w AS (SELECT 1) {}": false, "PREPARE p AS WITH w AS ({}) SELECT 1": false,
		"PREPARE p AS ({})": false, "DECLARE c CURSOR FOR {} FOR UPDATE": false,
	} {
		if matchesTemplate(t, template, strings.Replace(variant, "{}", template, 1)) != want {
			t.Errorf("%s: %v", variant, !want)
		}
	}
}
