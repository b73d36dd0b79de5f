package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The rewriter replaces an argument that the policy fixes in every call, whichever overload the call may mean.
func TestPinnedArgumentsOfEveryOverload(t *testing.T) {
	for _, c := range []struct {
		firstArguments, secondArguments string // names of arguments
		wantCalls                       int    // the number of calls in the rewritten text
	}{{"gate a", "gate b", 10}, {"gate a", "b gate", 0}, {"a gate", "gate b", 0}} {
		fixedInEvery(t, c.firstArguments, c.secondArguments, c.wantCalls)
	}
}

func fixedInEvery(t *testing.T, first, second string, out int) {
	spec := catalog.Spec{ServerVersion: 150000, SearchPath: []string{"public"}}
	overload := func(names, types string) {
		spec.Functions = append(spec.Functions,
			&catalog.Function{OID: uint32(20000 + len(spec.Functions)),
				Name: catalog.Name{Schema: "public", Name: "f"}, Kind: 'f', Volatility: 's', ArgNames: strings.Fields(names), ArgTypes: strings.Fields(types)})
	}
	for _, names := range []string{first, second} {
		overload(names, strings.NewReplacer("gate", "boolean", "a", "text", "b", "integer").Replace(names))
	}
	doc, err := policy.Parse("p.yaml",
		[]byte("version: 1\nattributes: { user: { type: uuid, source: credential } }\ntables: {}\nfunctions: { f: "+
			"{ pin: { gate: true }, reads: nothing } }\n"))
	if err != nil {
		t.Fatal(err)
	}
	snap := catalog.NewSnapshot(spec)
	p, err := policy.Compile(doc, snap)
	if err != nil {
		t.Fatal(err)
	}
	r := New(snap, p, RowSecurityMode)
	nameCount := 0
	for _, call := range []string{"f(false, 'x')", "f(false, false)", "f('x', false)", "f(a => 'x', gate => false)",
		"f(false, gate => false)", "f(gate => false, b => false)", "f(a => 'x')", "f(false)", "f('x', gate => false)", "f()"} {
		result, refusal := r.Rewrite("SELECT "+call, false)
		if refusal != nil {
			continue
		}
		if nameCount++; strings.Count(result.Text, "'true'::pg_catalog.bool") != 1 {
			t.Errorf("of f(%s) and f(%s): %s goes out as %s", first, second, call, result.Text)
		}
	}
	if nameCount != out {
		t.Errorf("of f(%s) and f(%s) %d calls go out", first, second, nameCount)
	}
}
