package enforce

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// Each statement that reads a foreign table is counted. A prepared statement is counted when it is executed.
func TestStatementsThatReadForeignServers(t *testing.T) {
	far, near := catalog.Name{Schema: "public", Name: "far"}, catalog.Name{Schema: "public", Name: "near"}
	f := foreignRelations{relations: map[catalog.Name]bool{far: true}, functions: map[string]bool{"public.says": true}}
	body := &verdict.Verdict{}
	res := func(calls string, tables ...catalog.Name) *rewrite.Result {
		out := &rewrite.Result{Functions: []string{"pg_catalog.count", calls},
			Rewritten: verdict.Rewritten{Effects: []verdict.Effect{{Kind: verdict.EffectBegin}}}, Statements: []policy.Statement{{}}}
		for _, name := range tables {
			access := policy.Access{}
			access.Relation = name
			out.Effects = append(out.Effects, verdict.Effect{ReadsRows: true})
			out.Statements = append(out.Statements, policy.Statement{Accesses: []policy.Access{access}})
		}
		out.Effects, out.Statements = append(out.Effects, verdict.Effect{Kind: verdict.EffectEnd}), append(out.Statements, policy.Statement{})
		return out
	}
	prepares := res("", far, near)
	prepares.Effects[1] = verdict.Effect{Kind: verdict.EffectPrepare, Body: body}
	for name, c := range map[string]struct {
		f    foreignRelations
		res  *rewrite.Result
		want int
	}{
		"none":                   {f, res("", near, near), 0},
		"one":                    {f, res("", near, far), 1},
		"two":                    {f, res("", far, near, far), 2},
		"a function":             {f, res("public.says", near, near), 2},
		"an attribute":           {foreignRelations{inAttributeRule: true, relations: f.relations}, res("", near, near), 2},
		"without foreign tables": {foreignRelations{}, res("public.says", far), 0},
		"PREPARE":                {f, prepares, 0},
	} {
		if got := c.f.countReads(c.res); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if body.ForeignReads != 1 {
		t.Error("what is prepared counts for nothing")
	}
}
