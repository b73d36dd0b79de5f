package pgcatalog

import (
	"context"
	"strings"

	"github.com/pgconsent/pgconsent/catalog"
)

// What PostgreSQL computes and compares as a row is written may fail, and tells by that of what it computes it of.

// honest are extensions whose functions that are called immutable go by their arguments alone, whatever the session's settings are.
var honest = []string{"btree_gin", "btree_gist", "citext", "cube", "earthdistance", "fuzzystrmatch", "hstore", "intarray", "isn", "ltree", "pg_trgm", "pgcrypto", "seg", "unaccent", "uuid-ossp", "vector"}

// fixed tells of a type, by its OID, that its texts are read and written alike under all settings: those of times, money, bytea and floating
// point are not, and neither is what is made of such. Bytea and floating point are read alike.
func fixed(oid, more string) string {
	return "(" + oid + `::oid::regtype = ANY ('{` + more + `bool,"\"char\"",name,int8,int2,int4,text,oid,json,jsonb,numeric,varchar,bpchar,uuid,inet,cidr,macaddr,macaddr8,bit,varbit,tid,xid8,tsvector,` +
		`bool[],name[],int8[],int2[],int4[],text[],oid[],jsonb[],numeric[],varchar[],bpchar[],uuid[]}'::regtype[]) OR EXISTS (SELECT FROM pg_type AS e WHERE e.oid = ` + oid + "::oid AND e.typtype = 'e'))"
}

// functions are those that an expression calls, as it is stored: rows p of pg_proc, NULL where there is none.
func functions(tree, where string) string {
	return "EXISTS (SELECT FROM regexp_matches(" + tree + "::text, ':(?:opfuncid|funcid) ([0-9]+)', 'g') AS m LEFT JOIN pg_proc AS p ON p.oid = m[1]::oid WHERE " + where + ")"
}

// fails tells of an expression that it may: it has more than columns, constants, what is leak-proof, comparisons of plain values, and what else
// fails for none. Circles and segments are compared by what is computed of them, which overflows, though it is leak-proof; so is an array of arrays, which must have the same length.
func fails(tree string) string {
	return "(" + tree + `::text ~ '\{(COERCEVIAIO|ARRAYCOERCEEXPR|CONVERTROWTYPE|COERCETODOMAIN|SUBSCRIPTINGREF|MINMAX|XMLEXPR|ROWCOMPARE|JSON)|:multidims true' OR ` +
		functions(tree, `(p.proleakproof IS NOT TRUE OR ARRAY['circle'::regtype, 'lseg'::regtype]::oid[] && p.proargtypes::oid[]) AND NOT (p.oid < 16384 AND (p.pronamespace = 'pg_catalog'::regnamespace AND p.proname IN ('lower', 'upper', 'btrim', 'ltrim', 'rtrim', 'length', 'octet_length', 'char_length', 'character_length',
		    'starts_with', 'jsonb_object_field', 'jsonb_object_field_text', 'jsonb_exists', 'array_length', 'cardinality', 'isfinite', 'now', 'pg_trigger_depth')
		    AND NOT ARRAY['anyrange'::regtype, 'anymultirange'::regtype, 'lseg'::regtype, 'path'::regtype, 'name'::regtype]::oid[] && p.proargtypes::oid[]
		  OR EXISTS (SELECT FROM pg_operator AS o JOIN pg_amop AS b ON b.amopopr = o.oid JOIN pg_am AS a ON a.oid = b.amopmethod AND a.amname = 'btree'
		    WHERE o.oprcode = p.oid AND b.amoplefttype NOT IN ('record'::regtype, 'anyarray'::regtype, 'anyrange'::regtype, 'anymultirange'::regtype, 'tsquery'::regtype))))`) + ")"
}

// unsure tells of an expression that it may come out otherwise, or fail, for a row that is as it was: it goes by more than the row, as what is
// not immutable does, and what is made of a text or a time by the session's settings; or calls what others have made and call immutable.
func unsure(tree string) string {
	return "(" + tree + `::text ~ '\{(SQLVALUEFUNCTION|XMLEXPR|JSONEXPR|JSONCONSTRUCTOR|COERCETODOMAIN|CONVERTROWTYPE|ROWCOMPARE|NEXTVALUE)' OR ` +
		functions(tree, `p.provolatile IS DISTINCT FROM 'i' OR p.oid >= 16384 AND `+extensionOf("pg_proc", "p.oid")+` NOT IN ('`+strings.Join(honest, "', '")+`')`) +
		` OR ` + tree + `::text LIKE '%{COERCEVIAIO %' AND (
		  EXISTS (SELECT FROM regexp_matches(` + tree + `::text, ':resulttype ([0-9]+)', 'g') AS m WHERE NOT ` + fixed("m[1]", "bytea,float4,float8,") + `)
		  OR (SELECT count(*) FROM regexp_matches(` + tree + `::text, '\{COERCEVIAIO ', 'g')) <> (SELECT count(*) FROM regexp_matches(` + tree + `::text,
		    '\{COERCEVIAIO :arg \{(?:VAR :varno [0-9]+ :varattno [0-9]+ :vartype|CONST :consttype|FUNCEXPR :funcid [0-9]+ :funcresulttype|OPEXPR :opno [0-9]+ :opfuncid [0-9]+ :opresulttype|CASETESTEXPR :typeId|CASE\w* :casetype|COALESCE\w* :coalescetype) ([0-9]+)', 'g') AS m
		    WHERE ` + fixed("m[1]", "") + `)))`
}

