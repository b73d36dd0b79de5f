package pgcatalog

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// The expressions and comparisons that PostgreSQL evaluates when a row is written may fail. A failure tells something
// about the values in them.

// knownExtensions have no immutable function whose result depends on the session's settings.
var knownExtensions = []string{"btree_gin", "btree_gist", "citext", "cube", "earthdistance", "fuzzystrmatch", "hstore",
	"intarray", "isn", "ltree", "pg_trgm", "pgcrypto", "seg", "unaccent", "uuid-ossp", "vector"}

// fixedTextTypes are those of PostgreSQL's own types whose text form does not depend on settings, neither when it is
// read nor when it is written. Types of times, money, bytea and floating point are not among them, nor are types that
// contain these.
var fixedTextTypes = []string{
	"bool", "char", "name", "int8", "int2", "int4", "text", "oid", "json", "jsonb", "numeric", "varchar", "bpchar",
	"uuid", "inet", "cidr", "macaddr", "macaddr8", "bit", "varbit", "tid", "xid8", "tsvector",
	"_bool", "_name", "_int8", "_int2", "_int4", "_text", "_oid", "_jsonb", "_numeric", "_varchar", "_bpchar", "_uuid",
}

// fixedInputTypes are further types whose text form depends on settings when it is written, but not when it is read.
var fixedInputTypes = []string{"bytea", "float4", "float8"}

// hasFixedText tells whether the text form of a type depends on no settings: the type is one of fixedTextTypes, or an
// enum.
func (k *objectFacts) hasFixedText(oid uint32) bool {
	t := k.types[oid]
	return t != nil && (t.kind == 'e' || oid < firstNormalOID && slices.Contains(fixedTextTypes, t.name))
}

// hasFixedInput tells whether PostgreSQL reads the text form of a type the same way under all settings.
func (k *objectFacts) hasFixedInput(oid uint32) bool {
	return k.hasFixedText(oid) || oid < firstNormalOID && k.types[oid] != nil && slices.Contains(fixedInputTypes, k.types[oid].name)
}

// mayFailSQL is the condition that a function p may fail: p is not leak-proof, or takes circles or line segments.
// PostgreSQL marks comparisons of these leak-proof, but they compare numbers that are computed from the values, and the
// computation can overflow.
const mayFailSQL = `(p.proleakproof IS NOT TRUE OR ARRAY['circle'::regtype, 'lseg'::regtype]::oid[] && p.proargtypes::oid[])`

// neverFailsSQL is the condition that a function p of PostgreSQL fails for no arguments, leak-proof or not. Comparisons
// of plain values are among these functions.
const neverFailsSQL = `p.proname IN ('lower', 'upper', 'btrim', 'ltrim', 'rtrim', 'length',
		    'octet_length', 'char_length', 'character_length',
		    'starts_with', 'jsonb_object_field', 'jsonb_object_field_text', 'jsonb_exists', 'array_length',
		    'cardinality', 'isfinite', 'now', 'pg_trigger_depth')
		    AND NOT ARRAY['anyrange'::regtype, 'anymultirange'::regtype, 'lseg'::regtype,
		      'path'::regtype, 'name'::regtype]::oid[] && p.proargtypes::oid[]
		  OR p.oid IN (SELECT o.oprcode::oid FROM pg_operator AS o JOIN pg_amop AS b ON b.amopopr = o.oid
		    JOIN pg_am AS a ON a.oid = b.amopmethod AND a.amname = 'btree'
		    WHERE b.amoplefttype NOT IN ('record'::regtype, 'anyarray'::regtype,
		      'anyrange'::regtype, 'anymultirange'::regtype, 'tsquery'::regtype))`

