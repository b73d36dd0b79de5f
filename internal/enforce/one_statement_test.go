package enforce

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// A statement whose rows depend on the time runs in its own message if a statement before it may take long.
func TestTimeDependentStatementsRunSeparately(t *testing.T) {
	timed, plain := catalog.Name{Schema: "public", Name: "timed"}, catalog.Name{Schema: "public", Name: "plain"}
	type one struct {
		effect verdict.Effect
		reads  catalog.Name
	}
	reads := func(name catalog.Name) one { return one{verdict.Effect{ReadsRows: true}, name} }
	does := func(k verdict.EffectKind) one { return one{effect: verdict.Effect{Kind: k}} }
	rollback := one{effect: verdict.Effect{Kind: verdict.EffectEnd, IsRollback: true}}
	for name, c := range map[string]struct {
		statements []one
		calls      string
		apart      bool
	}{
		"alone":         {[]one{reads(timed)}, "", false},
		"behind a read": {[]one{reads(plain), reads(timed)}, "", true},
		"behind itself": {[]one{reads(timed), reads(timed)}, "", true},
		"in front":      {[]one{reads(timed), reads(plain)}, "", false},
		"others":        {[]one{reads(plain), reads(plain)}, "", false},
		"in a block": {[]one{does(verdict.EffectBegin), does(verdict.EffectSet), does(verdict.EffectSavepoint),
			reads(timed), does(verdict.EffectEnd)}, "", false},
		"behind a block": {[]one{does(verdict.EffectEnd), reads(timed)}, "", true},
		"behind ROLLBACK": {[]one{rollback, does(verdict.EffectClose), does(verdict.EffectDeallocate),
			does(verdict.EffectRollbackTo), does(verdict.EffectRelease), reads(timed)}, "", false},
		"behind SHOW or EXPLAIN":     {[]one{does(verdict.EffectNone), reads(timed)}, "", true},
		"behind COPY FROM":           {[]one{does(verdict.EffectCopyIn), does(verdict.EffectBegin), reads(timed)}, "", true},
		"EXECUTE":                    {[]one{reads(plain), does(verdict.EffectExecute)}, "", true},
		"FETCH":                      {[]one{does(verdict.EffectDeclare), does(verdict.EffectFetch)}, "", true},
		"a function":                 {[]one{reads(plain), reads(plain)}, "public.says", true},
		"a function of PostgreSQL's": {[]one{reads(plain), reads(plain)}, "pg_catalog.says", false},
	} {
		res := &rewrite.Result{Functions: []string{"pg_catalog.count", c.calls}}
		for _, s := range c.statements {
			access := policy.Access{}
			access.Relation = s.reads
			res.Effects = append(res.Effects, s.effect)
			res.Statements = append(res.Statements, policy.Statement{Accesses: []policy.Access{access}})
		}
		goes := timeDependentRelations{relations: map[catalog.Name]bool{timed: true}, functions: map[string]bool{"public.says": true}}
		if got := goes.needsSeparateMessages(res); got != c.apart {
			t.Errorf("%s: %v", name, got)
		}
		if (timeDependentRelations{}).needsSeparateMessages(res) {
			t.Errorf("%s: without a clock", name)
		}
		if got := (timeDependentRelations{inAttributeRule: true}).needsSeparateMessages(res); c.apart && !got {
			t.Errorf("%s: not where an attribute goes by the time", name)
		}
	}
}
