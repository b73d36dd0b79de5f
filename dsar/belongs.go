package dsar

import (
	"slices"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/predicate"
)

// Table is a table whose rows the policy says to be somebody's.
type Table struct {
	Relation *catalog.Relation
	Links    []Link   // a row is the subject's by any of them
	Names    []string // by which statements reach its rows: its own, those of its children, of the views that read it
}

// Link leads from a row to a subject.
type Link struct {
	Hops   []Hop
	Column string         // equals the subject's id; or
	List   predicate.List // has it
}

// Hop leads to the rows of another table: by columns, or by a list of its keys.
type Hop struct {
	predicate.Step
	List predicate.List // Step's Column is the key that it lists
}

// deepest is how many hops a link may have. Rules that lead further say whose a row is by way of others.
const deepest = 6

// Tables are those of a policy, sorted by name. Rows are a subject's by the attribute that the policy calls the subject of records, by
// the consents that it asks for, and by links to such rows.
func Tables(p *policy.Policy) []Table {
	b := belonging{policy: p, links: map[catalog.Name][]Link{}, relations: map[catalog.Name]*catalog.Relation{}, under: map[catalog.Name]bool{}}
	for _, t := range p.Tables() {
		b.persons(t.Rows)
		if t.Aggregate != nil {
			b.persons(t.Aggregate.Rows)
		}
	}
	for _, t := range p.Tables() {
		b.of(t)
	}
	var out []Table
	for name, links := range b.links {
		if len(links) == 0 {
			continue
		}
		out = append(out, Table{b.relations[name], links, names(p, name)})
	}
	slices.SortFunc(out, func(x, y Table) int {
		if x.Relation.Name.String() < y.Relation.Name.String() {
			return -1
		}
		return 1
	})
	return out
}

// belonging collects links.
type belonging struct {
	policy    *policy.Policy
	links     map[catalog.Name][]Link
	relations map[catalog.Name]*catalog.Relation
	under     map[catalog.Name]bool // being collected
}

// each visits the nodes that speak of one and the same row.
func each(n predicate.Node, visit func(predicate.Node)) {
	visit(n)
	switch n := n.(type) {
	case predicate.All:
		for _, part := range n {
			each(part, visit)
		}
	case predicate.Any:
		for _, part := range n {
			each(part, visit)
		}
	}
}

// persons finds the tables whose rows are persons: those that consents lead to.
func (b *belonging) persons(n predicate.Node) {
	each(n, func(n predicate.Node) {
		c, ok := n.(predicate.Consent)
		if !ok || len(c.Steps) == 0 {
			return
		}
		last := c.Steps[len(c.Steps)-1].Relation
		if len(last.PrimaryKey) == 1 {
			b.add(last, Link{Column: last.PrimaryKey[0]})
		}
	})
}

func (b *belonging) add(r *catalog.Relation, l Link) {
	b.relations[r.Name] = r
	if len(l.Hops) > deepest || slices.ContainsFunc(b.links[r.Name], l.same) {
		return
	}
	b.links[r.Name] = append(b.links[r.Name], l)
}

func (l Link) same(other Link) bool {
	return l.Column == other.Column && l.List == other.List && slices.EqualFunc(l.Hops, other.Hops, func(x, y Hop) bool {
		return x.Relation.Name == y.Relation.Name && x.Column == y.Column && x.From == y.From && x.List == y.List && slices.Equal(x.And, y.And)
	})
}

// of collects the links of a table of the policy.
func (b *belonging) of(t *policy.Table) {
	r := t.Relation
	if b.under[r.Name] {
		return
	}
	b.under[r.Name] = true
	if t.Observed != nil { // what would be enforced says whose its rows are
		t = t.Observed
	}
	b.node(r, t.Rows)
	if t.Columns != nil {
		for _, c := range t.Columns.Columns {
			if c.When != nil {
				b.node(r, c.When)
			}
		}
	}
	if t.Aggregate != nil {
		b.add(r, Link{Column: t.Aggregate.Subject})
		b.node(r, t.Aggregate.Rows)
	}
}

func (b *belonging) node(r *catalog.Relation, n predicate.Node) {
	each(n, func(n predicate.Node) {
		switch n := n.(type) {
		case predicate.Own:
			if n.Attribute == b.policy.Subject() {
				b.add(r, Link{Column: n.Column})
			}
		case predicate.Consent:
			if len(n.Steps) == 0 {
				return
			}
			last := n.Steps[len(n.Steps)-1]
			if len(last.Relation.PrimaryKey) == 1 {
				b.add(r, Link{Hops: hops(n.Steps), Column: last.Relation.PrimaryKey[0]})
			}
		case predicate.Recorded:
			b.add(r, subjects(n))
		case predicate.Registered:
			b.add(r, subjects(n.Of))
		case predicate.Visible:
			b.through(r, Hop{Step: predicate.Step{Relation: n.Relation, Column: n.Column, From: n.From, And: n.And}})
		case predicate.Derived:
			if len(n.Steps) == 0 {
				b.through(r, Hop{Step: predicate.Step{Relation: n.Source, Column: n.Key}, List: n.List})
				return
			}
			b.through(r, hops(n.Steps)...)
		}
	})
}

// subjects are those of consents by record.
func subjects(n predicate.Recorded) Link {
	l := Link{Hops: hops(n.Steps), Column: n.Subject}
	if n.Subject == "" {
		l.List = n.Subjects
	}
	return l
}

func hops(steps []predicate.Step) []Hop {
	out := make([]Hop, len(steps))
	for i, s := range steps {
		out[i] = Hop{Step: s}
	}
	return out
}

// through gives a table the links of another, by way of it.
func (b *belonging) through(r *catalog.Relation, way ...Hop) {
	to := way[len(way)-1].Relation
	if next, ok := b.policy.Table(to.Name); ok {
		b.of(next)
	}
	for _, l := range slices.Clone(b.links[to.Name]) {
		b.add(r, Link{Hops: append(slices.Clone(way), l.Hops...), Column: l.Column, List: l.List})
	}
}

// names are those by which statements reach the rows of a table.
func names(p *policy.Policy, table catalog.Name) []string {
	out := []string{table.String()}
	reads := map[catalog.Name]bool{table: true}
	for _, c := range p.Children() {
		if slices.ContainsFunc(c.Relation.Parents, func(n catalog.Name) bool { return reads[n] }) {
			reads[c.Relation.Name] = true
			out = append(out, c.Relation.Name.String())
		}
	}
	for _, v := range p.Views() {
		if slices.Contains(v.Tables, table) {
			out = append(out, v.Relation.Name.String())
		}
	}
	return out
}
