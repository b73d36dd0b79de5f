package catalog

import (
	"slices"
	"strings"
)

// Functions of schema pgconsent, which pgconsent migrate makes from the policy, return what a shadow shows. A statement
// calls each function once and hashes its rows. The session caches their plans, since planning takes longer than
// reading, and the rows of listed_relations, shown_types and shown_constraints:
//
//	listed_tables(oid, nspname, relname)    the relations of the policy
//	listed_relations(oid)  the same, their sequences, and their indexes except those with expressions or predicates,
//	                       which clients would print; composite types, and views that were added to PostgreSQL's schemas
//	listed_functions(oid, nspname, proname)  the functions of the policy
//	shown_types(oid), shown_constraints(oid)  the types and constraints that agents see, apart from those that initdb made
//	hidden_columns(attrelid, attnum)  columns that are hidden from agents, or were added since pgconsent migrate
//	narrowed_columns(attrelid, attnum, nspname, relname, attname)  the same, and masked columns
//	waiting_columns(attnum, attname, nspname, relname)  columns that were added since pgconsent migrate
//	masked_types(attrelid, attnum, atttypid, atttypmod)  the types of columns as agents read them
//	foreign_key_tables(oid)    tables of the policy with a foreign key between them
//	reads(oid, nspname, relname, relkind, owner, view, view_schema, view_name)  relations that agents read through a
//	                           view, with the view
//
// Agents also see the relations of pg_catalog and information_schema. PostgreSQL either searches for each of them, or
// hashes all of them, as the planner estimates. An index of pg_class finds them: initdb makes them with OIDs below 16384
// (FirstNormalObjectId in transam.h). Indexes find composite types and later views as well, since they have no file.
//
// IS TRUE prevents the planner from turning these conditions into joins, whose numbers of rows it estimates badly.
const (
	notHiddenColumns = ` NOT IN (SELECT h.attrelid, h.attnum FROM pgconsent.hidden_columns() AS h)`
	isMaskedColumn   = `(t.attrelid, t.attnum) IN (SELECT h.attrelid, h.attnum FROM pgconsent.narrowed_columns() AS h)`
	// PostgreSQL implements foreign keys as triggers, and psql asks for foreign keys only of tables with relhastriggers.
	hasForeignKeys = `t.oid IN (SELECT k.oid FROM pgconsent.foreign_key_tables() AS k (oid))`
	notOwnSchemas  = ` NOT IN ('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')`
	// PostgreSQL searches an array of two values faster than a hash table
	isSystemSchema = ` OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT n.oid FROM pg_catalog.pg_namespace AS n
  WHERE n.nspname IN ('pg_catalog', 'information_schema')))`
	ownSchemas = `(SELECT n.oid FROM pg_catalog.pg_namespace AS n
  WHERE n.nspname IN ('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows'))`
)

// isListedSQL returns the condition that a relation is in listed_relations.
func isListedSQL(oid string) string {
	return oid + ` IN (SELECT l.oid FROM pgconsent.listed_relations() AS l (oid))`
}

// isBuiltInRelationSQL returns the condition that a row of pg_class is a relation of PostgreSQL's own schemas that
// initdb has made.
func isBuiltInRelationSQL(c string) string {
	return c + `.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid AND ` + c + `.relnamespace` + isSystemSchema
}