var (
	fallibleNodes = []string{"COERCEVIAIO", "ARRAYCOERCEEXPR", "CONVERTROWTYPE", "COERCETODOMAIN", "SUBSCRIPTINGREF",
		"MINMAX", "XMLEXPR", "ROWCOMPARE", "JSON"}
	sessionDependentNodes = []string{"SQLVALUEFUNCTION", "XMLEXPR", "JSONEXPR", "JSONCONSTRUCTOR", "COERCETODOMAIN",
		"CONVERTROWTYPE", "ROWCOMPARE", "NEXTVALUE"}
	// castSourcePattern finds the source type of a cast that writes a value as text and reads the text as another type.
	castSourcePattern = regexp.MustCompile(
		`\{COERCEVIAIO :arg \{(?:VAR :varno [0-9]+ :varattno [0-9]+ :vartype|CONST :consttype|FUNCEXPR :funcid [0-9]+ :funcresulttype|` +
			`OPEXPR :opno [0-9]+ :opfuncid [0-9]+ :opresulttype|CASETESTEXPR :typeId|CASE\w* :casetype|COALESCE\w* :coalescetype) ([0-9]+)`)
	resultTypePattern = regexp.MustCompile(`:resulttype ([0-9]+)`)
)

// castViaTextNode begins the node of a cast that writes a value as text and reads the text as another type.
const castViaTextNode = "{COERCEVIAIO "

// mayFail tells whether an expression may fail. An expression of columns, constants and functions that never fail does
// not fail. An array of arrays may fail, since the inner arrays must have the same length.
func (k *objectFacts) mayFail(t *tree) bool {
	return t != nil && (t.hasNode(fallibleNodes) || strings.Contains(t.text, ":multidims true") ||
		slices.ContainsFunc(t.functions, func(oid uint32) bool {
			f := k.functions[oid]
			return f == nil || f.mayFail
		}))
}

// mayDifferNextTime tells whether an expression may have another result, or fail, when it is evaluated again for an
// unchanged row. It may if it calls functions that are not immutable, or reads or writes a text or a time by the
// session's settings. It also may if it calls a function of another role that is declared immutable without being so.
func (k *objectFacts) mayDifferNextTime(t *tree) bool {
	return t != nil && (t.hasNode(sessionDependentNodes) || slices.ContainsFunc(t.functions, func(oid uint32) bool {
		f := k.functions[oid]
		return f == nil || !f.isImmutable || f.oid >= firstNormalOID && !k.isOfKnownExtension("pg_proc", f.oid)
	}) || k.dependsOnSettings(t))
}

// dependsOnSettings tells whether an expression casts a value to or from text in a way that depends on the session's
// settings.
func (k *objectFacts) dependsOnSettings(t *tree) bool {
	casts := strings.Count(t.text, castViaTextNode)
	if casts == 0 {
		return false
	}
	fixedCasts := 0
	for _, m := range castSourcePattern.FindAllStringSubmatch(t.text, -1) {
		if k.hasFixedText(parseOID(m[1])) {
			fixedCasts++
		}
	}
	return fixedCasts != casts || slices.ContainsFunc(findOIDs(resultTypePattern, t.text),
		func(oid uint32) bool { return !k.hasFixedInput(oid) })
}

// holdsForExpression tells whether a condition holds for an expression, or for a virtual column that the expression
// reads. The stored expression has only the number of a virtual column, and PostgreSQL computes the column as part of
// the expression.
func (l *loader) holdsForExpression(condition func(*tree) bool, t *tree, relation uint32) bool {
	return condition(t) || t != nil && slices.ContainsFunc(l.virtualColumns[relation], func(g generatedColumn) bool {
		return (t.readsWholeRow() || slices.Contains(t.columns(), uint32(g.number))) && condition(g.tree)
	})
}

