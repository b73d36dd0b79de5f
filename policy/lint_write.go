package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// checkDeletes warns of the key check in a section write that allows only delete. The check applies to rows after a
// write, and a deleted row no longer exists.
func (l *linter) checkDeletes(t *policyTable) {
	w := t.decl.write
	if w == nil || w.check == nil || !slices.ContainsFunc(w.commands, func(d wordDecl) bool { return d.text == "delete" }) {
		return
	}
	rows := map[string]bool{}
	for _, part := range flatten(t.decl.rows, false) {
		rows[l.meaningText(part, t.relation)] = true
	}
	for _, part := range flatten(w.check, false) {
		if !rows[l.meaningText(part, t.relation)] {
			l.warn(w.check.At(), "leave delete out, or ask the same under rows",
				"check is about what a row will be: agents delete every row of %s that shows to them", t.relation.Name)
			return
		}
	}
}

// checkParts warns of a partition or inheritance child with a rule of its own whose parent is listed, too. Statements
// that name the parent show the child's rows by the parent's rule.
func (l *linter) checkParts(t *policyTable) {
	own := l.ruleForPart(t, t.relation)
	visited := map[catalog.Name]bool{}
	var ascend func(r *catalog.Relation)
	ascend = func(r *catalog.Relation) {
		for _, name := range r.Parents {
			if visited[name] {
				continue
			}
			visited[name] = true
			if parentTable := l.tables[name]; parentTable != nil && l.ruleForPart(parentTable, t.relation) != own {
				l.warn(t.decl.rows.At(), "ask the same of both, if this one asks more",
					"rows of %s show through %s too, by the rule of that table alone: what is asked here is asked "+
						"where agents name %s", t.relation.Name, name, t.relation.Name)
			}
			if parent, ok := l.snap.Relation(name); ok {
				ascend(parent)
			}
		}
	}
	ascend(t.relation)
}

// ruleForPart returns the text of a table's rule with the name of a partition in place of the table's name.
func (l *linter) ruleForPart(t *policyTable, partition *catalog.Relation) string {
	return strings.ReplaceAll(l.meaningText(t.decl.rows, t.relation), catalog.QuoteIdent(t.relation.Name.Name)+".",
		catalog.QuoteIdent(partition.Name.Name)+".")
}
