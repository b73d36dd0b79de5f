package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// ShadowFunctionSpec describes a function in [ShadowSchema] that agents' statements call in place of a catalog
// function. It has the same name, arguments and result type.
type ShadowFunctionSpec struct {
	Name            string
	Args            []string // the types of the arguments
	Returns         string
	Query           string // the SQL query over $1, $2 …; "": the function returns NULL
	MayCallOriginal bool   // agents' statements may also call the original function, if the rewriter decides so
	// the function is in PL/pgSQL, which keeps the plan of the query for the session. An SQL function would plan it for
	// each statement, which takes longer than to run it. All names and operators of the query have their schemas
	KeepsPlan bool

	InformationSchema bool // the original function is in information_schema
	// the function has an effect, so PostgreSQL must call it when and as often as the statement says
	Volatile bool
}

// ReadsShadows tells whether the function reads the views in place of catalogs.
func (s ShadowFunctionSpec) ReadsShadows() bool { return strings.Contains(s.Query, ShadowSchema+".") }

// ShadowFunctions returns all functions of [ShadowSchema].
func ShadowFunctions() []ShadowFunctionSpec { return shadowFunctions }

// These queries let PostgreSQL write definitions without expressions, and only of objects that the shadows show.
const (
	constraintDefQuery = `SELECT pg_catalog.pg_get_constraintdef($1) FROM pgconsent_catalog.pg_constraint AS c
WHERE c.oid OPERATOR(pg_catalog.=) $1 AND c.contype OPERATOR(pg_catalog.=) ANY (ARRAY['p', 'u', 'f', 'n']::pg_catalog."char"[])`
	shownIndexFrom = ` FROM pg_catalog.pg_index AS i
WHERE i.indexrelid OPERATOR(pg_catalog.=) $1 AND i.indexprs IS NULL AND i.indpred IS NULL
AND EXISTS (SELECT 1 FROM pgconsent_catalog.pg_index AS s WHERE s.indexrelid OPERATOR(pg_catalog.=) i.indexrelid)`
)

// viewQuery returns a query for the definition of a view in the form of pg_get_viewdef: a SELECT of the columns that
// agents see. The query returns NULL if agents see no view with this OID.
func viewQuery(oid string) string {
	const quoteIdentFormat = "pg_catalog.quote_ident(%s::pg_catalog.text)"
	ofColumn, ofSchema, ofName := fmt.Sprintf(quoteIdentFormat, "a.attname"), fmt.Sprintf(quoteIdentFormat, "n.nspname"),
		fmt.Sprintf(quoteIdentFormat, "c.relname")
	return `SELECT pg_catalog.concat(' SELECT ', pg_catalog.string_agg(` + ofColumn + `, E',\n    ' ORDER BY a.attnum),
  E'\n   FROM ', ` + ofSchema + `, '.', ` + ofName + `, ';')
FROM pgconsent_catalog.pg_class AS c
JOIN pgconsent_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
JOIN pgconsent_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) c.oid
WHERE c.oid OPERATOR(pg_catalog.=) ` + oid + ` AND c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['v', 'm']::pg_catalog."char"[])
  AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
GROUP BY n.nspname, c.relname`
}

const viewOIDByName = "pgconsent_catalog.to_regclass($1)::pg_catalog.oid"