// Queries for the lists that a session keeps, as FROM and WHERE clauses, of objects for which isBuiltInRelationSQL,
// isBuiltInTypeSQL or isBuiltInConstraintSQL is not true. WITH queries before them find the OIDs of the tables of the
// policy (listed), of composite types and later views of PostgreSQL's own schemas (made), of both (shown_table), and of
// constraints with hidden columns (hidden_constraint). Agents see
//
//   - all types except the row types of relations that they do not see, and arrays of these;
//   - keys, foreign keys and NOT NULL of tables of the policy, but no CHECK and no exclusion constraint, since these
//     contain expressions.
const (
	MadeRelations = `FROM pg_catalog.pg_class AS c WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  AND c.reltablespace OPERATOR(pg_catalog.=) 0::pg_catalog.oid AND c.relfilenode OPERATOR(pg_catalog.=) 0::pg_catalog.oid
  AND (c.relkind OPERATOR(pg_catalog.=) 'c'::pg_catalog."char" AND c.relnamespace NOT IN ` + ownSchemas + `
    OR c.relkind OPERATOR(pg_catalog.=) 'v'::pg_catalog."char" AND c.relnamespace` + isSystemSchema + `)`
	ShownTypes = `FROM pg_catalog.pg_type AS t LEFT JOIN pg_catalog.pg_type AS e ON e.oid OPERATOR(pg_catalog.=) t.typelem
WHERE NOT (t.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid AND t.typnamespace` + isSystemSchema + `)
  AND t.typnamespace NOT IN ` + ownSchemas + `
  AND (t.typrelid OPERATOR(pg_catalog.=) 0::pg_catalog.oid OR t.typrelid IN (SELECT s.oid FROM shown_table AS s))
  AND (COALESCE(e.typrelid, 0::pg_catalog.oid) OPERATOR(pg_catalog.=) 0::pg_catalog.oid
    OR e.typrelid IN (SELECT s.oid FROM shown_table AS s))`
	ShownConstraints = `FROM listed AS l JOIN pg_catalog.pg_constraint AS k ON k.conrelid OPERATOR(pg_catalog.=) l.oid
WHERE k.contype OPERATOR(pg_catalog.=) ANY (ARRAY['p', 'u', 'f', 'n']::pg_catalog."char"[])
  AND (k.confrelid OPERATOR(pg_catalog.=) 0::pg_catalog.oid OR k.confrelid IN (SELECT o.oid FROM listed AS o))
  AND k.oid NOT IN (SELECT h.oid FROM hidden_constraint AS h)`
)

// isShownRelationSQL returns the condition that agents see a relation: a table, a sequence or an index.
func isShownRelationSQL(oid string) string {
	return `(` + isListedSQL(oid) + ` OR EXISTS (SELECT 1 FROM pg_catalog.pg_class AS e
  WHERE e.oid OPERATOR(pg_catalog.=) ` + oid + ` AND ` + isBuiltInRelationSQL("e") + `)) IS TRUE`
}

// isBuiltInConstraintSQL returns the condition that a row of pg_constraint is a constraint of a relation of PostgreSQL's
// own that initdb has made, and no CHECK.
func isBuiltInConstraintSQL(k string) string {
	return k + `.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid AND ` + k + `.connamespace` + isSystemSchema + ` AND ` +
		k + `.conrelid OPERATOR(pg_catalog.<>) 0::pg_catalog.oid AND ` + k +
		`.contype OPERATOR(pg_catalog.=) ANY (ARRAY['p', 'u', 'f', 'n']::pg_catalog."char"[])`
}

// isBuiltInTypeSQL returns the condition that a row of pg_type is a type of PostgreSQL's own schemas that initdb has
// made.
func isBuiltInTypeSQL(t string) string {
	return t + `.oid OPERATOR(pg_catalog.<) 16384::pg_catalog.oid AND ` + t + `.typnamespace` + isSystemSchema
}

// isShownTypeOID returns the condition that agents see the type with an OID.
func isShownTypeOID(oid string) string {
	return `(` + oid + ` IN (SELECT l.oid FROM pgconsent.shown_types() AS l (oid)) OR EXISTS (SELECT 1 FROM pg_catalog.pg_type AS y
  WHERE y.oid OPERATOR(pg_catalog.=) ` + oid + ` AND ` + isBuiltInTypeSQL("y") + `)) IS TRUE`
}

// isShownDependentSQL returns the condition that one side of a row of pg_depend is a relation, a column or a constraint
// that agents see.
func isShownDependentSQL(class, object, column string) string {
	return "(" + class + " OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND " +
		isShownRelationSQL(object) + " AND (" + object + ", " + column + ")" + notHiddenColumns +
		" OR " + class + " OPERATOR(pg_catalog.=) 'pg_catalog.pg_constraint'::pg_catalog.regclass AND " +
		"(" + object + " IN (SELECT l.oid FROM pgconsent.shown_constraints() AS l (oid)) OR " +
		`EXISTS (SELECT 1 FROM pg_catalog.pg_constraint AS k WHERE k.oid OPERATOR(pg_catalog.=) ` + object + " AND " +
		isBuiltInConstraintSQL("k") + ")) IS TRUE)"
}

