package pgcatalog

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// readValues reads the checks that let a column have a list of strings only: column IN ('a', 'b') is stored as an
// operator over an array.
func (l *loader) readValues(ctx context.Context) error {
	var (
		oid        uint32
		name, expr string
	)
	return l.each(ctx, `SELECT a.attrelid, a.attname::text, pg_get_expr(k.conbin, k.conrelid)
		FROM pg_constraint AS k JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND k.conkey = ARRAY[a.attnum]
		WHERE k.contype = 'c' AND k.convalidated AND k.conrelid <> 0 AND k.conbin::text LIKE '%{SCALARARRAYOPEXPR %'
		UNION ALL SELECT a.attrelid, a.attname::text, pg_get_expr(k.conbin, 0)
		FROM pg_constraint AS k JOIN pg_attribute AS a ON a.atttypid = k.contypid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE k.contype = 'c' AND k.convalidated AND k.contypid <> 0 AND k.conbin::text LIKE '%{SCALARARRAYOPEXPR %' ORDER BY 1, 2, 3`,
		[]any{&oid, &name, &expr},
		func() error {
			r := l.relations[oid]
			if r == nil || r.Column(name) == nil {
				return nil
			}
			if values := listed(expr); values != nil && r.Column(name).Values == nil {
				r.Column(name).Values = values
			}
			return nil
		})
}

// membership is how PostgreSQL prints `column IN ('a', 'b')` for text, varchar and their domains, and what it leaves
// over.
var (
	membership = regexp.MustCompile(
		`^\(+(?:[^\s"'()]+|"(?:[^"]|"")+")\)*(?:::[a-z ]+)? = ANY \(+ARRAY\[(.*?)\]\)*(?:::[a-z ]+\[\])?\)+$`)
	element = regexp.MustCompile(`^\(?'((?:[^']|'')*)'::[a-z ]+(?:\([0-9]+\))?\)?(?:::[a-z ]+)?(?:, |$)`)
)

// listed returns the values of a check that is a plain list of strings, sorted; nil for every other check.
func listed(expr string) []string {
	found := membership.FindStringSubmatch(expr)
	if found == nil {
		return nil
	}
	var out []string
	for rest := found[1]; rest != ""; {
		one := element.FindStringSubmatch(rest)
		if one == nil {
			return nil
		}
		out = append(out, strings.ReplaceAll(one[1], "''", "'"))
		rest = rest[len(one[0]):]
	}
	slices.Sort(out)
	return slices.Compact(out)
}
