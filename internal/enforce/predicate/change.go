package predicate

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// InsertCanHide returns the tables of n in which a new row can hide rows that showed before: those to which steps of a
// consent or of a derivation lead, except steps that lead to at most one row. Sorted by name.
func InsertCanHide(n Node) []*catalog.Relation {
	found := map[catalog.Name]*catalog.Relation{}
	walk(n, nil, func(n Node, _ *catalog.Relation) {
		var steps []Step
		switch n := n.(type) {
		case Consent:
			steps = n.Steps
		case Recorded:
			steps = n.Steps
		case Derived:
			for _, o := range append([]Origin{n.Origin}, n.Again...) {
				steps = append(steps, o.Steps...)
			}
		case Registered:
			steps = n.Of.Steps
			found[CurrentConsents] = registry // a first record may be a refusal
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

// TimeCanHide tells whether time alone can hide a row.
func TimeCanHide(n Node) bool {
	timed := false
	walk(n, nil, func(n Node, _ *catalog.Relation) {
		switch n := n.(type) {
		case Open, All, Any, Not, Own, Status, Tenant, Grant, Visible, Reference, Recorded, Derived:
		case Consent:
			timed = timed || n.Expires != ""
		case SQL:
			walkExpr(n.Expr, func(e Expr) {
				if _, ok := e.(Clock); ok {
					timed = true
				}
			})
		default:
			timed = true
		}
	})
	return timed
}
