package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// Spec is the content of a snapshot, read from a server or written in a test.
type Spec struct {
	Database      string
	ServerVersion int      // the server's version, as in server_version_num: 150018
	SearchPath    []string // the fixed search path without pg_catalog, which is always searched first

	// all relations except indexes and TOAST tables, including those of pg_catalog and information_schema
	Relations []*Relation
	Indexes   []*NamedIndex // all indexes except those of TOAST tables
	Functions []*Function   // the functions outside pg_catalog and information_schema
	Types     []*Type       // all types, including those of pg_catalog
	Operators []*Operator   // the operators outside pg_catalog
	Casts     []*Cast       // the casts by functions outside pg_catalog

	// the collations of values of types outside pg_catalog, by OID: see [Snapshot.Collations]
	Collations map[uint32][]string

	CatalogFunctions    map[string]bool // the names of functions in pg_catalog
	CatalogOperators    map[string]bool // the names of operators in pg_catalog
	InfoSchemaFunctions map[string]bool // the names of functions in information_schema

	Extensions []string // the names of the installed extensions, sorted
}

// Snapshot answers questions about the objects of a database. It is immutable: callers must not change what its methods
// return.
type Snapshot struct {
	spec      Spec
	version   string
	relations map[Name]*Relation
	indexes   map[Name]*NamedIndex
	functions map[Name][]*Function
	types     map[Name][]*Type
	operators map[Name][]*Operator

	typesByOID      map[uint32]*Type
	functionsByOID  map[uint32]*Function
	castsTo         map[uint32][]*Cast
	referringTables map[Name][]*Relation
	nativeTypes     map[uint32]bool // the types for which PostgreSQL itself calls no functions of other roles
}

// NewSnapshot returns a snapshot with the content spec, which the caller must not change afterwards.
func NewSnapshot(spec Spec) *Snapshot {
	snap := &Snapshot{
		spec:      spec,
		relations: make(map[Name]*Relation, len(spec.Relations)),
		indexes:   make(map[Name]*NamedIndex, len(spec.Indexes)),
		functions: make(map[Name][]*Function, len(spec.Functions)),
		types:     make(map[Name][]*Type, len(spec.Types)),
		operators: make(map[Name][]*Operator, len(spec.Operators)),

		typesByOID:      make(map[uint32]*Type, len(spec.Types)),
		functionsByOID:  make(map[uint32]*Function, len(spec.Functions)),
		castsTo:         map[uint32][]*Cast{},
		referringTables: map[Name][]*Relation{},
	}
	for _, relation := range spec.Relations {
		snap.relations[relation.Name] = relation
		for _, k := range relation.ForeignKeys {
			if !slices.Contains(snap.referringTables[k.Target], relation) {
				snap.referringTables[k.Target] = append(snap.referringTables[k.Target], relation)
			}
		}
	}
	for _, i := range spec.Indexes {
		snap.indexes[i.Name] = i
	}
	for _, f := range spec.Functions {
		snap.functions[f.Name] = append(snap.functions[f.Name], f)
		snap.functionsByOID[f.OID] = f
	}
	for _, t := range spec.Types {
		snap.types[t.Name] = append(snap.types[t.Name], t)
		snap.typesByOID[t.OID] = t
	}
	for _, o := range spec.Operators {
		snap.operators[o.Name] = append(snap.operators[o.Name], o)
	}
	for _, c := range spec.Casts {
		snap.castsTo[c.Target] = append(snap.castsTo[c.Target], c)
	}
	snap.nativeTypes = make(map[uint32]bool, len(spec.Types))
	for _, t := range spec.Types {
		snap.nativeTypes[t.OID] = !snap.typeRunsUserCode(t.OID, maxTypeDepth)
	}
	snap.version = spec.hash()
	return snap
}

