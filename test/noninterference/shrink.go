package noninterference

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// shrinkSteps limits how often shrink tries to shorten one difference.
const shrinkSteps = 400

// shrink removes tokens from the messages of a case as long as its answers still differ.
func (st *databaseTrio) shrink(d *difference) {
	steps := 0
	tryCase := func(c testCase) *difference {
		steps++
		if steps > shrinkSteps {
			return nil
		}
		return st.compare(c, &Report{})
	}
	for m := len(d.testCase.messages) - 1; m >= 0; m-- {
		if len(d.testCase.messages) > 1 { // try to remove the whole message
			c := d.testCase
			c.messages = append(append([]string{}, d.testCase.messages[:m]...), d.testCase.messages[m+1:]...)
			if smaller := tryCase(c); smaller != nil {
				d.testCase, d.answers, d.want, d.reason = c, smaller.answers, smaller.want, smaller.reason
				continue
			}
		}
		tokens := splitTokens(d.testCase.messages[m])
		for size := len(tokens) / 2; size >= 1; size /= 2 {
			for at := 0; at+size <= len(tokens); {
				remaining := append(append([]string{}, tokens[:at]...), tokens[at+size:]...)
				c := d.testCase
				c.messages = append([]string{}, d.testCase.messages...)
				c.messages[m] = strings.Join(remaining, " ")
				smaller := (*difference)(nil)
				if len(remaining) > 0 {
					smaller = tryCase(c)
				}
				if smaller != nil {
					d.testCase, d.answers, d.want, d.reason, tokens = c, smaller.answers, smaller.want, smaller.reason, remaining
				} else {
					at++
				}
			}
		}
	}
}

// splitTokens returns the tokens of a text.
func splitTokens(sql string) []string {
	source, refused := sqltext.Scan(sql)
	if refused != nil {
		return []string{sql}
	}
	var out []string
	for _, t := range source.Tokens {
		out = append(out, source.TokenText(t))
	}
	return out
}