// PostgreSQL raises an error for a row type with modifiers, as in 'salaries(5)', and before version 16 for a signature
// with an unknown type. Such an error would tell that an object exists. So these queries do not resolve a name with
// modifiers or arguments if agents do not see the object. Nor do they resolve a name that may contain a comment. OFFSET
// 0 prevents the planner from resolving the name for an estimate.
const (
	shownTypeName = `CASE WHEN pg_catalog.strpos($1, '(') OPERATOR(pg_catalog.=) 0 THEN $1
  WHEN $1 OPERATOR(pg_catalog.~) '/\*|--' OR pg_catalog.regexp_replace(` + nameWithoutModifiers +
		`, '"[^"]*"', '', 'g') OPERATOR(pg_catalog.~) '\(' THEN NULL
  WHEN EXISTS (SELECT 1 FROM pgconsent_catalog.pg_type AS s ` +
		`WHERE s.oid OPERATOR(pg_catalog.=) (SELECT pg_catalog.to_regtype(` + nameWithoutModifiers + `)::pg_catalog.oid)) THEN $1 END`
	nameWithoutModifiers   = `pg_catalog.regexp_replace($1, '\([^()"]*\)(?=[^()"]*$)', '')`
	shownFunctionSignature = `CASE WHEN pg_catalog.strpos($1, '(') OPERATOR(pg_catalog.=) 0 THEN $1
  WHEN $1 OPERATOR(pg_catalog.~) '/\*|--' OR ` + argumentTypes + ` IS NULL THEN NULL
  WHEN NOT EXISTS (SELECT 1 FROM pg_catalog.regexp_split_to_table(` + argumentTypes + `, ',') AS a(t)
    WHERE a.t OPERATOR(pg_catalog.~) '\S' AND pgconsent_catalog.to_regtype(a.t) IS NULL) THEN $1 END`
	argumentTypes = `(pg_catalog.regexp_match($1, '^(?:[^"()]|"[^"]*")*\(([^()]*)\)\s*$'))[1]`
)

const (
	text     = "pg_catalog.text"
	oid      = "pg_catalog.oid"
	boolType = "pg_catalog.bool"
	integer  = "pg_catalog.int4"
	bigint   = "pg_catalog.int8"
	regclass = "pg_catalog.regclass"
	name     = "pg_catalog.name"
	interval = "pg_catalog.interval"

	timestamp   = "pg_catalog.timestamp"
	timestamptz = "pg_catalog.timestamptz"
)

var shadowFunctions = slices.Concat(describingFunctions, usageCounterFunctions(), informationSchemaFunctions, advisoryLockFunctions(),
	sequenceValueFunctions)

