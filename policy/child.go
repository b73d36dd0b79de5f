package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Child is a partition or an inheritance child, at any depth, of tables that the policy lists. The policy does not list
// the child itself. The rule of the parent applies to its rows, whether a statement names the parent or the child.
type Child struct {
	Relation *catalog.Relation
	Rows     predicate.Node // the rules of all parents, which must all hold
	PartOf   []catalog.Name // the tables of the policy of which it is a partition or child
	// agents may name the child in statements: it has no column that its parents lack, and its parents hide no column
	ReadableByName bool
}

// hasChild tells whether a relation is a partition or child of a table of the policy.
func (p *Policy) hasChild(n catalog.Name) bool {
	return slices.ContainsFunc(p.children, func(c *Child) bool { return c.Relation.Name == n })
}

// findChildren finds the partitions and inheritance children of the policy's tables, sorted by name.
func (c *compiler) findChildren(p *Policy) []*Child {
	inherits := map[catalog.Name][]*catalog.Relation{}
	for _, r := range c.snap.Relations() {
		for _, parent := range r.Parents {
			inherits[parent] = append(inherits[parent], r)
		}
	}
	children := map[catalog.Name]*Child{}
	for _, t := range p.tables {
		visited := map[catalog.Name]bool{}
		var descend func(n catalog.Name)
		descend = func(n catalog.Name) {
			for _, r := range inherits[n] {
				if _, isList := p.tableIndex[r.Name]; isList || visited[r.Name] {
					continue
				}
				visited[r.Name] = true
				if r.Kind == catalog.Table || r.Kind == catalog.PartitionedTable {
					children[r.Name] = addParent(children[r.Name], r, t)
				}
				descend(r.Name)
			}
		}
		descend(t.Relation.Name)
	}
	var out []*Child
	for _, child := range children {
		out = append(out, child)
	}
	slices.SortFunc(out, func(a, b *Child) int { return compareNames(a.Relation.Name, b.Relation.Name) })
	return out
}

// addParent records that a child descends from a table of the policy, and returns the child, which it makes if needed.
func addParent(child *Child, r *catalog.Relation, t *Table) *Child {
	isReadable := t.Columns == nil && !slices.ContainsFunc(r.Columns,
		func(c catalog.Column) bool { return t.Relation.Column(c.Name) == nil })
	if child == nil {
		return &Child{Relation: r, Rows: t.Rows, PartOf: []catalog.Name{t.Relation.Name}, ReadableByName: isReadable}
	}
	return &Child{Relation: r, Rows: predicate.All{child.Rows, t.Rows}, PartOf: append(child.PartOf, t.Relation.Name),
		ReadableByName: isReadable && child.ReadableByName}
}
