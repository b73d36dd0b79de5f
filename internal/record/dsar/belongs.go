package dsar

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// SubjectTable is a table whose rows belong to data subjects according to the policy.
type SubjectTable struct {
	Relation *catalog.Relation
	Links    []SubjectLink // a row belongs to a subject if one of these links leads to the subject
	// the names that statements use to read the table's rows: its own, and those of its child tables and views over it
	Names []string
}

// SubjectLink is a way from a row to the subject to whom it belongs.
type SubjectLink struct {
	Steps  []LinkStep
	Column string         // the column of the last table that has the subject's id; "": List has the ids
	List   predicate.List // the list that contains the subject's id, if Column is ""
}

// LinkStep is one step of a link, from a row to rows of Relation: by columns, or by MadeFrom to rows from which it was
// made.
type LinkStep struct {
	predicate.Step
	MadeFrom []predicate.Origin // how rows are made from rows of Relation, if the step has no columns
	// the step leads to the row itself, and to all rows of the same table from which it was made, directly or indirectly
	Recursive bool
}

// SubjectTables returns the tables of a policy whose rows belong to data subjects, sorted by name. The policy says so
// by own blocks with the attribute of subjects, by consent blocks, and by the subject columns of aggregates and
// lifecycles. Rows that link to rows of a subject belong to the subject, too.
func SubjectTables(p *policy.Policy) []SubjectTable {
	b := linkCollector{policy: p, links: map[catalog.Name][]SubjectLink{}, relations: map[catalog.Name]*catalog.Relation{},
		visited: map[catalog.Name]bool{}, selfOrigins: map[catalog.Name][]predicate.Origin{}}
	for _, table := range p.Tables() {
		b.findPersonTables(table.Rows)
		if table.Aggregate != nil {
			b.findPersonTables(table.Aggregate.Rows)
		}
	}
	for _, table := range p.Tables() {
		b.collectLinks(table)
	}
	var out []SubjectTable
	for name, links := range b.links {
		if len(links) > 0 {
			out = append(out, SubjectTable{b.relations[name], b.recursiveLinks(b.relations[name]), statementNames(p, name)})
		}
	}
	slices.SortFunc(out, func(x, y SubjectTable) int {
		if x.Relation.Name.String() < y.Relation.Name.String() {
			return -1
		}
		return 1
	})
	return out
}

// linkCollector collects the links of all tables of a policy.
type linkCollector struct {
	policy      *policy.Policy
	links       map[catalog.Name][]SubjectLink
	relations   map[catalog.Name]*catalog.Relation
	visited     map[catalog.Name]bool               // tables whose links are being collected or were collected
	selfOrigins map[catalog.Name][]predicate.Origin // how rows of a table are made from other rows of the same table
}

// forEachNode calls visit for a node, and for the nodes of its all and any blocks.
func forEachNode(node predicate.Node, visit func(predicate.Node)) {
	visit(node)
	switch n := node.(type) {
	case predicate.All:
		for _, part := range n {
			forEachNode(part, visit)
		}
	case predicate.Any:
		for _, part := range n {
			forEachNode(part, visit)
		}
	}
}

// findPersonTables adds links for the tables that have a row for each person: those to which consent blocks lead.
func (b *linkCollector) findPersonTables(n predicate.Node) {
	forEachNode(n, func(n predicate.Node) {
		c, ok := n.(predicate.Consent)
		if !ok || len(c.Steps) == 0 {
			return
		}
		lastTable := c.Steps[len(c.Steps)-1].Relation
		if len(lastTable.PrimaryKey) == 1 {
			b.addLink(lastTable, SubjectLink{Column: lastTable.PrimaryKey[0]})
		}
	})
}

func (b *linkCollector) addLink(r *catalog.Relation, l SubjectLink) {
	b.relations[r.Name] = r
	if slices.ContainsFunc(b.links[r.Name], l.equals) {
		return
	}
	b.links[r.Name] = append(b.links[r.Name], l)
}

func (l SubjectLink) equals(other SubjectLink) bool {
	return l.Column == other.Column && l.List == other.List && slices.EqualFunc(l.Steps, other.Steps, func(x,
		y LinkStep) bool {
		return x.Relation.Name == y.Relation.Name && x.Column == y.Column && x.FromColumn == y.FromColumn &&
			slices.Equal(x.MorePairs, y.MorePairs) && x.Recursive == y.Recursive &&
			slices.EqualFunc(x.MadeFrom, y.MadeFrom, func(m, n predicate.Origin) bool {
				return m.DerivedFromCondition("r", "s") == n.DerivedFromCondition("r", "s")
			})
	})
}

