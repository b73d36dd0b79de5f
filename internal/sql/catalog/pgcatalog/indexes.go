package pgcatalog

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// index is a row of pg_index. Columns are given by their numbers; an expression has the number 0.
type index struct {
	oid, relation     uint32
	schema, name      string
	methodOID         uint32
	method            string
	isUnique          bool
	isImmediate       bool
	isValid           bool
	isExclusion       bool
	nullsNotDistinct  bool
	inByteOrder       bool    // text columns are sorted by their bytes
	columns           []int16 // key columns, then the columns that INCLUDE names
	keyCount          int     // number of the columns that are key columns
	classes           []uint32
	collations        []uint32
	expressions       *tree
	condition         *tree
	where             *string // the predicate of a partial index, as pg_get_expr writes it
	dependencyColumns []int16 // columns that the index depends on; read only if it has expressions or a predicate
	// columns that the index's constraint depends on; read only if the index has expressions or a predicate
	constraintColumns []int16
}

// storedTrees returns the expressions and the predicate of the index.
func (i *index) storedTrees() []*tree {
	var out []*tree
	for _, t := range []*tree{i.expressions, i.condition} {
		if t != nil {
			out = append(out, t)
		}
	}
	return out
}

func (i *index) keyColumns() []int16 { return i.columns[:i.keyCount] }

func (i *index) readsWholeRow() bool {
	return i.expressions.readsWholeRow() || i.condition.readsWholeRow()
}

// readIndexFacts reads the indexes.
func (r *relationReader) readIndexFacts(ctx context.Context) error {
	var (
		i           index
		expressions *string
		condition   *string
	)
	return r.each(ctx, `SELECT i.indexrelid, i.indrelid, n.nspname, c.relname, m.oid, m.amname, i.indisunique, i.indimmediate,
		  i.indisvalid, i.indisexclusion, i.indnullsnotdistinct,
		  i.indclass::oid[] && ARRAY(SELECT o.oid FROM pg_opclass AS o WHERE o.opcname IN ('text_pattern_ops', 'varchar_pattern_ops')),
		  i.indkey::int2[], i.indnkeyatts::int4, i.indclass::oid[], i.indcollation::oid[], i.indexprs::text,
		  i.indpred::text, pg_get_expr(i.indpred, i.indrelid),
		  CASE WHEN i.indexprs IS NOT NULL OR i.indpred IS NOT NULL THEN `+dependencyColumnsSQL("pg_class", "i.indexrelid", "i.indrelid")+` END,
		  CASE WHEN i.indexprs IS NOT NULL OR i.indpred IS NOT NULL THEN ARRAY(SELECT d.refobjsubid::int2 FROM pg_constraint AS con
		    JOIN pg_depend AS d ON d.classid = 'pg_constraint'::regclass AND d.objid = con.oid
		    WHERE con.conindid = i.indexrelid AND con.conrelid = i.indrelid AND con.contype IN ('p', 'u', 'x')
		    AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid) END
		FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
		JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_am AS m ON m.oid = c.relam
		WHERE n.nspname !~ '^pg_(temp|toast)' AND `+r.relationCondition("i.indrelid")+" ORDER BY i.indrelid, c.relname",
		[]any{&i.oid, &i.relation, &i.schema, &i.name, &i.methodOID, &i.method, &i.isUnique, &i.isImmediate, &i.isValid,
			&i.isExclusion, &i.nullsNotDistinct, &i.inByteOrder,
			&i.columns, &i.keyCount, &i.classes, &i.collations, &expressions, &condition, &i.where, &i.dependencyColumns, &i.constraintColumns},
		func() error {
			i.expressions, i.condition = newTree(expressions), newTree(condition)
			indexRow := i
			r.factsOf(i.relation).indexes = append(r.factsOf(i.relation).indexes, &indexRow)
			i.columns, i.classes, i.collations, i.where, i.dependencyColumns, i.constraintColumns, expressions, condition = nil,
				nil, nil, nil, nil, nil, nil, nil
			return nil
		}, r.conditionArgs()...)
}

// setIndexes sets the indexes of each relation, and their names.
func (l *loader) setIndexes(context.Context) error {
	for _, i := range l.indexes {
		relation := l.relations[i.relation]
		if relation == nil {
			continue
		}
		l.spec.Indexes = append(l.spec.Indexes, &catalog.NamedIndex{
			Name: catalog.Name{Schema: i.schema, Name: i.name}, Table: relation.Name, IsPlain: i.expressions == nil &&
				i.condition == nil,
			Columns: l.columnsOf(i.relation, func(n int16) bool { return slices.Contains(i.columns, n) }),
		})
		switch {
		case i.method == "btree" && i.isValid:
			l.addBTree(relation, i)
		case i.method == "gin" && i.isValid && i.condition == nil:
			relation.GINColumns = append(relation.GINColumns, l.columnsOf(i.relation,
				func(n int16) bool { return slices.Contains(i.columns, n) })...)
		case i.methodOID >= firstNormalOID && i.method != "bloom":
			relation.HasApproximateIndex = true
		}
	}
	for _, relation := range l.relations {
		slices.Sort(relation.GINColumns)
		relation.GINColumns = slices.Compact(relation.GINColumns)
	}
	slices.SortFunc(l.spec.Indexes, func(a, b *catalog.NamedIndex) int {
		return cmp.Or(strings.Compare(a.Name.Schema, b.Name.Schema), strings.Compare(a.Name.Name, b.Name.Name))
	})
	return nil
}