// describingFunctions are shadows of the functions that describe objects or return their sizes.
var describingFunctions = []ShadowFunctionSpec{
	{Name: "pg_get_constraintdef", Args: []string{oid}, Returns: text, KeepsPlan: true, Query: constraintDefQuery},
	{Name: "pg_get_constraintdef", Args: []string{oid, boolType}, Returns: text, KeepsPlan: true, Query: constraintDefQuery},
	{Name: "pg_get_indexdef", Args: []string{oid}, Returns: text, KeepsPlan: true,
		Query: "SELECT pg_catalog.pg_get_indexdef($1)" + shownIndexFrom},
	{Name: "pg_get_indexdef", Args: []string{oid, integer, boolType}, Returns: text, KeepsPlan: true,
		Query: "SELECT pg_catalog.pg_get_indexdef($1, $2, $3)" + shownIndexFrom},

	// agents cannot find a relation by its name either if the shadows do not show it
	{Name: "to_regclass", Args: []string{text}, Returns: regclass, Query: `SELECT c.oid::pg_catalog.regclass ` +
		`FROM pgconsent_catalog.pg_class AS c
WHERE c.oid OPERATOR(pg_catalog.=) (SELECT pg_catalog.to_regclass($1)::pg_catalog.oid)`},
	{Name: "to_regtype", Args: []string{text}, Returns: "pg_catalog.regtype", Query: `SELECT y.oid::pg_catalog.regtype ` +
		`FROM pgconsent_catalog.pg_type AS y
WHERE y.oid OPERATOR(pg_catalog.=) (SELECT pg_catalog.to_regtype(x.t) FROM (SELECT ` + shownTypeName + ` AS t OFFSET 0) AS x)`},
	{Name: "to_regtypemod", Args: []string{text}, Returns: integer, Query: `SELECT pg_catalog.to_regtypemod(x.t)
FROM (SELECT CASE WHEN pgconsent_catalog.to_regtype($1) IS NOT NULL THEN $1 END AS t OFFSET 0) AS x`},
	{Name: "to_regproc", Args: []string{text}, Returns: "pg_catalog.regproc", Query: `SELECT p.oid::pg_catalog.regproc ` +
		`FROM pgconsent_catalog.pg_proc AS p
WHERE p.oid OPERATOR(pg_catalog.=) (SELECT pg_catalog.to_regproc($1)::pg_catalog.oid)`},
	{Name: "to_regprocedure", Args: []string{text}, Returns: "pg_catalog.regprocedure", Query: `SELECT p.oid::pg_catalog.regprocedure ` +
		`FROM pgconsent_catalog.pg_proc AS p
WHERE p.oid OPERATOR(pg_catalog.=) (SELECT pg_catalog.to_regprocedure(x.t) FROM (SELECT ` +
		shownFunctionSignature + ` AS t OFFSET 0) AS x)`},
	{Name: "to_regnamespace", Args: []string{text}, Returns: "pg_catalog.regnamespace", Query: `SELECT n.oid::pg_catalog.regnamespace ` +
		`FROM pgconsent_catalog.pg_namespace AS n
WHERE n.oid OPERATOR(pg_catalog.=) (SELECT pg_catalog.to_regnamespace($1)::pg_catalog.oid)`},

	// Clients parse the definition of a view, so these functions return a definition with the columns that agents see.
	{Name: "pg_get_viewdef", Args: []string{oid}, Returns: text, KeepsPlan: true, Query: viewQuery("$1")},
	{Name: "pg_get_viewdef", Args: []string{oid, boolType}, Returns: text, KeepsPlan: true, Query: viewQuery("$1")},
	{Name: "pg_get_viewdef", Args: []string{oid, integer}, Returns: text, KeepsPlan: true, Query: viewQuery("$1")},
	{Name: "pg_get_viewdef", Args: []string{text}, Returns: text, KeepsPlan: true, Query: viewQuery(viewOIDByName)},
	{Name: "pg_get_viewdef", Args: []string{text, boolType}, Returns: text, KeepsPlan: true, Query: viewQuery(viewOIDByName)},

	// Sources, expressions and comments are free text that may quote rows, so these functions return NULL.
	{Name: "pg_get_functiondef", Args: []string{oid}, Returns: text},
	{Name: "pg_get_function_sqlbody", Args: []string{oid}, Returns: text},
	{Name: "pg_get_function_arg_default", Args: []string{oid, integer}, Returns: text},
	{Name: "pg_get_triggerdef", Args: []string{oid}, Returns: text},
	{Name: "pg_get_triggerdef", Args: []string{oid, boolType}, Returns: text},
	{Name: "pg_get_ruledef", Args: []string{oid}, Returns: text},
	{Name: "pg_get_ruledef", Args: []string{oid, boolType}, Returns: text},
	{Name: "pg_get_partkeydef", Args: []string{oid}, Returns: text},
	{Name: "pg_get_partition_constraintdef", Args: []string{oid}, Returns: text},
	{Name: "pg_get_statisticsobjdef", Args: []string{oid}, Returns: text},
	{Name: "pg_get_statisticsobjdef_columns", Args: []string{oid}, Returns: text},
	{Name: "pg_get_statisticsobjdef_expressions", Args: []string{oid}, Returns: text + "[]"},
	{Name: "obj_description", Args: []string{oid}, Returns: text},
	{Name: "obj_description", Args: []string{oid, name}, Returns: text},
	{Name: "col_description", Args: []string{oid, integer}, Returns: text},
	{Name: "shobj_description", Args: []string{oid, name}, Returns: text},

	// age(xid) would tell how many transactions have written since that transaction. So the function treats each
	// transaction as frozen, for which PostgreSQL returns the largest age.
	{Name: "age", Args: []string{"pg_catalog.xid"}, Returns: integer, Query: "SELECT CASE WHEN $1 IS NOT NULL THEN 2147483647 END"},
	{Name: "age", Args: []string{timestamp}, Returns: interval, Query: "SELECT pg_catalog.age($1)"},
	{Name: "age", Args: []string{timestamp, timestamp}, Returns: interval, Query: "SELECT pg_catalog.age($1, $2)"},
	{Name: "age", Args: []string{timestamptz}, Returns: interval, Query: "SELECT pg_catalog.age($1)"},
	{Name: "age", Args: []string{timestamptz, timestamptz}, Returns: interval, Query: "SELECT pg_catalog.age($1, $2)"},

	// This function returns only the settings that pg_settings shows to agents.
	{Name: "current_setting", Args: []string{text}, Returns: text, MayCallOriginal: true,
		Query: "SELECT CASE WHEN " + isShownSettingSQL("$1") + " THEN pg_catalog.current_setting($1) END"},
	{Name: "current_setting", Args: []string{text, boolType}, Returns: text, MayCallOriginal: true,
		Query: "SELECT CASE WHEN " + isShownSettingSQL("$1") + " THEN pg_catalog.current_setting($1, $2) END"},

	// The originals tell where files are; these functions return NULL.
	{Name: "pg_tablespace_location", Args: []string{oid}, Returns: text},

	// The originals return sizes, which include hidden rows; these functions return NULL.
	{Name: "pg_table_size", Args: []string{regclass}, Returns: bigint},
	{Name: "pg_relation_size", Args: []string{regclass}, Returns: bigint},
	{Name: "pg_relation_size", Args: []string{regclass, text}, Returns: bigint},
	{Name: "pg_total_relation_size", Args: []string{regclass}, Returns: bigint},
	{Name: "pg_indexes_size", Args: []string{regclass}, Returns: bigint},
	{Name: "pg_database_size", Args: []string{oid}, Returns: bigint},
	{Name: "pg_database_size", Args: []string{name}, Returns: bigint},
	{Name: "pg_tablespace_size", Args: []string{oid}, Returns: bigint},
	{Name: "pg_tablespace_size", Args: []string{name}, Returns: bigint},
}