// through asks something of an expression, and of the virtual columns that it reads, which PostgreSQL works out with it: the expression as it is stored has their names only.
func through(does func(string) string, tree, relation string) string {
	return "(" + does(tree) + ` OR EXISTS (SELECT FROM pg_attribute AS u JOIN pg_attrdef AS x ON x.adrelid = u.attrelid AND x.adnum = u.attnum WHERE u.attrelid = ` + relation + ` AND u.attgenerated = 'v'
		AND (` + wholeRow(tree) + " OR u.attnum IN (SELECT y[1]::int2 FROM regexp_matches(" + tree + "::text, ':varattno ([0-9]+)', 'g') AS y)) AND " + does("x.adbin") + "))"
}

// readRechecked reads which columns the constraints read that may refuse an update of a row though it leaves these as they are.
func (l *loader) readRechecked(ctx context.Context) error {
	var (
		oid     uint32
		columns []string
	)
	return l.each(ctx, `SELECT DISTINCT con.conrelid, ARRAY(SELECT a.attname::text FROM pg_attribute AS a
		    WHERE a.attrelid = con.conrelid AND a.attnum > 0 AND NOT a.attisdropped AND (a.attnum = ANY (con.conkey) OR COALESCE(`+wholeRow("con.conbin")+`, false)) ORDER BY a.attnum)
		FROM pg_constraint AS con WHERE con.conrelid <> 0 AND `+l.enforced()+` AND (con.contype IN ('c', 'n') AND NOT con.convalidated OR con.contype = 'c' AND `+through(unsure, "con.conbin", "con.conrelid")+`) ORDER BY 1, 2`,
		[]any{&oid, &columns},
		func() error {
			if r := l.relations[oid]; r != nil {
				r.Rechecked = append(r.Rechecked, columns)
			}
			columns = nil
			return nil
		})
}

// readComputed reads what is computed of rows as they are written. The condition of a trigger was never worked out for the row as it is; that of
// one for some columns is only where these are set.
func (l *loader) readComputed(ctx context.Context) error {
	var (
		oid uint32
		of  catalog.Computed
	)
	reads := func(class, object, relation, keys, trees string) string {
		return `ARRAY(SELECT a.attname::text FROM pg_attribute AS a WHERE a.attrelid = ` + relation + ` AND a.attnum > 0 AND NOT a.attisdropped AND (` + keys + ` OR ` + trees + ` OR EXISTS (
		    SELECT 1 FROM pg_depend AS d WHERE d.classid = '` + class + `'::regclass AND d.objid = ` + object + ` AND d.refclassid = 'pg_class'::regclass AND d.refobjid = ` + relation + ` AND d.refobjsubid = a.attnum)) ORDER BY a.attnum)`
	}
	either := func(does func(string) string) string {
		return through(does, "i.indexprs", "i.indrelid") + " OR " + through(does, "i.indpred", "i.indrelid")
	}
	return l.each(ctx, `SELECT oid, by, columns, bool_or(COALESCE(anew, false)), bool_or(COALESCE(gone, false)) FROM (
		SELECT i.indrelid, 'index', `+reads("pg_class", "i.indexrelid", "i.indrelid", "a.attnum = ANY (i.indkey)", "COALESCE("+wholeRow("i.indexprs")+", false) OR COALESCE("+wholeRow("i.indpred")+", false)")+` AS columns, `+either(unsure)+`, false
		FROM pg_index AS i WHERE `+either(fails)+` OR `+either(unsure)+`
		UNION ALL SELECT t.tgrelid, 'trigger', `+reads("pg_trigger", "t.oid", "t.tgrelid", "a.attnum = ANY (t.tgattr)", wholeRow("t.tgqual"))+`, cardinality(t.tgattr::int2[]) = 0 AND t.tgtype & 16 <> 0, t.tgtype & 8 <> 0 AND `+through(fails, "t.tgqual", "t.tgrelid")+`
		FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = p.pronamespace
		WHERE (`+through(fails, "t.tgqual", "t.tgrelid")+` OR `+through(unsure, "t.tgqual", "t.tgrelid")+`) AND NOT t.tgisinternal AND n.nspname NOT IN ('pgconsent', 'pgconsent_gate')
		UNION ALL SELECT f.adrelid, 'column', array_remove(`+reads("pg_attrdef", "f.oid", "f.adrelid", "false", wholeRow("f.adbin"))+`, g.attname::text), true, false
		FROM pg_attrdef AS f JOIN pg_attribute AS g ON g.attrelid = f.adrelid AND g.attnum = f.adnum WHERE g.attgenerated = 's' AND `+unsure("f.adbin")+`
		UNION ALL SELECT p.partrelid, 'partition', `+reads("pg_class", "p.partrelid", "p.partrelid", "a.attnum = ANY (p.partattrs) OR a.attnum IN (SELECT v[1]::int2 FROM regexp_matches(p.partexprs::text, ':varattno ([0-9]+)', 'g') AS v)", "COALESCE("+wholeRow("p.partexprs")+", false)")+`, true, false
		FROM pg_partitioned_table AS p WHERE `+unsure("p.partexprs")+`) AS c (oid, by, columns, anew, gone)
		WHERE cardinality(columns) > 0 GROUP BY oid, by, columns ORDER BY oid, by, columns`,
		[]any{&oid, &of.By, &of.Columns, &of.Anew, &of.Gone},
		func() error {
			if r := l.relations[oid]; r != nil {
				r.Computed = append(r.Computed, of)
			}
			of.Columns = nil
			return nil
		})
}

