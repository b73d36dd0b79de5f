package sqltext

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// PostgreSQL copies operands of IN and BETWEEN. A text in which copies contain copies is refused, however short it is;
// texts that people write are not.
func TestNestedCopiesAreRefused(t *testing.T) {
	nested := func(n int, repeated string) string {
		return strings.Repeat("(", n) + "x" + strings.Repeat(repeated+")", n)
	}
	list := func(n int) string { return "(a" + strings.Repeat(", a", n-1) + ")" }
	for _, c := range []struct {
		condition string
		isRefused bool
	}{
		{nested(24, " BETWEEN a AND b"), true},
		{nested(24, " NOT BETWEEN a AND b"), true},
		{nested(12, " BETWEEN SYMMETRIC a AND b"), true},
		{nested(12, " NOT BETWEEN SYMMETRIC a AND b"), true},
		{"a BETWEEN SYMMETRIC " + nested(12, " BETWEEN SYMMETRIC a AND b") + " AND b", true},
		{nested(16, " IN (a, b)"), true},
		{nested(16, " NOT IN (a, b)"), true},
		{"(x IN " + list(1000) + ") IN " + list(2000), true}, // two are enough
		{"x IN " + list(3000), false},
		{"x IN (1" + strings.Repeat(", $1, 'a'", 2000) + ") AND (x IN (1" + strings.Repeat(", 1", 2000) + ")) IN (true, false)", false},
		{nested(4, " BETWEEN a AND b"), false},
		{"x BETWEEN a AND b" + strings.Repeat(" AND x BETWEEN a AND b", 2000), false},
	} {
		_, err := Parse("SELECT " + c.condition)
		if got := err != nil && err.Code == sqlstate.ProgramLimitExceeded; got != c.isRefused || err != nil && !got {
			t.Errorf("%.60s: %v", c.condition, err)
		}
	}
}

// A run consists of the characters that PostgreSQL's scanner accepts in operators, and ends at any other.
func TestRunsOfOperators(t *testing.T) {
	const operators = "~!@#^&|`?+-*/%<>="
	for c := range byte(128) {
		want := 2 * 100 * 100
		if strings.IndexByte(operators, c) >= 0 {
			want = 201 * 201
		}
		run := strings.Repeat("+", 100)
		if got := operatorRunCost("1" + run + string(rune(c)) + run + "1"); got != want {
			t.Errorf("%q in a run: %d, want %d", c, got, want)
		}
	}
}