// collectLinks collects the links of one table of the policy.
func (b *linkCollector) collectLinks(table *policy.Table) {
	relation := table.Relation
	if b.visited[relation.Name] {
		return
	}
	b.visited[relation.Name] = true
	if table.Observed != nil { // the observed rule names the subject, although it is not enforced yet
		table = table.Observed
	}
	b.collectFromNode(relation, table.Rows)
	for _, node := range table.ColumnConditions() {
		b.collectFromNode(relation, node)
	}
	if table.Aggregate != nil {
		b.addLink(relation, SubjectLink{Column: table.Aggregate.Subject})
		b.collectFromNode(relation, table.Aggregate.Rows)
	}
	if table.Lifecycle != nil {
		b.addLink(relation, SubjectLink{Column: table.Lifecycle.Subject})
	}
}

// recursiveLinks returns the links of a table. If rows of the table are made from each other, a row also belongs to the
// subjects of the rows from which it was made.
func (b *linkCollector) recursiveLinks(r *catalog.Relation) []SubjectLink {
	out, ways := slices.Clone(b.links[r.Name]), b.selfOrigins[r.Name]
	if len(ways) == 0 || len(r.PrimaryKey) == 0 {
		return out
	}
	for i, l := range out {
		out[i].Steps = append([]LinkStep{{Step: predicate.Step{Relation: r}, MadeFrom: ways, Recursive: true}}, l.Steps...)
	}
	return out
}

func (b *linkCollector) collectFromNode(relation *catalog.Relation, node predicate.Node) {
	forEachNode(node, func(node predicate.Node) {
		switch n := node.(type) {
		case predicate.Own:
			if n.Attribute == b.policy.SubjectAttribute() {
				b.addLink(relation, SubjectLink{Column: n.Column})
			}
		case predicate.Consent:
			if len(n.Steps) == 0 {
				return
			}
			lastStep := n.Steps[len(n.Steps)-1]
			if len(lastStep.Relation.PrimaryKey) == 1 {
				b.addLink(relation, SubjectLink{Steps: linkSteps(n.Steps), Column: lastStep.Relation.PrimaryKey[0]})
			}
		case predicate.RecordedConsent:
			b.addLink(relation, subjectLink(n))
		case predicate.RegistryConsent:
			b.addLink(relation, subjectLink(n.Subjects))
		case predicate.Visible:
			b.addLinksThrough(relation, LinkStep{Step: predicate.Step{Relation: n.Relation, Column: n.Column,
				FromColumn: n.FromColumn,
				MorePairs:  n.MorePairs}}, n.Rows)
		case predicate.Derived:
			if n.SourceTable().Name == relation.Name {
				if !slices.ContainsFunc(b.selfOrigins[relation.Name],
					func(o predicate.Origin) bool {
						return o.DerivedFromCondition("r", "s") == n.DerivedFromCondition("r", "s")
					}) {
					b.selfOrigins[relation.Name] = append(b.selfOrigins[relation.Name], n.Origin)
				}
				return
			}
			b.addLinksThrough(relation, LinkStep{Step: predicate.Step{Relation: n.SourceTable()},
				MadeFrom: []predicate.Origin{n.Origin}},
				n.SourceCondition())
		}
	})
}

// subjectLink returns the link from a row to the subjects of a recorded consent.
func subjectLink(n predicate.RecordedConsent) SubjectLink {
	l := SubjectLink{Steps: linkSteps(n.Steps), Column: n.Subject}
	if n.Subject == "" {
		l.List = n.Subjects
	}
	return l
}

func linkSteps(steps []predicate.Step) []LinkStep {
	out := make([]LinkStep, len(steps))
	for i, s := range steps {
		out[i] = LinkStep{Step: s}
	}
	return out
}

// addLinksThrough adds links to relation that go through step to another table: the links of that table's own rule, and
// those of the given rule about it. A table that the policy does not list has no rule of its own.
func (b *linkCollector) addLinksThrough(relation *catalog.Relation, step LinkStep, rule predicate.Node) {
	target := step.Relation
	targetTable, isListed := b.policy.Table(target.Name)
	if isListed {
		b.collectLinks(targetTable)
	}
	links := b.links[target.Name]
	b.links[target.Name] = slices.Clone(links)
	b.collectFromNode(target, rule)
	targetLinks := b.recursiveLinks(target)
	if isListed {
		b.links[target.Name] = links
	}
	for _, l := range targetLinks {
		b.addLink(relation, SubjectLink{Steps: append([]LinkStep{step}, l.Steps...), Column: l.Column, List: l.List})
	}
}

// statementNames returns the names that statements can use to read the rows of a table.
func statementNames(p *policy.Policy, table catalog.Name) []string {
	out := []string{table.String()}
	readTables := map[catalog.Name]bool{table: true}
	for _, c := range p.Children() {
		if slices.ContainsFunc(c.Relation.Parents, func(name catalog.Name) bool { return readTables[name] }) {
			readTables[c.Relation.Name] = true
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
