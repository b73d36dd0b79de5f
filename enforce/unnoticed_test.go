package enforce

import (
	"testing"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// What a text reads, or a function that it calls may read, of whose changes nobody tells is found wherever it stands among the others.
func TestUnnoticedAmongOthers(t *testing.T) {
	loose, told := catalog.Name{Schema: "public", Name: "loose"}, catalog.Name{Schema: "public", Name: "told"}
	other := catalog.Name{Schema: "other", Name: "loose"}
	u := unnoticed{relations: map[catalog.Name]bool{loose: true}, functions: map[string]bool{"public.reads": true}}
	for n := range 4 {
		for at := -1; at <= n; at++ {
			relations, functions := &rewrite.Result{Functions: []string{"pg_catalog.reads", "reads"}}, &rewrite.Result{}
			for i := range n + 1 {
				relation, function := told, "public.told"
				if i%2 == 1 {
					relation, function = other, "other.reads"
				}
				if i == at {
					relation, function = loose, "public.reads"
				}
				access := policy.Access{}
				access.Relation = relation
				relations.Accesses = append(relations.Accesses, access)
				access.Relation = told
				functions.Accesses = append(functions.Accesses, access)
				functions.Functions = append(functions.Functions, function)
			}
			if got := u.in(relations); (got == "public.loose") != (at >= 0) || at < 0 && got != "" {
				t.Errorf("relation %d of %d: %q", at, n+1, got)
			}
			if got := u.in(functions); (got == "public.reads") != (at >= 0) || at < 0 && got != "" {
				t.Errorf("function %d of %d: %q", at, n+1, got)
			}
		}
	}
}
