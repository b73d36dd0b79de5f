package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// A LIKE pattern that is concatenated from parts takes the signed path if no part may end in an escape character.
// Values of parameters are checked for that at Bind.
func TestPatternsOfParts(t *testing.T) {
	r := rewriter(t, AlwaysSignedMode)
	const wholePattern, patternPart = verdict.Pattern, verdict.PatternPart
	type forms = map[int32]verdict.ValueForm
	for pattern, want := range map[string]forms{ // what is required of parameters; nil: the text does not take the signed path
		"$1":                                  {1: wholePattern},
		"$1 || ''":                            {1: wholePattern},
		"$1 || '%'":                           {1: patternPart},
		"'%' || $1":                           {1: wholePattern},
		"'%' || $1 || '%'":                    {1: patternPart},
		"$1 || $2":                            {1: wholePattern, 2: wholePattern}, // the last part may be empty
		"$1 || '_' || $2":                     {1: wholePattern, 2: wholePattern},
		"$1 || '_' || $2 || '_'":              {1: patternPart, 2: patternPart},
		"'%' || lower($1) || '%'":             {1: patternPart},
		"'%' || upper($1::text)":              {1: wholePattern},
		"'a' || '%'":                          {},
		`'a' || E'\\'`:                        nil,
		`$1 || E'\\'`:                         nil,
		`E'\\' || $1`:                         nil,
		`E'a\\' || '%'`:                       nil,
		"$1 || title":                         nil,
		"$1::date || '%'":                     nil,
		"$1 || " + repeated("'a'", 9):         {1: patternPart},
		"$1 || " + repeated("'a'", 10):        nil,
		"$1 || " + percents(200):              {1: patternPart},
		"$1 || " + percents(201):              nil,
		percents(150) + " || " + percents(51): nil,
	} {
		for _, operator := range []string{"LIKE", "NOT ILIKE"} {
			sql := "SELECT id FROM memories WHERE title " + operator + " " + pattern
			result, refusal := r.Rewrite(sql, true)
			switch isSigned := refusal == nil && result.Path == verdict.PathSigned; {
			case isSigned != (want != nil):
				t.Errorf("%.200s: %v, path %s, %q", sql, refusal, result.Path, result.RowSecurityReason)
			case isSigned && fmt.Sprint(result.Forms) != fmt.Sprint(want):
				t.Errorf("%.200s: forms %v, want %v", sql, result.Forms, want)
			}
		}
	}
}

func repeated(element string, n int) string {
	return strings.TrimSuffix(strings.Repeat(element+" || ", n), " || ")
}

func percents(n int) string { return "'" + strings.Repeat("%", n) + "'" }
