package noninterference

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
)

// addCategories makes some columns visible only if the subject of the row consents to a category.
func (s *schema) addCategories(r *rand.Rand) {
	for _, t := range s.tables {
		if t.rule == nil || t.writeCommands != nil || t.countsHiddenRows || strings.HasPrefix(t.name, "link") || r.IntN(4) > 0 {
			continue
		}
		consent := s.newRegistryRule(r, t, false)
		a := consent.registryQuestion
		a.category, a.countdownDays = "", 0
		if t.columns[0].mask != "" || t.columns[0].isHidden {
			a.rowScope = false
		}
		for i := t.keyCount; i < len(t.columns); i++ {
			c := &t.columns[i]
			if c.isReadByRule || c.isHidden || c.domain != "" || r.IntN(3) == 0 {
				continue
			}
			needed := *a
			needed.category, needed.countdownDays = pick(r, "ESSENTIAL", "BEHAVIORAL", "ESSENTIAL/x"), 1<<20
			if a.sinceColumn && r.IntN(2) == 0 {
				c.lastDay = pick(r, 29, 60, 90)
				needed.countdownDays = c.lastDay + 1 // on that last day, the column is still visible
			}
			c.consentRule = &rule{kind: "registry", column: consent.column, sharedWord: consent.sharedWord, registryQuestion: &needed}
			t.consentRule = consent
		}
		if t.consentRule != nil && s.registry == nil {
			s.registry = newRegistryTable()
		}
		a.registryTable = s.registry
		for _, c := range t.columns {
			if c.consentRule != nil {
				c.consentRule.registryQuestion.registryTable = s.registry
			}
		}
	}
}

// policyEntry returns the policy's entry for a column that agents see.
func (c column) policyEntry() string {
	switch {
	case c.consentRule == nil && c.mask == "":
		return "allow"
	case c.consentRule == nil:
		return c.mask
	}
	out := "category: " + c.consentRule.registryQuestion.category
	if c.lastDay > 0 {
		out += fmt.Sprintf(", until: { decay: %d days }", c.lastDay)
	}
	if c.mask != "" {
		out = strings.TrimSuffix(strings.TrimPrefix(c.mask, "{ "), " }") + ", " + out
	}
	return "{ " + out + " }"
}

// isConsented reports whether the caller may see the value of a column in a visible row, as far as consent decides.
func (d data) isConsented(c column, at row, caller map[string]string) bool {
	return c.consentRule == nil || d.registryShows(c.consentRule, at, caller)
}

// withoutUnconsented returns a copy of a row without the values for which a consent is missing.
func (d data) withoutUnconsented(t *table, at row, caller map[string]string) row {
	out := maps.Clone(at)
	for _, c := range t.columns {
		if !d.isConsented(c, at, caller) {
			delete(out, c.name)
		}
	}
	return out
}
