package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// originCompiler refuses writes that would separate a row from the sources that it was made from, and thus from the
// consents that it needs.
type originCompiler struct {
	*resolver
	graph keyGraph
}

// derivationsOf returns the derived nodes of a rule that are about the row itself, at any depth of the rule.
func derivationsOf(n predicate.Node) []predicate.Derived {
	var parts []predicate.Node
	switch n := n.(type) {
	case predicate.All:
		parts = n
	case predicate.Any:
		parts = n
	case predicate.Derived:
		return []predicate.Derived{n}
	}
	var out []predicate.Derived
	for _, part := range parts {
		out = append(out, derivationsOf(part)...)
	}
	return out
}

// checkWrites refuses writes by which agents could remove the source of a row that was made from it. The row would then
// no longer need the source's consent. All writes must have been compiled before.
func (c *originCompiler) checkWrites(tables []*Table) {
	writes := map[catalog.Name]*Write{}
	for _, t := range tables {
		writes[t.Relation.Name] = t.Write
	}
	for _, t := range tables {
		for _, part := range predicate.Conjuncts(t.Rows) {
			derived := derivationsOf(part)
			if len(derived) == 0 {
				continue
			}
			if t.Write != nil {
				c.refuseOriginUpdates(t, part)
			}
			for _, n := range derived {
				c.checkLinks(t, n.Origin, writes)
			}
		}
	}
}

// refuseOriginUpdates refuses updates of the columns that say from which row a row was made.
func (c *originCompiler) refuseOriginUpdates(t *Table, part predicate.Node) {
	columns, _ := predicate.RowColumns(part)
	for _, name := range columns {
		if slices.Contains(t.Write.Updatable, name) {
			c.fail(c.tables[t.Relation.Name].decl.write.place, "list it under immutable",
				"agents could update %s.%s, which says from what a row was made", t.Relation.Name, name)
		}
	}
}

// checkLinks refuses writes that could delete the link to a source, or give another row the key of a source.
func (c *originCompiler) checkLinks(t *Table, o predicate.Origin, writes map[catalog.Name]*Write) {
	position := c.tables[t.Relation.Name].decl.place
	source := t.Relation
	for i, step := range o.Steps {
		r, columns := step.Relation, step.TargetColumns()
		isLast := i == len(o.Steps)-1
		key := len(columns) == len(r.PrimaryKey) && !hasColumnOutside(columns, r.PrimaryKey)
		if i > 0 || key {
			c.refuseReusedKey(position, t, source, r, step, writes[r.Name])
		}
		if isLast && key {
			break
		}
		reads := columns
		if !isLast {
			reads = append(reads, o.Steps[i+1].StartColumns()...)
		}
		if i == 0 {
			c.refuseForeignLinks(t, r, step, writes[r.Name])
		}
		if w := writes[r.Name]; w != nil && haveCommonElement(w.Updatable, reads) {
			c.fail(c.tables[r.Name].decl.write.place, "list the columns that link under immutable",
				"agents could update rows of %s, which say from what rows of %s were made", r.Name, t.Relation.Name)
		}
		// the columns by which the link refers to the row that was made; the link is deleted with that row
		var linkColumns []string
		if i == 0 {
			linkColumns = columns
		}
		if deletable := c.deletableTable(r, columns, linkColumns, writes, map[catalog.Name]bool{}); deletable != nil {
			c.fail(c.tables[deletable.Name].decl.write.place, "leave delete out, or let the foreign key of "+r.Name.String()+
				" restrict",
				"agents could delete rows of %s, and with them what says from what rows of %s were made", deletable.Name,
				t.Relation.Name)
		} else {
			c.warnLinkCascades(position, r, linkColumns)
		}
		source = r
	}
	if len(o.Steps) == 0 {
		c.refuseReusedKey(position, t, nil, o.Source, predicate.Step{Relation: o.Source, Column: o.Key},
			writes[o.Source.Name])
	}
	if o.ExceptIf != nil && len(o.Steps) > 0 {
		c.checkForgottenSources(position, t, o, writes)
	}
}

// hasColumnOutside tells whether some of the columns are not in the key.
func hasColumnOutside(columns, key []string) bool {
	return slices.ContainsFunc(columns, func(name string) bool { return !slices.Contains(key, name) })
}

// refuseReusedKey refuses writes that could give another row the key of a deleted source. With a validated foreign key
// to the source, this cannot happen.
func (c *originCompiler) refuseReusedKey(position place, t *Table, source, r *catalog.Relation, step predicate.Step,
	w *Write) {
	if w == nil || !haveCommonElement(w.Insertable, step.TargetColumns()) && !haveCommonElement(w.Updatable, step.TargetColumns()) {
		return
	}
	if source != nil && slices.ContainsFunc(source.ForeignKeys, func(k catalog.ForeignKey) bool {
		return k.Validated && k.Target == r.Name && slices.Equal(k.Columns, step.StartColumns()) &&
			slices.Equal(k.TargetColumns, step.TargetColumns())
	}) {
		return
	}
	stamped := func(name string) bool {
		return slices.ContainsFunc(w.Stamps, func(s Stamp) bool { return s.Column == name && s.Unless == nil })
	}
	for _, name := range step.TargetColumns() {
		if stamped(name) { // agents do not choose the value of a stamped column
			return
		}
	}
	c.fail(c.tables[r.Name].decl.write.place, "leave the key out of columns, or let a foreign key say that sources are there",
		"agents could give a new row of %s the key of one that is gone, and what rows of %s were made from would "+
			"be another", r.Name, t.Relation.Name)
}

