package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// AsksRegistry tells whether any rule asks the consent registry, or any row goes with a consent of it; also one that is
// observed only.
func (p *Policy) AsksRegistry() bool {
	return slices.ContainsFunc(p.Tables(), func(t *Table) bool { return t.asksRegistry() })
}

func (t *Table) asksRegistry() bool {
	if t.Lifecycle != nil || t.Observed != nil && t.Observed.asksRegistry() {
		return true
	}
	return slices.ContainsFunc(predicate.Helpers(t.Decides()),
		func(h predicate.Helper) bool { return h.Relation == predicate.RegistryRelation() })
}

// LooksInto are the tables that the rules of a table read besides its own row, for reading and writing, sorted by name.
func (t *Table) LooksInto() []predicate.Helper {
	all := predicate.All{t.Decides()}
	if t.Write != nil {
		all = append(all, t.Write.InsertCheck, t.Write.UpdateCheck)
	}
	return predicate.Helpers(all)
}
