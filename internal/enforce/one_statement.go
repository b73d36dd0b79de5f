package enforce

import (
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// clocked are the relations of which time alone can hide a row. Rules go by statement_timestamp(), which is one for all
// statements of a Query: of what begins later than that it would show what has ended meanwhile. functions may read one
// without a word of it in the text.
type clocked struct {
	all       bool // an attribute goes by the time
	relations map[catalog.Name]bool
	functions map[string]bool
}

func newClocked(p *policy.Policy, plan *rls.Plan) clocked {
	out := clocked{relations: map[catalog.Name]bool{}}
	if !plan.Timed() {
		return out
	}
	out.all = true
	for _, t := range p.Tables() {
		if predicate.TimeCanHide(t.VisibilityRules()) {
			out.relations[t.Relation.Name], out.all = true, false
		}
	}
	out.all = out.all || plan.TimedAttributes()
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
	out.functions = mayRead(p)
	return out
}

// apart tells whether a statement of a text goes by the time and stands behind one that may take long. What EXECUTE and
// FETCH run is not looked at.
func (c clocked) apart(res *rewrite.Result) bool {
	if len(res.Effects) < 2 || !c.all && len(c.relations) == 0 {
		return false
	}
	calls := c.all
	for _, f := range res.Functions {
		calls = calls || c.functions[f]
	}
	long := false
	for i, e := range res.Effects {
		if long && (calls || e.Kind == verdict.Executes || e.Kind == verdict.Fetches || c.reads(res.Statements[i])) {
			return true
		}
		long = long || !brief(e)
	}
	return false
}

func (c clocked) reads(s policy.Statement) bool {
	for _, a := range s.Accesses {
		if c.relations[a.Relation] {
			return true
		}
	}
	return false
}

// brief tells whether a statement is over at once. COMMIT need not be: it reads cursors WITH HOLD to their end, and
// checks constraints that were put off.
func brief(e verdict.Effect) bool {
	switch e.Kind {
	case verdict.BeginsTx, verdict.Saves, verdict.Releases, verdict.Rewinds, verdict.ChangesGUC, verdict.Deallocates,
		verdict.Closes:
		return true
	case verdict.EndsTx:
		return e.Undoes
	}
	return false
}
