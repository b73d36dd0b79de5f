package predicate

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// TablesWhereInsertHides returns the tables in which a new row can hide other rows that showed before. These are the
// tables to which steps of a consent or of a derivation lead. Steps that lead to at most one row do not count. They are
// sorted by name.
func TablesWhereInsertHides(node Node) []*catalog.Relation {
	found := map[catalog.Name]*catalog.Relation{}
	walkNodes(node, nil, func(node Node, _ *catalog.Relation) {
		var steps []Step
		switch n := node.(type) {
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
	for _, relation := range found {
		out = append(out, relation)
	}
	slices.SortFunc(out, func(a, b *catalog.Relation) int { return compareNames(a.Name, b.Name) })
	return out
}

// isUnique tells whether no two rows share the column to which a step leads.
func isUnique(s Step) bool {
	return slices.Equal(s.Relation.PrimaryKey, []string{s.Column})
}

// TimeCanHide tells whether the passing of time alone can hide a row.
func TimeCanHide(node Node) bool {
	timed := false
	walkNodes(node, nil, func(node Node, _ *catalog.Relation) {
		switch n := node.(type) {
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
