package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// UsesRegistry tells whether a rule reads the consent registry, or a lifecycle depends on it. The rules of tables with
// `observe: true` count, too.
func (p *Policy) UsesRegistry() bool {
	return slices.ContainsFunc(p.Tables(), func(t *Table) bool { return t.usesRegistry() })
}

func (t *Table) usesRegistry() bool {
	if t.Lifecycle != nil || t.Observed != nil && t.Observed.usesRegistry() {
		return true
	}
	return slices.ContainsFunc(predicate.LookupTables(t.VisibilityRules()),
		func(h predicate.LookupTable) bool { return h.Relation == predicate.RegistryRelation() })
}

// LookupTables returns the other tables that the rules of a table read, for reading and for writing, sorted by name.
func (t *Table) LookupTables() []predicate.LookupTable {
	return predicate.LookupTables(append(predicate.All{t.VisibilityRules()}, t.Write.Conditions()...))
}
