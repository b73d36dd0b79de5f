package pgcatalog

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// catalogFacts are the results of this package's queries, from which each snapshot is computed. Facts do not change
// once they are read. Newer facts share with older facts what has stayed the same.
type catalogFacts struct {
	spec      catalog.Spec              // the parts of the snapshot that are not about relations
	relations map[uint32]*relationFacts // the relations of a snapshot, by OID
	policies  []rowPolicy

	objects        objectFacts
	domainChecks   []check
	domainValues   map[uint32][]string // the strings that CHECK constraints of a domain allow, by the domain's OID
	domainDefaults map[uint32]string
	rangeTypes     map[uint32][]uint32 // the subtype of each range, and the range of each multirange
	rangeCollation map[uint32]uint32
	collations     map[uint32]collation // the collations that were read so far; readCollationNames adds to them
}

// relationFacts are the rows of the system catalogs about one relation.
type relationFacts struct {
	row     *relationRow
	parents []uint32
	reads   []viewRead
	columns []columnRow

	defaults                            map[int16]string
	defaultSequences, identitySequences map[int16][]uint32
	checkedValues                       map[int16][]string // the values that CHECK constraints allow, by column

	partitionedBy   []int16
	keys            []keyRow
	vectorColumns   []string
	fallibleIndexes []catalog.FallibleIndex

	checks        []check
	indexes       []*index
	equalKeys     map[uint32][]int // the key columns of exclusion constraints that compare with =, by index
	generated     []generatedColumn
	partitionKeys []partitionKey
	statistics    []statistics
	triggers      []trigger
}

