package noninterference

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// shrinkSteps bounds the attempts on one difference.
const shrinkSteps = 400

// shrink takes tokens out of the messages as long as what is left still shows a difference.
func (st *stage) shrink(d *difference) {
	steps := 0
	shows := func(c testCase) *difference {
		steps++
		if steps > shrinkSteps {
			return nil
		}
		return st.compare(c, &Report{})
	}
	for m := len(d.c.messages) - 1; m >= 0; m-- {
		if len(d.c.messages) > 1 { // without the message
			c := d.c
			c.messages = append(append([]string{}, d.c.messages[:m]...), d.c.messages[m+1:]...)
			if smaller := shows(c); smaller != nil {
				d.c, d.got, d.want, d.why = c, smaller.got, smaller.want, smaller.why
				continue
			}
		}
		tokens := pieces(d.c.messages[m])
		for size := len(tokens) / 2; size >= 1; size /= 2 {
			for at := 0; at+size <= len(tokens); {
				rest := append(append([]string{}, tokens[:at]...), tokens[at+size:]...)
				c := d.c
				c.messages = append([]string{}, d.c.messages...)
				c.messages[m] = strings.Join(rest, " ")
				smaller := (*difference)(nil)
				if len(rest) > 0 {
					smaller = shows(c)
				}
				if smaller != nil {
					d.c, d.got, d.want, d.why, tokens = c, smaller.got, smaller.want, smaller.why, rest
				} else {
					at++
				}
			}
		}
	}
}

// pieces are the tokens of a text.
func pieces(sql string) []string {
	source, refused := sqltext.Scan(sql)
	if refused != nil {
		return []string{sql}
	}
	var out []string
	for _, t := range source.Tokens {
		out = append(out, source.String(t))
	}
	return out
}
