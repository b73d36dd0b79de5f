package predicate

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// TablesWhereInsertHides returns the tables in which an INSERT can hide other rows that were visible before. These are
// the tables to which the steps of a consent or of a Derived node lead. A step that leads to at most one row does not
// count. The tables are sorted by name.
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
			found[CurrentConsents] = registryTable // the first record about a subject may be a refusal
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

// isUnique reports whether the column to which a step leads is unique, so that the step leads to at most one row.
func isUnique(s Step) bool {
	return slices.Equal(s.Relation.PrimaryKey, []string{s.Column})
}

// TimeCanHide reports whether a row can become hidden by the passing of time alone.
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
