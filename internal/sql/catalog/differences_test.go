package catalog

import (
	"slices"
	"testing"
)

// What another function of a name is to those who call that name: calls of it are suspended, and everybody is refused
// where calls of other names, or of other schemas, or the name of a column, may now mean it.
func TestDifferencesOfFunctions(t *testing.T) {
	of := func(schema, name string, oid uint32, args ...string) *Function {
		return &Function{OID: oid, Name: Name{schema, name}, Kind: 'f', ArgTypes: args}
	}
	snapshot := func(functions ...*Function) *Snapshot {
		return NewSnapshot(Spec{SearchPath: []string{"public"}, Functions: functions,
			CatalogFunctions: map[string]bool{"lower": true}})
	}
	calm, lower, exists := of("public", "calm", 1, "integer"), of("public", "lower", 2, "integer"), of("other", "calm", 3)
	for _, c := range []struct {
		what          string
		before, after []*Function
		changed, gone []Name
		others        bool
	}{
		{"nothing", []*Function{calm}, []*Function{calm}, nil, nil, false},
		{"an overload", []*Function{calm}, []*Function{calm, of("public", "calm", 9, "text")}, []Name{calm.Name}, nil, false},
		{"another one in its place", []*Function{calm}, []*Function{of("public", "calm", 9, "text")}, []Name{calm.Name}, nil, false},
		{"one of a row", []*Function{calm}, []*Function{calm, of("public", "calm", 9, "public.people")}, nil, nil, true},
		{"one of anything", []*Function{calm}, []*Function{calm, of("public", "calm", 9, "anyelement")}, nil, nil, true},
		{"one that PostgreSQL has, too", []*Function{lower}, []*Function{lower, of("public", "lower", 9, "character varying")}, nil, nil, true},
		{"one that another schema has, too", []*Function{calm, exists}, []*Function{calm, of("public", "calm", 9, "text"), exists}, nil, nil, true},
		{"a new name", []*Function{calm}, []*Function{calm, of("public", "new", 9, "text")}, nil, nil, true},
		{"none any more", []*Function{calm, lower}, []*Function{lower}, nil, []Name{calm.Name}, false},
		{"none any more, and one of another schema", []*Function{calm, exists}, []*Function{exists}, nil, nil, true},
		{"none any more, and PostgreSQL's", []*Function{calm, lower}, []*Function{calm}, nil, nil, true},
	} {
		got := snapshot(c.before...).Differences(snapshot(c.after...))
		if !slices.Equal(got.Functions, c.changed) || !slices.Equal(got.RemovedFunctions, c.gone) ||
			got.OtherObjectsDiffer != c.others || len(got.Relations) > 0 {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
}
