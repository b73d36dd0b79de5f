package catalog

import (
	"slices"
	"strings"
)

// The rows a shadow shows are told by views of schema pgconsent, which migrate makes from the policy:
//
//	shown_table(oid, nspname, relname)  relations: those of the policy, composite types, the catalogs
//	shown(oid, nspname, relname)    the same, the indexes, but those with expressions or conditions, which clients would
//	                                print, and the sequences that belong to columns which agents see as they are
//	shown_constraint(oid)           keys, foreign keys and NOT NULL of such relations, but those of hidden columns
//	shown_type(oid)                 types: all but the row types of other relations
//	waiting(attrelid, attnum, attname, nspname, relname) columns of relations since pgconsent migrate
//	narrowed(attrelid, attnum, hidden) columns that are hidden, masked or waiting
//	reads(oid, nspname, relname, relkind, owner, view, view_schema, view_name)  relations that are read through a view
//	shown_function(oid, nspname, proname)  functions: those of pg_catalog and of the policy
//
// IS TRUE keeps the planner from making joins of them, whose rows it guesses wrong: what is looked up for each row of a
// catalog is a hash that is made once for the statement.
const (
	shownRelation = ` IN (SELECT s.oid FROM pgconsent.shown AS s) IS TRUE`
	shownTable    = ` IN (SELECT s.oid FROM pgconsent.shown_table AS s) IS TRUE`
	shownType     = ` IN (SELECT s.oid FROM pgconsent.shown_type AS s) IS TRUE`
	// CHECKs are expressions, and so are exclusion constraints in part: neither shows.
	shownConstraint = ` IN (SELECT s.oid FROM pgconsent.shown_constraint AS s) IS TRUE`
	hiddenColumns   = ` NOT IN (SELECT w.attrelid, w.attnum FROM pgconsent.narrowed AS w WHERE w.hidden)`
	maskedColumn    = `(t.attrelid, t.attnum) IN (SELECT w.attrelid, w.attnum FROM pgconsent.narrowed AS w)`
	shownFunction   = ` IN (SELECT s.oid FROM pgconsent.shown_function AS s) IS TRUE`
	// Foreign keys are triggers to PostgreSQL, and psql asks for the ones only where there are the others.
	hasForeignKeys = `EXISTS (SELECT 1 FROM pg_catalog.pg_constraint AS k WHERE k.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog."char"
  AND (k.conrelid OPERATOR(pg_catalog.=) t.oid OR k.confrelid OPERATOR(pg_catalog.=) t.oid)
  AND k.conrelid` + shownTable + ` AND k.confrelid` + shownTable + `)`
	notOurs = ` NOT IN ('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')`
)

// shownDependent tells whether one side of a row of pg_depend is a relation, a column or a constraint that shows.
func shownDependent(class, object, column string) string {
	return "(" + class + " OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND " + object + shownRelation +
		" AND (" + object + ", " + column + ")" + hiddenColumns +
		" OR " + class + " OPERATOR(pg_catalog.=) 'pg_catalog.pg_constraint'::pg_catalog.regclass AND " + object +
		shownConstraint + ")"
}

// IsOwnSchema tells whether a schema is one of those that migrate makes, which no agent sees.
func IsOwnSchema(name string) bool {
	return name == "pgconsent" || name == "pgconsent_signed" || name == "pgconsent_catalog" || name == "pgconsent_rows"
}

func pgCatalog(relation string) Name  { return Name{"pg_catalog", relation} }
func infoSchema(relation string) Name { return Name{"information_schema", relation} }

