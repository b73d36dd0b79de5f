package pgcatalog

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// firstNormalOID is the first OID of objects that are not PostgreSQL's own (FirstNormalObjectId in transam.h).
const firstNormalOID = 16384

// objectFacts has the facts by which this package tells functions of other roles from PostgreSQL's own. They are read
// once for each load, and the rules are evaluated in Go. In a query, the text of each rule would occur many times, and
// planning it would take longer than reading the facts.
type objectFacts struct {
	extensions map[object]string // the extension to which an object belongs, by the object
	functions  map[uint32]*function
	types      map[uint32]*typeFacts
	elements   map[uint32]*typeFacts // the element types, by the OIDs of their arrays
	operators  []operator            // operators that are not PostgreSQL's own
	classes    []operatorClass       // operator classes that are not PostgreSQL's own

	neverFailingClasses []uint32 // operator classes of PostgreSQL whose comparisons fail for no value

	functionNames map[string][]*function  // functions that are not PostgreSQL's own, outside pgconsent's schemas
	typeNames     map[string][]*typeFacts // types that are not PostgreSQL's own, outside pgconsent's schemas
	operatorNames []string                // names of operators that may call a function of another role

	hasCastOfNativeTypes   bool            // another role has made a cast between two of PostgreSQL's own types
	hasForeignTimeFunction bool            // another role has a function with one of the names in statementTimeFunctions
	userCode               userCodeObjects // objects for which PostgreSQL itself calls functions of other roles
	typesRunningUserCode   map[uint32]bool // types for which PostgreSQL itself calls functions of other roles
}

// object identifies an object of the database: by the catalog that it is in, such as pg_proc, and its OID.
type object struct {
	catalog string
	oid     uint32
}

// function is a row of pg_proc. PostgreSQL's own functions are read only if something calls them, and then only the
// fields up to isNative are set.
type function struct {
	oid         uint32
	name        string
	isNative    bool // the function is PostgreSQL's own, in pg_catalog
	isImmutable bool
	mayFail     bool

	inOwnSchema      bool // the function is in a schema that pgconsent migrate makes
	language         string
	securityDefiner  bool
	hasSettings      bool // the function has SET clauses
	hasOtherSettings bool // the function has SET clauses for other settings than search_path
	// the function has defaults for arguments that calls leave out. A stored call does not name the functions that such
	// defaults call
	hasDefaults   bool
	source        string
	hasParsedBody bool     // PostgreSQL stores the body as a parsed tree, not as a text
	body          *tree    // the parsed body; read only for functions of extensions
	types         []uint32 // the types of the arguments and of the result
}

// typeFacts is a row of pg_type.
type typeFacts struct {
	oid         uint32
	name        string
	kind        byte
	array       uint32
	base        uint32 // the base type of a domain
	inOwnSchema bool   // the type is in a schema that pgconsent migrate makes

	element   uint32 // the type of the elements that subscripts select
	collation uint32
	inCatalog bool // the type is in pg_catalog
}

type operator struct {
	oid         uint32
	name        string
	functionOID uint32
}

// operatorClass is a row of pg_opclass.
type operatorClass struct {
	oid          uint32
	typeOID      uint32 // the type that the operator class is for
	isDefault    bool
	comparesType bool // PostgreSQL compares or hashes values of the type with this class
}

// userCodeObjects are the objects for which PostgreSQL itself calls functions of other roles.
type userCodeObjects struct {
	operators                []uint32 // operators that call a function of another role
	classes                  []uint32 // operator classes with a support function of another role
	classesCallableByAnybody []uint32 // operator classes with a support function for which isCallableByAnybody holds
	casts                    []uint32 // types with an implicit cast that calls a function of another role
}

// extensionOf returns the extension to which an object belongs, or "".
func (k *objectFacts) extensionOf(catalog string, oid uint32) string {
	return k.extensions[object{catalog, oid}]
}

// isOfKnownExtension tells whether an object belongs to one of knownExtensions.
func (k *objectFacts) isOfKnownExtension(catalog string, oid uint32) bool {
	return oid >= firstNormalOID && slices.Contains(knownExtensions, k.extensionOf(catalog, oid))
}

