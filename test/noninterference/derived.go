package noninterference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// derivation says which rows of the rule's target table are the sources of a row: the rows to which links lead, the row
// whose key is in a column, or the rows whose keys are in a list.
type derivation struct {
	fromOwnTable  bool // the sources are rows of the same table
	byList        bool
	inheritsRules bool  // the caller must see the sources by all rules of their table
	sourceRule    *rule // a further condition on the sources; nil: none
	exception     *rule // rows that fulfil this condition need no source; nil: every row needs one
}

// addDerivedTables adds the block "derived" to the rules of some tables. Their rows have sources in another table or in
// the same table.
func (s *schema) addDerivedTables(r *rand.Rand) {
	for i, t := range slices.Clone(s.tables) {
		if t.rule == nil || t.writeCommands != nil || t.countsHiddenRows || strings.HasPrefix(t.name, "link") || r.IntN(4) > 0 {
			continue
		}
		target := t
		if earlier := s.possibleSources(s.tables[:i]); len(earlier) > 0 && (t.keyCount > 1 || r.IntN(3) > 0) {
			target = pick(r, earlier...)
		}
		if target.keyCount > 1 {
			continue
		}
		derivation := &derivation{fromOwnTable: target == t, inheritsRules: target != t && r.IntN(3) == 0}
		if target == t || r.IntN(3) == 0 {
			derivation.exception = &rule{kind: "status", column: t.addRuleColumn("state", "code"), sharedWord: pick(r, "granted", "revoked", "Granted")}
		}
		isSelfDerived := slices.ContainsFunc(target.rule.partsOfKind("derived"), func(d *rule) bool { return d.derivation.fromOwnTable })
		if target != t && !isSelfDerived && r.IntN(3) == 0 {
			derivation.sourceRule = &rule{kind: "status", column: target.addRuleColumn("state", "code"), sharedWord: pick(r, "granted", "revoked")}
		}
		derivedRule := &rule{kind: "derived", targetTable: target, targetColumn: target.columns[0].name, derivation: derivation}
		switch n := r.IntN(3); {
		case n == 0 && target.columns[0].kind == "code":
			derivation.byList, derivedRule.column = true, t.addRuleColumn("made from "+target.name, "arr")
		case n == 1 && t.keyCount == 1 && t.linkTable() == nil:
			derivedRule.column, derivedRule.linkTable = t.columns[0].name, s.newLink(t, target)
		default:
			derivedRule.column = t.addRuleColumn("ref "+target.name, target.columns[0].kind)
		}
		switch oldRule := t.rule; {
		case oldRule.kind == "open":
			t.rule = &rule{kind: "rows", parts: []*rule{derivedRule}}
		case target == t || r.IntN(3) > 0:
			t.rule = &rule{kind: "rows", parts: []*rule{derivedRule, oldRule}}
		default:
			t.rule = &rule{kind: pick(r, "any", "all"), parts: []*rule{derivedRule, oldRule}}
		}
	}
}

// possibleSources returns the tables whose rows may be sources of other rows. Agents cannot write to these tables.
func (s *schema) possibleSources(tables []*table) (out []*table) {
	for _, t := range tables {
		if t.keyCount == 1 && t.rule != nil && t.writeCommands == nil && !t.countsHiddenRows && !strings.HasPrefix(t.name, "link") {
			out = append(out, t)
		}
	}
	return out
}

// newLink makes a table of links from rows of t to rows of target.
func (s *schema) newLink(t, target *table) *table {
	s.linkCount++
	link := &table{name: fmt.Sprintf("link%d", s.linkCount), keyCount: 2, columns: []column{
		{name: "item", kind: t.columns[0].kind, isReadByRule: true}, {name: "subject", kind: target.columns[0].kind, isReadByRule: true},
		{name: "note", kind: "text"},
	}}
	s.tables = append(s.tables, link)
	return link
}

func (r *rule) derivedYAML() string {
	from := fmt.Sprintf("from: { %q: { %q: %q } }", r.targetTable.name, r.targetColumn, r.column)
	switch {
	case r.derivation.byList:
		from = fmt.Sprintf("sources: %q, of: %q", r.column, r.targetTable.name)
	case r.linkTable != nil:
		from = fmt.Sprintf("from: [ %q: { item: %q }, %q: { %q: subject } ]", r.linkTable.name, r.column, r.targetTable.name, r.targetColumn)
	}
	if r.derivation.inheritsRules {
		from += ", inherit: everything"
	}
	if r.derivation.sourceRule != nil {
		from += ", where: [ " + r.derivation.sourceRule.yaml() + " ]"
	}
	if r.derivation.exception != nil {
		from += ", unless: [ " + r.derivation.exception.yaml() + " ]"
	}
	return "{ derived: { " + from + " } }"
}

// isDerivationVisible computes the result of the block "derived" in the model: every source of the row must exist, and
// be visible as the block requires. keysBefore has the keys of rows of the same table that led to this row, to detect
// cycles.
func (d data) isDerivationVisible(r *rule, at row, caller map[string]string, keysBefore []string) bool {
	m := r.derivation
	if m.exception != nil && d.judge(m.exception, at, caller) == rowShown {
		return true
	}
	if keysBefore == nil && m.fromOwnTable {
		keysBefore = []string{at[r.targetColumn]}
	}
	var keys []string
	value, isSet := at[r.column]
	switch {
	case !isSet:
		return false
	case m.byList:
		keys = elements(value)
	case r.linkTable != nil:
		for _, link := range d[r.linkTable] {
			if link["item"] == value {
				keys = append(keys, link["subject"])
			}
		}
	default:
		keys = []string{value}
	}
	for _, key := range keys {
		i := slices.IndexFunc(d[r.targetTable], func(source row) bool { return source[r.targetColumn] == key })
		if i < 0 || m.fromOwnTable && slices.Contains(keysBefore, key) {
			return false
		}
		source := d[r.targetTable][i]
		if m.sourceRule != nil && d.judge(m.sourceRule, source, caller) != rowShown {
			return false
		}
		if m.inheritsRules && !d.isVisible(r.targetTable, source, caller) {
			return false
		}
		var path []string
		if m.fromOwnTable {
			path = append(slices.Clone(keysBefore), key)
		}
		if !m.inheritsRules && !d.sourceShows(r.targetTable.rule, source, caller, path) {
			return false
		}
	}
	return len(keys) > 0
}

// sourceShows computes whether a source is visible, apart from the conditions on its owner and its tenant.
func (d data) sourceShows(r *rule, at row, caller map[string]string, keysBefore []string) bool {
	switch r.kind {
	case "rows":
		return !slices.ContainsFunc(r.parts, func(part *rule) bool { return !d.sourceShows(part, at, caller, keysBefore) })
	case "own", "tenant":
		return true
	case "visible":
		value, isSet := at[r.column]
		return slices.ContainsFunc(d[r.targetTable], func(target row) bool {
			return isSet && target[r.targetColumn] == value && d.sourceShows(r.targetTable.rule, target, caller, nil)
		})
	case "derived":
		return d.isDerivationVisible(r, at, caller, keysBefore)
	}
	return d.judge(r, at, caller) == rowShown
}