// setRecheckedColumns sets the columns of those constraints that may refuse an update although it changes none of their
// columns.
func (l *loader) setRecheckedColumns(context.Context) error {
	for _, c := range l.checks {
		relation := l.relations[c.relation]
		if relation == nil || !c.isEnforced || c.isValidated && !l.holdsForExpression(l.objects.mayDifferNextTime, c.tree,
			c.relation) {
			continue
		}
		columns := l.columnsOf(c.relation, func(n int16) bool { return slices.Contains(c.keys, n) || c.tree.readsWholeRow() })
		if !slices.ContainsFunc(relation.RecheckedColumns, func(listedColumns []string) bool {
			return slices.Equal(listedColumns,
				columns)
		}) {
			relation.RecheckedColumns = append(relation.RecheckedColumns, columns)
		}
	}
	for _, relation := range l.relations {
		slices.SortFunc(relation.RecheckedColumns, slices.Compare[[]string])
	}
	return nil
}

// setComputations sets what PostgreSQL computes from a row when it is written. The condition of a trigger may never
// have been computed for the present row. PostgreSQL computes the condition of an UPDATE OF trigger only if the
// statement sets one of its columns.
func (l *loader) setComputations(context.Context) error {
	k := &l.objects
	for _, i := range l.indexes {
		mayFail, mayDiffer := false, false
		for _, t := range i.storedTrees() {
			mayFail, mayDiffer = mayFail || l.holdsForExpression(k.mayFail, t, i.relation), mayDiffer ||
				l.holdsForExpression(k.mayDifferNextTime, t, i.relation)
		}
		if mayFail || mayDiffer {
			l.addComputation(i.relation, "index", mayDiffer, false, func(n int16) bool {
				return i.readsWholeRow() || slices.Contains(i.columns, n) || slices.Contains(i.dependencyColumns, n)
			})
		}
	}
	for _, t := range l.triggers {
		mayFail := l.holdsForExpression(k.mayFail, t.whenTree, t.relation)
		if !t.isInternal && t.schema != "pgconsent" && t.schema != "pgconsent_signed" &&
			(mayFail || l.holdsForExpression(k.mayDifferNextTime, t.whenTree, t.relation)) {
			l.addComputation(t.relation, "trigger", len(t.keys) == 0 && t.typeBits&triggerOnUpdate != 0, mayFail && t.typeBits&triggerOnDelete != 0,
				func(n int16) bool {
					return t.whenTree.readsWholeRow() || slices.Contains(t.keys, n) || slices.Contains(t.dependencyColumns, n)
				})
		}
	}
	for _, g := range l.generatedColumns {
		if !g.isVirtual && k.mayDifferNextTime(g.tree) {
			l.addComputation(g.relation, "column", true, false,
				func(n int16) bool {
					return n != g.number && (g.tree.readsWholeRow() || slices.Contains(g.dependencyColumns, n))
				})
		}
	}
	for _, p := range l.partitionKeys {
		if k.mayDifferNextTime(p.tree) {
			l.addComputation(p.relation, "partition", true, false, func(n int16) bool {
				return p.tree.readsWholeRow() || slices.Contains(p.keys, n) ||
					slices.Contains(p.tree.columns(), uint32(n)) || slices.Contains(p.dependencyColumns, n)
			})
		}
	}
	for _, relation := range l.relations {
		slices.SortFunc(relation.Computations, func(a, b catalog.Computation) int {
			return cmp.Or(strings.Compare(a.Source, b.Source), slices.Compare(a.Columns, b.Columns))
		})
	}
	return nil
}

// addComputation notes that PostgreSQL computes a value from some columns when it writes a row of the relation. Each
// source with the same set of columns is noted once.
func (l *loader) addComputation(relation uint32, source string, mayFailUnchanged, mayFailOnDelete bool,
	reads func(number int16) bool) {
	r := l.relations[relation]
	if r == nil {
		return
	}
	columns := l.columnsOf(relation, reads)
	if len(columns) == 0 {
		return
	}
	for i := range r.Computations {
		if existing := &r.Computations[i]; existing.Source == source && slices.Equal(existing.Columns, columns) {
			existing.MayFailUnchanged, existing.MayFailOnDelete = existing.MayFailUnchanged ||
				mayFailUnchanged, existing.MayFailOnDelete ||
				mayFailOnDelete
			return
		}
	}
	r.Computations = append(r.Computations, catalog.Computation{Source: source, Columns: columns,
		MayFailUnchanged: mayFailUnchanged, MayFailOnDelete: mayFailOnDelete})
}

