package pgcatalog

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// readValues reads the CHECK constraints by which a column may hold only certain strings. PostgreSQL stores column IN
// ('a', 'b') as an operator over an array. If a column has several such constraints, the one with the first text
// counts.
func (r *relationReader) readValues(ctx context.Context) error {
	var (
		oid    uint32
		number int16
		expr   string
	)
	return r.each(ctx, `SELECT k.conrelid, k.conkey[1], pg_get_expr(k.conbin, k.conrelid) FROM pg_constraint AS k
		WHERE k.contype = 'c' AND k.convalidated AND k.conbin::text LIKE '%{SCALARARRAYOPEXPR %'
		AND k.contypid = 0 AND cardinality(k.conkey) = 1 AND `+r.relationCondition("k.conrelid"),
		[]any{&oid, &number, &expr},
		func() error {
			t := r.factsOf(oid)
			setInMap(&t.checkedValues, number, append(t.checkedValues[number], expr))
			return nil
		}, r.conditionArgs()...)
}

// readDomainValues reads the CHECK constraints by which a domain may hold only certain strings.
func (l *loader) readDomainValues(ctx context.Context) error {
	var (
		domain uint32
		expr   string
	)
	l.domainValues = map[uint32][]string{}
	return l.each(ctx, `SELECT k.contypid, pg_get_expr(k.conbin, 0) FROM pg_constraint AS k
		WHERE k.contype = 'c' AND k.convalidated AND k.conbin::text LIKE '%{SCALARARRAYOPEXPR %' AND k.contypid <> 0`,
		[]any{&domain, &expr},
		func() error {
			l.domainValues[domain] = append(l.domainValues[domain], expr)
			return nil
		})
}

// setValues sets for each column the strings that its own or its domain's CHECK constraints allow.
func (l *loader) setValues(context.Context) error {
	for oid, relation := range l.relations {
		values := l.catalogFacts.relations[oid].checkedValues
		for i := range relation.Columns {
			c := &relation.Columns[i]
			checks := slices.Concat(values[l.attributes[oid][i].number], l.domainValues[c.TypeOID])
			slices.Sort(checks)
			for _, expr := range checks {
				if c.AllowedValues = listedValues(expr); c.AllowedValues != nil {
					break
				}
			}
		}
	}
	return nil
}

// These regular expressions match how PostgreSQL prints `column IN ('a', 'b')` for text, varchar and their domains.
var (
	membershipPattern = regexp.MustCompile(
		`^\(+(?:[^\s"'()]+|"(?:[^"]|"")+")\)*(?:::[a-z ]+)? = ANY \(+ARRAY\[(.*?)\]\)*(?:::[a-z ]+\[\])?\)+$`)
	elementPattern = regexp.MustCompile(`^\(?'((?:[^']|'')*)'::[a-z ]+(?:\([0-9]+\))?\)?(?:::[a-z ]+)?(?:, |$)`)
)

// listedValues returns the values of a check that is a plain list of strings, sorted; nil for every other check.
func listedValues(expr string) []string {
	match := membershipPattern.FindStringSubmatch(expr)
	if match == nil {
		return nil
	}
	var out []string
	for rest := match[1]; rest != ""; {
		element := elementPattern.FindStringSubmatch(rest)
		if element == nil {
			return nil
		}
		out = append(out, strings.ReplaceAll(element[1], "''", "'"))
		rest = rest[len(element[0]):]
	}
	slices.Sort(out)
	return slices.Compact(out)
}