// shadows is the closed list: a catalog relation that is not here is refused.
var shadows = slices.Concat(filtered, information, whole(
	// Catalogs that hold names and wiring of types, operators and languages, the same in every database but for
	// extensions.
	"pg_aggregate", "pg_am", "pg_amop", "pg_amproc", "pg_cast", "pg_collation", "pg_conversion", "pg_language",
	"pg_opclass", "pg_operator", "pg_opfamily", "pg_tablespace", "pg_timezone_abbrevs", "pg_timezone_names",
	"pg_transform", "pg_ts_config", "pg_ts_config_map", "pg_ts_dict", "pg_ts_parser", "pg_ts_template",
), empty(pgCatalog,
	// Catalogs that clients join with, and whose content is free text, the rights of others, statistics or activity.
	"pg_auth_members", "pg_db_role_setting", "pg_default_acl", "pg_description", "pg_event_trigger",
	"pg_foreign_data_wrapper", "pg_foreign_server", "pg_foreign_table", "pg_init_privs", "pg_largeobject_metadata",
	"pg_locks", "pg_parameter_acl", "pg_policies", "pg_policy", "pg_prepared_xacts", "pg_publication",
	"pg_publication_namespace", "pg_publication_rel", "pg_publication_tables", "pg_rewrite", "pg_rules", "pg_seclabel",
	"pg_seclabels", "pg_shdepend", "pg_shdescription", "pg_shseclabel",
	"pg_stat_activity", "pg_stat_all_indexes", "pg_stat_all_tables", "pg_stat_database", "pg_stat_user_indexes",
	"pg_stat_user_tables", "pg_statio_all_indexes", "pg_statio_all_tables", "pg_statio_user_indexes",
	"pg_statio_user_tables", "pg_statistic_ext", "pg_stats", "pg_stats_ext", "pg_subscription",
	"pg_subscription_rel", "pg_trigger", "pg_user_mappings",
), empty(infoSchema,
	"check_constraint_routine_usage", "check_constraints", "triggered_update_columns", "triggers",
	"view_column_usage", "view_routine_usage", "view_table_usage",
))