// addBTree adds a valid btree index to its relation, as a full or a partial index.
func (l *loader) addBTree(relation *catalog.Relation, i *index) {
	var columns []string
	for _, number := range i.keyColumns() {
		position := slices.IndexFunc(l.attributes[i.relation], func(a attribute) bool { return a.number == number })
		if position < 0 { // an expression
			break
		}
		columns = append(columns, relation.Columns[position].Name)
	}
	switch {
	case len(columns) == 0:
	case i.where != nil:
		relation.PartialBTrees = append(relation.PartialBTrees, catalog.PartialBTree{Columns: columns, Where: *i.where})
	default:
		relation.BTrees = append(relation.BTrees, catalog.BTree{
			Columns: columns, IsUnique: i.isUnique && i.isImmediate && len(columns) == i.keyCount, InByteOrder: i.inByteOrder})
	}
}

// setUnique sets the keys of each relation in which no two rows may collide. The columns in expressions and predicates
// are the columns that the index depends on. The index of a constraint depends on the constraint instead. Such an index
// has expressions or a predicate only if it belongs to an EXCLUDE constraint.
func (l *loader) setUnique(context.Context) error {
	for _, i := range l.indexes {
		relation := l.relations[i.relation]
		if relation == nil || !i.isUnique && !i.isExclusion {
			continue
		}
		key := catalog.Key{
			Name: i.name,
			Columns: l.columnsOf(i.relation, func(n int16) bool {
				return i.readsWholeRow() || slices.Contains(i.keyColumns(), n) || slices.Contains(i.dependencyColumns, n) ||
					slices.Contains(i.constraintColumns, n)
			}),
			EqualColumns: []string{}, NullsDistinctColumns: []string{}, WhereColumns: []string{},
		}
		for position, a := range l.attributes[i.relation] {
			for n, number := range i.keyColumns() {
				if number == a.number && i.collations[n] == a.collation && l.objects.isNativeOrDefaultClass(i.classes[n]) &&
					(!i.isExclusion || slices.Contains(l.catalogFacts.relations[i.relation].equalKeys[i.oid], n)) {
					key.EqualColumns = append(key.EqualColumns, relation.Columns[position].Name)
					break
				}
			}
		}
		if !i.nullsNotDistinct {
			key.NullsDistinctColumns = l.columnsOf(i.relation, func(n int16) bool { return slices.Contains(i.keyColumns(), n) })
		}
		if i.where != nil {
			conditionColumns := i.condition.columns()
			key.Where = *i.where
			key.WhereColumns = l.columnsOf(i.relation, func(n int16) bool {
				return i.condition.readsWholeRow() ||
					slices.Contains(conditionColumns, uint32(n))
			})
		}
		relation.UniqueKeys = append(relation.UniqueKeys, key)
	}
	return nil
}

// isNativeOrDefaultClass tells whether an operator class is PostgreSQL's own, or is the default of its type.
func (k *objectFacts) isNativeOrDefaultClass(oid uint32) bool {
	return oid < firstNormalOID || slices.ContainsFunc(k.classes, func(c operatorClass) bool { return c.oid == oid && c.isDefault })
}

// readEqualKeys reads the keys of EXCLUDE constraints that compare with equality, numbered from 0. Their operator is
// the operator of a default btree class with strategy 3, which is equality. Operators and operator classes of other
// roles do not count, since they may call different values equal, or fail during an index scan.
func (r *relationReader) readEqualKeys(ctx context.Context) error {
	var excluding []uint32
	for oid, f := range r.facts {
		if slices.ContainsFunc(f.indexes, func(i *index) bool { return i.isExclusion }) {
			excluding = append(excluding, oid)
		}
	}
	if len(excluding) == 0 {
		return nil
	}
	partialOIDs := []uint32{}
	for _, c := range r.objects.classes {
		if r.objects.extensionOf("pg_opclass", c.oid) != "btree_gist" {
			partialOIDs = append(partialOIDs, c.oid)
		}
	}
	var (
		relation, oid uint32
		keys          []int
	)
	return r.each(ctx, `SELECT i.indrelid, i.indexrelid, array_agg(DISTINCT k.n - 1)
		FROM pg_index AS i JOIN pg_constraint AS con ON con.conindid = i.indexrelid
			AND con.conrelid = i.indrelid AND con.contype IN ('p', 'u', 'x')
		CROSS JOIN LATERAL unnest(con.conexclop) WITH ORDINALITY AS k (oid, n)
		JOIN pg_amop AS o ON o.amopopr = k.oid AND o.amopstrategy = 3
		JOIN pg_opclass AS c ON c.opcfamily = o.amopfamily AND c.opcdefault AND c.opcintype = o.amoplefttype AND c.opcintype = o.amoprighttype
		JOIN pg_am AS m ON m.oid = c.opcmethod AND m.amname = 'btree'
		WHERE i.indisexclusion AND NOT EXISTS (SELECT 1 FROM unnest(con.conexclop) AS x (oid) WHERE x.oid >= 16384)
		AND NOT i.indclass::oid[] && $2::oid[] AND i.indrelid = ANY ($1::oid[])
		GROUP BY 1, 2`,
		[]any{&relation, &oid, &keys},
		func() error {
			setInMap(&r.factsOf(relation).equalKeys, oid, keys)
			keys = nil
			return nil
		}, excluding, partialOIDs)
}
