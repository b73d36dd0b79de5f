package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// writeLeaks finds what an INSERT, UPDATE or DELETE would tell an agent about hidden rows and columns: by whether it
// fails, or by what the error says.
type writeLeaks struct {
	*resolver
	rules   *ruleCompiler
	graph   keyGraph
	indexes indexComparisons
}

// columnShows tells whether agents that write a table see a column of it unchanged.
func (c *writeLeaks) columnShows(t *policyTable, name string) bool {
	return t.decl.showsPlain(name) && c.contractsShow(t.relation.Name, name)
}

// contractsShow tells whether every contract by which agents may write a table also shows them the column.
func (c *writeLeaks) contractsShow(table catalog.Name, column string) bool {
	object := ""
	for _, o := range c.doc.objects {
		if r := c.findListable(o.tableAt, o.table); r != nil && r.Name == table {
			object = o.name
		}
	}
	shows := func(terms *termsDecl) bool {
		return terms == nil || !slices.ContainsFunc(terms.allow, func(a allowDecl) bool {
			return a.object.text == object && a.columns != nil &&
				slices.ContainsFunc(a.sources, func(w wordDecl) bool { return w.text == "write" }) &&
				!slices.ContainsFunc(a.columns, func(w wordDecl) bool { return w.text == column })
		})
	}
	for _, contract := range c.doc.contracts {
		if object != "" && (!shows(contract.always) ||
			slices.ContainsFunc(contract.values, func(terms termsDecl) bool { return !shows(&terms) })) {
			return false
		}
	}
	return true
}

// whyHidden names a column and says why agents do not see it.
func (t *policyTable) whyHidden(name string) string {
	if t.decl.showsPlain(name) {
		return name + ", which a contract leaves out"
	}
	return name + ", which is hidden or masked"
}

// attributeColumns returns the columns that equal an attribute of the session in every visible row.
func attributeColumns(rows predicate.Node) []string {
	var out []string
	for _, part := range predicate.Conjuncts(rows) {
		switch part := part.(type) {
		case predicate.Own:
			out = append(out, part.Column)
		case predicate.Tenant:
			if part.Shared == "" && !part.SharedNull {
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
			out = append(out, constantIn(part.Expr)...)
		}
	}
	return out
}

// constantIn returns the columns to which a condition leaves one value: NULL, true, false or a constant.
func constantIn(e predicate.Expr) []string {
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
			out = append(out, constantIn(part)...)
		}
		return out
	case predicate.Column:
		return of(e)
	case predicate.Negation:
		return of(e.Expr)
	case predicate.Test:
		return of(e.A)
	case predicate.Compare:
		if _, constant := e.B.(predicate.Const); constant && e.Op == "=" {
			return of(e.A)
		}
	}
	return nil
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}
