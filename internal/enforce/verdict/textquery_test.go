package verdict

import (
	"strings"
	"testing"
)

func TestPlainTextQuery(t *testing.T) {
	for text, want := range map[string]bool{
		"lake": true, "lake & river": true, "lake|river": true, " lake  &  river ": true, "!lake": true,
		"lake & !river": true, "! ! lake": true, "(lake | see) & !(river & mill)": true, "lak:* & riv:*": true,
		"old <-> mill": true, "a<->b": true, "été & straße": true, "w_1 & 2024": true,
		"((((((((((a))))))))))": true, "(((((((((((a)))))))))))": false,
		"": false, " ": false, "lake river": false, "lake &": false, "& lake": false, "lake & & river": false,
		"lake & | river": false, "lake !": false, "lake ! river": false, "(lake": false, "lake)": false, "()": false,
		"lake (river)": false, "a <- b": false, "a <2> b": false, "a < b": false, "a <-> ": false,
		"'lake'": false, `la\ke`: false, "lake:A": false, "lake:*A": false, "lake:": false, "lake :*": false,
		"lake:**": false, ":*": false, "a-b": false, "a.b": false, "a/b": false, "a\tb": false, "a\x00": false,
		"\xff": false, "lake\u00a0river": false, "a & \u0301": false,
		strings.Repeat("w", maxTextWordBytes): true, strings.Repeat("w", maxTextWordBytes+1): false,
		strings.Repeat("a&", maxOperators) + "a": true, strings.Repeat("a&", maxOperators+1) +
			"a": false, strings.Repeat("!", maxNots) + "a": true, strings.Repeat("!", maxNots+1) +
			"a": false, strings.Repeat("!a&", maxOperators/2) + "a": true, strings.Repeat("!a&", maxOperators/2) + "!a": false,
		strings.Repeat(" ", maxTextQueryBytes-1) + "a": true, strings.Repeat(" ", maxTextQueryBytes) + "a": false,
	} {
		if got := SafeTextQuery(text); got != want {
			t.Errorf("%.60q: %v", text, got)
		}
	}
	if !TextQuery.Matches(nil) || TextQuery.Matches([]byte("a b")) || !TextQuery.Matches([]byte("a|b")) || TextQuery.Matches([]byte{}) {
		t.Error("the form of a parameter is another")
	}
}
