package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// observe reads "observe: true" of a table.
func (d *tableDecoder) observe(decl *tableDecl, n *node) {
	if !d.expect(n, yamlfile.Scalar, "observe") {
		return
	}
	switch n.Value {
	case "true":
		decl.observe = &n.Place
	case "false":
		decl.enforce = true
	default:
		d.fail(n.Place, "", "observe is true or false")
	}
}

// openObserved opens the tables that are observed only. Rules of other tables that lead to them go on as they are written.
func (c *compiler) openObserved(p *Policy) {
	for i, t := range p.tables {
		decl := c.tables[t.Relation.Name].decl
		switch {
		case decl.observe == nil && (!c.doc.observe || decl.enforce):
			continue
		case t.LacksRowSecurity() && decl.observe != nil:
			c.fail(*decl.observe, "enforce it, or leave it out of the policy for now",
				"%s is a %s, which cannot be observed", t.Relation.Name, relationKind(t.Relation.Kind))
			continue
		case t.LacksRowSecurity(): // which is read through a view that has the rule in it
			c.warn(decl.place, "%s is a %s, which cannot be observed: it is enforced", t.Relation.Name, relationKind(t.Relation.Kind))
			continue
		}
		at := decl.place
		if decl.observe != nil {
			at = *decl.observe
		}
		c.warn(at, "%s is observed only: agents read every row and column of it",
			t.Relation.Name)
		p.tables[i] = &Table{Relation: t.Relation, Rows: predicate.Open{}, Rule: t.Rule, Write: t.Write, Observed: t}
	}
}

// Observed returns the tables that the policy does not protect yet, as it would.
func (p *Policy) Observed() []*Table {
	var out []*Table
	for _, t := range p.tables {
		if t.Observed != nil {
			out = append(out, t.Observed)
		}
	}
	return out
}

// Enforced returns the policy as it is when nothing is observed only: to tell what it would refuse and hide. The
// queries of views, and the rules of partitions, stay those of the policy in force.
func (p *Policy) Enforced() *Policy {
	enforced := *p
	enforced.tables = slices.Clone(p.tables)
	enforced.tableIndex = make(map[catalog.Name]*Table, len(p.tables))
	for i, t := range enforced.tables {
		if t.Observed != nil {
			enforced.tables[i] = t.Observed
		}
		enforced.tableIndex[t.Relation.Name] = enforced.tables[i]
	}
	return &enforced
}

// HiddenAndMasked are the columns of an access that would not be there, and those that would be masked; nil columns are all of them.
func (t *Table) HiddenAndMasked(columns []string) (hidden, masked []string) {
	if t.Columns == nil {
		return nil, nil
	}
	if columns == nil {
		for _, c := range t.Relation.Columns {
			columns = append(columns, c.Name)
		}
	}
	for _, name := range columns {
		i := slices.IndexFunc(t.Columns.Columns, func(c VisibleColumn) bool { return c.Name == name })
		switch {
		case i < 0:
			hidden = append(hidden, name)
		case !t.Columns.Columns[i].Plain():
			masked = append(masked, name)
		}
	}
	return hidden, masked
}
