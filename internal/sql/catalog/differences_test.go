package catalog

import (
	"slices"
	"testing"
)

// If a function is added or replaced, calls of its name are suspended. If calls of other names, of other schemas, or of
// a column's name may now mean it, all statements are refused (OtherObjectsDiffer).
func TestDifferencesOfFunctions(t *testing.T) {
	newFunction := func(schema, name string, oid uint32, args ...string) *Function {
		return &Function{OID: oid, Name: Name{schema, name}, Kind: 'f', ArgTypes: args}
	}
	snapshot := func(functions ...*Function) *Snapshot {
		return NewSnapshot(Spec{SearchPath: []string{"public"}, Functions: functions,
			CatalogFunctions: map[string]bool{"lower": true}})
	}
	function, lower, sameNameElsewhere := newFunction("public", "calm", 1, "integer"), newFunction("public", "lower", 2,
		"integer"), newFunction("other", "calm", 3)
	for _, c := range []struct {
		name             string
		before, after    []*Function
		changed, removed []Name
		othersDiffer     bool
	}{
		{"nothing", []*Function{function}, []*Function{function}, nil, nil, false},
		{"an overload", []*Function{function}, []*Function{function, newFunction("public", "calm", 9, "text")}, []Name{function.Name}, nil,
			false},
		{"another one in its place", []*Function{function}, []*Function{newFunction("public", "calm", 9, "text")}, []Name{function.Name}, nil,
			false},
		{"one of a row", []*Function{function}, []*Function{function, newFunction("public", "calm", 9, "public.people")}, nil, nil, true},
		{"one of anything", []*Function{function}, []*Function{function, newFunction("public", "calm", 9, "anyelement")}, nil, nil, true},
		{"one that PostgreSQL has, too", []*Function{lower}, []*Function{lower, newFunction("public", "lower", 9, "character varying")}, nil, nil, true},
		{"one that another schema has, too", []*Function{function, sameNameElsewhere},
			[]*Function{function, newFunction("public", "calm", 9, "text"), sameNameElsewhere}, nil, nil, true},
		{"a new name", []*Function{function}, []*Function{function, newFunction("public", "new", 9, "text")}, nil, nil, true},
		{"none any more", []*Function{function, lower}, []*Function{lower}, nil, []Name{function.Name}, false},
		{"none any more, and one of another schema", []*Function{function, sameNameElsewhere}, []*Function{sameNameElsewhere}, nil, nil, true},
		{"none any more, and PostgreSQL's", []*Function{function, lower}, []*Function{function}, nil, nil, true},
	} {
		got := snapshot(c.before...).Differences(snapshot(c.after...))
		if !slices.Equal(got.Functions, c.changed) || !slices.Equal(got.RemovedFunctions, c.removed) ||
			got.OtherObjectsDiffer != c.othersDiffer || len(got.Relations) > 0 {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
