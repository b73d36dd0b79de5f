package noninterference

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
)

// categories has values of some columns show only where the subject of the row consents to a category.
func (s *schema) categories(r *rand.Rand) {
	for _, t := range s.tables {
		if t.rule == nil || t.commands != nil || t.grouped || strings.HasPrefix(t.name, "link") || r.IntN(4) > 0 {
			continue
		}
		consent := s.asks(r, t, false)
		a := consent.registry
		a.category, a.days = "", 0
		if t.columns[0].mask != "" || t.columns[0].secret {
			a.row = false
		}
		for i := t.keys; i < len(t.columns); i++ {
			c := &t.columns[i]
			if c.ruled || c.secret || c.domain != "" || r.IntN(3) == 0 {
				continue
			}
			needed := *a
			needed.category, needed.days = pick(r, "ESSENTIAL", "BEHAVIORAL", "ESSENTIAL/x"), 1<<20
			if a.since && r.IntN(2) == 0 {
				c.until = pick(r, 29, 60, 90)
				needed.days = c.until + 1 // on that day still
			}
			c.needs = &rule{kind: "registry", column: consent.column, word: consent.word, registry: &needed}
			t.consent = consent
		}
		if t.consent != nil && s.registry == nil {
			s.registry = fold()
		}
		a.fold = s.registry
		for _, c := range t.columns {
			if c.needs != nil {
				c.needs.registry.fold = s.registry
			}
		}
	}
}

// entry is what the policy says of a column that shows.
func (c column) entry() string {
	switch {
	case c.needs == nil && c.mask == "":
		return "allow"
	case c.needs == nil:
		return c.mask
	}
	out := "category: " + c.needs.registry.category
	if c.until > 0 {
		out += fmt.Sprintf(", until: { decay: %d days }", c.until)
	}
	if c.mask != "" {
		out = strings.TrimSuffix(strings.TrimPrefix(c.mask, "{ "), " }") + ", " + out
	}
	return "{ " + out + " }"
}

// consented tells whether the value of a column shows in a row that does.
func (d data) consented(c column, at row, caller map[string]string) bool {
	return c.needs == nil || d.byRecords(c.needs, at, caller)
}

// withoutUnconsented is a row in which what does not show is NULL.
func (d data) withoutUnconsented(t *table, at row, caller map[string]string) row {
	out := maps.Clone(at)
	for _, c := range t.columns {
		if !d.consented(c, at, caller) {
			delete(out, c.name)
		}
	}
	return out
}
