package pgcatalog

import (
	"cmp"
	"context"
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// extensionSQL returns the SQL of the name of the extension to which an object belongs, or ”.
func extensionSQL(class, oid string) string {
	return `COALESCE((SELECT e.extname FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
		WHERE d.classid = '` + class + `'::regclass AND d.objid = ` + oid + ` AND d.deptype = 'e'
		  AND d.refclassid = 'pg_extension'::regclass), '')`
}

// isEnforcedSQL returns the condition that PostgreSQL enforces a constraint con. From PostgreSQL 18 on, a constraint
// may be NOT ENFORCED.
func (r *catalogReader) isEnforcedSQL() string {
	if r.serverVersion < 180000 {
		return "true"
	}
	return "con.conenforced"
}

// readsWholeRowSQL returns the condition that an expression reads a whole row, for which pg_depend names no column.
func readsWholeRowSQL(tree string) string { return "(" + tree + "::text LIKE '%:varattno 0 %')" }

// relationRow is a row of pg_class.
type relationRow struct {
	catalog.Relation        // the fields that pg_class has
	rowType          uint32 // the OID of the relation's row type; 0: the relation has no row type
	owner            uint32
	isHeapTable      bool // a table with PostgreSQL's own access method heap
}

func (r *relationReader) readRelations(ctx context.Context) error {
	var (
		row  relationRow
		kind string
	)
	return r.each(ctx, `SELECT c.oid, n.nspname, c.relname, c.relkind::text, pg_get_userbyid(c.relowner),
		  c.relrowsecurity, c.relforcerowsecurity, c.relispartition,
		  EXISTS (SELECT 1 FROM pg_inherits AS i WHERE i.inhparent = c.oid),
		  c.relhasrules AND c.relkind NOT IN ('v', 'm') AND EXISTS (SELECT 1 FROM pg_rewrite AS w WHERE w.ev_class = c.oid),
		  CASE WHEN c.relkind = 'v' AND `+isForeignRelationSQL+` THEN COALESCE(pg_get_viewdef(c.oid), '') ELSE '' END,
		  c.oid IN (SELECT p.polrelid FROM pg_policy AS p WHERE p.polname = 'pgconsent_select'),
		  CASE WHEN c.relkind = 'v' AND `+isForeignRelationSQL+` AND NOT EXISTS (SELECT 1 FROM pg_trigger AS t WHERE t.tgrelid = c.oid)
		    AND NOT EXISTS (SELECT 1 FROM pg_rewrite AS w WHERE w.ev_class = c.oid AND w.rulename <> '_RETURN')
		      THEN pg_relation_is_updatable(c.oid, false) ELSE 0 END,
		  CASE WHEN c.relkind = 'v' AND c.reloptions IS NOT NULL THEN COALESCE((SELECT o.option_value FROM pg_options_to_table(c.reloptions) AS o
		    WHERE o.option_name = 'check_option'), '') ELSE '' END,
		  c.relkind = 'r' AND c.relam < 16384, c.reltype, c.relowner
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c') AND n.nspname !~ '^pg_(toast|temp)' AND `+r.relationCondition("c.oid"),
		[]any{&row.OID, &row.Name.Schema, &row.Name.Name, &kind, &row.Owner, &row.RowSecurity, &row.RowSecurityForced,
			&row.IsPartition,
			&row.HasChildren, &row.HasRules, &row.Definition, &row.HasOurPolicy, &row.AllowedCommands, &row.CheckOption,
			&row.isHeapTable, &row.rowType, &row.owner},
		func() error {
			relation := row
			relation.Kind = catalog.RelKind(kind[0])
			r.factsOf(row.OID).row = &relation
			return nil
		}, r.conditionArgs()...)
}

// readParents reads of which relations each relation is a partition or an inheritance child.
func (r *relationReader) readParents(ctx context.Context) error {
	var child, parent uint32
	return r.each(ctx, "SELECT i.inhrelid, i.inhparent FROM pg_inherits AS i WHERE "+
		r.relationCondition("i.inhrelid")+" ORDER BY 1, i.inhseqno",
		[]any{&child, &parent},
		func() error {
			r.factsOf(child).parents = append(r.factsOf(child).parents, parent)
			return nil
		}, r.conditionArgs()...)
}

// isForeignRelationSQL is the condition that a relation is neither in PostgreSQL's schemas nor in pgconsent's.
const isForeignRelationSQL = `n.nspname NOT IN ('pg_catalog', 'information_schema', 'pgconsent', ` +
	`'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')`

// readViews reads which relations each view reads.
func (r *relationReader) readViews(ctx context.Context) error {
	var (
		view, readOID uint32
		columns       []string
	)
	return r.each(ctx, `SELECT c.oid, d.refobjid, array_remove(array_agg(DISTINCT a.attname::text ORDER BY a.attname::text), NULL)
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		JOIN pg_rewrite AS w ON w.ev_class = c.oid AND w.rulename = '_RETURN'
		JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
		  AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> c.oid
		  -- A field of a composite type is none of a table.
		  AND NOT EXISTS (SELECT FROM pg_class AS t WHERE t.oid = d.refobjid AND t.relkind = 'c')
		LEFT JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid AND a.attnum > 0
		WHERE c.relkind = 'v' AND `+isForeignRelationSQL+" AND "+r.relationCondition("c.oid")+" GROUP BY 1, 2 ORDER BY 1, 2",
		[]any{&view, &readOID, &columns},
		func() error {
			v := r.factsOf(view)
			v.reads = append(v.reads, viewRead{readOID, columns})
			columns = nil
			return nil
		}, r.conditionArgs()...)
}

// viewRead is a relation that a view reads, with the columns that the view reads of it.
type viewRead struct {
	relation uint32
	columns  []string
}

// attribute holds further facts about a column, in the order of the relation's columns.
type attribute struct {
	number    int16
	collation uint32
}

// columnRow is a row of pg_attribute.
type columnRow struct {
	attribute
	catalog.Column // the fields that pg_attribute has
}

// readColumns reads the columns of relations. Facts that only few columns have are read by separate queries, since
// joining them to all columns takes longer.
func (r *relationReader) readColumns(ctx context.Context) error {
	var (
		oid uint32
		c   columnRow
	)
	return r.each(ctx, `SELECT a.attrelid, a.attnum, a.attcollation, a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid,
		  a.attnotnull, a.attgenerated <> '', a.attgenerated = 'v',
		  CASE a.attidentity WHEN 'a' THEN 'always' WHEN 'd' THEN 'by default' ELSE '' END
		FROM pg_attribute AS a JOIN pg_class AS r ON r.oid = a.attrelid AND r.relkind NOT IN ('i', 'I', 't')
		WHERE a.attnum > 0 AND NOT a.attisdropped AND `+r.relationCondition("a.attrelid"),
		[]any{&oid, &c.number, &c.collation, &c.Name, &c.Type, &c.TypeOID, &c.NotNull, &c.Generated, &c.Virtual, &c.Identity},
		func() error {
			facts := r.factsOf(oid)
			// The query has no ORDER BY, but its rows usually come in the order of the columns, and the slice stays sorted.
			i, _ := slices.BinarySearchFunc(facts.columns, c.number,
				func(c columnRow, n int16) int { return cmp.Compare(c.number, n) })
			facts.columns = slices.Insert(facts.columns, i, c)
			return nil
		}, r.conditionArgs()...)
}

// readDefaults reads the defaults of columns. A default names no columns, so pg_get_expr needs no relation to write it.
func (r *relationReader) readDefaults(ctx context.Context) error {
	var (
		ofColumn column
		expr     string
	)
	return r.each(ctx, `SELECT f.adrelid, f.adnum, pg_get_expr(f.adbin, 0) FROM pg_attrdef AS f
		JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum WHERE a.attgenerated = '' AND `+r.relationCondition("f.adrelid"),
		[]any{&ofColumn.relation, &ofColumn.number, &expr},
		func() error {
			setInMap(&r.factsOf(ofColumn.relation).defaults, ofColumn.number, expr)
			return nil
		}, r.conditionArgs()...)
}

// readDomainDefaults reads the defaults of domains.
func (l *loader) readDomainDefaults(ctx context.Context) error {
	var (
		oid  uint32
		expr string
	)
	l.domainDefaults = map[uint32]string{}
	return l.each(ctx,
		"SELECT y.oid, pg_get_expr(y.typdefaultbin, 0) FROM pg_type AS y WHERE y.typdefaultbin IS NOT NULL", []any{&oid, &expr},
		func() error {
			l.domainDefaults[oid] = expr
			return nil
		})
}

// setColumns sets the columns of each relation.
func (l *loader) setColumns(ctx context.Context) error {
	l.attributes = map[uint32][]attribute{}
	for oid, relation := range l.relations {
		facts := l.catalogFacts.relations[oid]
		for _, row := range facts.columns {
			c := row.Column
			c.ComputedFrom, c.Sequence, c.Default = []string{}, l.firstSequence(facts.defaultSequences[row.number]), ""
			if c.Identity != "" {
				c.Sequence = l.firstSequence(facts.identitySequences[row.number])
			}
			if !c.Generated {
				c.Default = cmp.Or(facts.defaults[row.number], l.domainDefaults[c.TypeOID])
			}
			relation.Columns = append(relation.Columns, c)
			l.attributes[oid] = append(l.attributes[oid], row.attribute)
		}
	}
	for _, g := range l.generatedColumns {
		for i, attributes := range l.attributes[g.relation] {
			if attributes.number == g.number {
				l.relations[g.relation].Columns[i].ComputedFrom = l.columnsOf(g.relation,
					func(n int16) bool { return n != g.number && slices.Contains(g.dependencyColumns, n) })
			}
		}
	}
	return l.setCollations(ctx)
}

// setCollations sets the collations of columns that have another collation than the database's default.
func (l *loader) setCollations(ctx context.Context) error {
	usedCollations := map[uint32]bool{}
	for _, columns := range l.attributes {
		for _, attribute := range columns {
			usedCollations[attribute.collation] = true
		}
	}
	if err := l.readCollationNames(ctx, usedCollations); err != nil {
		return err
	}
	for relation, columns := range l.attributes {
		for i, attribute := range columns {
			c := l.collations[attribute.collation]
			l.relations[relation].Columns[i].Collation, l.relations[relation].Columns[i].Nondeterministic = c.name, c.nondeterministic
		}
	}
	return nil
}

// column identifies a column by the OID of its relation and its number.
type column struct {
	relation uint32
	number   int16
}

// readSequences reads from which sequence each column gets its values. For a default, it is the first of the sequences
// on which the default depends. For an identity column, it is the sequence that depends on the column.
func (r *relationReader) readSequences(ctx context.Context) error {
	var (
		ofColumn column
		sequence uint32
	)
	if err := r.each(ctx, `SELECT f.adrelid, f.adnum, d.refobjid FROM pg_depend AS d JOIN pg_attrdef AS f ON f.oid = d.objid
		WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid = 0
		AND `+r.relationCondition("f.adrelid")+" ORDER BY d.refobjid",
		[]any{&ofColumn.relation, &ofColumn.number, &sequence},
		func() error {
			t := r.factsOf(ofColumn.relation)
			setInMap(&t.defaultSequences, ofColumn.number, append(t.defaultSequences[ofColumn.number], sequence))
			return nil
		}, r.conditionArgs()...); err != nil {
		return err
	}
	return r.each(ctx, `SELECT d.refobjid, d.refobjsubid::int2, d.objid FROM pg_class AS s JOIN pg_depend AS d ON d.objid = s.oid
		WHERE s.relkind = 'S' AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
		AND d.refobjsubid > 0 AND d.deptype = 'i' AND `+r.relationCondition("d.refobjid")+" ORDER BY d.objid",
		[]any{&ofColumn.relation, &ofColumn.number, &sequence},
		func() error {
			t := r.factsOf(ofColumn.relation)
			setInMap(&t.identitySequences, ofColumn.number, append(t.identitySequences[ofColumn.number], sequence))
			return nil
		}, r.conditionArgs()...)
}

// firstSequence returns the name of the first relation in the list that is a sequence.
func (l *loader) firstSequence(sequences []uint32) catalog.Name {
	for _, oid := range sequences {
		if s := l.relations[oid]; s != nil && s.Kind == catalog.Sequence {
			return s.Name
		}
	}
	return catalog.Name{}
}

// columnsOf returns the names of those columns of a relation for whose numbers isWanted returns true.
func (l *loader) columnsOf(relation uint32, isWanted func(number int16) bool) []string {
	names := []string{}
	for i, attr := range l.attributes[relation] {
		if isWanted(attr.number) {
			names = append(names, l.relations[relation].Columns[i].Name)
		}
	}
	return names
}

// readPartitionedBy reads the columns on which the partition keys of tables depend.
func (r *relationReader) readPartitionedBy(ctx context.Context) error {
	var (
		oid     uint32
		numbers []int16
	)
	return r.each(ctx, `SELECT p.partrelid, p.partattrs::int2[] || ARRAY(SELECT d.objsubid::int2 FROM pg_depend AS d
		    WHERE d.classid = 'pg_class'::regclass AND d.objid = p.partrelid AND d.objsubid > 0
		    AND d.refclassid = 'pg_class'::regclass AND d.refobjid = p.partrelid AND d.refobjsubid = 0)
		FROM pg_partitioned_table AS p WHERE `+r.relationCondition("p.partrelid"),
		[]any{&oid, &numbers},
		func() error {
			r.factsOf(oid).partitionedBy = numbers
			numbers = nil
			return nil
		}, r.conditionArgs()...)
}

// setChecked sets which columns the CHECK constraints of each relation read, and which columns a single constraint
// reads together.
func (l *loader) setChecked(context.Context) error {
	checkedNumbers, checkedTogether := map[uint32][]int16{}, map[uint32][][]string{}
	for _, c := range l.checks {
		if c.tree == nil || !c.isEnforced {
			continue
		}
		columns := l.columnsOf(c.relation, func(n int16) bool {
			isRead := slices.Contains(c.keys, n) || c.tree.readsWholeRow()
			if isRead {
				checkedNumbers[c.relation] = append(checkedNumbers[c.relation], n)
			}
			return isRead
		})
		if len(columns) > 1 {
			checkedTogether[c.relation] = append(checkedTogether[c.relation], columns)
		}
	}
	for oid, isRead := range checkedNumbers {
		l.relations[oid].CheckedColumns = l.columnsOf(oid, func(n int16) bool { return slices.Contains(isRead, n) })
	}
	for oid, lists := range checkedTogether {
		slices.SortFunc(lists, func(a, b []string) int { return cmp.Or(cmp.Compare(len(a), len(b)), slices.Compare(a, b)) })
		l.relations[oid].CheckedTogether = slices.CompactFunc(lists, slices.Equal[[]string])
	}
	return nil
}

// keyRow is a row of pg_constraint of a primary or foreign key.
type keyRow struct {
	target                                 uint32
	kind, onUpdate, onDelete               string
	columns, targetColumns, setNullColumns []int16
	validated, matchFull                   bool
}

// readKeys reads primary and foreign keys. For a foreign key that refers to a partitioned table, PostgreSQL has a
// further row for each partition. These rows are left out, since they require the same.
func (r *relationReader) readKeys(ctx context.Context) error {
	var (
		oid uint32
		k   keyRow
	)
	return r.each(ctx, `SELECT con.conrelid, con.confrelid, con.contype::text, con.conkey, con.confkey, con.convalidated,
		con.confupdtype::text, con.confdeltype::text, con.confdelsetcols, con.confmatchtype = 'f'
		FROM pg_constraint AS con WHERE con.contype IN ('p', 'f') AND con.conrelid <> 0 AND `+r.isEnforcedSQL()+`
		  AND NOT EXISTS (SELECT FROM pg_constraint AS whole WHERE whole.oid = con.conparentid AND whole.conrelid = con.conrelid)
		  AND `+r.relationCondition("con.conrelid")+" ORDER BY con.conrelid, con.conname",
		[]any{&oid, &k.target, &k.kind, &k.columns, &k.targetColumns, &k.validated, &k.onUpdate, &k.onDelete, &k.setNullColumns, &k.matchFull},
		func() error {
			r.factsOf(oid).keys = append(r.factsOf(oid).keys, k)
			k = keyRow{}
			return nil
		}, r.conditionArgs()...)
}

// setKeys sets the primary and foreign keys of each relation.
func (l *loader) setKeys(context.Context) error {
	for oid, relation := range l.relations {
		for _, k := range l.catalogFacts.relations[oid].keys {
			switch target := l.relations[k.target]; {
			case k.kind == "p":
				relation.PrimaryKey = l.columnNames(oid, k.columns)
			case target != nil:
				relation.ForeignKeys = append(relation.ForeignKeys, catalog.ForeignKey{
					Columns: l.columnNames(oid, k.columns), Target: target.Name, TargetColumns: l.columnNames(k.target, k.targetColumns),
					Validated: k.validated,
					OnUpdate:  actionsByLetter[k.onUpdate], OnDelete: actionsByLetter[k.onDelete], SetNullColumns: l.columnNames(oid, k.setNullColumns),
					MatchFull: k.matchFull,
				})
			}
		}
	}
	return nil
}

// columnNames returns the names of the columns with these numbers, in the order of the numbers.
func (l *loader) columnNames(relation uint32, numbers []int16) []string {
	out := []string{}
	for _, number := range numbers {
		if position := slices.IndexFunc(l.attributes[relation],
			func(a attribute) bool { return a.number == number }); position >= 0 {
			out = append(out, l.relations[relation].Columns[position].Name)
		}
	}
	return out
}

// actionsByLetter has the actions of foreign keys by their letters in pg_constraint (confdeltype and confupdtype).
var actionsByLetter = map[string]catalog.Action{
	"a": catalog.NoAction, "r": catalog.Restrict, "c": catalog.Cascade, "n": catalog.SetNull, "d": catalog.SetDefault,
}

// readVectors reads the to_tsvector expressions that an index has computed for every row of a table, so that they fail
// for no row. It leaves out partial indexes, indexes of tables with children, and indexes that may lack rows of older
// snapshots (indcheckxmin). It reads none if two text search configurations have the same name.
func (r *relationReader) readVectors(ctx context.Context) error {
	var (
		oid        uint32
		expression string
	)
	return r.each(ctx, `SELECT i.indrelid, pg_get_indexdef(i.indexrelid, k.n, false)
		FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid CROSS JOIN LATERAL generate_series(1, i.indnkeyatts::int4) AS k (n)
		WHERE i.indexprs IS NOT NULL AND i.indkey[k.n - 1] = 0 AND i.indpred IS NULL AND i.indisvalid
		AND i.indisready AND i.indislive AND NOT i.indcheckxmin
		  AND c.relkind = 'r' AND NOT c.relhassubclass AND pg_get_indexdef(i.indexrelid, k.n, false) LIKE '%to_tsvector(%'
		  AND NOT EXISTS (SELECT 1 FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
		    AND d.refclassid <> 'pg_class'::regclass AND d.refobjid >= 16384)
		  AND NOT EXISTS (SELECT 1 FROM pg_ts_config AS t JOIN pg_ts_config AS o ON o.cfgname = t.cfgname AND o.oid <> t.oid)
		  AND `+r.relationCondition("i.indrelid")+" ORDER BY i.indrelid, 2",
		[]any{&oid, &expression},
		func() error {
			r.factsOf(oid).vectorColumns = append(r.factsOf(oid).vectorColumns, expression)
			return nil
		}, r.conditionArgs()...)
}
