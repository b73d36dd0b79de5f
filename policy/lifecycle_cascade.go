package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Cascade says that rows of Table are deleted along with rows of Source, which the sweeper deletes or makes anonymous.
// Either rows of Table were made from rows of Source, or a foreign key of Table has ON DELETE CASCADE. Foreign keys are
// listed only if they lead to rows that were made from others.
type Cascade struct {
	Source, Table *catalog.Relation
	Origin        *predicate.Origin   // how rows of Table are made from rows of Source; nil: Key is set
	Key           *catalog.ForeignKey // the foreign key of Table with ON DELETE CASCADE
}

// Cascades returns which rows are deleted along with which other rows, in the order of the files.
func (p *Policy) Cascades() []Cascade { return p.cascades }

// HasLifecycles tells whether some table has a lifecycle, so that the sweeper has something to do.
func (p *Policy) HasLifecycles() bool {
	return slices.ContainsFunc(p.tables, func(t *Table) bool { return t.Lifecycle != nil })
}

// findCascades finds the rows that are deleted along with rows whose lifecycle ends. It refuses policies by which
// agents might still see such rows.
func (c *lifecycleCompiler) findCascades(p *Policy) []Cascade {
	var all []Cascade
	for i, d := range p.derivations {
		if d.DeleteWithSource {
			all = append(all, Cascade{Source: d.Origin.SourceTable(), Table: d.Table, Origin: &p.derivations[i].Origin})
		}
	}
	if len(all) == 0 {
		return nil
	}
	for _, r := range c.snap.Relations() {
		for i, key := range r.ForeignKeys {
			if target, ok := c.snap.Relation(key.Target); ok && key.OnDelete == catalog.Cascade {
				all = append(all, Cascade{Source: target, Table: r, Key: &r.ForeignKeys[i]})
			}
		}
	}
	// Find the tables that deletions can reach from a table with a lifecycle, and the tables from which deletions lead to
	// sources of other rows.
	reachable, leads := map[catalog.Name]bool{}, map[catalog.Name]bool{}
	for _, t := range p.tables {
		if t.Lifecycle != nil {
			reachable[t.Relation.Name] = true
		}
	}
	for _, e := range all {
		if e.Origin != nil {
			leads[e.Source.Name] = true
		}
	}
	for changed := true; changed; {
		changed = false
		for _, e := range all {
			if reachable[e.Source.Name] && !reachable[e.Table.Name] {
				reachable[e.Table.Name], changed = true, true
			}
			if leads[e.Table.Name] && !leads[e.Source.Name] {
				leads[e.Source.Name], changed = true, true
			}
		}
	}
	out := slices.DeleteFunc(all, func(e Cascade) bool {
		return !reachable[e.Source.Name] || e.Origin == nil && !leads[e.Table.Name]
	})
	for _, name := range c.tableOrder {
		t := c.tables[name]
		for _, b := range derivedBlocks(t.decl.rows) {
			origin, ok := c.rules.compileOrigin(b, t.relation)
			if ok && b.onErase == "erase" && reachable[origin.SourceTable().Name] {
				c.checkErased(b, t, origin)
			}
		}
	}
	return out
}

// checkErased refuses a derived block whose rows are deleted with their sources while agents may still see the rows.
func (c *lifecycleCompiler) checkErased(b derivedBlock, t *policyTable, origin predicate.Origin) {
	const keep = "write on_erase: keep"
	r := t.relation
	switch {
	case lacksRowSecurity(r):
		c.fail(b.place, keep, "rows of %s are not deleted one by one: it is a %s", r.Name, relationKind(r.Kind))
	case !slices.ContainsFunc(flatten(t.decl.rows, false), func(part block) bool { return part != nil && part.At() == b.place }):
		c.fail(b.place, "write derived in the list of rows itself, or on_erase: keep",
			"agents may see rows of %s after what they were made from has gone: derived is one way beside "+
				"another, and what goes is hidden first", r.Name)
	case origin.ExceptIf != nil && len(predicate.AttributesOf(origin.ExceptIf)) > 0:
		c.fail(b.place, "say unless by the row's own columns, or write on_erase: keep",
			"whether a row of %s was made from others depends on who asks: nobody asks when its sources go", r.Name)
	}
}
