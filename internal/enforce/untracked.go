package enforce

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// unnoticed are relations whose changes no trigger tells of: materialised views, foreign tables, views over these. What
// reads one is answered by the snapshot of its own statement, and by no older one. functions may read one without a
// word of it in the text.
type unnoticed struct {
	relations map[catalog.Name]bool
	functions map[string]bool
}

func newUnnoticed(p *policy.Policy, plan *rls.Plan) unnoticed {
	out := unnoticed{relations: plan.Unnoticed()}
	if len(out.relations) > 0 {
		out.functions = mayRead(p)
	}
	return out
}

// mayRead are the functions of a policy that may read tables without a word of them in the text.
func mayRead(p *policy.Policy) map[string]bool {
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

// unguarded tells whether a text calls functions of the owner's, or of an extension's, and reads no table of the
// policy: the row policies of those ask whether the catalogs are still those that the statement was decided by. Of
// several statements one may read a table and another, which runs later or by its name, may not.
func unguarded(p *policy.Policy, res *rewrite.Result) bool {
	guarded := len(res.Effects) == 1 && slices.ContainsFunc(res.Accesses, func(a policy.Access) bool {
		_, listed := p.Table(a.Relation)
		return listed
	})
	return !guarded && slices.ContainsFunc(res.Functions,
		func(name string) bool { return !strings.HasPrefix(name, "pg_catalog.") })
}

// in names such a relation that a text reads, or a function that may read one, or returns "".
func (u unnoticed) in(res *rewrite.Result) string {
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