// usageCounterFunctions returns shadows of the functions that tell how often tables and indexes are used, hidden rows
// included. They answer as if the tables had not been used since the counters were reset.
func usageCounterFunctions() (out []ShadowFunctionSpec) {
	for _, counter := range []string{"numscans", "live_tuples", "dead_tuples", "tuples_returned", "tuples_fetched",
		"tuples_inserted",
		"tuples_updated", "tuples_deleted", "tuples_hot_updated", "mod_since_analyze", "ins_since_vacuum", "blocks_fetched",
		"blocks_hit", "vacuum_count", "autovacuum_count", "analyze_count", "autoanalyze_count"} {
		out = append(out, ShadowFunctionSpec{Name: "pg_stat_get_" + counter, Args: []string{oid}, Returns: bigint,
			Query: "SELECT 0::" + bigint})
	}
	for _, counter := range []string{"last_vacuum_time", "last_autovacuum_time", "last_analyze_time",
		"last_autoanalyze_time"} {
		out = append(out, ShadowFunctionSpec{Name: "pg_stat_get_" + counter, Args: []string{oid}, Returns: timestamptz})
	}
	return out
}

// shadowRowTypes are the row types of the views that agents read in place of pg_attribute and pg_type.
var shadowRowTypes = []string{"pgconsent_catalog.pg_attribute", "pgconsent_catalog.pg_type"}

// informationSchemaFunctions are shadows of those functions of information_schema that take rows of the catalogs as
// arguments. PostgREST calls them.
var informationSchemaFunctions = []ShadowFunctionSpec{
	{Name: "_pg_truetypid", InformationSchema: true, Args: shadowRowTypes, Returns: oid, Query: `SELECT ` + domainConstraintCase +
		` THEN ($2).typbasetype ELSE ($1).atttypid END`},
	{Name: "_pg_truetypmod", InformationSchema: true, Args: shadowRowTypes, Returns: integer,
		Query: `SELECT ` + domainConstraintCase +
			` THEN ($2).typtypmod ELSE ($1).atttypmod END`},
}