// WithoutColumns returns the snapshot without the named columns, which are given by the OIDs of their tables. Indexes
// and foreign keys may still name them. A table keeps all its columns if isColumnOfSharedObject holds for one of the
// named columns; stillUsed lists such tables. If no column is removed, the result is s itself.
func (s *Snapshot) WithoutColumns(columns map[uint32][]string) (smaller *Snapshot, stillUsed []Name) {
	spec, isChanged := s.spec, false
	spec.Relations = slices.Clone(s.spec.Relations)
	for i, relation := range spec.Relations {
		names := columns[relation.OID]
		if len(names) == 0 {
			continue
		}
		if slices.ContainsFunc(names, relation.isColumnOfSharedObject) {
			stillUsed = append(stillUsed, relation.Name)
			continue
		}
		relationCopy := *relation
		relationCopy.Columns, relationCopy.WaitingColumns = nil, nil
		for _, c := range relation.Columns {
			if slices.Contains(names, c.Name) {
				relationCopy.WaitingColumns, isChanged = append(relationCopy.WaitingColumns, c.Name), true
			} else {
				relationCopy.Columns = append(relationCopy.Columns, c)
			}
		}
		spec.Relations[i] = &relationCopy
	}
	slices.SortFunc(stillUsed, func(a, b Name) int { return strings.Compare(a.String(), b.String()) })
	if !isChanged {
		return s, stillUsed
	}
	return NewSnapshot(spec), stillUsed
}

// isColumnOfSharedObject tells whether a column affects how rows can be written even if no statement names it. It does
// if it is generated. It also does if a key, check, partition key or computation depends on it together with other
// columns, or on its default.
func (r *Relation) isColumnOfSharedObject(name string) bool {
	column := r.Column(name)
	hasColumn := func(columns []string) bool { return slices.Contains(columns, name) }
	return column != nil && (column.Generated || column.Virtual) || hasColumn(r.PrimaryKey) || hasColumn(r.PartitionBy) ||
		slices.ContainsFunc(r.CheckedTogether, hasColumn) ||
		slices.ContainsFunc(r.RecheckedColumns, hasColumn) ||
		slices.ContainsFunc(r.Computations, func(computation Computation) bool { return hasColumn(computation.Columns) }) ||
		slices.ContainsFunc(r.FallibleIndexes, func(computation FallibleIndex) bool {
			return slices.ContainsFunc(computation.Keys, func(k IndexKey) bool { return hasColumn(k.Columns) })
		}) ||
		slices.ContainsFunc(r.UniqueKeys, func(k Key) bool {
			return (hasColumn(k.Columns) || hasColumn(k.WhereColumns)) &&
				(len(k.Columns) > 1 || !hasColumn(k.NullsDistinctColumns) || k.Where != "" || column == nil ||
					column.Default != "" ||
					column.Identity != "")
		})
}