// readCompared reads by which operator classes the indexes of tables compare. Those of numbers, texts and the like by a btree, of JSON and of
// words by GIN, and whatever a hash index has of PostgreSQL's own, which calls nothing but what hashes the new value, are left out; a constraint that excludes asks its operators besides.
func (l *loader) readCompared(ctx context.Context) error {
	var (
		oid   uint32
		index catalog.Compared
	)
	by := func(class, oid string) string {
		return `CASE WHEN ` + oid + ` < 16384 THEN 'postgresql' ELSE ` + extensionOf(class, oid) + ` END`
	}
	return l.each(ctx, `WITH plain AS MATERIALIZED (SELECT array_agg(o.oid) AS oids FROM pg_opclass AS o JOIN pg_am AS m ON m.oid = o.opcmethod WHERE o.oid < 16384 AND (m.amname = 'hash'
		    OR m.amname = 'btree' AND o.opcintype NOT IN ('record'::regtype, 'anyarray'::regtype, 'anyrange'::regtype, 'anymultirange'::regtype, 'tsquery'::regtype) OR m.amname = 'gin' AND o.opcname IN ('jsonb_ops', 'jsonb_path_ops', 'tsvector_ops')))
		SELECT i.indrelid, c.relname, (SELECT jsonb_agg(k.key ORDER BY k.n) FROM (
		    SELECT k.n, jsonb_build_object('Method', m.amname, 'Class', o.opcname, 'By', `+by("pg_opclass", "o.oid")+`, 'Type', COALESCE(h.atttypid, a.atttypid)::int8, 'Expression', h.attnum IS NULL,
		      'Columns', ARRAY(SELECT r.attname FROM pg_attribute AS r WHERE r.attrelid = i.indrelid AND r.attnum > 0 AND NOT r.attisdropped AND (r.attnum = h.attnum
		        OR h.attnum IS NULL AND (`+wholeRow("i.indexprs")+` OR r.attnum IN (SELECT v[1]::int2 FROM regexp_matches(i.indexprs::text, ':varattno ([0-9]+)', 'g') AS v))) ORDER BY r.attnum)) AS key
		    FROM generate_series(0, i.indnkeyatts - 1) AS k (n) JOIN pg_opclass AS o ON o.oid = i.indclass[k.n]
		    JOIN pg_attribute AS a ON a.attrelid = i.indexrelid AND a.attnum = k.n + 1
		    LEFT JOIN pg_attribute AS h ON h.attrelid = i.indrelid AND h.attnum = i.indkey[k.n] AND h.attnum <> 0
		    UNION ALL SELECT k.n, jsonb_build_object('Method', 'operator', 'Class', p.oprname, 'By', `+by("pg_operator", "p.oid")+`, 'Type', 0, 'Expression', false,
		      'Columns', ARRAY(SELECT r.attname FROM pg_attribute AS r WHERE r.attrelid = i.indrelid AND r.attnum = i.indkey[k.n - 1]))
		    FROM pg_constraint AS con CROSS JOIN LATERAL unnest(con.conexclop) WITH ORDINALITY AS k (oid, n) JOIN pg_operator AS p ON p.oid = k.oid
		    WHERE con.conindid = i.indexrelid AND con.conrelid = i.indrelid AND con.contype IN ('p', 'u', 'x') AND p.oid >= 16384) AS k)
		FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS m ON m.oid = c.relam JOIN pg_class AS t ON t.oid = i.indrelid JOIN pg_namespace AS n ON n.oid = t.relnamespace CROSS JOIN plain
		WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND (i.indisexclusion AND m.amname <> 'btree' OR NOT i.indclass::oid[] <@ plain.oids)
		ORDER BY i.indrelid, c.relname`,
		[]any{&oid, &index.Index, &index.Keys},
		func() error {
			if r := l.relations[oid]; r != nil {
				r.Compared = append(r.Compared, index)
			}
			index.Keys = nil
			return nil
		})
}
