package enforce

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// untrackedRelations has the relations whose changes no trigger records: materialised views, foreign tables, and views
// over these. A statement that reads one must have a snapshot of its own, not an older one. The set also has the
// functions that may read such a relation although the text does not name it.
type untrackedRelations struct {
	relations map[catalog.Name]bool
	functions map[string]bool
}

func newUntrackedRelations(p *policy.Policy, plan *rls.Plan) untrackedRelations {
	out := untrackedRelations{relations: plan.UntrackedRelations()}
	if len(out.relations) > 0 {
		out.functions = tableReadingFunctions(p)
	}
	return out
}

// tableReadingFunctions returns the functions of a policy that are not immutable. They may read tables that the text
// does not name.
func tableReadingFunctions(p *policy.Policy) map[string]bool {
	out := map[string]bool{}
	for _, f := range p.Functions() {
		for _, o := range f.Overloads {
			if o.Volatility != 'i' {
				out[f.Name.String()] = true
			}
		}
	}
	return out
}

// isUnguarded reports whether a text calls functions of the owner or of an extension without reading a table of the
// policy. The row policies of these tables compare the version of the catalogs; without such a table nothing in the
// database compares it. A text of several statements always counts as reading none, since not each of them may read
// one.
func isUnguarded(p *policy.Policy, res *rewrite.Result) bool {
	guarded := len(res.Effects) == 1 && slices.ContainsFunc(res.Accesses, func(a policy.Access) bool {
		_, listed := p.Table(a.Relation)
		return listed
	})
	return !guarded && slices.ContainsFunc(res.Functions,
		func(name string) bool { return !strings.HasPrefix(name, "pg_catalog.") })
}

// untrackedReadOf returns the name of an untracked relation that a text reads, or of a function that may read one. It
// returns "" if there is none.
func (u untrackedRelations) untrackedReadOf(res *rewrite.Result) string {
	for _, a := range res.Accesses {
		if u.relations[a.Relation] {
			return a.Relation.String()
		}
	}
	for _, f := range res.Functions {
		if u.functions[f] {
			return f
		}
	}
	return ""
}