// IsOwnSchema tells whether a schema is one of pgconsent's own schemas, which agents do not see.
func IsOwnSchema(name string) bool {
	return name == "pgconsent" || name == "pgconsent_signed" || name == "pgconsent_catalog" || name == "pgconsent_rows"
}

func pgCatalog(relation string) Name  { return Name{"pg_catalog", relation} }
func infoSchema(relation string) Name { return Name{"information_schema", relation} }

// allShadows are all shadows. Agents may read no catalog that is not listed here.
var allShadows = slices.Concat(filteredShadows, informationShadows, unfilteredShadows(
	// These catalogs contain names and properties of types, operators and languages. Apart from extensions, they are the
	// same in every database.
	"pg_aggregate", "pg_am", "pg_amop", "pg_amproc", "pg_cast", "pg_collation", "pg_conversion", "pg_language",
	"pg_opclass", "pg_operator", "pg_opfamily", "pg_tablespace", "pg_timezone_abbrevs", "pg_timezone_names",
	"pg_transform", "pg_ts_config", "pg_ts_config_map", "pg_ts_dict", "pg_ts_parser", "pg_ts_template",
), emptyShadows(pgCatalog,
	// Catalogs that clients use in joins, and whose content is free text, the rights of other roles, statistics or
	// activity.
	"pg_auth_members", "pg_db_role_setting", "pg_default_acl", "pg_description", "pg_event_trigger",
	"pg_foreign_data_wrapper", "pg_foreign_server", "pg_foreign_table", "pg_init_privs", "pg_largeobject_metadata",
	"pg_locks", "pg_parameter_acl", "pg_policies", "pg_policy", "pg_prepared_xacts", "pg_publication",
	"pg_publication_namespace", "pg_publication_rel", "pg_publication_tables", "pg_rewrite", "pg_rules", "pg_seclabel",
	"pg_seclabels", "pg_shdepend", "pg_shdescription", "pg_shseclabel",
	"pg_stat_activity", "pg_stat_all_indexes", "pg_stat_all_tables", "pg_stat_database", "pg_stat_user_indexes",
	"pg_stat_user_tables", "pg_statio_all_indexes", "pg_statio_all_tables", "pg_statio_user_indexes",
	"pg_statio_user_tables", "pg_statistic_ext", "pg_stats", "pg_stats_ext", "pg_subscription",
	"pg_subscription_rel", "pg_trigger", "pg_user_mappings",
), emptyShadows(infoSchema,
	"check_constraint_routine_usage", "check_constraints", "triggered_update_columns", "triggers",
	"view_column_usage", "view_routine_usage", "view_table_usage",
))

