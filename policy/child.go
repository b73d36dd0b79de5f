package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Child is a partition or an inheritance child, at any depth, of tables of the policy, which does not list it itself.
// Read through its parent it is under the parent's rule. Read by its own name it must be under the same rule.
type Child struct {
	Relation       *catalog.Relation
	Rows           predicate.Node // what every parent asks
	ReadableByName bool           // agents may name it: it has no column besides, and its parents hide none
}

// hasChild tells whether a relation is a child of tables of the policy.
func (p *Policy) hasChild(n catalog.Name) bool {
	return slices.ContainsFunc(p.children, func(c *Child) bool { return c.Relation.Name == n })
}

// children finds them, sorted by name.
func (c *compiler) children(p *Policy) []*Child {
	inherits := map[catalog.Name][]*catalog.Relation{}
	for _, r := range c.snap.Relations() {
		for _, parent := range r.Parents {
			inherits[parent] = append(inherits[parent], r)
		}
	}
	found := map[catalog.Name]*Child{}
	for _, t := range p.tables {
		seen := map[catalog.Name]bool{}
		var descend func(n catalog.Name)
		descend = func(n catalog.Name) {
			for _, r := range inherits[n] {
				if _, listed := p.tableIndex[r.Name]; listed || seen[r.Name] {
					continue
				}
				seen[r.Name] = true
				if r.Kind == catalog.Table || r.Kind == catalog.PartitionedTable {
					found[r.Name] = addParent(found[r.Name], r, t)
				}
				descend(r.Name)
			}
		}
		descend(t.Relation.Name)
	}
	var out []*Child
	for _, child := range found {
		out = append(out, child)
	}
	slices.SortFunc(out, func(a, b *Child) int { return compareNames(a.Relation.Name, b.Relation.Name) })
	return out
}

// addParent adds a table of the policy to those that a child descends from.
func addParent(child *Child, r *catalog.Relation, t *Table) *Child {
	direct := t.Columns == nil && !slices.ContainsFunc(r.Columns,
		func(c catalog.Column) bool { return t.Relation.Column(c.Name) == nil })
	if child == nil {
		return &Child{Relation: r, Rows: t.Rows, ReadableByName: direct}
	}
	return &Child{Relation: r, Rows: predicate.All{child.Rows, t.Rows}, ReadableByName: direct && child.ReadableByName}
}
