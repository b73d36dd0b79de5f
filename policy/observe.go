package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// decodeObserve reads the key observe of a table: `observe: true` or `observe: false`.
func (d *tableDecoder) decodeObserve(decl *tableDecl, n *node) {
	if !d.requireKind(n, yamlfile.ScalarNode, "observe") {
		return
	}
	switch n.Value {
	case "true":
		decl.observe = &n.Place
	case "false":
		decl.neverObserve = true
	default:
		d.fail(n.Place, "", "observe is true or false")
	}
}

// openObserved replaces each table with `observe: true` by a table whose rule shows every row. Rules of other tables
// that refer to it stay as they are.
func (c *compiler) openObserved(p *Policy) {
	for i, t := range p.tables {
		decl := c.tables[t.Relation.Name].decl
		switch {
		case decl.observe == nil && (!c.doc.observe || decl.neverObserve):
			continue
		case t.LacksRowSecurity() && decl.observe != nil:
			c.fail(*decl.observe, "enforce it, or leave it out of the policy for now",
				"%s is a %s, which cannot be observed", t.Relation.Name, relationKind(t.Relation.Kind))
			continue
		case t.LacksRowSecurity(): // the relation has no row security; a view with its rule protects it
			c.warn(decl.place, "%s is a %s, which cannot be observed: it is enforced", t.Relation.Name, relationKind(t.Relation.Kind))
			continue
		}
		position := decl.place
		if decl.observe != nil {
			position = *decl.observe
		}
		c.warn(position, "%s is observed only: agents read every row and column of it",
			t.Relation.Name)
		p.tables[i] = &Table{Relation: t.Relation, Rows: predicate.Open{}, Rule: t.Rule, Write: t.Write, Observed: t}
	}
}

// Observed returns the tables that the policy only observes, with the rules that it would enforce.
func (p *Policy) Observed() []*Table {
	var out []*Table
	for _, t := range p.tables {
		if t.Observed != nil {
			out = append(out, t.Observed)
		}
	}
	return out
}

// Enforced returns the policy with the rules of its observed tables enforced. Tools use it to tell what enforcement
// would refuse and hide. The queries of views and the rules of partitions stay as they are in p.
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

// HiddenAndMasked returns which of the columns are hidden from agents, and which are masked. If columns is nil, it
// returns these of all columns of the table.
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
		case !t.Columns.Columns[i].IsPlain():
			masked = append(masked, name)
		}
	}
	return hidden, masked
}