// readComparedIndexes reads the operator classes by which the indexes of tables compare values. It leaves out the btree
// classes of numbers, texts and similar types, and the GIN classes of JSON and words. It also leaves out all hash
// classes, which only hash the new value. For an EXCLUDE constraint it also reads the operators.
func (r *relationReader) readComparedIndexes(ctx context.Context) error {
	var (
		oid   uint32
		index catalog.FallibleIndex
	)
	providerSQL := func(class, oid string) string {
		return `CASE WHEN ` + oid + ` < 16384 THEN 'postgresql' ELSE ` + extensionSQL(class, oid) + ` END`
	}
	args := append(r.conditionArgs(), r.objects.neverFailingClasses)
	return r.each(ctx, `SELECT i.indrelid, c.relname, (SELECT jsonb_agg(k.key ORDER BY k.n) FROM (
		    SELECT k.n, jsonb_build_object('Method', m.amname, 'Class', o.opcname, 'Provider', `+providerSQL("pg_opclass",
		"o.oid")+`,
		      'Type', COALESCE(h.atttypid, a.atttypid)::int8, 'IsExpression', h.attnum IS NULL,
		      'Columns', ARRAY(SELECT r.attname FROM pg_attribute AS r
		        WHERE r.attrelid = i.indrelid AND r.attnum > 0 AND NOT r.attisdropped AND (r.attnum = h.attnum
		        OR h.attnum IS NULL AND (`+readsWholeRowSQL("i.indexprs")+` OR r.attnum IN (SELECT v[1]::int2
		          FROM regexp_matches(i.indexprs::text, ':varattno ([0-9]+)', 'g') AS v))) ORDER BY r.attnum)) AS key
		    FROM generate_series(0, i.indnkeyatts - 1) AS k (n) JOIN pg_opclass AS o ON o.oid = i.indclass[k.n]
		    JOIN pg_attribute AS a ON a.attrelid = i.indexrelid AND a.attnum = k.n + 1
		    LEFT JOIN pg_attribute AS h ON h.attrelid = i.indrelid AND h.attnum = i.indkey[k.n] AND h.attnum <> 0
		    UNION ALL SELECT k.n, jsonb_build_object('Method', 'operator', 'Class', p.oprname,
		      'Provider', `+providerSQL("pg_operator", "p.oid")+`, 'Type', 0, 'IsExpression', false,
		      'Columns', ARRAY(SELECT r.attname FROM pg_attribute AS r WHERE r.attrelid = i.indrelid AND r.attnum = i.indkey[k.n - 1]))
		    FROM pg_constraint AS con CROSS JOIN LATERAL unnest(con.conexclop) WITH ORDINALITY AS k (oid, n)
		    JOIN pg_operator AS p ON p.oid = k.oid
		    WHERE con.conindid = i.indexrelid AND con.conrelid = i.indrelid AND con.contype IN ('p', 'u', 'x') AND p.oid >= 16384) AS k)
		FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS m ON m.oid = c.relam JOIN pg_class AS t ON t.oid = i.indrelid
		JOIN pg_namespace AS n ON n.oid = t.relnamespace
		WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
		AND (i.indisexclusion AND m.amname <> 'btree' OR NOT i.indclass::oid[] <@ $`+strconv.Itoa(len(args))+`::oid[])
		AND `+r.relationCondition("i.indrelid")+" ORDER BY i.indrelid, c.relname",
		[]any{&oid, &index.Index, &index.Keys},
		func() error {
			r.factsOf(oid).fallibleIndexes = append(r.factsOf(oid).fallibleIndexes, index)
			index.Keys = nil
			return nil
		}, args...)
}
