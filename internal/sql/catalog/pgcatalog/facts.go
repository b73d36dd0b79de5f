package pgcatalog

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// facts are what the queries of this package have returned. What follows from them is worked out anew for each
// snapshot.
// Facts are not changed once they are read: later facts share with earlier ones what has stayed the same.
type facts struct {
	spec      catalog.Spec              // what is not about relations
	relations map[uint32]*relationFacts // the relations of a snapshot, by OID
	policies  []policy

	known          known
	domainChecks   []check
	domainValues   map[uint32][]string // checks of domains for lists of values
	domainDefaults map[uint32]string
	parts          map[uint32][]uint32 // the types that ranges and multiranges are made of
	rangeCollation map[uint32]uint32
	collations     map[uint32]collation // those that anybody has asked for; readCollationNames adds to it
}

// relationFacts are the rows of the catalogs about one relation.
type relationFacts struct {
	row     *relationRow
	parents []uint32
	reads   []viewRead
	columns []columnRow

	defaults                            map[int16]string
	defaultSequences, identitySequences map[int16][]uint32
	values                              map[int16][]string // checks of single columns for lists of values

	partitionedBy []int16
	keys          []keyRow
	vectors       []string
	compared      []catalog.FallibleIndex

	checks        []check
	indexes       []*index
	equal         map[uint32][]int // the keys of exclusion constraints that ask for equal values, by index
	generated     []generated
	partitionKeys []partitionKey
	statistics    []statistics
	triggers      []trigger
}

// set adds to a map that may be nil.
func set[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// relationReader reads the facts about some relations, or about all of them.
type relationReader struct {
	reader
	oids  []uint32 // nil: all of them
	known *known
	found map[uint32]*relationFacts
}

// only is the condition that the relation of this OID is read.
func (r *relationReader) only(oid string) string {
	if r.oids == nil {
		return "true"
	}
	return oid + " = ANY ($1::oid[])"
}

// args are the arguments of a query with that condition.
func (r *relationReader) args() []any {
	if r.oids == nil {
		return nil
	}
	return []any{r.oids}
}

// of are the facts about a relation, to be added to.
func (r *relationReader) of(oid uint32) *relationFacts {
	f := r.found[oid]
	if f == nil {
		f = &relationFacts{}
		r.found[oid] = f
	}
	return f
}

// read reads the facts. What is found about relations that no snapshot has, such as temporary tables, is left out.
func (r *relationReader) read(ctx context.Context) error {
	r.found = map[uint32]*relationFacts{}
	if err := inTurn(ctx, r.readRelations, r.readParents, r.readViews, r.readColumns, r.readDefaults, r.readSequences,
		r.readPartitionedBy, r.readKeys, r.readVectors, r.readCompared, r.readValues, r.readChecks, r.readIndexFacts,
		r.readEqual, r.readGenerated, r.readPartitionKeys, r.readStatistics, r.readTriggers); err != nil {
		return err
	}
	for oid, f := range r.found {
		if f.row == nil {
			delete(r.found, oid)
			continue
		}
		// By another plan the same rows come in another order.
		slices.SortFunc(f.checks, func(a, b check) int { return strings.Compare(a.name, b.name) })
		slices.SortFunc(f.generated, func(a, b generated) int { return cmp.Compare(a.number, b.number) })
		for _, texts := range f.values {
			slices.Sort(texts)
		}
	}
	return nil
}

// loader puts together what the queries have told. It has a transaction, since some questions arise only then.
type loader struct {
	reader
	*facts
	spec      catalog.Spec
	relations map[uint32]*catalog.Relation

	attributes map[uint32][]attribute // the columns of each relation
	heaps      map[uint32]bool        // tables of PostgreSQL's own access method

	checks           []check
	indexes          []*index
	generatedColumns []generated
	virtual          map[uint32][]generated // the columns that are computed when they are read, by relation
	partitionKeys    []partitionKey
	statistics       []statistics
	triggers         []trigger
}

// newLoader lists the facts about relations in the order of their OIDs.
func newLoader(r reader, f *facts) *loader {
	l := &loader{reader: r, facts: f, spec: f.spec, relations: map[uint32]*catalog.Relation{}, heaps: map[uint32]bool{},
		virtual: map[uint32][]generated{}, checks: slices.Clone(f.domainChecks)}
	for _, oid := range sortedKeys(f.relations) {
		of := f.relations[oid]
		relation := of.row.Relation
		relation.Extension = f.known.extensionOf("pg_class", oid)
		relation.PartitionBy, relation.CheckedColumns, relation.CheckedTogether = []string{}, []string{}, [][]string{}
		relation.IndexedVectors, relation.FallibleIndexes = slices.Clone(of.vectors), slices.Clone(of.compared)
		l.relations[oid], l.heaps[oid] = &relation, of.row.heap
		l.spec.Relations = append(l.spec.Relations, &relation)

		l.checks = append(l.checks, of.checks...)
		l.indexes = append(l.indexes, of.indexes...)
		l.generatedColumns = append(l.generatedColumns, of.generated...)
		for _, g := range of.generated {
			if g.virtual {
				l.virtual[oid] = append(l.virtual[oid], g)
			}
		}
		l.partitionKeys = append(l.partitionKeys, of.partitionKeys...)
		l.statistics = append(l.statistics, of.statistics...)
		l.triggers = append(l.triggers, of.triggers...)
	}
	return l
}

// snapshot works out a snapshot.
func (l *loader) snapshot(ctx context.Context) (*catalog.Snapshot, error) {
	if err := inTurn(ctx, l.setParents, l.setReads, l.setColumns, l.setPartitionedBy, l.setChecked, l.setKeys,
		l.setIndexes, l.setUnique, l.setRechecked, l.setComputed, l.readUserCodeOfWrites, l.readRuns, l.setValues,
		l.setMayBeReplaced, l.setTypeCollations); err != nil {
		return nil, err
	}
	return catalog.NewSnapshot(l.spec), nil
}

// setParents tells relations from which they inherit, partitions included.
func (l *loader) setParents(context.Context) error {
	for oid, r := range l.relations {
		for _, parent := range l.facts.relations[oid].parents {
			if p := l.relations[parent]; p != nil {
				r.Parents = append(r.Parents, p.Name)
			}
		}
	}
	return nil
}

// setReads tells views what they read.
func (l *loader) setReads(context.Context) error {
	for oid, v := range l.relations {
		for _, read := range l.facts.relations[oid].reads {
			if r := l.relations[read.relation]; r != nil {
				v.Reads = append(v.Reads, catalog.ViewRead{Relation: r.Name, Columns: read.columns})
			}
		}
	}
	return nil
}

// setPartitionedBy tells partitioned tables of their keys.
func (l *loader) setPartitionedBy(context.Context) error {
	for oid, r := range l.relations {
		if numbers := l.facts.relations[oid].partitionedBy; numbers != nil {
			r.PartitionBy = l.columnsOf(oid, func(n int16) bool { return slices.Contains(numbers, n) })
			slices.Sort(r.PartitionBy)
		}
	}
	return nil
}
