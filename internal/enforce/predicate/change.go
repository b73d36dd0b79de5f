package predicate

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// TablesWhereInsertHides returns the tables in which a new row can hide other rows that showed before. These are the
// tables to which steps of a consent or of a derivation lead. Steps that lead to at most one row do not count. They are
// sorted by name.
func TablesWhereInsertHides(n Node) []*catalog.Relation {
	found := map[catalog.Name]*catalog.Relation{}
	walkNodes(n, nil, func(n Node, _ *catalog.Relation) {
		var steps []Step
		switch n := n.(type) {
		case Consent:
			steps = n.Steps
		case RecordedConsent:
			steps = n.Steps
		case Derived:
			for _, o := range append([]Origin{n.Origin}, n.SourceOrigins...) {
				steps = append(steps, o.Steps...)
			}
		case RegistryConsent:
			steps = n.Subjects.Steps
			found[CurrentConsents] = registryTable // a first record of a subject may be a refusal
		}
		for _, step := range steps {
			if !isUnique(step) {
				found[step.Relation.Name] = step.Relation
			}
		}
	})
	var out []*catalog.Relation
	for _, r := range found {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *catalog.Relation) int { return compareNames(a.Name, b.Name) })
	return out
}

// isUnique tells whether no two rows share the column to which a step leads.
func isUnique(s Step) bool {
	return slices.Equal(s.Relation.PrimaryKey, []string{s.Column})
}

// TimeCanHide tells whether the passing of time alone can hide a row.
func TimeCanHide(n Node) bool {
	timed := false
	walkNodes(n, nil, func(n Node, _ *catalog.Relation) {
		switch n := n.(type) {
		case Open, All, Any, Not, Own, Status, Tenant, Grant, Visible, Reference, RecordedConsent, Derived:
		case Consent:
			timed = timed || n.ExpiryColumn != ""
		case SQL:
			walkExpr(n.Expr, func(e Expr) {
				if _, ok := e.(ClockTime); ok {
					timed = true
				}
			})
		default:
			timed = true
		}
	})
	return timed
}