// filtered are the catalogs of which a part shows.
var filtered = []Shadow{
	{
		Source: pgCatalog("pg_class"), Where: "t.oid" + shownRelation,
		Keep: []string{
			"oid", "relname", "relnamespace", "reltype", "reloftype", "relowner", "relam", "reltablespace", "relhasindex",
			"relisshared", "relpersistence", "relkind", "relnatts", "relhassubclass", "relispopulated", "relreplident",
			"relispartition", "reloptions",
		},
		// Estimates and files tell of hidden rows; flags must agree with the catalogs that are empty here.
		Set: map[string]string{
			"relfilenode": "0::pg_catalog.oid", "relpages": "0::pg_catalog.int4", "reltuples": "(-1)::pg_catalog.float4",
			"relallvisible": "0::pg_catalog.int4", "reltoastrelid": "0::pg_catalog.oid", "relchecks": "0::pg_catalog.int2",
			"relhasrules": "false", "relhastriggers": hasForeignKeys, "relrowsecurity": "false", "relforcerowsecurity": "false",
			"relrewrite": "0::pg_catalog.oid",
		},
	},
	{
		Source: pgCatalog("pg_attribute"), Where: "t.attrelid" + shownRelation + " AND (t.attrelid, t.attnum)" + hiddenColumns,
		Keep: []string{
			"attrelid", "attname", "atttypid", "attstattarget", "attlen", "attnum", "attndims", "attcacheoff", "atttypmod",
			"attbyval", "attalign", "attstorage", "attcompression", "attnotnull", "atthasdef", "attidentity", "attgenerated",
			"attisdropped", "attislocal", "attinhcount", "attcollation",
		},
		Set: map[string]string{
			"atthasmissing": "false",
			"atttypid":      masked("atttypid"),
			"atttypmod":     masked("atttypmod"),
			"attnotnull":    "t.attnotnull AND NOT " + maskedColumn,
		},
	},
	{
		Source: pgCatalog("pg_attrdef"), Where: "t.adrelid" + shownTable + " AND (t.adrelid, t.adnum)" + hiddenColumns,
		Keep: []string{"oid", "adrelid", "adnum"},
		Set: map[string]string{
			"adbin": "CASE WHEN (t.adrelid, t.adnum) NOT IN (SELECT w.attrelid, w.attnum FROM pgconsent.narrowed AS w) AND " +
				plainDefault("pg_catalog.pg_get_expr(t.adbin, t.adrelid)") + " THEN t.adbin END",
		},
	},
	{
		Source: pgCatalog("pg_index"), Where: "t.indexrelid" + shownRelation,
		Keep: []string{
			"indexrelid", "indrelid", "indnatts", "indnkeyatts", "indisunique", "indnullsnotdistinct", "indisprimary",
			"indisexclusion", "indimmediate", "indisclustered", "indisvalid", "indisready", "indislive", "indisreplident",
			"indkey", "indcollation", "indclass", "indoption",
		},
		Set: map[string]string{"indcheckxmin": "false"},
	},
	{
		Source: pgCatalog("pg_constraint"),
		Where:  "t.oid" + shownConstraint,
		Keep: []string{
			"oid", "conname", "connamespace", "contype", "condeferrable", "condeferred", "convalidated", "conrelid",
			"contypid", "conindid", "conparentid", "confrelid", "confupdtype", "confdeltype", "confmatchtype", "conislocal",
			"coninhcount", "connoinherit", "conkey", "confkey", "conpfeqop", "conppeqop", "conffeqop", "confdelsetcols",
			"conexclop", "conenforced", "conperiod",
		},
	},
	{
		Source: pgCatalog("pg_type"), Where: "t.oid" + shownType,
		Keep: []string{
			"oid", "typname", "typnamespace", "typowner", "typlen", "typbyval", "typtype", "typcategory", "typispreferred",
			"typisdefined", "typdelim", "typrelid", "typsubscript", "typelem", "typarray", "typinput", "typoutput",
			"typreceive", "typsend", "typmodin", "typmodout", "typanalyze", "typalign", "typstorage", "typnotnull",
			"typbasetype", "typtypmod", "typndims", "typcollation",
		},
	},
	{Source: pgCatalog("pg_enum"), Where: "t.enumtypid" + shownType},
	{Source: pgCatalog("pg_range"), Where: "t.rngtypid" + shownType},
	{
		Source: pgCatalog("pg_proc"), Where: "t.oid" + shownFunction,
		Keep: []string{
			"oid", "proname", "pronamespace", "proowner", "prolang", "procost", "prorows", "provariadic", "prosupport",
			"prokind", "prosecdef", "proleakproof", "proisstrict", "proretset", "provolatile", "proparallel", "pronargs",
			"pronargdefaults", "prorettype", "proargtypes", "proallargtypes", "proargmodes", "proargnames", "protrftypes",
		},
	},
	{
		Source: pgCatalog("pg_namespace"),
		Where: "t.oid IN (SELECT s.oid FROM pg_catalog.pg_namespace AS s WHERE s.nspname" + notOurs +
			" AND pg_catalog.has_schema_privilege(s.oid, 'USAGE')) IS TRUE",
	},
	{
		Source: pgCatalog("pg_depend"),
		// Of constraints, whose keys and indexes drivers find here.
		Where: shownDependent("t.classid", "t.objid", "t.objsubid") + " AND " +
			shownDependent("t.refclassid", "t.refobjid", "t.refobjsubid"),
	},
	{
		Source: pgCatalog("pg_extension"),
		Keep:   []string{"oid", "extname", "extowner", "extnamespace", "extrelocatable", "extversion"},
	},
	{Source: pgCatalog("pg_inherits"), Where: "t.inhrelid" + shownRelation + " AND t.inhparent" + shownRelation},
	{
		Source: pgCatalog("pg_partitioned_table"), Where: "t.partrelid" + shownTable,
		Keep: []string{"partrelid", "partstrat", "partnatts", "partdefid", "partattrs", "partclass", "partcollation"},
	},
	{
		Source: pgCatalog("pg_database"),
		Where:  "t.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()",
		Keep: []string{
			"oid", "datname", "datdba", "encoding", "datlocprovider", "datistemplate", "datallowconn", "datconnlimit",
			"dattablespace", "datcollate", "datctype", "daticulocale", "daticurules", "datlocale", "datcollversion",
		},
	},
	{
		Source: pgCatalog("pg_roles"),
		Keep: []string{
			"oid", "rolname", "rolsuper", "rolinherit", "rolcreaterole", "rolcreatedb", "rolcanlogin", "rolreplication",
			"rolbypassrls",
		},
		Set: map[string]string{"rolconnlimit": "(-1)::pg_catalog.int4", "rolpassword": "'********'::pg_catalog.text"},
	},
	{
		Source: pgCatalog("pg_user"), Keep: []string{"usename", "usesysid", "usecreatedb", "usesuper", "userepl", "usebypassrls"},
		Set: map[string]string{"passwd": "'********'::pg_catalog.text"},
	},
	{
		Source: pgCatalog("pg_settings"), Where: shownSetting("t.name"),
	},
	{
		Source: pgCatalog("pg_tables"),
		Where:  "(t.schemaname, t.tablename) IN (SELECT s.nspname, s.relname FROM pgconsent.shown AS s)",
		Keep:   []string{"schemaname", "tablename", "tableowner", "tablespace", "hasindexes"},
		Set:    map[string]string{"hasrules": "false", "hastriggers": "false", "rowsecurity": "false"},
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
		Source: pgCatalog("pg_sequence"), Where: "t.seqrelid" + shownRelation,
		Keep: []string{"seqrelid", "seqtypid", "seqstart", "seqincrement", "seqmax", "seqmin", "seqcache", "seqcycle"},
	},
	{
		// The last value counts rows that agents do not see.
		Source: pgCatalog("pg_sequences"),
		Query: `SELECT n.nspname AS schemaname, c.relname AS sequencename, pg_catalog.pg_get_userbyid(c.relowner) AS sequenceowner,
  s.seqtypid::pg_catalog.regtype AS data_type, s.seqstart AS start_value, s.seqmin AS min_value, s.seqmax AS max_value,
  s.seqincrement AS increment_by, s.seqcycle AS cycle, s.seqcache AS cache_size, NULL::pg_catalog.int8 AS last_value` +
			shownSequences,
	},
	{
		Source: pgCatalog("pg_indexes"),
		Query: `SELECT n.nspname AS schemaname, c.relname AS tablename, i.relname AS indexname, NULL::pg_catalog.name AS tablespace,
  pgconsent_catalog.pg_get_indexdef(i.oid) AS indexdef
FROM pg_catalog.pg_index AS x
JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) x.indrelid
JOIN pg_catalog.pg_class AS i ON i.oid OPERATOR(pg_catalog.=) x.indexrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE i.oid` + shownRelation,
	},
}

