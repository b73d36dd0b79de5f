package verdict

import (
	"strings"
	"testing"
)

func TestPlainExpression(t *testing.T) {
	for text, want := range map[string]bool{
		"w171 w23": true, "^(cough|fever) a3": true, "W171.*w2[345]$": true, "a|b$|^c": true, "(?:ab)+c": true,
		"x{3}": true, "[0-9]{2,4}-[^a-f_ .]+?": true, "[[:alpha:]]+\\.[a-zA-Z0-9-]*": true,
		`\mword\M`: true, `\d+\s\w*\.`: true, `[\d\s.]+`: true, "é+|ü": true, "[éü-]": true, "((a|b)*c)?": true, "a,b;c:d@e/f'g\"h": true,
		"": false, "|a": false, "a||b": false, "a|": false, "()": false, "(a": false, "a)": false, "*a": false,
		"a**": false, "+": false, "^*": false, "a^b": false, "$*": false, "a$b": false, "***=a": false,
		"(?i)a": false, "(?=a)": false, "(?!a)": false, "(?<=a)b": false, "(?<!a)b": false,
		`(a)\1`: false, `\`: false, `a\`: false, `\x41`: false, `\Aa`: false, `\n`: false, `\m*`: false,
		`[\D]`: false, `[\S]`: false, `[a\W]`: false, `[\n]`: false,
		"x{256}": false, "x{100}": false, "x{0}": false, "x{5,3}": false, "x{,3}": false, "x{a}": false, "x{3": false,
		"x{": false, "x}": false, "(ab){3}": false, "x{40}": true, "x{21}y{20}": false, "x{0,40}": true, "x{0,41}": false, "x{1,21}y{2,20}": false,
		"[": false, "[]": false, "[a": false, "]": false, "[]a]": false, "[z-a]": false, "[a-Z]": false,
		"[a-9]": false, "[a-c-e]": false, "[é-ü]": false, "[a-é]": false, "[[.x.]]": false, "[[=a=]]": false,
		"[[:word:]]": false, "[[:alpha:]": false, "[a^]": false, "[+--]": false,
		"(a*)*": false, "((a+b)c)+": false, "(a*)?": true, "a\tb": false, "a\x00": false, "\xff": false,
		strings.Repeat("a", maxExpressionBytes): true, strings.Repeat("a", maxExpressionBytes+1): false,
		strings.Repeat("a*", maxRepeats): true, strings.Repeat("a*", maxRepeats+1): false, strings.Repeat("(a)",
			maxGroups): true, strings.Repeat("(a)", maxGroups+1): false,
		"((((a))))": true, "(((((a)))))": false,
	} {
		if got := SafeRegularExpression(text); got != want {
			t.Errorf("%.60q: %v", text, got)
		}
	}
	if !RegularExpression.Matches(nil) || RegularExpression.Matches([]byte("(")) || !RegularExpression.Matches([]byte("a")) ||
		RegularExpression.Matches([]byte{}) {
		t.Error("the form of a parameter is another")
	}
}
