package pgcatalog

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// readValues reads the checks that let a column have a list of strings only, its own or its domain's: column IN ('a',
// 'b') is stored as an operator over an array. Of several such checks it takes the one whose text is first.
func (l *loader) readValues(ctx context.Context) error {
	var (
		oid, domain uint32
		number      int16
		expr        string
	)
	ofColumns, ofDomains := map[column][]string{}, map[uint32][]string{}
	if err := l.each(ctx, `SELECT k.conrelid, COALESCE(k.conkey[1], 0), k.contypid, pg_get_expr(k.conbin, k.conrelid) FROM pg_constraint AS k
		WHERE k.contype = 'c' AND k.convalidated AND k.conbin::text LIKE '%{SCALARARRAYOPEXPR %'
		AND (k.contypid <> 0 OR cardinality(k.conkey) = 1)`,
		[]any{&oid, &number, &domain, &expr},
		func() error {
			if domain != 0 {
				ofDomains[domain] = append(ofDomains[domain], expr)
			} else {
				ofColumns[column{oid, number}] = append(ofColumns[column{oid, number}], expr)
			}
			return nil
		}); err != nil {
		return err
	}
	if len(ofColumns)+len(ofDomains) == 0 {
		return nil
	}
	for oid, r := range l.relations {
		for i := range r.Columns {
			c := &r.Columns[i]
			checks := slices.Concat(ofColumns[column{oid, l.attributes[oid][i].number}], ofDomains[c.TypeOID])
			slices.Sort(checks)
			for _, expr := range checks {
				if c.Values = listed(expr); c.Values != nil {
					break
				}
			}
		}
	}
	return nil
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