func (l *loader) readExtensions(ctx context.Context) error {
	if err := l.tx.QueryRow(ctx,
		`SELECT COALESCE(array_agg(e.extname::text ORDER BY e.extname::text COLLATE "C"), '{}') FROM pg_extension AS e`).
		Scan(&l.spec.Extensions); err != nil {
		return err
	}
	l.objects.extensions = map[object]string{}
	var (
		member    object
		extension string
	)
	return l.each(ctx, `SELECT d.classid::regclass::text, d.objid, e.extname FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
		WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'`,
		[]any{&member.catalog, &member.oid, &extension},
		func() error {
			l.objects.extensions[member] = extension
			return nil
		})
}

// readOtherFunctions reads the functions that are not PostgreSQL's own. Function bodies are read as bytes in the
// server's encoding. The rules only search them for ASCII, which all encodings share, so a body that is not valid UTF-8
// is no error.
func (l *loader) readOtherFunctions(ctx context.Context) error {
	l.objects.functions, l.objects.functionNames = map[uint32]*function{}, map[string][]*function{}
	var (
		f      function
		source []byte
		body   *string
	)
	return l.each(ctx, `SELECT p.oid, p.proname, p.provolatile = 'i',
		  `+mayFailSQL+`, n.nspname IN `+ownSchemasSQL+`, l.lanname, p.prosecdef, p.proconfig IS NOT NULL,
		  EXISTS (SELECT FROM unnest(p.proconfig) AS g (setting) WHERE g.setting NOT LIKE 'search\_path=%'),
		    COALESCE(p.proargdefaults::text ~ '\{(?!CONST|RELABELTYPE)', false),
		  CASE l.lanname WHEN 'sql' THEN convert_to(p.prosrc, 'SQL_ASCII') END, p.prosqlbody IS NOT NULL,
		    CASE WHEN p.oid >= 16384 THEN p.prosqlbody::text END,
		  p.prorettype || COALESCE(p.proallargtypes, p.proargtypes::oid[])
		FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace JOIN pg_language AS l ON l.oid = p.prolang
		WHERE p.oid >= 16384 OR p.pronamespace <> 'pg_catalog'::regnamespace`,
		[]any{&f.oid, &f.name, &f.isImmutable, &f.mayFail, &f.inOwnSchema, &f.language, &f.securityDefiner, &f.hasSettings,
			&f.hasOtherSettings, &f.hasDefaults, &source, &f.hasParsedBody, &body, &f.types},
		func() error {
			functionRow := f
			functionRow.source = string(source)
			if l.objects.extensionOf("pg_proc", functionRow.oid) != "" {
				functionRow.body = newTree(body)
			}
			l.objects.functions[functionRow.oid] = &functionRow
			if !functionRow.inOwnSchema {
				l.objects.functionNames[functionRow.name] = append(l.objects.functionNames[functionRow.name], &functionRow)
			}
			l.objects.hasForeignTimeFunction = l.objects.hasForeignTimeFunction ||
				functionRow.oid >= firstNormalOID && slices.Contains(statementTimeFunctions, functionRow.name)
			f.types, source, body = nil, nil, nil
			return nil
		})
}

// readCalledFunctions reads those of PostgreSQL's own functions that an expression, a function body or a trigger calls,
// and that were not read before.
func (l *loader) readCalledFunctions(ctx context.Context) error {
	called := map[uint32]bool{}
	for _, t := range l.allTrees() {
		for _, oid := range t.functions {
			called[oid] = true
		}
	}
	for _, t := range l.triggers {
		called[t.functionOID] = true
	}
	maps.DeleteFunc(called, func(oid uint32, _ bool) bool {
		return oid >= firstNormalOID ||
			l.objects.functions[oid] != nil
	})
	if len(called) == 0 {
		return nil
	}
	var f function
	return l.each(ctx, `SELECT p.oid, p.proname, p.provolatile = 'i', `+mayFailSQL+` AND NOT (`+neverFailsSQL+`) FROM pg_proc AS p
		WHERE p.oid = ANY ($1::oid[]) AND p.oid < 16384 AND p.pronamespace = 'pg_catalog'::regnamespace`,
		[]any{&f.oid, &f.name, &f.isImmutable, &f.mayFail},
		func() error {
			functionRow := f
			functionRow.isNative = true
			l.objects.functions[functionRow.oid] = &functionRow
			return nil
		}, slices.Sorted(maps.Keys(called)))
}

