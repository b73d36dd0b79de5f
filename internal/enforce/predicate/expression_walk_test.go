package predicate_test

import (
	"slices"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// ColumnsOf finds every column of an expression, at any depth. If it missed one, a change of that column would hide
// rows without ending a snapshot.
func TestColumnsOfExpressions(t *testing.T) {
	column := func(name string) predicate.Expr { return predicate.Column{Name: name} }
	a, b, c, d, e := column("a"), column("b"), column("c"), column("d"), column("e")
	for _, x := range []struct {
		expr        predicate.Expr
		wantColumns []string
	}{
		{a, []string{"a"}},
		{predicate.Comparison{Op: "=", Left: a, Right: b}, []string{"a", "b"}},
		{predicate.AnyOf{Left: a, List: b}, []string{"a", "b"}},
		{predicate.Array{a, b, c}, []string{"a", "b", "c"}},
		{predicate.Overlap{Op: "&&", Left: a, Right: b}, []string{"a", "b"}},
		{predicate.Like{Left: a, Pattern: "x"}, []string{"a"}},
		{predicate.And{a, b, c}, []string{"a", "b", "c"}},
		{predicate.Or{a, b, c}, []string{"a", "b", "c"}},
		{predicate.Negation{Expr: a}, []string{"a"}},
		{predicate.IsTest{Operand: a, Keyword: "NULL"}, []string{"a"}},
		{predicate.Case{Branches: []predicate.CaseBranch{{Condition: a, Result: b}, {Condition: c, Result: d}}, ElseValue: e}, []string{"a", "b", "c", "d", "e"}},
		{predicate.Case{Branches: []predicate.CaseBranch{{Condition: a, Result: b}}}, []string{"a", "b"}},
		{predicate.Call{Name: "lower", Args: []predicate.Expr{a, b}}, []string{"a", "b"}},
		{predicate.Or{predicate.Negation{Expr: predicate.Case{
			Branches: []predicate.CaseBranch{{Condition: predicate.IsTest{Operand: a}, Result: b}}, ElseValue: predicate.Overlap{
				Left: c, Right: predicate.Array{d}}}}, e}, []string{"a", "b", "c", "d", "e"}},
	} {
		if got := predicate.ColumnsOf(x.expr); !slices.Equal(got, x.wantColumns) {
			t.Errorf("%#v reads %v, want %v", x.expr, got, x.wantColumns)
		}
		withClock := predicate.SQL{Expr: predicate.And{
			x.expr, predicate.Case{Branches: []predicate.CaseBranch{{Condition: a, Result: b}},
				ElseValue: predicate.ClockTime{Kind: predicate.Date}}}}
		if predicate.TimeCanHide(predicate.SQL{Expr: x.expr}) || !predicate.TimeCanHide(withClock) {
			t.Errorf("%#v goes by time, or not where a clock is beside it", x.expr)
		}
	}
}