// relationsOfKind are the relations c of a kind that agents see, and their schemas n.
func relationsOfKind(kind string) string {
	return `
FROM pgconsent_catalog.pg_class AS c JOIN pgconsent_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relkind OPERATOR(pg_catalog.=) '` + kind + `'::pg_catalog."char"`
}

// shownSequences are the sequences c that agents see, with what is fixed of them as s, and their schemas n.
const shownSequences = `
FROM pgconsent_catalog.pg_sequence AS s JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) s.seqrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace`

// masked is an attribute of a masked column, whose type may be another: that of the view's column.
func masked(attribute string) string {
	return "CASE WHEN " + maskedColumn + " THEN COALESCE((SELECT v." + attribute + ` FROM pgconsent.reads AS r
    JOIN pg_catalog.pg_attribute AS v ON v.attrelid OPERATOR(pg_catalog.=) r.view AND v.attname OPERATOR(pg_catalog.=) t.attname
    WHERE r.oid OPERATOR(pg_catalog.=) t.attrelid), t.` + attribute + ") ELSE t." + attribute + " END"
}

func whole(relations ...string) []Shadow {
	var out []Shadow
	for _, r := range relations {
		out = append(out, Shadow{Source: pgCatalog(r)})
	}
	return out
}

func empty(in func(string) Name, relations ...string) []Shadow {
	var out []Shadow
	for _, r := range relations {
		out = append(out, Shadow{Source: in(r), Empty: true})
	}
	return out
}

// shownSetting is a condition on the name of a setting: a name with a dot is somebody's own setting, the sealed session
// is one, and some are set for statements that get a hardened plan.
func shownSetting(name string) string {
	return "pg_catalog.strpos(" + name + ", '.') OPERATOR(pg_catalog.=) 0 AND pg_catalog.lower(" + name +
		` COLLATE pg_catalog."C") OPERATOR(pg_catalog.<>) ALL (ARRAY['cpu_operator_cost', 'enable_bitmapscan', 'plan_cache_mode'])`
}

// plainDefault is a condition on the text of a default: that it is a number or one word, or says nothing but the time
// or a random number. Mappers send these themselves, so that they have to know them; others are expressions, or text
// that may quote somebody.
func plainDefault(text string) string {
	const (
		value = `(\'[A-Za-z0-9_.:{}+-]{0,40}\'|\'\[\]\'|-?[0-9]+(\.[0-9]+)?|\([0-9.-]+\)|true|false|NULL|ARRAY\[\])`
		cast  = `(::[a-z][a-z0-9_ ]*(\([0-9,]+\))?[a-z ]*(\[\])*)*`
		now   = `(now|clock_timestamp|statement_timestamp|transaction_timestamp|gen_random_uuid|uuid_generate_v4|CURRENT_TIMESTAMP|` +
			`CURRENT_DATE|CURRENT_TIME|LOCALTIMESTAMP|LOCALTIME)(\(\))?`
	)
	return text + " OPERATOR(pg_catalog.~) '^(" + strings.ReplaceAll(value+cast+"|"+now, `\'`, "''") + ")$'"
}
