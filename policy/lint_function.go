package policy

// functions warns of functions that agents may call and that read what agents may not: they run with the agents' rights, and so
// fail.
func (l *linter) functions() {
	for _, decl := range l.doc.functions {
		overloads := l.snap.FunctionsNamed(split(decl.name))
		if len(overloads) == 0 {
			continue
		}
		for _, use := range l.around.Used {
			if use.Function != overloads[0].Name || system(use.Relation.Schema) {
				continue
			}
			switch t, listed := l.policy.Table(use.Relation); {
			case listed && t.Columns != nil:
				l.warn(decl.place, "docs/policy-columns.md says what to write it over", "%s reads %s, of which agents have some columns only: called by an agent it fails with 42501", use.Function, use.Relation)
			case !listed && !l.lists(use.Relation):
				l.warn(decl.place, "list it under tables, or take the function out", "%s reads %s, which the policy does not list: called by an agent it fails with 42501", use.Function, use.Relation)
			}
		}
	}
}