// readTypeFacts reads the types that meet the SQL condition where, and adds them to the map into.
func (l *loader) readTypeFacts(ctx context.Context, into map[uint32]*typeFacts, where string, args ...any) error {
	var (
		t    typeFacts
		kind string
	)
	return l.each(ctx, `SELECT t.oid, t.typname, t.typtype::text, t.typarray, t.typbasetype, n.nspname IN `+ownSchemasSQL+`,
		t.typelem, t.typcollation, n.nspname = 'pg_catalog'
		FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace WHERE n.nspname !~ '^pg_(toast|temp)' AND `+where,
		[]any{&t.oid, &t.name, &kind, &t.array, &t.base, &t.inOwnSchema, &t.element, &t.collation, &t.inCatalog},
		func() error {
			typeRow := t
			typeRow.kind = kind[0]
			into[typeRow.oid] = &typeRow
			return nil
		}, args...)
}

// setTypes replaces the types, and the tables of types that are derived from them.
func (k *objectFacts) setTypes(types map[uint32]*typeFacts) {
	k.types, k.elements, k.typeNames = types, map[uint32]*typeFacts{}, map[string][]*typeFacts{}
	for _, t := range types {
		if t.array != 0 {
			k.elements[t.array] = t
		}
		if !t.inOwnSchema && t.oid >= firstNormalOID {
			k.typeNames[t.name] = append(k.typeNames[t.name], t)
		}
	}
}

// readOperatorFacts reads the operators and operator classes that are not PostgreSQL's own. It also reads whether
// another role has made a cast between PostgreSQL's own types.
func (l *loader) readOperatorFacts(ctx context.Context) error {
	var o operator
	if err := l.each(ctx, "SELECT o.oid, o.oprname, o.oprcode::oid FROM pg_operator AS o WHERE o.oid >= 16384",
		[]any{&o.oid, &o.name, &o.functionOID}, func() error {
			l.objects.operators = append(l.objects.operators, o)
			f := l.objects.functions[o.functionOID] // nil: it is PostgreSQL's own
			if o.functionOID != 0 && (!l.objects.isOfKnownExtension("pg_operator", o.oid) || f != nil &&
				l.objects.isForeign(f)) {
				l.objects.operatorNames = append(l.objects.operatorNames, o.name)
			}
			return nil
		}); err != nil {
		return err
	}
	var c operatorClass
	if err := l.each(ctx,
		`SELECT q.oid, q.opcintype, q.opcdefault, q.opcdefault AND m.amname IN ('btree', 'hash') FROM pg_opclass AS q
			JOIN pg_am AS m ON m.oid = q.opcmethod WHERE q.oid >= 16384`,
		[]any{&c.oid, &c.typeOID, &c.isDefault, &c.comparesType}, func() error {
			l.objects.classes = append(l.objects.classes, c)
			return nil
		}); err != nil {
		return err
	}
	if err := l.tx.QueryRow(ctx, `SELECT array_agg(o.oid) FROM pg_opclass AS o
		JOIN pg_am AS m ON m.oid = o.opcmethod WHERE o.oid < 16384 AND (m.amname = 'hash'
		OR m.amname = 'btree' AND o.opcintype NOT IN ('record'::regtype, 'anyarray'::regtype, 'anyrange'::regtype,
			'anymultirange'::regtype, 'tsquery'::regtype)
		OR m.amname = 'gin' AND o.opcname IN ('jsonb_ops', 'jsonb_path_ops', 'tsvector_ops'))`).Scan(&l.objects.neverFailingClasses); err != nil {
		return err
	}
	return l.tx.QueryRow(ctx,
		"SELECT EXISTS (SELECT FROM pg_cast AS u WHERE u.oid >= 16384 AND u.castfunc <> 0 AND u.castsource < "+
			"16384 AND u.casttarget < 16384)").Scan(&l.objects.hasCastOfNativeTypes)
}

