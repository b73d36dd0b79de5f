package catalog

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Differences are the objects that differ between two snapshots of one database; names are sorted.
type Differences struct {
	Relations []Name // what the snapshots say of them or their indexes
	Functions []Name // names of functions in the first snapshot whose calls may now mean another function, or fail
	Gone      []Name // functions of the first: calls of these names can only fail now
	// Others tells whether anything else is otherwise, the types of the rows of Relations aside: a new function may be
	// what the name of a column means now.
	Others bool
}

// Differences compares the snapshot with a later one.
func (s *Snapshot) Differences(o *Snapshot) Differences {
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
	changed, gone := map[Name]bool{}, map[Name]bool{}
	remain := o.functionNames()
	for name, before := range s.functions {
		switch now := o.functions[name]; {
		case reflect.DeepEqual(before, now):
		case now == nil && !remain[name.Name]:
			gone[name] = true
		case now != nil && !slices.ContainsFunc(now, func(f *Function) bool {
			return !isAmong(f, before) && (f.mayBeAttribute() || s.nameElsewhere(name) || o.nameElsewhere(name))
		}):
			changed[name] = true
		}
	}
	named := func(f *Function) bool { return changed[f.Name] || gone[f.Name] }
	sorted := func(of map[Name]bool) []Name {
		return slices.SortedFunc(maps.Keys(of), func(a, b Name) int {
			return cmp.Or(strings.Compare(a.Schema, b.Schema), strings.Compare(a.Name, b.Name))
		})
	}
	return Differences{Relations: sorted(differ), Functions: sorted(changed), Gone: sorted(gone),
		Others: s.specWithout(differ, named).hash() != o.specWithout(differ, named).hash()}
}

// nameElsewhere tells whether a function of another schema has the name. Calls of that one may now be of one that has
// been added, since PostgreSQL chooses by the arguments among all schemas of the path (func_get_detail, parse_func.c).
func (s *Snapshot) nameElsewhere(name Name) bool {
	if s.spec.CatalogFunctions[name.Name] {
		return true
	}
	for other := range s.functions {
		if other.Name == name.Name && other != name {
			return true
		}
	}
	return false
}

// functionNames are the names of all functions, whatever their schema.
func (s *Snapshot) functionNames() map[string]bool {
	names := maps.Clone(s.spec.CatalogFunctions)
	if names == nil {
		names = map[string]bool{}
	}
	for name := range s.functions {
		names[name.Name] = true
	}
	return names
}

// isAmong tells whether a function is one of these still, that the same calls mean.
func isAmong(f *Function, these []*Function) bool {
	return slices.ContainsFunc(these, func(o *Function) bool {
		return f.OID == o.OID && f.Kind == o.Kind && f.Variadic == o.Variadic && slices.Equal(f.ArgTypes, o.ArgTypes) &&
			slices.Equal(f.Results, o.Results)
	})
}

// mayBeAttribute tells whether the function may be called as if it were a column of a row: row.name.
func (f *Function) mayBeAttribute() bool {
	if len(f.ArgTypes) == 0 || len(f.ArgTypes)-f.Defaults > 1 && !f.Variadic {
		return false
	}
	first := f.ArgTypes[0] // as format_type: of PostgreSQL's own types without a schema
	return strings.Contains(first, ".") || strings.HasPrefix(first, "any") || strings.HasPrefix(first, `"any"`) ||
		strings.HasPrefix(first, "record")
}

// specWithout is the content of a snapshot without its relations, and without some functions and the types of the rows
// of some relations.
func (s *Snapshot) specWithout(relations map[Name]bool, functions func(*Function) bool) Spec {
	spec := s.spec
	spec.Functions = slices.DeleteFunc(slices.Clone(spec.Functions), functions)
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
