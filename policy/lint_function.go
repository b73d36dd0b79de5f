package policy

import "github.com/pgconsent/pgconsent/internal/sql/catalog"

// FailingCalls returns those warnings of [Lint] that are about functions and triggers which fail for agents. It finds
// them as far as FunctionUses and Triggers of the context tell.
func FailingCalls(doc *Document, snap *catalog.Snapshot, context LintContext, options ...Option) ([]*Error, error) {
	c, p, err := compileDocument(doc, snap, options)
	if err != nil {
		return nil, err
	}
	l := newLinter(c, p, LintContext{FunctionUses: context.FunctionUses, Triggers: context.Triggers})
	l.checkFunctions()
	l.checkTriggers()
	return l.sorted(), nil
}

// checkFunctions warns of functions that agents may call and that read tables which agents may not read. Such functions
// run with the agents' rights, and so they fail.
func (l *linter) checkFunctions() {
	for _, decl := range l.doc.functions {
		overloads := l.snap.FunctionsNamed(splitName(decl.name))
		if len(overloads) == 0 {
			continue
		}
		for _, use := range l.context.FunctionUses {
			if use.Function != overloads[0].Name || isSystemSchema(use.Relation.Schema) {
				continue
			}
			switch t, isList := l.policy.Table(use.Relation); {
			case isList && t.Columns != nil && use.TakesRows:
				l.warn(decl.place, "let it take the columns that it needs",
					"%s takes rows of %s, of which agents have some columns only: theirs are of another type, and "+
						"the call fails with 42883", use.Function, use.Relation)
			case isList && t.Columns != nil:
				l.warn(decl.place, "docs/reference/policy-columns.md says what to write it over",
					"%s reads %s, of which agents have some columns only: called by an agent it fails with 42501",
					use.Function, use.Relation)
			case !isList && !l.isListed(use.Relation):
				l.warn(decl.place, "list it under tables, or take the function out",
					"%s reads %s, which the policy does not list: called by an agent it fails with 42501", use.Function, use.Relation)
			}
		}
	}
}

// checkTriggers warns of triggers that run with the agents' rights and need rights which agents lack. It also warns of
// columns whose default a SECURITY DEFINER function computes, since agents see the result.
func (l *linter) checkTriggers() {
	for _, name := range l.tableOrder {
		t, _ := l.policy.Table(name)
		if t == nil || t.Write == nil {
			continue
		}
		decl := l.tables[name].decl
		for _, trigger := range l.context.Triggers {
			if trigger.Relation != name || !(trigger.Insert && t.Write.Insert || trigger.Update && t.Write.Update ||
				trigger.Delete && t.Write.Delete) {
				continue
			}
			for _, use := range l.context.FunctionUses {
				if use.Function == trigger.Function && !use.TakesRows && l.lackRight(use) {
					l.warn(decl.place, "make that SECURITY DEFINER, with a search_path of its own, if it shall",
						"the trigger %s of %s runs %s with the agents' rights, which do not reach as far as what "+
							"that does with %s: what agents write may fail with 42501",
						trigger.Name, name, use.Function, use.Relation)
				}
			}
		}
		for _, d := range l.context.Defaults {
			if d.Relation == name && t.Write.Insert && t.VisibleRelation().Column(d.Column) != nil &&
				!isStamped(t.Write, d.Column) {
				l.warn(decl.place, "hide the column, or stamp it",
					"the default of %s.%s calls %s, which is SECURITY DEFINER: what it works out of hidden rows, "+
						"agents read in the rows that they make", name, d.Column, d.Function)
			}
		}
	}
}

// lackRight tells whether agents lack the right to a relation that a function or trigger needs.
func (l *linter) lackRight(use catalog.FunctionUse) bool {
	t, isList := l.policy.Table(use.Relation)
	switch {
	case isList && use.MayWrite:
		return t.Write == nil || t.Columns != nil
	case isList:
		return t.Columns != nil
	}
	return use.MayWrite || !l.isListed(use.Relation)
}

func isStamped(w *Write, column string) bool {
	for _, s := range w.Stamps {
		if s.Column == column {
			return true
		}
	}
	return false
}