// filteredShadows are the shadows of catalogs of which agents see a part.
var filteredShadows = []Shadow{
	{
		Source: pgCatalog("pg_class"), Listed: "pgconsent.listed_relations() AS l (oid)",
		ListedWhere: "NOT (" + isBuiltInRelationSQL("t") + ")", OtherWheres: []string{isBuiltInRelationSQL("t")},
		KeptColumns: []string{
			"oid", "relname", "relnamespace", "reltype", "reloftype", "relowner", "relam", "reltablespace", "relhasindex",
			"relisshared", "relpersistence", "relkind", "relnatts", "relhassubclass", "relispopulated", "relreplident",
			"relispartition", "reloptions",
		},
		// Estimates and files tell about hidden rows, so they are replaced. Flags are replaced to agree with the catalogs
		// that are empty for agents.
		ReplacedColumns: map[string]string{
			"relfilenode": "0::pg_catalog.oid", "relpages": "0::pg_catalog.int4", "reltuples": "(-1)::pg_catalog.float4",
			"relallvisible": "0::pg_catalog.int4", "reltoastrelid": "0::pg_catalog.oid", "relchecks": "0::pg_catalog.int2",
			"relhasrules": "false", "relhastriggers": hasForeignKeys, "relrowsecurity": "false", "relforcerowsecurity": "false",
			"relrewrite": "0::pg_catalog.oid",
		},
	},
	{
		Source: pgCatalog("pg_attribute"), Where: isShownRelationSQL("t.attrelid") + " AND (t.attrelid, t.attnum)" +
			notHiddenColumns,
		KeptColumns: []string{
			"attrelid", "attname", "atttypid", "attstattarget", "attlen", "attnum", "attndims", "attcacheoff", "atttypmod",
			"attbyval", "attalign", "attstorage", "attcompression", "attnotnull", "atthasdef", "attidentity", "attgenerated",
			"attisdropped", "attislocal", "attinhcount", "attcollation",
		},
		ReplacedColumns: map[string]string{"atthasmissing": "false"},
		MaskedColumns: map[string]string{
			"atttypid": maskedAttributeSQL("atttypid"), "atttypmod": maskedAttributeSQL("atttypmod"),
			"attnotnull": "t.attnotnull AND NOT " + isMaskedColumn,
		},
	},
	{
		Source: pgCatalog("pg_attrdef"), Where: isShownRelationSQL("t.adrelid") + " AND (t.adrelid, t.adnum)" + notHiddenColumns,
		KeptColumns:     []string{"oid", "adrelid", "adnum"},
		ReplacedColumns: map[string]string{"adbin": "CASE WHEN " + hasPlainDefault + " THEN t.adbin END"},
		MaskedColumns: map[string]string{"adbin": "CASE WHEN (t.adrelid, t.adnum) NOT IN (SELECT h.attrelid, h.attnum " +
			"FROM pgconsent.narrowed_columns() AS h) AND " + hasPlainDefault + " THEN t.adbin END"},
	},
	{
		Source: pgCatalog("pg_index"), Where: isShownRelationSQL("t.indexrelid"),
		KeptColumns: []string{
			"indexrelid", "indrelid", "indnatts", "indnkeyatts", "indisunique", "indnullsnotdistinct", "indisprimary",
			"indisexclusion", "indimmediate", "indisclustered", "indisvalid", "indisready", "indislive", "indisreplident",
			"indkey", "indcollation", "indclass", "indoption",
		},
		ReplacedColumns: map[string]string{"indcheckxmin": "false"},
	},
	{
		Source: pgCatalog("pg_constraint"), Listed: "pgconsent.shown_constraints() AS l (oid)",
		ListedWhere: "NOT (" + isBuiltInConstraintSQL("t") + ")", OtherWheres: []string{isBuiltInConstraintSQL("t")},
		KeptColumns: []string{
			"oid", "conname", "connamespace", "contype", "condeferrable", "condeferred", "convalidated", "conrelid",
			"contypid", "conindid", "conparentid", "confrelid", "confupdtype", "confdeltype", "confmatchtype", "conislocal",
			"coninhcount", "connoinherit", "conkey", "confkey", "conpfeqop", "conppeqop", "conffeqop", "confdelsetcols",
			"conexclop", "conenforced", "conperiod",
		},
	},
	{
		Source: pgCatalog("pg_type"), Listed: "pgconsent.shown_types() AS l (oid)",
		ListedWhere: "NOT (" + isBuiltInTypeSQL("t") + ")", OtherWheres: []string{isBuiltInTypeSQL("t")},
		KeptColumns: []string{
			"oid", "typname", "typnamespace", "typowner", "typlen", "typbyval", "typtype", "typcategory", "typispreferred",
			"typisdefined", "typdelim", "typrelid", "typsubscript", "typelem", "typarray", "typinput", "typoutput",
			"typreceive", "typsend", "typmodin", "typmodout", "typanalyze", "typalign", "typstorage", "typnotnull",
			"typbasetype", "typtypmod", "typndims", "typcollation",
		},
	},
	{Source: pgCatalog("pg_enum"), Where: isShownTypeOID("t.enumtypid")},
	{Source: pgCatalog("pg_range"), Where: isShownTypeOID("t.rngtypid")},
	{
		Source: pgCatalog("pg_proc"), Where: "(t.pronamespace OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace " +
			"OR t.oid IN (SELECT f.oid FROM pgconsent.listed_functions() AS f)) IS TRUE",
		KeptColumns: []string{
			"oid", "proname", "pronamespace", "proowner", "prolang", "procost", "prorows", "provariadic", "prosupport",
			"prokind", "prosecdef", "proleakproof", "proisstrict", "proretset", "provolatile", "proparallel", "pronargs",
			"pronargdefaults", "prorettype", "proargtypes", "proallargtypes", "proargmodes", "proargnames", "protrftypes",
		},
	},
	{
		Source: pgCatalog("pg_namespace"),
		Where: "t.oid IN (SELECT s.oid FROM pg_catalog.pg_namespace AS s WHERE s.nspname" + notOwnSchemas +
			" AND pg_catalog.has_schema_privilege(s.oid, 'USAGE')) IS TRUE",
	},
	{
		Source: pgCatalog("pg_depend"),
		// Only rows about constraints show; drivers read here which keys and indexes belong together.
		Where: isShownDependentSQL("t.classid", "t.objid", "t.objsubid") + " AND " +
			isShownDependentSQL("t.refclassid", "t.refobjid", "t.refobjsubid"),
	},
	{
		Source:      pgCatalog("pg_extension"),
		KeptColumns: []string{"oid", "extname", "extowner", "extnamespace", "extrelocatable", "extversion"},
	},
	{Source: pgCatalog("pg_inherits"), Where: isShownRelationSQL("t.inhrelid") + " AND " +
		isShownRelationSQL("t.inhparent")},
	{
		Source: pgCatalog("pg_partitioned_table"), Where: isShownRelationSQL("t.partrelid"),
		KeptColumns: []string{"partrelid", "partstrat", "partnatts", "partdefid", "partattrs", "partclass", "partcollation"},
	},
	{
		Source: pgCatalog("pg_database"),
		Where:  "t.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()",
		KeptColumns: []string{
			"oid", "datname", "datdba", "encoding", "datlocprovider", "datistemplate", "datallowconn", "datconnlimit",
			"dattablespace", "datcollate", "datctype", "daticulocale", "daticurules", "datlocale", "datcollversion",
		},
	},
	{
		Source: pgCatalog("pg_roles"),
		KeptColumns: []string{
			"oid", "rolname", "rolsuper", "rolinherit", "rolcreaterole", "rolcreatedb", "rolcanlogin", "rolreplication",
			"rolbypassrls",
		},
		ReplacedColumns: map[string]string{"rolconnlimit": "(-1)::pg_catalog.int4",
			"rolpassword": "'********'::pg_catalog.text"},
	},
	{
		Source: pgCatalog("pg_user"), KeptColumns: []string{"usename", "usesysid", "usecreatedb", "usesuper", "userepl",
			"usebypassrls"},
		ReplacedColumns: map[string]string{"passwd": "'********'::pg_catalog.text"},
	},
	{
		Source: pgCatalog("pg_settings"), Where: isShownSettingSQL("t.name"),
	},
	{
		Source:          pgCatalog("pg_tables"),
		Where:           isShownNameSQL("t.schemaname", "t.tablename"),
		KeptColumns:     []string{"schemaname", "tablename", "tableowner", "tablespace", "hasindexes"},
		ReplacedColumns: map[string]string{"hasrules": "false", "hastriggers": "false", "rowsecurity": "false"},
	},
	{
		Source: pgCatalog("pg_views"),
		Query: `SELECT n.nspname AS schemaname, c.relname AS viewname, pg_catalog.pg_get_userbyid(c.relowner) AS viewowner,
  pgconsent_catalog.pg_get_viewdef(c.oid) AS definition` + relationsOfKind("v"),
	},
	{
		Source: pgCatalog("pg_matviews"),
		Query: `SELECT n.nspname AS schemaname, c.relname AS matviewname, pg_catalog.pg_get_userbyid(c.relowner) AS matviewowner,
  NULL::pg_catalog.name AS tablespace, c.relhasindex AS hasindexes, c.relispopulated AS ispopulated,
  pgconsent_catalog.pg_get_viewdef(c.oid) AS definition` + relationsOfKind("m"),
	},
	{
		Source: pgCatalog("pg_sequence"), Where: isShownRelationSQL("t.seqrelid"),
		KeptColumns: []string{"seqrelid", "seqtypid", "seqstart", "seqincrement", "seqmax", "seqmin", "seqcache", "seqcycle"},
	},
	{
		// The last value is NULL, since it also counts rows that agents do not see.
		Source: pgCatalog("pg_sequences"),
		Query: `SELECT n.nspname AS schemaname, c.relname AS sequencename, pg_catalog.pg_get_userbyid(c.relowner) AS sequenceowner,
  s.seqtypid::pg_catalog.regtype AS data_type, s.seqstart AS start_value, s.seqmin AS min_value, s.seqmax AS max_value,
  s.seqincrement AS increment_by, s.seqcycle AS cycle, s.seqcache AS cache_size, NULL::pg_catalog.int8 AS last_value` +
			shownSequencesFrom,
	},
	{
		Source: pgCatalog("pg_indexes"),
		Query: `SELECT n.nspname AS schemaname, c.relname AS tablename, i.relname AS indexname, NULL::pg_catalog.name AS tablespace,
  pgconsent_catalog.pg_get_indexdef(i.oid) AS indexdef
FROM pg_catalog.pg_index AS x
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) x.indrelid
JOIN pg_catalog.pg_class AS i ON i.oid OPERATOR(pg_catalog.=) x.indexrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE ` + isShownRelationSQL("i.oid"),
	},
}