// hash returns a hash of the content that does not depend on the order of the slices.
func (spec Spec) hash() string {
	spec.Relations = sortedByName(spec.Relations, func(relation *Relation) (Name, uint32) {
		return relation.Name,
			relation.OID
	})
	spec.Indexes = sortedByName(spec.Indexes, func(i *NamedIndex) (Name, uint32) { return i.Name, 0 })
	spec.Functions = sortedByName(spec.Functions, func(f *Function) (Name, uint32) { return f.Name, f.OID })
	spec.Types = sortedByName(spec.Types, func(t *Type) (Name, uint32) { return t.Name, t.OID })
	spec.Operators = sortedByName(spec.Operators, func(o *Operator) (Name, uint32) { return o.Name, 0 })
	spec.Casts = sortedByName(spec.Casts, func(c *Cast) (Name, uint32) { return Name{}, c.Function })
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(spec); err != nil {
		panic("catalog: a snapshot is plain data: " + err.Error())
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func sortedByName[T any](in []T, key func(T) (Name, uint32)) []T {
	out := slices.Clone(in)
	slices.SortStableFunc(out, func(a, b T) int {
		an, ao := key(a)
		bn, bo := key(b)
		if c := strings.Compare(an.Schema, bn.Schema); c != 0 {
			return c
		}
		if c := strings.Compare(an.Name, bn.Name); c != 0 {
			return c
		}
		return int(int64(ao) - int64(bo))
	})
	return out
}

// Version returns a hash of the content: snapshots with the same version are equal.
func (s *Snapshot) Version() string { return s.version }

// Database returns the name of the database on the server.
func (s *Snapshot) Database() string { return s.spec.Database }

// ServerVersion returns the server's version, as in server_version_num.
func (s *Snapshot) ServerVersion() int { return s.spec.ServerVersion }

// SearchPath returns the fixed search path without pg_catalog, which is always searched first.
func (s *Snapshot) SearchPath() []string { return slices.Clone(s.spec.SearchPath) }

// Relation returns the relation with exactly this name.
func (s *Snapshot) Relation(n Name) (*Relation, bool) {
	r, ok := s.relations[n]
	return r, ok
}

// ReferringTo returns the relations that have a foreign key to the named relation.
func (s *Snapshot) ReferringTo(n Name) []*Relation { return s.referringTables[n] }

// Relations returns every relation, sorted by name.
func (s *Snapshot) Relations() []*Relation {
	return sortedByName(s.spec.Relations, func(r *Relation) (Name, uint32) { return r.Name, r.OID })
}

// Functions returns all functions outside pg_catalog and information_schema, sorted by name.
func (s *Snapshot) Functions() []*Function {
	return sortedByName(s.spec.Functions, func(f *Function) (Name, uint32) { return f.Name, f.OID })
}

// Operators returns all operators outside pg_catalog, sorted by name.
func (s *Snapshot) Operators() []*Operator {
	return sortedByName(s.spec.Operators, func(o *Operator) (Name, uint32) { return o.Name, 0 })
}

// ResolveRelation returns the relation that a reference means. Without a schema, the name is searched for in pg_catalog
// and then along the fixed search path.
func (s *Snapshot) ResolveRelation(schema, name string) (Name, bool) {
	for _, candidate := range s.schemasToSearch(schema) {
		n := Name{candidate, name}
		if _, ok := s.relations[n]; ok {
			return n, true
		}
	}
	return Name{}, false
}

// ResolveIndex returns the index that a name means, or nil.
func (s *Snapshot) ResolveIndex(schema, name string) *NamedIndex {
	for _, candidate := range s.schemasToSearch(schema) {
		n := Name{candidate, name}
		if _, ok := s.relations[n]; ok {
			return nil
		}
		if i := s.indexes[n]; i != nil {
			return i
		}
	}
	return nil
}

// FunctionsNamed returns all functions outside pg_catalog that a call with this name could mean.
func (s *Snapshot) FunctionsNamed(schema, name string) []*Function {
	var out []*Function
	for _, candidate := range s.schemasToSearch(schema) {
		out = append(out, s.functions[Name{candidate, name}]...)
	}
	return out
}

// HasCatalogFunction tells whether pg_catalog has a function with this name.
func (s *Snapshot) HasCatalogFunction(name string) bool { return s.spec.CatalogFunctions[name] }

// HasInfoSchemaFunction tells whether information_schema has a function with this name.
func (s *Snapshot) HasInfoSchemaFunction(name string) bool { return s.spec.InfoSchemaFunctions[name] }

// HasExtension tells whether an extension is installed.
func (s *Snapshot) HasExtension(name string) bool { return slices.Contains(s.spec.Extensions, name) }

// TypesNamed returns all types that the name could mean, including those of pg_catalog.
func (s *Snapshot) TypesNamed(schema, name string) []*Type {
	var out []*Type
	for _, candidate := range s.schemasToSearch(schema) {
		out = append(out, s.types[Name{candidate, name}]...)
	}
	return out
}

// Collations returns the collations that values of a type have, apart from the database's default: the collation of a
// domain, and those of the elements, bounds or fields of an array, a domain, a range or a row.
func (s *Snapshot) Collations(oid uint32) []string { return s.spec.Collations[oid] }

// TypeByOID returns the type with this OID, or nil.
func (s *Snapshot) TypeByOID(oid uint32) *Type {
	if oid == 0 {
		return nil
	}
	return s.typesByOID[oid]
}

// FunctionByOID returns the function outside pg_catalog and information_schema with this OID, or nil.
func (s *Snapshot) FunctionByOID(oid uint32) *Function { return s.functionsByOID[oid] }

// CastsTo returns the casts to a type that run a function outside pg_catalog.
func (s *Snapshot) CastsTo(oid uint32) []*Cast { return s.castsTo[oid] }

// OperatorsNamed returns all operators outside pg_catalog that the name could mean.
func (s *Snapshot) OperatorsNamed(schema, name string) []*Operator {
	var out []*Operator
	for _, candidate := range s.schemasToSearch(schema) {
		out = append(out, s.operators[Name{candidate, name}]...)
	}
	return out
}

// HasCatalogOperator tells whether pg_catalog has an operator with this name.
func (s *Snapshot) HasCatalogOperator(name string) bool { return s.spec.CatalogOperators[name] }

func (s *Snapshot) schemasToSearch(schema string) []string {
	if schema != "" {
		return []string{schema}
	}
	path := make([]string, 0, len(s.spec.SearchPath)+1)
	path = append(path, "pg_catalog")
	for _, p := range s.spec.SearchPath {
		if p != "pg_catalog" {
			path = append(path, p)
		}
	}
	return path
}
