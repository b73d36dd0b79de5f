package enforce

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/rewrite"
)

// Positions in errors refer to the client's text, not to the text in which literals were replaced by parameters.
func TestPositionsBeforeBinding(t *testing.T) {
	const text = "SELECT 'é', x FROM t WHERE a = 123 AND b = 'übermut' AND nothing = 5"
	const bound = "SELECT 'é', x FROM t WHERE a = $1 AND b = $2 AND nothing = 5"
	_, literals := sqltext.TextShape(text)
	parameters := []rewrite.BindableLiteral{{Number: 1}, {Number: 2}}
	at := func(in, of string) int { return utf8.RuneCountInString(in[:strings.Index(in, of)]) + 1 }
	for _, word := range []string{"SELECT", "x FROM", "a =", "AND b", "b =", "AND nothing", "nothing", "5"} {
		if got := positionBefore(text, literals, parameters, at(bound, word)); got != at(text, word) {
			t.Errorf("%s: %d, want %d", word, got, at(text, word))
		}
	}
	for parameter, literal := range map[string]string{"$1": "123", "$2": "'übermut'"} {
		for within := range 2 {
			if got := positionBefore(text, literals, parameters, at(bound, parameter)+within); got != at(text, literal) {
				t.Errorf("%s: %d, want %d", parameter, got, at(text, literal))
			}
		}
	}
	if got := positionBefore(text, literals, parameters, 0); got != 0 {
		t.Errorf("no position becomes %d", got)
	}
}
