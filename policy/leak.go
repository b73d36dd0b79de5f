package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// writeLeakChecker finds what an agent's INSERT, UPDATE or DELETE would tell the agent about hidden rows and columns. The
// write may tell it by failing, or by the text of its error.
type writeLeakChecker struct {
	*resolver
	rules   *ruleCompiler
	graph   keyGraph
	indexes indexComparisons
}

// isColumnShown tells whether agents see a column of a table unchanged when they may write the table.
func (c *writeLeakChecker) isColumnShown(t *policyTable, name string) bool {
	return t.decl.isPlainColumn(name) && c.isColumnAllowed(t.relation.Name, name)
}

// isColumnAllowed tells whether every contract that allows agents to write a table also allows them to read the column.
func (c *writeLeakChecker) isColumnAllowed(table catalog.Name, column string) bool {
	object := ""
	for _, o := range c.doc.objects {
		if r := c.findListable(o.tableAt, o.table); r != nil && r.Name == table {
			object = o.name
		}
	}
	showsColumn := func(terms *termsDecl) bool {
		return terms == nil || !slices.ContainsFunc(terms.allow, func(a allowDecl) bool {
			return a.object.text == object && a.columns != nil &&
				slices.ContainsFunc(a.sources, func(w wordDecl) bool { return w.text == "write" }) &&
				!slices.ContainsFunc(a.columns, func(w wordDecl) bool { return w.text == column })
		})
	}
	for _, contract := range c.doc.contracts {
		if object != "" && (!showsColumn(contract.always) ||
			slices.ContainsFunc(contract.values, func(terms termsDecl) bool { return !showsColumn(&terms) })) {
			return false
		}
	}
	return true
}

// whyHidden names a hidden column and says why agents do not see it, for messages.
func (t *policyTable) whyHidden(name string) string {
	if t.decl.isPlainColumn(name) {
		return name + ", which a contract leaves out"
	}
	return name + ", which is hidden or masked"
}

// attributeColumns returns the columns that equal an attribute of the session in every row which the session sees.
func attributeColumns(rows predicate.Node) []string {
	var out []string
	for _, part := range predicate.Conjuncts(rows) {
		switch part := part.(type) {
		case predicate.Own:
			out = append(out, part.Column)
		case predicate.Tenant:
			if part.SharedValue == "" && !part.SharedNull {
				out = append(out, part.Column)
			}
		}
	}
	return out
}

// constantColumns returns the columns that have the same value in every visible row.
func constantColumns(rows predicate.Node) []string {
	out := attributeColumns(rows)
	for _, part := range predicate.Conjuncts(rows) {
		switch part := part.(type) {
		case predicate.Status:
			out = append(out, part.Column)
		case predicate.SQL:
			out = append(out, constantColumnsOf(part.Expr)...)
		}
	}
	return out
}

// constantColumnsOf returns the columns for which a condition permits a single value: NULL, true, false or a constant.
func constantColumnsOf(e predicate.Expr) []string {
	of := func(e predicate.Expr) []string {
		if column, ok := e.(predicate.Column); ok {
			return []string{column.Name}
		}
		return nil
	}
	switch e := e.(type) {
	case predicate.And:
		var out []string
		for _, part := range e {
			out = append(out, constantColumnsOf(part)...)
		}
		return out
	case predicate.Column:
		return of(e)
	case predicate.Negation:
		return of(e.Expr)
	case predicate.IsTest:
		return of(e.Operand)
	case predicate.Comparison:
		if _, constant := e.Right.(predicate.Constant); constant && e.Op == "=" {
			return of(e.Left)
		}
	}
	return nil
}

// haveCommonElement reports whether two lists have an element in common.
func haveCommonElement(a, b []string) bool {
	return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}
