package enforce

import (
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// timeDependentRelations has the relations in which a row can become hidden by the passing of time alone, and the
// functions that may read such a relation although the text does not name it. Rules compare with statement_timestamp(),
// which has the same value for all statements of a Query. So a later statement of the Query would still show a row that
// expired while an earlier one ran.
type timeDependentRelations struct {
	inAttributeRule bool // a rule of an attribute compares with the time
	relations       map[catalog.Name]bool
	functions       map[string]bool
}

func newTimeDependent(p *policy.Policy, plan *rls.Plan) timeDependentRelations {
	out := timeDependentRelations{relations: map[catalog.Name]bool{}}
	if !plan.TimeCanHide() {
		return out
	}
	out.inAttributeRule = true
	for _, table := range p.Tables() {
		if predicate.TimeCanHide(table.VisibilityRules()) {
			out.relations[table.Relation.Name], out.inAttributeRule = true, false
		}
	}
	out.inAttributeRule = out.inAttributeRule || plan.TimeCanChangeAttributes()
	for _, c := range p.Children() {
		if predicate.TimeCanHide(c.Rows) {
			out.relations[c.Relation.Name] = true
		}
	}
	for _, v := range p.Views() {
		for _, t := range v.Tables {
			if out.relations[t] {
				out.relations[v.Relation.Name] = true
			}
		}
	}
	out.functions = tableReadingFunctions(p)
	return out
}

// needsSeparateMessages reports whether a statement of a text reads a time-dependent relation after a statement that
// may take long. EXECUTE and FETCH count as statements that take long and read such a relation.
func (c timeDependentRelations) needsSeparateMessages(res *rewrite.Result) bool {
	if len(res.Effects) < 2 || !c.inAttributeRule && len(c.relations) == 0 {
		return false
	}
	calls := c.inAttributeRule
	for _, f := range res.Functions {
		calls = calls || c.functions[f]
	}
	long := false
	for i, e := range res.Effects {
		if long && (calls || e.Kind == verdict.EffectExecute || e.Kind == verdict.EffectFetch ||
			c.isReadBy(res.Statements[i])) {
			return true
		}
		long = long || !takesLittleTime(e)
	}
	return false
}

func (c timeDependentRelations) isReadBy(s policy.Statement) bool {
	for _, a := range s.Accesses {
		if c.relations[a.Relation] {
			return true
		}
	}
	return false
}

// takesLittleTime reports whether a statement certainly ends quickly. COMMIT may take long: it reads cursors WITH HOLD
// to their end and checks deferred constraints.
func takesLittleTime(e verdict.Effect) bool {
	switch e.Kind {
	case verdict.EffectBegin, verdict.EffectSavepoint, verdict.EffectRelease, verdict.EffectRollbackTo,
		verdict.EffectSet, verdict.EffectDeallocate,
		verdict.EffectClose:
		return true
	case verdict.EffectEnd:
		return e.IsRollback
	}
	return false
}
