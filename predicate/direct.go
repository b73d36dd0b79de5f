package predicate

import (
	"strings"

	"github.com/pgconsent/pgconsent/catalog"
)

// Direct writes n for somebody whom row security does not concern, the owner: as a condition on the row called alias,
// over the tables themselves, with the attributes of a caller as constants; one that is absent is missing. It shows the
// rows that [Policy] shows this caller, is never NULL, and needs nothing installed. It is for tools, and no wall.
func Direct(n Node, alias string, attributes map[string]string) string {
	w := writer{direct: true, prefix: prefixFor(alias)}
	parts := append(guards(optional(n)), w.write(n, catalog.QuoteIdent(alias)))
	return "(" + Constants(strings.Join(parts, " AND "), attributes) + ") IS TRUE"
}

// Constants replaces each attribute that an expression of this package asks the session for by a constant. What is inside
// quotes is left alone.
func Constants(sql string, attributes map[string]string) string {
	const ask = "pgconsent_gate.attr('"
	var b strings.Builder
	var quote byte
	for i := 0; i < len(sql); i++ {
		c := sql[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case strings.HasPrefix(sql[i:], ask):
			name, _, found := strings.Cut(sql[i+len(ask):], "')")
			if !found {
				break
			}
			value, there := attributes[name]
			literal := "NULL"
			if there {
				literal = catalog.QuoteLiteral(value)
			}
			b.WriteString(literal + "::pg_catalog.text")
			i += len(ask) + len(name) + len("')") - 1
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
