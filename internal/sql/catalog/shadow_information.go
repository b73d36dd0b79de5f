package catalog

import "maps"

// informationShadows are the shadows of the views of information_schema. The original views already leave out objects
// on which a role has no rights. They also leave out keys for a role that may only read; the shadows show keys, since
// clients draw diagrams from them.
var informationShadows = []Shadow{
	{
		Source: infoSchema("tables"),
		Where:  isShownNameSQL("t.table_schema", "t.table_name"),
		ReadsColumns: withRelationNames(map[string]string{
			"table_type": "CASE r.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN' ELSE " +
				"'BASE TABLE' END::information_schema.character_data",
		}),
		JoinCondition: isViewOfTable,
	},
	{
		Source: infoSchema("columns"),
		Where:  isShownNameSQL("t.table_schema", "t.table_name") + isVisibleColumn,
		ReadsColumns: withRelationNames(map[string]string{
			"is_nullable": `CASE WHEN EXISTS (SELECT 1 FROM pgconsent_catalog.pg_attribute AS a WHERE a.attrelid OPERATOR(pg_catalog.=) r.oid
    AND a.attname OPERATOR(pg_catalog.=) t.column_name::pg_catalog.name AND a.attnotnull) ` +
				`THEN 'NO' ELSE 'YES' END::information_schema.yes_or_no`,
		}),
		JoinCondition: isViewOfTable,
		ReplacedColumns: map[string]string{
			"column_default": `CASE WHEN (t.table_schema, t.table_name, t.column_name) NOT IN ` +
				`(SELECT h.nspname, h.relname, h.attname FROM pgconsent.narrowed_columns() AS h)
    AND ` + isPlainDefaultSQL("t.column_default::pg_catalog.text") + " THEN t.column_default END::information_schema.character_data",
			"generation_expression": "NULL::information_schema.character_data",
		},
	},
	{Source: infoSchema("column_privileges"), Where: isShownNameSQL("t.table_schema", "t.table_name") + isVisibleColumn,
		ReadsColumns: withRelationNames(grantorColumn), JoinCondition: isViewOfTable},
	{Source: infoSchema("table_privileges"), Where: isShownNameSQL("t.table_schema", "t.table_name"),
		ReadsColumns: withRelationNames(grantorColumn), JoinCondition: isViewOfTable},
	{Source: infoSchema("role_table_grants"), Where: isShownNameSQL("t.table_schema", "t.table_name"),
		ReadsColumns: withRelationNames(grantorColumn), JoinCondition: isViewOfTable},
	{Source: infoSchema("role_column_grants"), Where: isShownNameSQL("t.table_schema", "t.table_name") + isVisibleColumn,
		ReadsColumns: withRelationNames(grantorColumn), JoinCondition: isViewOfTable},
	{Source: infoSchema("column_udt_usage"), Where: isShownNameSQL("t.table_schema", "t.table_name") + isVisibleColumn,
		ReadsColumns: withRelationNames(nil), JoinCondition: isViewOfTable},
	{Source: infoSchema("column_domain_usage"), Where: isShownNameSQL("t.table_schema", "t.table_name") +
		isVisibleColumn, ReadsColumns: withRelationNames(nil), JoinCondition: isViewOfTable},
	{
		Source: infoSchema("element_types"), Where: "t.object_schema::pg_catalog.text" + notOwnSchemas +
			" AND (t.object_schema, t.object_name, t.collection_type_identifier) NOT IN (" +
			"SELECT w.nspname, w.relname, w.attnum::pg_catalog.text::pg_catalog.name FROM pgconsent.waiting_columns() AS w)",
		ReadsColumns:  map[string]string{"object_schema": viewSchemaColumn, "object_name": viewNameColumn},
		JoinCondition: "(t.object_schema, t.object_name) = (r.view_schema, r.view_name)",
	},
	{
		Source: infoSchema("schemata"),
		Query: `SELECT pg_catalog.current_database()::information_schema.sql_identifier AS catalog_name,
  n.nspname::information_schema.sql_identifier AS schema_name,
  pg_catalog.pg_get_userbyid(n.nspowner)::information_schema.sql_identifier AS schema_owner,
  NULL::information_schema.sql_identifier AS default_character_set_catalog,
  NULL::information_schema.sql_identifier AS default_character_set_schema,
  NULL::information_schema.sql_identifier AS default_character_set_name,
  NULL::information_schema.character_data AS sql_path
FROM pgconsent_catalog.pg_namespace AS n`,
	},
	{
		// Like the original, this view leaves out the sequences of identity columns. It shows all other sequences that agents
		// see, although agents have rights on few of them.
		Source: infoSchema("sequences"),
		Query: `SELECT pg_catalog.current_database()::information_schema.sql_identifier AS sequence_catalog,
  n.nspname::information_schema.sql_identifier AS sequence_schema,
  c.relname::information_schema.sql_identifier AS sequence_name,
  pg_catalog.format_type(s.seqtypid, NULL)::information_schema.character_data AS data_type,
  information_schema._pg_numeric_precision(s.seqtypid, -1)::information_schema.cardinal_number AS numeric_precision,
  2::information_schema.cardinal_number AS numeric_precision_radix,
  0::information_schema.cardinal_number AS numeric_scale,
  s.seqstart::information_schema.character_data AS start_value,
  s.seqmin::information_schema.character_data AS minimum_value,
  s.seqmax::information_schema.character_data AS maximum_value,
  s.seqincrement::information_schema.character_data AS increment,
  CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END::information_schema.yes_or_no AS cycle_option` + shownSequencesFrom + `
WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend AS d WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
  AND d.objid OPERATOR(pg_catalog.=) c.oid AND d.deptype OPERATOR(pg_catalog.=) 'i'::pg_catalog."char")`,
	},
	{
		// The original leaves out views on which a role has no rights. Agents have rights on pgconsent's copies of views
		// only.
		Source: infoSchema("views"),
		Query: `SELECT pg_catalog.current_database()::information_schema.sql_identifier AS table_catalog,
  n.nspname::information_schema.sql_identifier AS table_schema,
  c.relname::information_schema.sql_identifier AS table_name,
  pgconsent_catalog.pg_get_viewdef(c.oid)::information_schema.character_data AS view_definition,
  CASE WHEN 'check_option=cascaded'::pg_catalog.text OPERATOR(pg_catalog.=) ANY (c.reloptions) THEN 'CASCADED'
    WHEN 'check_option=local'::pg_catalog.text OPERATOR(pg_catalog.=) ANY (c.reloptions) THEN 'LOCAL' ` +
			`ELSE 'NONE' END::information_schema.character_data AS check_option,
  CASE WHEN pg_catalog.pg_relation_is_updatable(c.oid, false) OPERATOR(pg_catalog.&) 20 OPERATOR(pg_catalog.=) 20 THEN 'YES' ` +
			`ELSE 'NO' END::information_schema.yes_or_no AS is_updatable,
  CASE WHEN pg_catalog.pg_relation_is_updatable(c.oid, false) OPERATOR(pg_catalog.&) 8 OPERATOR(pg_catalog.=) 8 THEN 'YES' ` +
			`ELSE 'NO' END::information_schema.yes_or_no AS is_insertable_into,
  'NO'::information_schema.yes_or_no AS is_trigger_updatable,
  'NO'::information_schema.yes_or_no AS is_trigger_deletable,
  'NO'::information_schema.yes_or_no AS is_trigger_insertable_into` + relationsOfKind("v"),
	},
	{
		Source: infoSchema("table_constraints"),
		Query: `SELECT pg_catalog.current_database()::information_schema.sql_identifier AS constraint_catalog,
  cn.nspname::information_schema.sql_identifier AS constraint_schema,
  c.conname::information_schema.sql_identifier AS constraint_name,
  pg_catalog.current_database()::information_schema.sql_identifier AS table_catalog,
  rn.nspname::information_schema.sql_identifier AS table_schema,
  r.relname::information_schema.sql_identifier AS table_name,
  CASE c.contype WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' ` +
			`ELSE 'FOREIGN KEY' END::information_schema.character_data AS constraint_type,
  CASE WHEN c.condeferrable THEN 'YES' ELSE 'NO' END::information_schema.yes_or_no AS is_deferrable,
  CASE WHEN c.condeferred THEN 'YES' ELSE 'NO' END::information_schema.yes_or_no AS initially_deferred,
  CASE pg_catalog.to_jsonb(c) OPERATOR(pg_catalog.->>) 'conenforced' WHEN 'false' THEN 'NO' ` +
			`ELSE 'YES' END::information_schema.yes_or_no AS enforced,
  NULL::information_schema.yes_or_no AS nulls_distinct
` + shownConstraintFrom + `
WHERE c.contype OPERATOR(pg_catalog.=) ANY (ARRAY['p', 'u', 'f']::pg_catalog."char"[])`,
	},
	{
		Source: infoSchema("key_column_usage"),
		Query: `SELECT pg_catalog.current_database()::information_schema.sql_identifier AS constraint_catalog,
  cn.nspname::information_schema.sql_identifier AS constraint_schema,
  c.conname::information_schema.sql_identifier AS constraint_name,
  pg_catalog.current_database()::information_schema.sql_identifier AS table_catalog,
  rn.nspname::information_schema.sql_identifier AS table_schema,
  r.relname::information_schema.sql_identifier AS table_name,
  a.attname::information_schema.sql_identifier AS column_name,
  k.n::information_schema.cardinal_number AS ordinal_position,
  CASE WHEN c.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog."char"
    THEN pg_catalog.array_position(pc.conkey, c.confkey[k.n]) END::information_schema.cardinal_number AS position_in_unique_constraint
` + shownConstraintFrom + `
CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(c.conkey)) WITH ORDINALITY AS k (attnum, n)
JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) r.oid AND a.attnum OPERATOR(pg_catalog.=) k.attnum
LEFT JOIN pg_catalog.pg_constraint AS pc ON c.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog."char"
  AND pc.conindid OPERATOR(pg_catalog.=) c.conindid AND pc.conrelid OPERATOR(pg_catalog.=) c.confrelid
  AND pc.contype OPERATOR(pg_catalog.=) ANY (ARRAY['p', 'u']::pg_catalog."char"[])
WHERE c.contype OPERATOR(pg_catalog.=) ANY (ARRAY['p', 'u', 'f']::pg_catalog."char"[])`,
	},
	{
		Source: infoSchema("constraint_column_usage"),
		Query: `SELECT pg_catalog.current_database()::information_schema.sql_identifier AS table_catalog,
  tn.nspname::information_schema.sql_identifier AS table_schema,
  t.relname::information_schema.sql_identifier AS table_name,
  a.attname::information_schema.sql_identifier AS column_name,
  pg_catalog.current_database()::information_schema.sql_identifier AS constraint_catalog,
  cn.nspname::information_schema.sql_identifier AS constraint_schema,
  c.conname::information_schema.sql_identifier AS constraint_name
` + shownConstraintFrom + `
JOIN pg_catalog.pg_class AS t ON t.oid OPERATOR(pg_catalog.=)
  CASE WHEN c.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog."char" THEN c.confrelid ELSE c.conrelid END
JOIN pg_catalog.pg_namespace AS tn ON tn.oid OPERATOR(pg_catalog.=) t.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) t.oid AND a.attnum OPERATOR(pg_catalog.=)
  ANY (CASE WHEN c.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog."char" THEN c.confkey ELSE c.conkey END)
WHERE c.contype OPERATOR(pg_catalog.=) ANY (ARRAY['p', 'u', 'f']::pg_catalog."char"[])`,
	},
	{
		Source: infoSchema("constraint_table_usage"),
		Query: `SELECT pg_catalog.current_database()::information_schema.sql_identifier AS table_catalog,
  tn.nspname::information_schema.sql_identifier AS table_schema,
  t.relname::information_schema.sql_identifier AS table_name,
  pg_catalog.current_database()::information_schema.sql_identifier AS constraint_catalog,
  cn.nspname::information_schema.sql_identifier AS constraint_schema,
  c.conname::information_schema.sql_identifier AS constraint_name
` + shownConstraintFrom + `
JOIN pg_catalog.pg_class AS t ON t.oid OPERATOR(pg_catalog.=)
  CASE WHEN c.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog."char" THEN c.confrelid ELSE c.conrelid END
JOIN pg_catalog.pg_namespace AS tn ON tn.oid OPERATOR(pg_catalog.=) t.relnamespace
WHERE c.contype OPERATOR(pg_catalog.=) ANY (ARRAY['p', 'u', 'f']::pg_catalog."char"[])`,
	},
	{
		Source: infoSchema("referential_constraints"),
		Query: `SELECT pg_catalog.current_database()::information_schema.sql_identifier AS constraint_catalog,
  cn.nspname::information_schema.sql_identifier AS constraint_schema,
  c.conname::information_schema.sql_identifier AS constraint_name,
  CASE WHEN u.oid IS NOT NULL THEN pg_catalog.current_database() END::information_schema.sql_identifier AS unique_constraint_catalog,
  un.nspname::information_schema.sql_identifier AS unique_constraint_schema,
  u.conname::information_schema.sql_identifier AS unique_constraint_name,
  CASE c.confmatchtype WHEN 'f' THEN 'FULL' WHEN 'p' THEN 'PARTIAL' ELSE 'NONE' END::information_schema.character_data AS match_option,
  ` + referentialActionSQL("c.confupdtype") + `::information_schema.character_data AS update_rule,
  ` + referentialActionSQL("c.confdeltype") + `::information_schema.character_data AS delete_rule
` + shownConstraintFrom + `
LEFT JOIN pg_catalog.pg_constraint AS u ON u.conindid OPERATOR(pg_catalog.=) c.conindid
  AND u.conrelid OPERATOR(pg_catalog.=) c.confrelid AND u.contype OPERATOR(pg_catalog.=) ANY (ARRAY['p', 'u']::pg_catalog."char"[])
LEFT JOIN pg_catalog.pg_namespace AS un ON un.oid OPERATOR(pg_catalog.=) u.connamespace
WHERE c.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog."char"`,
	},
	{
		Source: infoSchema("routines"),
		Where: "(t.routine_schema OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.name " +
			"OR (t.routine_schema, t.routine_name) IN (SELECT f.nspname, f.proname FROM pgconsent.listed_functions() AS f)) IS TRUE",
		ReplacedColumns: map[string]string{
			"routine_definition": "NULL::information_schema.character_data",
			"external_name":      "NULL::information_schema.character_data",
		},
	},
	{
		Source: infoSchema("parameters"),
		Where: "(t.specific_schema, t.specific_name) IN (SELECT r.specific_schema, r.specific_name FROM " +
			"pgconsent_catalog.is_routines AS r)",
		ReplacedColumns: map[string]string{"parameter_default": "NULL::information_schema.character_data"},
	},
	{
		Source: infoSchema("domains"), Where: "t.domain_schema::pg_catalog.text" + notOwnSchemas,
		ReplacedColumns: map[string]string{"domain_default": "NULL::information_schema.character_data"},
	},
	{Source: infoSchema("enabled_roles")},
	{Source: infoSchema("applicable_roles")},
	{Source: infoSchema("character_sets")},
	{Source: infoSchema("collations")},
	{Source: infoSchema("information_schema_catalog_name")},
}