// readUserCodeObjects reads for which objects PostgreSQL itself calls functions of other roles, although no statement
// names them. PostgreSQL does so when it compares or converts values of a type, reads a constant of a domain's array
// type, or makes JSON.
func (l *loader) readUserCodeObjects(ctx context.Context) error {
	k := &l.objects
	k.typesRunningUserCode = map[uint32]bool{}
	for _, c := range l.checks {
		if c.domain != 0 && slices.ContainsFunc(c.tree.functions,
			func(oid uint32) bool { return k.functions[oid] == nil || k.isCallableByAnybody(k.functions[oid]) }) {
			k.typesRunningUserCode[c.domain] = true
		}
	}
	var (
		foreignFunctions []uint32
		use              string
		oid, function    uint32
	)
	for _, f := range k.functions {
		if k.isForeign(f) {
			foreignFunctions = append(foreignFunctions, f.oid)
		}
	}
	return l.each(ctx, `WITH others (oid) AS (SELECT unnest($1::oid[])),
		  supports (class, of, orders, function) AS (SELECT q.oid, q.opcintype, q.opcdefault AND m.amname IN ('btree', 'hash'), s.amproc
		    FROM others AS f JOIN pg_amproc AS s ON s.amproc = f.oid
		    JOIN pg_opclass AS q ON q.opcfamily = s.amprocfamily JOIN pg_am AS m ON m.oid = q.opcmethod)
		SELECT 'operator', o.oid, f.oid FROM others AS f JOIN pg_operator AS o ON o.oprcode = f.oid
		UNION SELECT 'class', s.class, s.function FROM supports AS s
		UNION SELECT 'cast', u.castsource, f.oid FROM others AS f JOIN pg_cast AS u ON u.castfunc = f.oid WHERE u.castcontext = 'i'
		UNION SELECT 'type', u.castsource, f.oid FROM others AS f JOIN pg_cast AS u ON u.castfunc = f.oid
		  WHERE u.castcontext = 'i' OR u.casttarget = 'json'::regtype
		UNION SELECT 'type', r.rngtypid, f.oid FROM others AS f JOIN pg_range AS r ON r.rngcanonical = f.oid
		UNION SELECT 'type', s.of, s.function FROM supports AS s WHERE s.orders
		UNION SELECT 'type', r.rngtypid, s.function FROM supports AS s JOIN pg_range AS r ON r.rngsubopc = s.class`,
		[]any{&use, &oid, &function},
		func() error {
			isCallableByAnybody := k.isCallableByAnybody(k.functions[function])
			switch use {
			case "operator":
				k.userCode.operators = append(k.userCode.operators, oid)
			case "class":
				k.userCode.classes = append(k.userCode.classes, oid)
				if isCallableByAnybody {
					k.userCode.classesCallableByAnybody = append(k.userCode.classesCallableByAnybody, oid)
				}
			case "cast":
				k.userCode.casts = append(k.userCode.casts, oid)
			case "type":
				if isCallableByAnybody {
					k.typesRunningUserCode[oid] = true
				}
			}
			return nil
		}, foreignFunctions)
}

// hasOnlyNativeOrder tells whether all casts between PostgreSQL's own types, and all operator classes that order or
// hash these types, are PostgreSQL's own.
func (k *objectFacts) hasOnlyNativeOrder() bool {
	return !k.hasCastOfNativeTypes &&
		!slices.ContainsFunc(k.classes, func(c operatorClass) bool { return c.comparesType && c.typeOID < firstNormalOID })
}

// mayRunOperator tells whether the text of a function may contain an operator that calls a function of another role.
// Such an operator may stand there by its name, or as LIKE, SIMILAR, IN, BETWEEN, NULLIF or CASE.
func (k *objectFacts) mayRunOperator(text string) bool {
	if len(k.operatorNames) == 0 {
		return false
	}
	operators := operatorPattern.FindAllString(text, -1)
	return slices.ContainsFunc(k.operatorNames, func(name string) bool {
		return slices.Contains(keywordOperators, name) ||
			slices.ContainsFunc(operators, func(w string) bool { return strings.Contains(w, name) })
	})
}