// relationsOfKind returns a FROM clause with the relations of a kind that agents see, as c, and their schemas, as n.
func relationsOfKind(kind string) string {
	return `
FROM pgconsent_catalog.pg_class AS c JOIN pgconsent_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relkind OPERATOR(pg_catalog.=) '` + kind + `'::pg_catalog."char"`
}

// shownSequencesFrom is a FROM clause with the sequences that agents see, as c, their fixed properties, as s, and their
// schemas, as n.
const shownSequencesFrom = `
FROM pgconsent_catalog.pg_sequence AS s JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) s.seqrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace`

// maskedAttributeSQL returns the SQL of an attribute in pg_attribute that describes a column's type. For a masked
// column, the result describes the column of the view that agents read, whose type may differ.
func maskedAttributeSQL(attribute string) string {
	return "CASE WHEN " + isMaskedColumn + " THEN COALESCE((SELECT m." + attribute + ` FROM pgconsent.masked_types() AS m
    WHERE m.attrelid OPERATOR(pg_catalog.=) t.attrelid AND m.attnum OPERATOR(pg_catalog.=) t.attnum), t.` + attribute +
		") ELSE t." + attribute + " END"
}

// hasPlainDefault is the condition that a row t of pg_attrdef is a plain default.
var hasPlainDefault = isPlainDefaultSQL("pg_catalog.pg_get_expr(t.adbin, t.adrelid)")

