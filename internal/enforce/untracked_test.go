package enforce

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// Relations whose changes are not reported are found in a statement at any place, whether the statement reads them
// itself or calls a function that may read them.
func TestUntrackedRelationsAmongOthers(t *testing.T) {
	loose, told := catalog.Name{Schema: "public", Name: "loose"}, catalog.Name{Schema: "public", Name: "told"}
	other := catalog.Name{Schema: "other", Name: "loose"}
	u := untrackedRelations{relations: map[catalog.Name]bool{loose: true}, functions: map[string]bool{"public.reads": true}}
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
			if got := u.untrackedReadOf(relations); (got == "public.loose") != (at >= 0) || at < 0 && got != "" {
				t.Errorf("relation %d of %d: %q", at, n+1, got)
			}
			if got := u.untrackedReadOf(functions); (got == "public.reads") != (at >= 0) || at < 0 && got != "" {
				t.Errorf("function %d of %d: %q", at, n+1, got)
			}
		}
	}
}

// A function of the policy may read tables that are not in the statement, unless it is IMMUTABLE. Each of its overloads
// counts.
func TestFunctionsThatMayReadTables(t *testing.T) {
	for _, overloads := range []string{"i", "s", "v", "ii", "is", "si", "iv", "vi", "iis", "isi", "sii"} {
		spec := catalog.Spec{ServerVersion: 150000, SearchPath: []string{"public"}}
		types := []string{}
		for i, volatility := range []byte(overloads) {
			spec.Functions = append(spec.Functions,
				&catalog.Function{OID: uint32(20000 + i), Name: catalog.Name{Schema: "public", Name: "f"}, Kind: 'f',
					ArgTypes: types, ArgNames: make([]string, len(types)), Volatility: volatility})
			types = append(types, "integer")
		}
		doc, err := policy.Parse("p.yaml",
			[]byte("version: 1\nattributes: { user: { type: uuid, source: credential } }\ntables: {}\nfunctions: { f: { reads: nothing } }\n"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Compile(doc, catalog.NewSnapshot(spec))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := tableReadingFunctions(p)["public.f"], strings.Trim(overloads, "i") != ""; got != want {
			t.Errorf("of overloads %s: %t", overloads, got)
		}
	}
}

// TestUncheckedFunctionCalls: a statement that reads a table is checked by the table's row policies, which find out
// whether the catalogs have changed. Of several statements, one may be prepared and run later without the others.
func TestUncheckedFunctionCalls(t *testing.T) {
	w := withSignedViews(t)
	v, refused := w.db0(t).current()
	if refused != nil {
		t.Fatal(refused)
	}
	table := []policy.Access{{Relation: v.state.policy.Tables()[0].Relation.Name}}
	other := []policy.Access{{Relation: catalog.Name{Schema: "pg_catalog", Name: "pg_class"}}}
	for _, c := range []struct {
		functions  []string
		accesses   []policy.Access
		statements int
		asked      bool
	}{
		{[]string{"public.f"}, nil, 1, true},
		{[]string{"public.f"}, other, 1, true},
		{[]string{"public.f"}, table, 1, false},
		{[]string{"public.f"}, table, 2, true},
		{[]string{"pg_catalog.count"}, nil, 1, false},
		{nil, nil, 2, false},
	} {
		res := &rewrite.Result{Functions: c.functions, Accesses: c.accesses, Rewritten: verdict.Rewritten{Effects: make([]verdict.Effect, c.statements)}}
		if got := isUnguarded(v.state.policy, res); got != c.asked {
			t.Errorf("%v, %v, %d statements: %t", c.functions, c.accesses, c.statements, got)
		}
	}
}
