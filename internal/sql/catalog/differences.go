package catalog

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Differences returns the relations and the functions that two snapshots of one database have otherwise, sorted:
// relations by what the snapshots say of them or their indexes; functions by name, where each is the one that it was,
// with the same arguments. Others tells whether anything else is otherwise, the types of the rows of these relations
// aside.
func (s *Snapshot) Differences(o *Snapshot) (relations, functions []Name, others bool) {
	differ := map[Name]bool{}
	for _, pair := range [][2]*Snapshot{{s, o}, {o, s}} {
		for name, r := range pair[0].relations {
			if other := pair[1].relations[name]; other == nil || !reflect.DeepEqual(r, other) {
				differ[name] = true
			}
		}
		for name, i := range pair[0].indexes {
			if other := pair[1].indexes[name]; other == nil || !reflect.DeepEqual(i, other) {
				differ[i.Table] = true
			}
		}
	}
	replaced := map[Name]bool{}
	for _, pair := range [][2]*Snapshot{{s, o}, {o, s}} {
		for name, overloads := range pair[0].functions {
			if others := pair[1].functions[name]; !reflect.DeepEqual(overloads, others) &&
				slices.EqualFunc(overloads, others, sameCalls) {
				replaced[name] = true
			}
		}
	}
	sorted := func(of map[Name]bool) []Name {
		return slices.SortedFunc(maps.Keys(of), func(a, b Name) int {
			return cmp.Or(strings.Compare(a.Schema, b.Schema), strings.Compare(a.Name, b.Name))
		})
	}
	return sorted(differ), sorted(replaced), s.beside(differ, replaced).hash() != o.beside(differ, replaced).hash()
}

// sameCalls tells whether a function is still the same one, that the same calls mean. A new one may be what a column's
// name means now.
func sameCalls(f, o *Function) bool {
	return f.OID == o.OID && f.Kind == o.Kind && f.Variadic == o.Variadic && slices.Equal(f.ArgTypes, o.ArgTypes) &&
		slices.Equal(f.Results, o.Results)
}

// beside is the content of a snapshot without its relations, and without some functions and the types of the rows of
// some relations.
func (s *Snapshot) beside(relations, functions map[Name]bool) Spec {
	spec := s.spec
	spec.Functions = slices.DeleteFunc(slices.Clone(spec.Functions), func(f *Function) bool { return functions[f.Name] })
	spec.Relations, spec.Indexes, spec.Types, spec.Collations = nil, nil, nil, map[uint32][]string{}
	rows := map[uint32]bool{}
	for _, t := range s.spec.Types {
		if relations[t.Name] && t.Kind == 'c' {
			rows[t.OID] = true
		}
	}
	for _, t := range s.spec.Types {
		if rows[t.OID] || rows[t.Element] {
			rows[t.OID] = true
		} else {
			spec.Types = append(spec.Types, t)
		}
	}
	for oid, names := range s.spec.Collations {
		if !rows[oid] {
			spec.Collations[oid] = names
		}
	}
	return spec
}