func unfilteredShadows(relations ...string) []Shadow {
	var out []Shadow
	for _, r := range relations {
		out = append(out, Shadow{Source: pgCatalog(r)})
	}
	return out
}

func emptyShadows(qualify func(string) Name, relations ...string) []Shadow {
	var out []Shadow
	for _, r := range relations {
		out = append(out, Shadow{Source: qualify(r), IsEmpty: true})
	}
	return out
}

// isShownSettingSQL returns the condition that agents may see a setting with this name. Names with a dot are left out:
// they belong to extensions or applications, and pgconsent passes the signed identity of a session in such a setting.
// Also left out are settings that the proxy changes for statements with a hardened plan.
func isShownSettingSQL(name string) string {
	return "pg_catalog.strpos(" + name + ", '.') OPERATOR(pg_catalog.=) 0 AND pg_catalog.lower(" + name +
		` COLLATE pg_catalog."C") OPERATOR(pg_catalog.<>) ALL (ARRAY['cpu_operator_cost', 'enable_bitmapscan', 'plan_cache_mode'])`
}

// isPlainDefaultSQL returns the condition that the text of a default is a number, a single word, the time or a random
// number. Object mappers send such defaults themselves, so agents must see them. Other defaults are expressions, or
// text that may quote a person.
func isPlainDefaultSQL(text string) string {
	const (
		value = `(\'[A-Za-z0-9_.:{}+-]{0,40}\'|\'\[\]\'|-?[0-9]+(\.[0-9]+)?|\([0-9.-]+\)|true|false|NULL|ARRAY\[\])`
		cast  = `(::[a-z][a-z0-9_ ]*(\([0-9,]+\))?[a-z ]*(\[\])*)*`
		now   = `(now|clock_timestamp|statement_timestamp|transaction_timestamp|gen_random_uuid|uuid_generate_v4|CURRENT_TIMESTAMP|` +
			`CURRENT_DATE|CURRENT_TIME|LOCALTIMESTAMP|LOCALTIME)(\(\))?`
	)
	return text + " OPERATOR(pg_catalog.~) '^(" + strings.ReplaceAll(value+cast+"|"+now, `\'`, "''") + ")$'"
}
