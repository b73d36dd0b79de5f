package pgcatalog

import (
	"cmp"
	"context"
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// extensionOf is the extension that an object belongs to, or ”.
func extensionOf(class, oid string) string {
	return `COALESCE((SELECT e.extname FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
		WHERE d.classid = '` + class + `'::regclass AND d.objid = ` + oid + ` AND d.deptype = 'e'
		  AND d.refclassid = 'pg_extension'::regclass), '')`
}

// enforced tells whether PostgreSQL holds rows to a constraint con. A constraint that is NOT ENFORCED, which exists
// from 18 on, rules nothing out.
func (r *reader) enforced() string {
	if r.spec.ServerVersion < 180000 {
		return "true"
	}
	return "con.conenforced"
}

// wholeRow tells whether an expression reads a whole row, which is no column that it depends on.
func wholeRow(tree string) string { return "(" + tree + "::text LIKE '%:varattno 0 %')" }

func (l *loader) readRelations(ctx context.Context) error {
	l.relations, l.heaps = map[uint32]*catalog.Relation{}, map[uint32]bool{}
	var (
		r    catalog.Relation
		kind string
		heap bool
	)
	return l.each(ctx, `SELECT c.oid, n.nspname, c.relname, c.relkind::text, pg_get_userbyid(c.relowner),
		  c.relrowsecurity, c.relforcerowsecurity, c.relispartition,
		  c.relhassubclass AND EXISTS (SELECT 1 FROM pg_inherits AS i WHERE i.inhparent = c.oid), c.relhasrules AND c.relkind NOT IN ('v', 'm'),
		  CASE WHEN c.relkind = 'v' AND `+foreign+` THEN COALESCE(pg_get_viewdef(c.oid), '') ELSE '' END,
		  c.oid IN (SELECT p.polrelid FROM pg_policy AS p WHERE p.polname = 'pgconsent_select'),
		  CASE WHEN c.relkind = 'v' AND `+foreign+` AND NOT EXISTS (SELECT 1 FROM pg_trigger AS t WHERE t.tgrelid = c.oid)
		    AND NOT EXISTS (SELECT 1 FROM pg_rewrite AS w WHERE w.ev_class = c.oid AND w.rulename <> '_RETURN')
		      THEN pg_relation_is_updatable(c.oid, false) ELSE 0 END,
		  CASE WHEN c.relkind = 'v' AND c.reloptions IS NOT NULL THEN COALESCE((SELECT o.option_value FROM pg_options_to_table(c.reloptions) AS o
		    WHERE o.option_name = 'check_option'), '') ELSE '' END,
		  c.relkind = 'r' AND c.relam < 16384
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c') AND n.nspname !~ '^pg_(toast|temp)'`,
		[]any{&r.OID, &r.Name.Schema, &r.Name.Name, &kind, &r.Owner, &r.RowSecurity, &r.ForceRLS, &r.IsPartition,
			&r.HasChildren, &r.HasRules, &r.Definition, &r.HasOurPolicy, &r.Updatable, &r.CheckOption, &heap},
		func() error {
			relation := r
			relation.Kind = catalog.RelKind(kind[0])
			relation.Extension = l.known.extensionOf("pg_class", r.OID)
			relation.PartitionBy, relation.Checked, relation.CheckedTogether = []string{}, []string{}, [][]string{}
			l.heaps[r.OID] = heap
			l.relations[r.OID] = &relation
			l.spec.Relations = append(l.spec.Relations, &relation)
			return nil
		})
}

// readParents reads which relations inherit from which, partitions included.
func (l *loader) readParents(ctx context.Context) error {
	var child, parent uint32
	return l.each(ctx, "SELECT i.inhrelid, i.inhparent FROM pg_inherits AS i ORDER BY 1, i.inhseqno", []any{&child, &parent},
		func() error {
			if c, p := l.relations[child], l.relations[parent]; c != nil && p != nil {
				c.Parents = append(c.Parents, p.Name)
			}
			return nil
		})
}

// foreign tells whether a relation is neither the system's nor ours.
const foreign = `n.nspname NOT IN ('pg_catalog', 'information_schema', 'pgconsent', ` +
	`'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')`

// readViews reads which relations each view reads.
func (l *loader) readViews(ctx context.Context) error {
	var (
		view, reads uint32
		columns     []string
	)
	return l.each(ctx, `SELECT c.oid, d.refobjid, array_remove(array_agg(DISTINCT a.attname::text ORDER BY a.attname::text), NULL)
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		JOIN pg_rewrite AS w ON w.ev_class = c.oid AND w.rulename = '_RETURN'
		JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
		  AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> c.oid
		  -- A field of a composite type is none of a table.
		  AND NOT EXISTS (SELECT FROM pg_class AS t WHERE t.oid = d.refobjid AND t.relkind = 'c')
		LEFT JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid AND a.attnum > 0
		WHERE c.relkind = 'v' AND `+foreign+` GROUP BY 1, 2 ORDER BY 1, 2`,
		[]any{&view, &reads, &columns},
		func() error {
			if v, r := l.relations[view], l.relations[reads]; v != nil && r != nil {
				v.Reads = append(v.Reads, catalog.Read{Relation: r.Name, Columns: columns})
			}
			columns = nil
			return nil
		})
}

// attribute holds further facts about a column, in the order of the relation's columns.
type attribute struct {
	number    int16
	collation uint32
}

// readColumns reads the columns. What only some of them have is read by itself: joined to all columns it takes longer.
func (l *loader) readColumns(ctx context.Context) error {
	ofDefaults, ofIdentities, err := l.readSequences(ctx)
	if err != nil {
		return err
	}
	defaults, ofTypes, err := l.readDefaults(ctx)
	if err != nil {
		return err
	}
	l.attributes = map[uint32][]attribute{}
	var (
		oid uint32
		at  attribute
		c   catalog.Column
	)
	if err := l.each(ctx, `SELECT a.attrelid, a.attnum, a.attcollation, a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid,
		  a.attnotnull, a.attgenerated <> '', a.attgenerated = 'v',
		  CASE a.attidentity WHEN 'a' THEN 'always' WHEN 'd' THEN 'by default' ELSE '' END
		FROM pg_attribute AS a JOIN pg_class AS r ON r.oid = a.attrelid AND r.relkind NOT IN ('i', 'I', 't')
		WHERE a.attnum > 0 AND NOT a.attisdropped`,
		[]any{&oid, &at.number, &at.collation, &c.Name, &c.Type, &c.TypeOID, &c.NotNull, &c.Generated, &c.Virtual, &c.Identity},
		func() error {
			r := l.relations[oid]
			if r == nil {
				return nil
			}
			key := column{oid, at.number}
			c.ComputedFrom, c.Sequence, c.Default = []string{}, ofDefaults[key], ""
			if c.Identity != "" {
				c.Sequence = ofIdentities[key]
			}
			if !c.Generated {
				c.Default = cmp.Or(defaults[key], ofTypes[c.TypeOID])
			}
			// The rows come in no order, which is seldom another than that of the columns.
			i, _ := slices.BinarySearchFunc(l.attributes[oid], at.number,
				func(a attribute, n int16) int { return cmp.Compare(a.number, n) })
			r.Columns = slices.Insert(r.Columns, i, c)
			l.attributes[oid] = slices.Insert(l.attributes[oid], i, at)
			return nil
		}); err != nil {
		return err
	}
	for _, g := range l.generatedColumns {
		for i, at := range l.attributes[g.relation] {
			if at.number == g.number {
				l.relations[g.relation].Columns[i].ComputedFrom = l.columnsOf(g.relation,
					func(n int16) bool { return n != g.number && slices.Contains(g.dependencyColumns, n) })
			}
		}
	}
	return l.setCollations(ctx)
}

// readDefaults reads the defaults of columns and of domains. A default has no columns in it, so that it needs no names
// of these to be written.
func (l *loader) readDefaults(ctx context.Context) (ofColumns map[column]string, ofTypes map[uint32]string, err error) {
	var (
		of   column
		oid  uint32
		expr string
	)
	ofColumns, ofTypes = map[column]string{}, map[uint32]string{}
	if err := l.each(ctx, `SELECT f.adrelid, f.adnum, pg_get_expr(f.adbin, 0) FROM pg_attrdef AS f
		JOIN pg_attribute AS a ON a.attrelid = f.adrelid AND a.attnum = f.adnum WHERE a.attgenerated = ''`,
		[]any{&of.relation, &of.number, &expr},
		func() error {
			ofColumns[of] = expr
			return nil
		}); err != nil {
		return nil, nil, err
	}
	return ofColumns, ofTypes, l.each(ctx,
		"SELECT y.oid, pg_get_expr(y.typdefaultbin, 0) FROM pg_type AS y WHERE y.typdefaultbin IS NOT NULL", []any{&oid, &expr},
		func() error {
			ofTypes[oid] = expr
			return nil
		})
}

// setCollations reads the collations of columns, but for the database's own.
func (l *loader) setCollations(ctx context.Context) error {
	var used []uint32
	for _, columns := range l.attributes {
		for _, at := range columns {
			if at.collation != 0 && !slices.Contains(used, at.collation) {
				used = append(used, at.collation)
			}
		}
	}
	type collation struct {
		name             string
		nondeterministic bool
	}
	var (
		oid uint32
		c   collation
	)
	found := map[uint32]collation{}
	if err := l.each(ctx, `SELECT l.oid, trim('"' FROM l.oid::regcollation::text), NOT l.collisdeterministic FROM pg_collation AS l
		WHERE l.oid = ANY ($1::oid[]) AND l.oid <> 'pg_catalog."default"'::regcollation`,
		[]any{&oid, &c.name, &c.nondeterministic},
		func() error {
			found[oid] = c
			return nil
		}, used); err != nil {
		return err
	}
	for relation, columns := range l.attributes {
		for i, at := range columns {
			c := found[at.collation]
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

// readSequences reads whose next values columns are: the sequence of a default is what the default depends on, the
// first made of several; that of an identity column depends on the column.
func (l *loader) readSequences(ctx context.Context) (ofDefaults, ofIdentities map[column]catalog.Name, err error) {
	read := func(sql string) (map[column]catalog.Name, error) {
		var (
			of       column
			sequence uint32
		)
		names := map[column]catalog.Name{}
		return names, l.each(ctx, sql, []any{&of.relation, &of.number, &sequence}, func() error {
			s := l.relations[sequence]
			if _, known := names[of]; !known && s != nil && s.Kind == catalog.Sequence {
				names[of] = s.Name
			}
			return nil
		})
	}
	if ofDefaults, err = read(`SELECT f.adrelid, f.adnum, d.refobjid FROM pg_depend AS d JOIN pg_attrdef AS f ON f.oid = d.objid
		WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid = 0
		ORDER BY d.refobjid`); err != nil {
		return nil, nil, err
	}
	ofIdentities, err = read(`SELECT d.refobjid, d.refobjsubid::int2, d.objid FROM pg_class AS s JOIN pg_depend AS d ON d.objid = s.oid
		WHERE s.relkind = 'S' AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
		AND d.refobjsubid > 0 AND d.deptype = 'i' ORDER BY d.objid`)
	return ofDefaults, ofIdentities, err
}

// columnsOf are the names of the columns of a relation that are meant, by their numbers.
func (l *loader) columnsOf(relation uint32, meant func(number int16) bool) []string {
	names := []string{}
	for i, at := range l.attributes[relation] {
		if meant(at.number) {
			names = append(names, l.relations[relation].Columns[i].Name)
		}
	}
	return names
}

// readPartitionedBy reads the columns of partition keys.
func (l *loader) readPartitionedBy(ctx context.Context) error {
	var (
		oid     uint32
		numbers []int16
	)
	return l.each(ctx, `SELECT p.partrelid, p.partattrs::int2[] || ARRAY(SELECT d.objsubid::int2 FROM pg_depend AS d
		    WHERE d.classid = 'pg_class'::regclass AND d.objid = p.partrelid AND d.objsubid > 0
		    AND d.refclassid = 'pg_class'::regclass AND d.refobjid = p.partrelid AND d.refobjsubid = 0) FROM pg_partitioned_table AS p`,
		[]any{&oid, &numbers},
		func() error {
			if r := l.relations[oid]; r != nil {
				r.PartitionBy = l.columnsOf(oid, func(n int16) bool { return slices.Contains(numbers, n) })
				slices.Sort(r.PartitionBy)
			}
			numbers = nil
			return nil
		})
}

// setChecked finds which columns the checks read: each column, and the sets of columns that one check reads together.
func (l *loader) setChecked(context.Context) error {
	numbers, together := map[uint32][]int16{}, map[uint32][][]string{}
	for _, c := range l.checks {
		if c.tree == nil || !c.enforced {
			continue
		}
		reads := l.columnsOf(c.relation, func(n int16) bool {
			read := slices.Contains(c.keys, n) || c.tree.wholeRow()
			if read {
				numbers[c.relation] = append(numbers[c.relation], n)
			}
			return read
		})
		if len(reads) > 1 {
			together[c.relation] = append(together[c.relation], reads)
		}
	}
	for oid, read := range numbers {
		l.relations[oid].Checked = l.columnsOf(oid, func(n int16) bool { return slices.Contains(read, n) })
	}
	for oid, lists := range together {
		slices.SortFunc(lists, func(a, b []string) int { return cmp.Or(cmp.Compare(len(a), len(b)), slices.Compare(a, b)) })
		l.relations[oid].CheckedTogether = slices.CompactFunc(lists, slices.Equal[[]string])
	}
	return nil
}

// readKeys reads primary and foreign keys. A key that leads to a partitioned table has a row for each partition
// besides, which are left out: they ask what the key asks.
func (l *loader) readKeys(ctx context.Context) error {
	var (
		oid, target           uint32
		kind, update, del     string
		columns, refs, nulled []int16
		validated, full       bool
	)
	return l.each(ctx, `SELECT con.conrelid, con.confrelid, con.contype::text, con.conkey, con.confkey, con.convalidated,
		con.confupdtype::text, con.confdeltype::text, con.confdelsetcols, con.confmatchtype = 'f'
		FROM pg_constraint AS con WHERE con.contype IN ('p', 'f') AND con.conrelid <> 0 AND `+l.enforced()+`
		  AND NOT EXISTS (SELECT FROM pg_constraint AS whole WHERE whole.oid = con.conparentid AND whole.conrelid = con.conrelid)
		ORDER BY con.conrelid, con.conname`,
		[]any{&oid, &target, &kind, &columns, &refs, &validated, &update, &del, &nulled, &full},
		func() error {
			r := l.relations[oid]
			switch {
			case r == nil:
			case kind == "p":
				r.PrimaryKey = l.names(oid, columns)
			case l.relations[target] != nil:
				r.ForeignKeys = append(r.ForeignKeys, catalog.ForeignKey{
					Columns: l.names(oid, columns), Target: l.relations[target].Name, TargetCols: l.names(target,
						refs), Validated: validated,
					OnUpdate: actions[update], OnDelete: actions[del], Nulled: l.names(oid, nulled), Full: full,
				})
			}
			columns, refs, nulled = nil, nil, nil
			return nil
		})
}

// names are the names of a relation's columns that have these numbers, in the order of the numbers.
func (l *loader) names(relation uint32, numbers []int16) []string {
	out := []string{}
	for _, number := range numbers {
		if at := slices.IndexFunc(l.attributes[relation], func(a attribute) bool { return a.number == number }); at >= 0 {
			out = append(out, l.relations[relation].Columns[at].Name)
		}
	}
	return out
}

// actions are the letters of pg_constraint.
var actions = map[string]catalog.Action{
	"a": catalog.NoAction, "r": catalog.Restrict, "c": catalog.Cascade, "n": catalog.SetNull, "d": catalog.SetDefault,
}

// readVectors reads the text search vectors that an index has computed for each row of a table, so that they fail for
// none. An index that rows of older snapshots may be missing from (indcheckxmin), over some rows, or of a table with
// children is none; nor is any where a name of a configuration could mean two.
func (l *loader) readVectors(ctx context.Context) error {
	var (
		oid        uint32
		expression string
	)
	return l.each(ctx, `SELECT i.indrelid, pg_get_indexdef(i.indexrelid, k.n, false)
		FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid CROSS JOIN LATERAL generate_series(1, i.indnkeyatts::int4) AS k (n)
		WHERE i.indexprs IS NOT NULL AND i.indkey[k.n - 1] = 0 AND i.indpred IS NULL AND i.indisvalid
		AND i.indisready AND i.indislive AND NOT i.indcheckxmin
		  AND c.relkind = 'r' AND NOT c.relhassubclass AND pg_get_indexdef(i.indexrelid, k.n, false) LIKE '%to_tsvector(%'
		  AND NOT EXISTS (SELECT 1 FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
		    AND d.refclassid <> 'pg_class'::regclass AND d.refobjid >= 16384)
		  AND NOT EXISTS (SELECT 1 FROM pg_ts_config AS t JOIN pg_ts_config AS o ON o.cfgname = t.cfgname AND o.oid <> t.oid)
		ORDER BY i.indrelid, 2`,
		[]any{&oid, &expression},
		func() error {
			if r := l.relations[oid]; r != nil {
				r.Vectors = append(r.Vectors, expression)
			}
			return nil
		})
}
