package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// checkForeignKeys adds the condition that the rows to which new foreign keys refer are visible. It refuses changes
// that would tell agents which rows refer to a row.
func (c *writeCompiler) checkForeignKeys(out *Write, decl *writeDecl, t *policyTable, sendable []string) {
	insert, update := out.InsertCheck.(predicate.All), out.UpdateCheck.(predicate.All)
	for _, key := range t.relation.ForeignKeys {
		target := c.tables[key.Target]
		// the policy accepts the leak, or agents do not write the column
		if target == nil || c.leaks.whyUncheckable(key, t.relation) != "" {
			continue
		}
		if _, isOpen := target.rows.(predicate.Open); isOpen {
			continue
		}
		node := predicate.Reference{Relation: target.relation, Columns: key.TargetColumns, FromColumns: key.Columns,
			Rows: target.rows}
		if haveCommonElement(withSources(t.relation, key.Columns), sendable) {
			insert = append(insert, node)
		}
		if haveCommonElement(withSources(t.relation, key.Columns), out.Updatable) {
			node.RowBefore = c.linkToRowBefore(out, t)
			update = append(update, node)
		}
	}
	out.InsertCheck, out.UpdateCheck = insert, update
	if decl.accepts(acceptReferences) {
		return
	}
	if out.Delete {
		out.Delete = c.referrers.checkReferrers(decl, t.relation, nil, true, map[string]bool{})
	}
	if out.Update && len(out.Updatable) > 0 && !c.referrers.checkReferrers(decl, t.relation, out.Updatable, true, map[string]bool{}) {
		out.Updatable = slices.DeleteFunc(out.Updatable, func(name string) bool { return c.graph.isReferredTo(t.relation, name) })
	}
	if out.Delete {
		c.referrers.warnFollowers(decl, t, nil)
	}
	if len(out.Updatable) > 0 {
		c.referrers.warnFollowers(decl, t, out.Updatable)
	}
}

// linkToRowBefore returns the link from a changed row to the same row before the change, by a primary key that agents
// cannot change. With it, a foreign key may keep its value. The link is empty if agents may not see all columns of the
// row: an UPDATE to the present value would succeed, and so tell the value.
func (c *writeCompiler) linkToRowBefore(out *Write, t *policyTable) predicate.Step {
	r := t.relation
	if len(r.PrimaryKey) == 0 || t.decl.columns != nil || t.decl.aggregate != nil || len(c.doc.contracts) > 0 ||
		haveCommonElement(r.PrimaryKey, out.Updatable) ||
		slices.ContainsFunc(r.PrimaryKey, func(name string) bool { return c.linkClass(r.Column(name)) == "" }) {
		return predicate.Step{}
	}
	step := predicate.Step{Relation: r, Column: r.PrimaryKey[0], FromColumn: r.PrimaryKey[0]}
	for _, name := range r.PrimaryKey[1:] {
		step.MorePairs = append(step.MorePairs, predicate.ColumnPair{Column: name, FromColumn: name})
	}
	if !step.LeadsToAtMostOne() {
		return predicate.Step{}
	}
	return step
}