// withRelationNames adds to the columns those that name the relation in place of the view through which agents read it.
func withRelationNames(others map[string]string) map[string]string {
	columns := map[string]string{"table_schema": viewSchemaColumn, "table_name": viewNameColumn}
	maps.Copy(columns, others)
	return columns
}

// grantorColumn shows the owner of the relation as the grantor, in place of the view's owner.
var grantorColumn = map[string]string{"grantor": "r.owner::information_schema.sql_identifier"}

const (
	viewSchemaColumn = "r.nspname::information_schema.sql_identifier"
	viewNameColumn   = "r.relname::information_schema.sql_identifier"
	isViewOfTable    = "(t.table_schema, t.table_name) = (r.view_schema, r.view_name)"

	isVisibleColumn = " AND (t.table_schema, t.table_name, t.column_name) NOT IN (" +
		"SELECT w.nspname, w.relname, w.attname FROM pgconsent.waiting_columns() AS w)"

	// shownConstraintFrom is a FROM clause that reads the shadow of pg_constraint, which has only constraints between
	// shown relations.
	shownConstraintFrom = `FROM pgconsent_catalog.pg_constraint AS c
JOIN pg_catalog.pg_namespace AS cn ON cn.oid OPERATOR(pg_catalog.=) c.connamespace
JOIN pg_catalog.pg_class AS r ON r.oid OPERATOR(pg_catalog.=) c.conrelid
JOIN pg_catalog.pg_namespace AS rn ON rn.oid OPERATOR(pg_catalog.=) r.relnamespace AND rn.nspname OPERATOR(pg_catalog.<>) 'pg_catalog'`
)

// isShownNameSQL returns the condition that agents see a relation with this name. Composite types, which agents see
// too, do not occur in the views of information_schema that use this condition.
func isShownNameSQL(schema, name string) string {
	return "(" + schema + " IN ('pg_catalog', 'information_schema') OR (" + schema + ", " + name +
		") IN (SELECT l.nspname, l.relname FROM pgconsent.listed_tables() AS l)) IS TRUE"
}

func referentialActionSQL(column string) string {
	return "CASE " + column +
		" WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT' " +
		"ELSE 'NO ACTION' END"
}
