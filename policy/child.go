package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Child is a partition or an inheritance child, at any depth, of tables of the policy, that the policy does not list.
// The parent's rule applies to it whether a statement names the parent or the child.
type Child struct {
	Relation       *catalog.Relation
	Rows           predicate.Node // the rules of all parents
	PartOf         []catalog.Name // the tables of the policy that it is a part of
	ReadableByName bool           // agents may name it: it has no other columns than its parents, and these hide none
}

// hasChild tells whether a relation is a partition or child of a table of the policy.
func (p *Policy) hasChild(n catalog.Name) bool {
	return slices.ContainsFunc(p.children, func(c *Child) bool { return c.Relation.Name == n })
}

// children finds the partitions and children, sorted by name.
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

// addParent adds a table of the policy to the tables from which a child descends.
func addParent(child *Child, r *catalog.Relation, t *Table) *Child {
	direct := t.Columns == nil && !slices.ContainsFunc(r.Columns,
		func(c catalog.Column) bool { return t.Relation.Column(c.Name) == nil })
	if child == nil {
		return &Child{Relation: r, Rows: t.Rows, PartOf: []catalog.Name{t.Relation.Name}, ReadableByName: direct}
	}
	return &Child{Relation: r, Rows: predicate.All{child.Rows, t.Rows}, PartOf: append(child.PartOf, t.Relation.Name),
		ReadableByName: direct && child.ReadableByName}
}
