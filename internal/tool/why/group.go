package why

import (
	"context"
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rls"
)

// explainGroup finds the group in which aggregates count a row, and how many subjects it has for this agent. It returns
// nil if the group does not depend on the row's columns alone.
func (e *explainer) explainGroup(ctx context.Context, table *policy.Table, row explainedRow) (*Group, error) {
	a := table.Aggregate
	g := &Group{GroupKey: []Value{}, Subject: a.Subject, Minimum: a.MinSubjects, Share: a.MaxSharePercent}
	takesRowSQL := func(row string) string {
		_, counts, _ := rls.CellExpressions(table, row)
		return strings.Join(append([]string{"(" + predicate.DirectCondition(a.Rows, row, e.values) + ")",
			"(" + predicate.DirectCondition(table.Rows, row, e.values) + ") IS NOT TRUE"}, counts...), " AND ")
	}
	cell, _, isKnown := rls.CellExpressions(table, "r")
	if !isKnown {
		return nil, nil
	}
	otherCell, _, _ := rls.CellExpressions(table, "x")
	selectList, conditions := []string{"(" + takesRowSQL("r") + ") IS TRUE"}, []string{takesRowSQL("x")}
	for i, value := range cell {
		selectList = append(selectList, value+"::pg_catalog.text")
		conditions = append(conditions, otherCell[i]+" IS NOT DISTINCT FROM "+value)
	}
	selectList = append(selectList, fmt.Sprintf("(SELECT pg_catalog.count(DISTINCT %s) FROM %s AS x WHERE %s)",
		rls.CountedSubject(table, "x"), table.Relation.Name.SQL(), strings.Join(conditions, " AND ")))
	values := make([]*string, len(cell))
	into := []any{&g.TakesRow}
	for i := range values {
		into = append(into, &values[i])
	}
	err := e.tx.QueryRow(ctx, fmt.Sprintf("SELECT %s FROM %s AS r WHERE %s LIMIT 1", strings.Join(selectList, ", "),
		table.Relation.Name.SQL(), row.findCondition("r"))).Scan(append(into, &g.Subjects)...)
	for i, d := range a.Dimensions {
		g.GroupKey = append(g.GroupKey, Value{d.Column, values[i]})
	}
	return g, err
}