// setInMap sets a key of a map, and makes the map if it is nil.
func setInMap[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// relationReader reads the facts about some relations, or about all of them.
type relationReader struct {
	catalogReader
	oids    []uint32 // the OIDs of the relations; nil: all relations
	objects *objectFacts
	facts   map[uint32]*relationFacts
}

// relationCondition returns the SQL condition that this reader reads the relation with this OID.
func (r *relationReader) relationCondition(oid string) string {
	if r.oids == nil {
		return "true"
	}
	return oid + " = ANY ($1::oid[])"
}

// conditionArgs returns the arguments of a query with the condition of relationCondition.
func (r *relationReader) conditionArgs() []any {
	if r.oids == nil {
		return nil
	}
	return []any{r.oids}
}

// factsOf returns the facts about a relation, so that the reader can add to them.
func (r *relationReader) factsOf(oid uint32) *relationFacts {
	f := r.facts[oid]
	if f == nil {
		f = &relationFacts{}
		r.facts[oid] = f
	}
	return f
}

// avoidMergeJoins sets, until the transaction ends, how queries about some relations are planned. Their generic plan does
// not know how few relations they are about, and a merge join would read a whole catalog for them.
func (r *relationReader) avoidMergeJoins(ctx context.Context) error {
	if r.oids == nil {
		return nil
	}
	return r.each(ctx, "SET LOCAL enable_mergejoin = off", nil, nil)
}

// read reads the facts. Relations that are in no snapshot, such as temporary tables, are left out.
func (r *relationReader) read(ctx context.Context) error {
	r.facts = map[uint32]*relationFacts{}
	if err := r.together(ctx, r.avoidMergeJoins, r.readRelations, r.readParents, r.readViews, r.readColumns, r.readDefaults,
		r.readSequences, r.readPartitionedBy, r.readKeys, r.readVectors, r.readComparedIndexes, r.readValues, r.readChecks, r.readIndexFacts,
		r.readGenerated, r.readPartitionKeys, r.readStatistics, r.readTriggers); err != nil {
		return err
	}
	if err := r.readEqualKeys(ctx); err != nil {
		return err
	}
	for oid, f := range r.facts {
		if f.row == nil {
			delete(r.facts, oid)
			continue
		}
		// The order of a query's rows depends on its plan. Sorted facts can be compared.
		slices.SortFunc(f.checks, func(a, b check) int { return strings.Compare(a.name, b.name) })
		slices.SortFunc(f.generated, func(a, b generatedColumn) int { return cmp.Compare(a.number, b.number) })
		for _, texts := range f.checkedValues {
			slices.Sort(texts)
		}
	}
	return nil
}

// loader computes a snapshot from the facts. Its transaction serves further queries that depend on the facts.
type loader struct {
	catalogReader
	*catalogFacts
	spec      catalog.Spec
	relations map[uint32]*catalog.Relation

	attributes map[uint32][]attribute // the columns of each relation
	heapTables map[uint32]bool        // tables with PostgreSQL's own access method heap

	checks           []check
	indexes          []*index
	generatedColumns []generatedColumn
	virtualColumns   map[uint32][]generatedColumn // the columns that are computed when they are read, by relation
	partitionKeys    []partitionKey
	statistics       []statistics
	triggers         []trigger
}

// newLoader lists the facts about relations in the order of their OIDs.
func newLoader(r catalogReader, f *catalogFacts) *loader {
	l := &loader{catalogReader: r, catalogFacts: f, spec: f.spec, relations: map[uint32]*catalog.Relation{},
		heapTables:     map[uint32]bool{},
		virtualColumns: map[uint32][]generatedColumn{}, checks: slices.Clone(f.domainChecks)}
	for _, oid := range sortedKeys(f.relations) {
		facts := f.relations[oid]
		relation := facts.row.Relation
		relation.Extension = f.objects.extensionOf("pg_class", oid)
		relation.PartitionBy, relation.CheckedColumns, relation.CheckedTogether = []string{}, []string{}, [][]string{}
		relation.IndexedVectors = slices.Clone(facts.vectorColumns)
		relation.FallibleIndexes = slices.Clone(facts.fallibleIndexes)
		l.relations[oid], l.heapTables[oid] = &relation, facts.row.isHeapTable
		l.spec.Relations = append(l.spec.Relations, &relation)

		l.checks = append(l.checks, facts.checks...)
		l.indexes = append(l.indexes, facts.indexes...)
		l.generatedColumns = append(l.generatedColumns, facts.generated...)
		for _, g := range facts.generated {
			if g.isVirtual {
				l.virtualColumns[oid] = append(l.virtualColumns[oid], g)
			}
		}
		l.partitionKeys = append(l.partitionKeys, facts.partitionKeys...)
		l.statistics = append(l.statistics, facts.statistics...)
		l.triggers = append(l.triggers, facts.triggers...)
	}
	return l
}

// snapshot computes a snapshot from the facts.
func (l *loader) snapshot(ctx context.Context) (*catalog.Snapshot, error) {
	if err := callUntilError(ctx, l.setParents, l.setReads, l.setColumns, l.setPartitionedBy, l.setChecked, l.setKeys,
		l.setIndexes, l.setUnique, l.setRecheckedColumns, l.setComputations, l.readUserCodeOfWrites, l.readPlannerUserCode, l.setValues,
		l.setMayBeReplaced, l.setTypeCollations); err != nil {
		return nil, err
	}
	return catalog.NewSnapshot(l.spec), nil
}

// setParents sets for each relation the relations of which it is a partition or an inheritance child.
func (l *loader) setParents(context.Context) error {
	for oid, r := range l.relations {
		for _, parent := range l.catalogFacts.relations[oid].parents {
			if p := l.relations[parent]; p != nil {
				r.Parents = append(r.Parents, p.Name)
			}
		}
	}
	return nil
}

// setReads sets which columns of which relations the views read.
func (l *loader) setReads(context.Context) error {
	for oid, v := range l.relations {
		for _, readRelation := range l.catalogFacts.relations[oid].reads {
			if r := l.relations[readRelation.relation]; r != nil {
				v.Reads = append(v.Reads, catalog.ViewRead{Relation: r.Name, Columns: readRelation.columns})
			}
		}
	}
	return nil
}

// setPartitionedBy sets the columns of the partition key of each partitioned table.
func (l *loader) setPartitionedBy(context.Context) error {
	for oid, r := range l.relations {
		if numbers := l.catalogFacts.relations[oid].partitionedBy; numbers != nil {
			r.PartitionBy = l.columnsOf(oid, func(n int16) bool { return slices.Contains(numbers, n) })
			slices.Sort(r.PartitionBy)
		}
	}
	return nil
}