// refuseForeignLinks refuses writes by which agents could link a row that they do not see to a source of their choice.
// If the row had lost its own source, the new source would make it visible.
func (c *originCompiler) refuseForeignLinks(t *Table, r *catalog.Relation, step predicate.Step, w *Write) {
	if w == nil || !haveCommonElement(w.Insertable, step.TargetColumns()) {
		return
	}
	link := c.tables[r.Name]
	for _, key := range r.ForeignKeys {
		if key.Target == t.Relation.Name && slices.Equal(key.Columns, step.TargetColumns()) &&
			slices.Equal(key.TargetColumns, step.StartColumns()) && !link.decl.write.accepts(acceptReferences) {
			return
		}
	}
	for _, part := range predicate.Conjuncts(link.rows) {
		if n, ok := part.(predicate.Visible); ok && n.Relation.Name == t.Relation.Name && len(n.MorePairs) == 0 &&
			slices.Equal(step.TargetColumns(), []string{n.FromColumn}) && slices.Equal(step.StartColumns(),
			[]string{n.Column}) &&
			predicate.Implies(n.Rows, t.Rows) {
			return
		}
	}
	c.fail(link.decl.write.place, "ask for visible: "+t.Relation.Name.String()+" in the rule of "+r.Name.String()+
		", or let a foreign key lead there",
		"agents could say of rows of %s that they do not see that they were made from others", t.Relation.Name)
}

// deletableTable returns a table from which agents may delete rows if that affects a row of r: PostgreSQL deletes the
// row too, or sets the given columns to NULL or a default. nil: there is none. Deleting the row to which targetColumns
// refer does not count.
func (c *originCompiler) deletableTable(r *catalog.Relation, columns, targetColumns []string,
	writes map[catalog.Name]*Write,
	visited map[catalog.Name]bool) *catalog.Relation {
	if r == nil || visited[r.Name] {
		return nil
	}
	visited[r.Name] = true
	if w := writes[r.Name]; w.Allows("DELETE") {
		return r
	}
	for _, key := range r.ForeignKeys {
		isDeleted := key.OnDelete == catalog.Cascade ||
			(key.OnDelete == catalog.SetNull || key.OnDelete == catalog.SetDefault) && haveCommonElement(key.Columns, columns)
		if target, ok := c.snap.Relation(key.Target); ok && isDeleted &&
			!(len(targetColumns) > 0 && slices.Equal(key.Columns, targetColumns)) {
			if deletable := c.deletableTable(target, nil, nil, writes, visited); deletable != nil {
				return deletable
			}
		}
	}
	return nil
}

// warnLinkCascades warns of links that PostgreSQL deletes when the owner deletes a source.
func (c *originCompiler) warnLinkCascades(position place, r *catalog.Relation, targetColumns []string) {
	for _, key := range r.ForeignKeys {
		if key.OnDelete == catalog.Cascade && !slices.Equal(key.Columns, targetColumns) {
			c.warn(position, "whoever deletes a row of %s takes its row of %s along, and what was made from it "+
				"shows without its consent: let that foreign key SET NULL, which hides, or let it restrict",
				key.Target, r.Name)
		}
	}
}

// checkForgottenSources warns of references that become NULL when their source is deleted, if the condition unless may
// hold then.
func (c *originCompiler) checkForgottenSources(position place, t *Table, o predicate.Origin,
	writes map[catalog.Name]*Write) {
	columns, _ := predicate.RowColumns(o.ExceptIf)
	for _, key := range t.Relation.ForeignKeys {
		if (key.OnDelete == catalog.SetNull || key.OnDelete == catalog.SetDefault) && haveCommonElement(key.Columns, columns) &&
			haveCommonElement(key.Columns, o.Steps[0].StartColumns()) {
			target, _ := c.snap.Relation(key.Target)
			if deletable := c.deletableTable(target, nil, nil, writes, map[catalog.Name]bool{}); deletable != nil {
				c.fail(c.tables[deletable.Name].decl.write.place,
					"leave delete out, or let the foreign key of "+t.Relation.Name.String()+" cascade or restrict",
					"agents could delete rows of %s, and rows of %s would forget that they were made from them",
					deletable.Name, t.Relation.Name)
				continue
			}
			c.warn(position, "whoever deletes a row of %s makes rows of %s forget that they were made from it, and "+
				"unless may hold: let that foreign key cascade or restrict", key.Target, t.Relation.Name)
		}
	}
}
