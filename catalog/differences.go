package catalog

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Differences returns the relations that two snapshots of one database have otherwise, by what they say of them or
// their indexes, sorted. Others tells whether anything else is otherwise, the types of the rows of these relations
// aside.
func (s *Snapshot) Differences(o *Snapshot) (relations []Name, others bool) {
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
	relations = slices.SortedFunc(maps.Keys(differ), func(a, b Name) int {
		return cmp.Or(strings.Compare(a.Schema, b.Schema), strings.Compare(a.Name, b.Name))
	})
	return relations, s.beside(differ).hash() != o.beside(differ).hash()
}

// beside is the content of a snapshot without its relations, and without the types of the rows of some.
func (s *Snapshot) beside(relations map[Name]bool) Spec {
	spec := s.spec
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
