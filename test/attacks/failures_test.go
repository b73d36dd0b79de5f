package attacks

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pgconsent/pgconsent/test/instance"
)

// messageWords matches the words of an error message. The text between them is the same whichever row has failed.
var messageWords = regexp.MustCompile(`0x[0-9a-f]{2}(?: 0x[0-9a-f]{2})*|[\pL\pN_]+`)

// isSameErrorOfVisibleRows tells whether two answers are the same error, raised by different rows that the agent sees.
// visibleText returns the text of all those rows. PostgreSQL reads rows in any order, so which failing row comes first
// depends on the plan, and the plan on how many rows are hidden. The values in both messages must be visible ones.
func isSameErrorOfVisibleRows(one, two string, visibleText func() string) bool {
	const errorPrefix = "ERROR ERROR "
	beforeA, a, ok := strings.Cut(one, errorPrefix)
	beforeB, b, okB := strings.Cut(two, errorPrefix)
	if !ok || !okB || beforeA != beforeB || len(a) < 5 || len(b) < 5 || a[:5] != b[:5] {
		return false
	}
	wordsA, wordsB := messageWords.FindAllString(a, -1), messageWords.FindAllString(b, -1)
	if len(wordsA) != len(wordsB) || messageWords.ReplaceAllString(a, "") != messageWords.ReplaceAllString(b, "") {
		return false
	}
	for i, w := range wordsA {
		for _, value := range []string{w, wordsB[i]} {
			if w != wordsB[i] && !containsWord(visibleText(), value) {
				return false
			}
		}
	}
	return true
}

// containsWord tells whether a text has a word, or bytes in the form in which a row shows them.
func containsWord(text, word string) bool {
	if hex, bytes := strings.CutPrefix(word, "0x"); bytes {
		return strings.Contains(text, strings.ReplaceAll(hex, " 0x", ""))
	}
	return slices.Contains(messageWords.FindAllString(text, -1), word)
}

// visibleText returns a function that returns the text of every row that the agent sees. It reads them at its first
// call.
func visibleText(t *testing.T, proxies []*instance.Proxy, database string) func() string {
	return sync.OnceValue(func() string {
		var b strings.Builder
		for _, p := range proxies {
			c := p.Agent(t, "agent", database)
			for _, name := range instance.Ask(c, `SELECT c.oid::regclass FROM pg_class AS c WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
				AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)`).Results[0].Rows {
				for _, r := range instance.Ask(c, "SELECT * FROM "+name).Results {
					b.WriteString(strings.Join(r.Rows, "\n"))
				}
			}
			_ = c.Close(context.Background())
		}
		return b.String()
	})
}

func TestIsSameErrorOfVisibleRows(t *testing.T) {
	rows := func() string { return "1\tOle\t\\x99\n2\tSam\t\\xee90" }
	const prefix = "[count] [20] \nERROR ERROR 22P02: invalid input syntax for type integer: "
	for _, c := range []struct {
		one, two string
		isSame   bool
	}{
		{prefix + `"Ole"`, prefix + `"Sam"`, true},
		{prefix + `"Ole"`, prefix + `"Hidden"`, false},
		{prefix + `"Hidden"`, prefix + `"Sam"`, false},
		{prefix + `"Ole"`, prefix + `"Sa"`, false},
		{prefix + `"Ole"`, strings.Replace(prefix, "22P02", "22P03", 1) + `"Ole"`, false},
		{prefix + `"Ole"`, "[count] [20] SELECT 1\n5\n", false},
		{prefix + `"Ole"`, "[n] [20] \n" + strings.TrimPrefix(prefix, "[count] [20] \n") + `"Sam"`, false},
		{"ERROR ERROR 22021: invalid byte: 0x99", "ERROR ERROR 22021: invalid byte: 0xee 0x90", true},
		{"ERROR ERROR 22021: invalid byte: 0x99", "ERROR ERROR 22021: invalid byte: 0xff", false},
	} {
		if got := isSameErrorOfVisibleRows(c.one, c.two, rows); got != c.isSame {
			t.Errorf("%q and %q: %t", c.one, c.two, got)
		}
	}
}
