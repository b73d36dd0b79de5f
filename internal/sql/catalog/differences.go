package catalog

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Differences are the objects in which two snapshots of one database differ. Names are sorted.
type Differences struct {
	Relations []Name // the relations that differ themselves, or whose indexes do
	// names of functions in the first snapshot for which a call may now mean another function, or fail
	Functions        []Name
	RemovedFunctions []Name // names of functions in the first snapshot for which every call must now fail
	// OtherObjectsDiffer tells whether anything else differs, apart from the row types of Relations. A new function is
	// such a difference, because the name of a column might now mean it.
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

// isNameInOtherSchema tells whether a function of another schema has the name. Calls of that function may now mean one
// that was added, since PostgreSQL chooses by the arguments among all schemas of the path (func_get_detail,
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

// containsSameFunction tells whether a function is still one of these functions, with the same meaning for all calls.
func containsSameFunction(f *Function, functions []*Function) bool {
	return slices.ContainsFunc(functions, func(o *Function) bool {
		return f.OID == o.OID && f.Kind == o.Kind && f.Variadic == o.Variadic && slices.Equal(f.ArgTypes, o.ArgTypes) &&
			slices.Equal(f.ResultTypes, o.ResultTypes)
	})
}

// isCallableAsColumn tells whether the function may be called in attribute notation: row.name.
func (f *Function) isCallableAsColumn() bool {
	if len(f.ArgTypes) == 0 || len(f.ArgTypes)-f.Defaults > 1 && !f.Variadic {
		return false
	}
	first := f.ArgTypes[0] // format_type writes PostgreSQL's own types without a schema
	return strings.Contains(first, ".") || strings.HasPrefix(first, "any") || strings.HasPrefix(first, `"any"`) ||
		strings.HasPrefix(first, "record")
}

// specWithout returns the content of a snapshot without its relations, without some of its functions, and without the
// row types of some relations.
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
