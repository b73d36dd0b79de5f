package pgcatalog

import (
	"context"

	"github.com/pgconsent/pgconsent/catalog"
)

// extensionOf is the extension that an object belongs to, or ”.
func extensionOf(class, oid string) string {
	return `COALESCE((SELECT e.extname FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
		WHERE d.classid = '` + class + `'::regclass AND d.objid = ` + oid + ` AND d.deptype = 'e'
		  AND d.refclassid = 'pg_extension'::regclass), '')`
}

// enforced tells of a constraint con that PostgreSQL holds rows to it; one that says NOT ENFORCED, from 18 on, rules nothing out.
func (l *loader) enforced() string {
	if l.spec.ServerVersion < 180000 {
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
	return l.each(ctx, `SELECT c.oid, n.nspname, c.relname, c.relkind::text, pg_get_userbyid(c.relowner), c.relrowsecurity,
		  c.relforcerowsecurity, c.relispartition,
		  EXISTS (SELECT 1 FROM pg_inherits AS i WHERE i.inhparent = c.oid), c.relhasrules AND c.relkind NOT IN ('v', 'm'),
		  ARRAY(SELECT a.attname::text FROM pg_partitioned_table AS p JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.objsubid > 0
		    AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid AND d.refobjsubid = 0
		    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = d.objsubid WHERE p.partrelid = c.oid
		    UNION SELECT a.attname::text FROM pg_partitioned_table AS p JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (p.partattrs)
		    WHERE p.partrelid = c.oid ORDER BY 1),
		  ARRAY(SELECT a.attname::text FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND EXISTS (
		    SELECT 1 FROM pg_constraint AS con WHERE con.conrelid = c.oid AND con.contype = 'c' AND `+l.enforced()+` AND (a.attnum = ANY (con.conkey) OR `+wholeRow("con.conbin")+`)) ORDER BY a.attnum),
		  COALESCE((SELECT jsonb_agg(k.columns ORDER BY k.columns) FROM (SELECT DISTINCT (SELECT jsonb_agg(a.attname ORDER BY a.attnum) FROM pg_attribute AS a
		      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND (a.attnum = ANY (con.conkey) OR `+wholeRow("con.conbin")+`)) AS columns
		    FROM pg_constraint AS con WHERE con.conrelid = c.oid AND con.contype = 'c' AND `+l.enforced()+`) AS k WHERE jsonb_array_length(k.columns) > 1), '[]'),
		  EXISTS (SELECT 1 FROM pg_index AS i JOIN pg_class AS ic ON ic.oid = i.indexrelid JOIN pg_am AS m ON m.oid = ic.relam WHERE i.indrelid = c.oid AND m.oid >= 16384 AND m.amname <> 'bloom'),
		  CASE WHEN c.relkind = 'v' AND `+foreign+` THEN COALESCE(pg_get_viewdef(c.oid), '') ELSE '' END,
		  EXISTS (SELECT 1 FROM pg_policy AS p WHERE p.polrelid = c.oid AND p.polname = 'pgconsent_select'),
		  CASE WHEN c.relkind = 'v' AND `+foreign+` AND NOT EXISTS (SELECT 1 FROM pg_trigger AS t WHERE t.tgrelid = c.oid)
		    AND NOT EXISTS (SELECT 1 FROM pg_rewrite AS w WHERE w.ev_class = c.oid AND w.rulename <> '_RETURN') THEN pg_relation_is_updatable(c.oid, false) ELSE 0 END,
		  COALESCE((SELECT o.option_value FROM pg_options_to_table(c.reloptions) AS o WHERE o.option_name = 'check_option' AND c.relkind = 'v'), ''), c.relkind = 'r' AND c.relam < 16384
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c') AND n.nspname !~ '^pg_(toast|temp)'`,
		[]any{&r.OID, &r.Name.Schema, &r.Name.Name, &kind, &r.Owner, &r.RowSecurity, &r.ForceRLS, &r.IsPartition, &r.HasChildren, &r.HasRules, &r.PartitionBy, &r.Checked, &r.Together, &r.Approximate, &r.Definition, &r.Governed, &r.Updatable, &r.CheckOption, &heap},
		func() error {
			relation := r
			r.PartitionBy, r.Checked, r.Together = nil, nil, nil
			relation.Kind = catalog.RelKind(kind[0])
			relation.Extension = l.known.extensionOf("pg_class", r.OID)
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

// foreign tells of a relation that it is neither the system's nor ours.
const foreign = `n.nspname NOT IN ('pg_catalog', 'information_schema', 'pgconsent', 'pgconsent_gate', 'pgconsent_catalog', 'pgconsent_rows')`

// readViews reads which relations each view reads.
func (l *loader) readViews(ctx context.Context) error {
	var (
		view, reads uint32
		columns     []string
	)
	return l.each(ctx, `SELECT c.oid, d.refobjid, array_remove(array_agg(DISTINCT a.attname::text ORDER BY a.attname::text), NULL)
		FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		JOIN pg_rewrite AS w ON w.ev_class = c.oid AND w.rulename = '_RETURN'
		JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> c.oid
		  AND NOT EXISTS (SELECT FROM pg_class AS t WHERE t.oid = d.refobjid AND t.relkind = 'c') -- a field of a composite type is none of a table
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

func (l *loader) readColumns(ctx context.Context) error {
	l.numbers = map[uint32][]int16{}
	var (
		oid    uint32
		number int16
		c      catalog.Column
	)
	// The sequence of a default is what the default depends on; that of an identity column depends on the column.
	return l.each(ctx, `SELECT a.attrelid, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid, a.attnotnull, a.attgenerated <> '', a.attgenerated = 'v',
		  CASE a.attidentity WHEN 'a' THEN 'always' WHEN 'd' THEN 'by default' ELSE '' END, CASE WHEN a.attgenerated = '' THEN COALESCE(pg_get_expr(f.adbin, f.adrelid), pg_get_expr(y.typdefaultbin, 0), '') ELSE '' END,
		  COALESCE(n.nspname, ''), COALESCE(s.relname, ''),
		  CASE WHEN a.attcollation IN (0, 'pg_catalog."default"'::regcollation) THEN '' ELSE trim('"' FROM a.attcollation::regcollation::text) END,
		  EXISTS (SELECT 1 FROM pg_collation AS l WHERE l.oid = a.attcollation AND NOT l.collisdeterministic),
		  ARRAY(SELECT b.attname::text FROM pg_attribute AS b WHERE a.attgenerated <> '' AND b.attrelid = a.attrelid AND b.attnum > 0 AND b.attnum <> a.attnum AND EXISTS (
		    SELECT 1 FROM pg_depend AS d WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass
		      AND d.refobjid = a.attrelid AND d.refobjsubid = b.attnum) ORDER BY b.attnum)
		FROM pg_attribute AS a
		LEFT JOIN pg_type AS y ON y.oid = a.atttypid
		LEFT JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum
		LEFT JOIN pg_class AS s ON s.relkind = 'S' AND s.oid = CASE WHEN a.attidentity <> ''
		  THEN (SELECT min(d.objid) FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
		    AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype = 'i')
		  ELSE (SELECT min(d.refobjid) FROM pg_depend AS d JOIN pg_class AS q ON q.oid = d.refobjid AND q.relkind = 'S'
		    WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass) END
		LEFT JOIN pg_namespace AS n ON n.oid = s.relnamespace
		WHERE a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum`,
		[]any{&oid, &number, &c.Name, &c.Type, &c.TypeOID, &c.NotNull, &c.Generated, &c.Virtual, &c.Identity, &c.Default, &c.Sequence.Schema, &c.Sequence.Name, &c.Collation, &c.Nondeterministic, &c.From},
		func() error {
			if r := l.relations[oid]; r != nil {
				r.Columns = append(r.Columns, c)
				l.numbers[oid] = append(l.numbers[oid], number)
			}
			c.From = nil
			return nil
		})
}

// readKeys reads primary and foreign keys. A key that leads to a partitioned table has a row for each partition besides, which are left
// out: they ask what the key asks.
func (l *loader) readKeys(ctx context.Context) error {
	var (
		oid, target   uint32
		kind          string
		columns, refs []string
		validated     bool
		update, del   string
		nulled        []string
		full          bool
	)
	names := func(keys, relation string) string {
		return `ARRAY(SELECT a.attname::text FROM unnest(` + keys + `) WITH ORDINALITY AS k (num, ord)
			JOIN pg_attribute AS a ON a.attrelid = ` + relation + ` AND a.attnum = k.num ORDER BY k.ord)`
	}
	return l.each(ctx, `SELECT con.conrelid, con.confrelid, con.contype::text, `+names("con.conkey", "con.conrelid")+`, `+names("con.confkey", "con.confrelid")+`, con.convalidated,
		  con.confupdtype::text, con.confdeltype::text, `+names("con.confdelsetcols", "con.conrelid")+`, con.confmatchtype = 'f'
		FROM pg_constraint AS con WHERE con.contype IN ('p', 'f') AND con.conrelid <> 0 AND `+l.enforced()+`
		  AND NOT EXISTS (SELECT FROM pg_constraint AS whole WHERE whole.oid = con.conparentid AND whole.conrelid = con.conrelid)
		ORDER BY con.conrelid, con.conname`,
		[]any{&oid, &target, &kind, &columns, &refs, &validated, &update, &del, &nulled, &full},
		func() error {
			r := l.relations[oid]
			switch {
			case r == nil:
			case kind == "p":
				r.PrimaryKey = columns
			case l.relations[target] != nil:
				r.ForeignKeys = append(r.ForeignKeys, catalog.ForeignKey{
					Columns: columns, Target: l.relations[target].Name, TargetCols: refs, Validated: validated,
					OnUpdate: actions[update], OnDelete: actions[del], Nulled: nulled, Full: full,
				})
			}
			columns, refs, nulled = nil, nil, nil
			return nil
		})
}

// actions are the letters of pg_constraint.
var actions = map[string]catalog.Action{
	"a": catalog.NoAction, "r": catalog.Restrict, "c": catalog.Cascade, "n": catalog.SetNull, "d": catalog.SetDefault,
}

// readUnique reads what no two rows may share. The columns of expressions and predicates are those that the index
// depends on; an index of a constraint depends on the constraint instead, and has neither unless it excludes. A constraint that
// excludes asks for equal values where its operator is what a btree takes for equality, which is strategy 3. What others have made,
// and calls equal what is not, or fails on some values while an index is searched, is no equality.
func (l *loader) readUnique(ctx context.Context) error {
	var (
		oid uint32
		key catalog.Key
	)
	return l.each(ctx, `SELECT i.indrelid, c.relname, ARRAY(
		  SELECT a.attname::text FROM pg_attribute AS a WHERE a.attrelid = i.indrelid AND a.attnum > 0 AND NOT a.attisdropped AND (
		    a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
		    OR `+wholeRow("i.indexprs")+` OR `+wholeRow("i.indpred")+`
		    OR (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL) AND (
		      EXISTS (SELECT 1 FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
		        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid AND d.refobjsubid = a.attnum)
		      OR EXISTS (SELECT 1 FROM pg_constraint AS con JOIN pg_depend AS d ON d.classid = 'pg_constraint'::regclass AND d.objid = con.oid
		        WHERE con.conindid = i.indexrelid AND con.conrelid = i.indrelid AND con.contype IN ('p', 'u', 'x')
		          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid AND d.refobjsubid = a.attnum)))
		  ORDER BY a.attnum),
		  ARRAY(SELECT a.attname::text FROM pg_attribute AS a WHERE a.attrelid = i.indrelid AND a.attnum > 0
		    AND EXISTS (SELECT 1 FROM generate_series(0, i.indnkeyatts - 1) AS k (n) WHERE i.indkey[k.n] = a.attnum AND i.indcollation[k.n] = a.attcollation
		      AND EXISTS (SELECT 1 FROM pg_opclass AS c WHERE c.oid = i.indclass[k.n] AND (c.oid < 16384 OR c.opcdefault))
		      AND (NOT i.indisexclusion OR EXISTS (SELECT 1 FROM pg_constraint AS con JOIN pg_amop AS o ON o.amopopr = con.conexclop[k.n + 1] AND o.amopstrategy = 3
		        JOIN pg_opclass AS c ON c.opcfamily = o.amopfamily AND c.opcdefault AND c.opcintype = o.amoplefttype AND c.opcintype = o.amoprighttype
		        JOIN pg_am AS m ON m.oid = c.opcmethod AND m.amname = 'btree'
		        WHERE con.conindid = i.indexrelid AND con.conrelid = i.indrelid AND con.contype IN ('p', 'u', 'x')
		          AND NOT EXISTS (SELECT 1 FROM unnest(con.conexclop) AS x (oid) WHERE x.oid >= 16384)
		          AND NOT EXISTS (SELECT 1 FROM unnest(i.indclass::oid[]) AS x (oid) WHERE x.oid >= 16384 AND `+extensionOf("pg_opclass", "x.oid")+` <> 'btree_gist'))))
		    ORDER BY a.attnum),
		  ARRAY(SELECT a.attname::text FROM pg_attribute AS a WHERE a.attrelid = i.indrelid AND NOT i.indnullsnotdistinct AND a.attnum > 0
		    AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]) ORDER BY a.attnum),
		  COALESCE(pg_get_expr(i.indpred, i.indrelid), ''),
		  ARRAY(SELECT a.attname::text FROM pg_attribute AS a WHERE a.attrelid = i.indrelid AND a.attnum > 0 AND NOT a.attisdropped
		    AND (`+wholeRow("i.indpred")+` OR a.attnum IN (SELECT v[1]::int2 FROM regexp_matches(i.indpred::text, ':varattno ([0-9]+)', 'g') AS v)) ORDER BY a.attnum)
		FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE i.indisunique OR i.indisexclusion ORDER BY i.indrelid, c.relname`,
		[]any{&oid, &key.Name, &key.Columns, &key.Equal, &key.Apart, &key.Where, &key.For},
		func() error {
			if r := l.relations[oid]; r != nil {
				r.Unique = append(r.Unique, key)
			}
			key.Columns, key.Equal, key.Apart, key.For = nil, nil, nil, nil
			return nil
		})
}

// readIndexed reads the names of indexes.
func (l *loader) readIndexed(ctx context.Context) error {
	var i catalog.Indexed
	return l.each(ctx, `SELECT n.nspname, x.relname, tn.nspname, t.relname, i.indexprs IS NULL AND i.indpred IS NULL,
		  ARRAY(SELECT a.attname::text FROM pg_attribute AS a WHERE a.attrelid = i.indrelid AND a.attnum > 0 AND a.attnum = ANY (i.indkey::int2[]) ORDER BY a.attnum)
		FROM pg_index AS i JOIN pg_class AS x ON x.oid = i.indexrelid JOIN pg_namespace AS n ON n.oid = x.relnamespace
		JOIN pg_class AS t ON t.oid = i.indrelid JOIN pg_namespace AS tn ON tn.oid = t.relnamespace
		WHERE n.nspname !~ '^pg_(temp|toast)' ORDER BY n.nspname, x.relname`,
		[]any{&i.Name.Schema, &i.Name.Name, &i.Table.Schema, &i.Table.Name, &i.Plain, &i.Columns},
		func() error {
			found := i
			l.spec.Indexes = append(l.spec.Indexes, &found)
			i.Columns = nil
			return nil
		})
}

// readIndexes reads the valid btree indexes, those over whole tables and those over some rows.
func (l *loader) readIndexes(ctx context.Context) error {
	var (
		oid   uint32
		index catalog.BTree
		names []string
		keys  int
		where *string
	)
	return l.each(ctx, `SELECT i.indrelid, i.indnkeyatts::int4, i.indisunique AND i.indimmediate,
		  EXISTS (SELECT 1 FROM pg_opclass AS o WHERE o.oid = ANY (i.indclass::oid[]) AND o.opcname IN ('text_pattern_ops', 'varchar_pattern_ops')),
		  ARRAY(SELECT COALESCE(a.attname::text, '') FROM generate_series(0, i.indnkeyatts - 1) AS k (n)
		    LEFT JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.n] AND a.attnum > 0 ORDER BY k.n),
		  pg_get_expr(i.indpred, i.indrelid)
		FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS m ON m.oid = c.relam
		WHERE m.amname = 'btree' AND i.indisvalid ORDER BY i.indrelid, c.relname`,
		[]any{&oid, &keys, &index.Unique, &index.Bytes, &names, &where},
		func() error {
			found := index
			for _, name := range names {
				if name == "" { // an expression
					break
				}
				found.Columns = append(found.Columns, name)
			}
			found.Unique = found.Unique && len(found.Columns) == keys
			names = nil
			switch r := l.relations[oid]; {
			case r == nil || len(found.Columns) == 0:
			case where != nil:
				r.Partial = append(r.Partial, catalog.Partial{Columns: found.Columns, Where: *where})
			default:
				r.Indexes = append(r.Indexes, found)
			}
			where = nil
			return nil
		})
}

// readInverted reads which columns a valid GIN index over the whole table has.
func (l *loader) readInverted(ctx context.Context) error {
	var (
		oid   uint32
		names []string
	)
	return l.each(ctx, `SELECT i.indrelid, array_agg(DISTINCT a.attname::text ORDER BY a.attname::text)
		FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS m ON m.oid = c.relam
		JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[])
		WHERE m.amname = 'gin' AND i.indisvalid AND i.indpred IS NULL GROUP BY i.indrelid ORDER BY i.indrelid`,
		[]any{&oid, &names},
		func() error {
			if r := l.relations[oid]; r != nil {
				r.Inverted = names
			}
			names = nil
			return nil
		})
}

// readVectors reads the text search vectors that an index has computed for each row of a table, so that they fail for none. An index that
// rows of older snapshots may be missing from (indcheckxmin), over some rows, or of a table with children is none; nor is any where a name of
// a configuration could mean two.
func (l *loader) readVectors(ctx context.Context) error {
	var (
		oid        uint32
		expression string
	)
	return l.each(ctx, `SELECT i.indrelid, pg_get_indexdef(i.indexrelid, k.n, false)
		FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid CROSS JOIN LATERAL generate_series(1, i.indnkeyatts::int4) AS k (n)
		WHERE i.indexprs IS NOT NULL AND i.indkey[k.n - 1] = 0 AND i.indpred IS NULL AND i.indisvalid AND i.indisready AND i.indislive AND NOT i.indcheckxmin
		  AND c.relkind = 'r' AND NOT c.relhassubclass AND pg_get_indexdef(i.indexrelid, k.n, false) LIKE '%to_tsvector(%'
		  AND NOT EXISTS (SELECT 1 FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid AND d.refclassid <> 'pg_class'::regclass AND d.refobjid >= 16384)
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
