package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// sendableColumns returns the columns for which agents may send values in a write, in the table's order.
func (c *writeCompiler) sendableColumns(decl *writeDecl, t *policyTable) []string {
	r := t.relation
	stamped := func(name string) bool {
		return slices.ContainsFunc(decl.stamps, func(s stampDecl) bool { return s.column == name })
	}
	positions := map[string]place{}
	for _, list := range [][]wordDecl{decl.columns, decl.immutable} {
		for _, w := range list {
			if c.findColumn(w.place, r, w.text) == nil {
				continue
			}
			if stamped(w.text) {
				c.fail(w.place, "leave it out: agents may send it, and the stamp replaces it", "%s.%s is stamped", r.Name, w.text)
			}
			positions[w.text] = w.place
		}
	}
	var out []string
	for i := range r.Columns {
		column := &r.Columns[i]
		position, explicit := positions[column.Name]
		if stamped(column.Name) || !explicit &&
			(!decl.allColumns || slices.ContainsFunc(withComputed(r, []string{column.Name}),
				func(name string) bool { return decidesVisibility(t.rows, name) })) {
			continue
		}
		reason, label, isKnown := c.leaks.whyUnwritable(decl, t, column)
		if !t.decl.isPlainColumn(column.Name) {
			reason, label, isKnown = "it is hidden or masked", "say allow under columns of the table, or stamp it", true
		}
		switch {
		case reason == "":
			out = append(out, column.Name)
		case explicit && !isKnown:
			c.withhold(position, label, "agents cannot write %s.%s: %s", r.Name, column.Name, reason)
		case explicit:
			c.fail(position, label, "agents cannot write %s.%s: %s", r.Name, column.Name, reason)
		}
	}
	return out
}

// decidesVisibility tells whether a column decides who sees the row in another way than by naming its owner. It may be
// a status, a list of grants, or a tenant with a shared value. Agents may send such a column only if the policy names
// it under write.
func decidesVisibility(rows predicate.Node, column string) bool {
	for _, part := range predicate.Conjuncts(rows) {
		switch part.(type) {
		case predicate.Own, predicate.Visible, predicate.Consent:
			continue
		}
		if columns, isKnown := predicate.RowColumns(part); !isKnown || slices.Contains(columns, column) {
			return true
		}
	}
	return false
}

// refuseSequences refuses writes that show agents numbers from a sequence that other sessions use, too.
func (c *writeCompiler) refuseSequences(out *Write, decl *writeDecl, t *policyTable) {
	if _, isOpen := t.rows.(predicate.Open); isOpen || !out.Insert || decl.accepts(acceptSequences) {
		return
	}
	for _, column := range t.relation.Columns {
		if column.Sequence.Name == "" || slices.ContainsFunc(out.Stamps, func(s Stamp) bool { return s.Column == column.Name }) {
			continue
		}
		c.fail(decl.place, "use a uuid, or say accept: ["+acceptSequences+"]",
			"%s.%s is numbered by a sequence: a new row's number tells how many hidden rows others have made",
			t.relation.Name, column.Name)
	}
}
