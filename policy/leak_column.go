package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// whyUnwritable says why agents cannot write a column, and what the DBA can do; "": they can. If isKnown is true, all
// versions of pgconsent find this reason, so naming the column in the policy is an error. Otherwise the column is
// withheld with a warning.
func (c *writeLeakChecker) whyUnwritable(decl *writeDecl, t *policyTable, column *catalog.Column) (reason, label string,
	isKnown bool) {
	if column.Generated || column.Identity == "always" {
		return "it is generated", "leave it out", true
	}
	if !decl.accepts(acceptConflicts) {
		for _, key := range c.graph.uniqueKeys(t.relation) {
			if slices.Contains(key.Columns, column.Name) && !decl.collidesWithVisibleRow(key, t.rows, t.relation) {
				return "it is part of the key " + key.Name + ", and a collision would tell that a hidden row exists",
					"let the key begin with the columns that say whose row it is, or say accept: [" + acceptConflicts + "]", true
			}
		}
		if reason := c.whyComparedWithHidden(t, column.Name); reason != "" {
			return reason, "let another index do, or say accept: [" + acceptConflicts + "]", false
		}
	}
	if !decl.accepts(acceptValues) {
		if reason := c.whyHashed(t.relation, column.Name, false); reason != "" && t.decl.isPlainColumn(column.Name) {
			return reason, "mask that with null, or say accept: [" + acceptValues + "]", false
		}
		for _, key := range c.graph.uniqueKeys(t.relation) {
			if name := c.hiddenPartialColumn(t, key); name != "" && slices.Contains(key.Columns, column.Name) {
				return "it is part of the key " + key.Name + ", which is for some rows only, by " + t.whyHidden(name) +
						", and a collision would tell what that is",
					"let the key hold for all rows, or say accept: [" + acceptValues + "]", false
			}
		}
	}
	for _, key := range t.relation.ForeignKeys {
		if !slices.Contains(withSources(t.relation, key.Columns), column.Name) || decl.accepts(acceptReferences) {
			continue
		}
		if reason := c.whyUncheckable(key, t.relation); reason != "" {
			return reason, "list " + key.Target.String() + " under tables, or say accept: [" + acceptReferences + "]", true
		}
		if reason := c.whyGuessable(key); reason != "" && !decl.accepts(acceptValues) {
			return reason, "say accept: [" + acceptReferences + "] or [" + acceptValues +
				"], or let the key lead to columns that show", false
		}
	}
	for _, foreignKey := range c.graph.partForeignKeys(t.relation) {
		if slices.Contains(withSources(foreignKey.table, foreignKey.key.Columns), column.Name) &&
			!decl.accepts(acceptReferences) {
			return foreignKey.table.Name.String() + ", a part of the table, has a foreign key of its own to " +
					foreignKey.key.Target.String(),
				"make it a key of the whole table, or say accept: [" + acceptReferences + "]", true
		}
	}
	return "", "", true
}