const domainConstraintCase = `CASE WHEN ($2).typtype OPERATOR(pg_catalog.=) 'd'::pg_catalog."char"`

// advisoryLockFunctions returns shadows of the functions that take and release advisory locks. An agent's locks do not
// conflict with those of the owner, nor with those of agents with other attributes.
func advisoryLockFunctions() (out []ShadowFunctionSpec) {
	for _, f := range []struct{ name, returns string }{
		{"pg_advisory_lock", "void"}, {"pg_advisory_lock_shared", "void"}, {"pg_advisory_xact_lock", "void"},
		{"pg_advisory_xact_lock_shared", "void"}, {"pg_try_advisory_lock", "bool"}, {"pg_try_advisory_lock_shared", "bool"},
		{"pg_try_advisory_xact_lock", "bool"}, {"pg_try_advisory_xact_lock_shared", "bool"},
		{"pg_advisory_unlock", "bool"}, {"pg_advisory_unlock_shared", "bool"},
	} {
		isUnlock := strings.Contains(f.name, "unlock")
		for _, key := range []struct {
			args []string
			text string
		}{
			{[]string{bigint}, "$1::pg_catalog.text"},
			{[]string{integer, integer}, "$1::pg_catalog.text OPERATOR(pg_catalog.||) ',' OPERATOR(pg_catalog.||) $2::pg_catalog.text"},
		} {
			out = append(out, ShadowFunctionSpec{Name: f.name, Args: key.args, Returns: "pg_catalog." + f.returns, Volatile: true,
				Query: fmt.Sprintf("SELECT pg_catalog.%s(pgconsent_signed.lock_key(%s, %t))", f.name, key.text, !isUnlock)})
		}
	}
	return out
}

// sequenceValueFunctions are shadows of the functions that return the last number which a session has drawn from a
// sequence. They answer for sequences of columns that agents see and write. For any other sequence they answer as if
// the session had drawn no number.
var sequenceValueFunctions = []ShadowFunctionSpec{
	{Name: "currval", Args: []string{text}, Returns: bigint, Volatile: true,
		Query: "SELECT pgconsent_signed.number_or_error(pgconsent_signed.drawn_number(pgconsent_signed.sequence_named($1)))"},
	{Name: "currval", Args: []string{regclass}, Returns: bigint, Volatile: true,
		Query: "SELECT pgconsent_signed.number_or_error(pgconsent_signed.drawn_number($1::pg_catalog.oid))"},
	{Name: "lastval", Returns: bigint, Volatile: true,
		Query: "SELECT pgconsent_signed.number_or_error(pgconsent_signed.last_number())"},
}

// InformationFunction returns the function that agents' statements call in place of a function of information_schema.
// The second result is false if agents may not call the function.
func InformationFunction(name string) (Name, bool) {
	for _, f := range informationSchemaFunctions {
		if f.Name == name {
			return Name{ShadowSchema, name}, true
		}
	}
	return Name{"information_schema", name}, slices.Contains(tableFreeFunctions, name)
}

// tableFreeFunctions are the functions of information_schema that depend only on their arguments.
var tableFreeFunctions = []string{"_pg_expandarray", "_pg_char_max_length", "_pg_char_octet_length",
	"_pg_numeric_precision",
	"_pg_numeric_precision_radix", "_pg_numeric_scale", "_pg_datetime_precision", "_pg_interval_type"}

var shadowFunctionNames = func() map[string]bool {
	set := map[string]bool{}
	for _, f := range shadowFunctions {
		if !f.MayCallOriginal && !f.InformationSchema {
			set[f.Name] = true
		}
	}
	return set
}()
