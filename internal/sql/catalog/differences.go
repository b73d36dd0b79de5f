package catalog

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Differences lists the objects that differ between two snapshots of one database. Names are sorted.
type Differences struct {
	Relations []Name // the relations that differ, or whose indexes differ
	// names of functions of the first snapshot for which a call may mean another function in the second, or fail
	Functions        []Name
	RemovedFunctions []Name // names of functions of the first snapshot that no longer exist, so that every call fails
	// OtherObjectsDiffer tells whether any other object differs, apart from the row types of Relations. A function with a
	// new name counts as such a difference, because an expression row.name that means a column might now call it.
	OtherObjectsDiffer bool
}

// Differences compares a snapshot with a later one.
func (s *Snapshot) Differences(o *Snapshot) Differences {
	differingRelations := map[Name]bool{}
	for _, pair := range [][2]*Snapshot{{s, o}, {o, s}} {
		for name, relation := range pair[0].relations {
			if other := pair[1].relations[name]; other == nil || !reflect.DeepEqual(relation, other) {
				differingRelations[name] = true
			}
		}
		for name, i := range pair[0].indexes {
			if other := pair[1].indexes[name]; other == nil || !reflect.DeepEqual(i, other) {
				differingRelations[i.Table] = true
			}
		}
	}
	changed, removed := map[Name]bool{}, map[Name]bool{}
	remainingNames := o.functionNames()
	for name, before := range s.functions {
		switch later := o.functions[name]; {
		case reflect.DeepEqual(before, later):
		case later == nil && !remainingNames[name.Name]:
			removed[name] = true
		case later != nil && !slices.ContainsFunc(later, func(f *Function) bool {
			return !containsSameFunction(f, before) && (f.isCallableAsColumn() || s.isNameInOtherSchema(name) ||
				o.isNameInOtherSchema(name))
		}):
			changed[name] = true
		}
	}
	isChanged := func(f *Function) bool { return changed[f.Name] || removed[f.Name] }
	sortedNames := func(names map[Name]bool) []Name {
		return slices.SortedFunc(maps.Keys(names), func(a, b Name) int {
			return cmp.Or(strings.Compare(a.Schema, b.Schema), strings.Compare(a.Name, b.Name))
		})
	}
	return Differences{Relations: sortedNames(differingRelations), Functions: sortedNames(changed),
		RemovedFunctions: sortedNames(removed),
		OtherObjectsDiffer: s.specWithout(differingRelations, isChanged).hash() != o.specWithout(differingRelations,
			isChanged).hash()}
}

// isNameInOtherSchema tells whether another schema has a function of this name. A call of that function may now mean an
// added function. PostgreSQL chooses by the argument types among all schemas of the search path (func_get_detail,
// parse_func.c).
func (s *Snapshot) isNameInOtherSchema(name Name) bool {
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

// functionNames returns the names of all functions without their schemas.
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

// containsSameFunction tells whether the list contains a function with the same meaning for all calls as f.
func containsSameFunction(f *Function, functions []*Function) bool {
	return slices.ContainsFunc(functions, func(o *Function) bool {
		return f.OID == o.OID && f.Kind == o.Kind && f.Variadic == o.Variadic && slices.Equal(f.ArgTypes, o.ArgTypes) &&
			slices.Equal(f.ResultTypes, o.ResultTypes)
	})
}

// isCallableAsColumn tells whether the function can be called in attribute notation, as in row.name.
func (f *Function) isCallableAsColumn() bool {
	if len(f.ArgTypes) == 0 || len(f.ArgTypes)-f.Defaults > 1 && !f.Variadic {
		return false
	}
	first := f.ArgTypes[0] // format_type writes PostgreSQL's own types without a schema
	return strings.Contains(first, ".") || strings.HasPrefix(first, "any") || strings.HasPrefix(first, `"any"`) ||
		strings.HasPrefix(first, "record")
}

// specWithout returns the content of a snapshot without its relations, and without the functions and the row types that
// the arguments name.
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
