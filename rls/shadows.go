package rls

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// shownObjects makes the functions and views that list which relations, columns and functions agents see in the catalog
// shadows (see shadowViews). Their columns are the same under every policy, so migrate can replace them without
// dropping the shadows.
type shownObjects struct{ *planFacts }

const shownIdentity = "functions for what agents see of the catalogs"

func (f shownObjects) objects() []Object {
	const (
		why      = "What agents see of the catalogs: the relations and functions of the policy, and the system's own."
		narrowed = "Which columns agents do not see, or not as they are."
		waiting  = "Which columns tables got since pgconsent migrate: agents do not see them before the next one."
	)
	tables, functions := f.visibleNames()
	o := newObject(shownIdentity, why)
	replace := func(why, sql string) {
		o.why = why
		o.create("CREATE " + sql)
		o.ReplaceStatements = append(o.ReplaceStatements, Statement{SQL: "CREATE OR REPLACE " + sql, Why: why})
	}
	view := func(why, name, query string) { replace(why, "VIEW pgconsent."+name+" AS\n"+query) }
	var signatures []string
	// The functions are in PL/pgSQL, which caches their plans. The shadows call them with the agent's rights; as SECURITY
	// DEFINER they read views on which agents have no right.
	function := func(why, name, returns, parallel, body string) {
		signature := "pgconsent." + name + "()"
		replace(why, "FUNCTION "+signature+" RETURNS "+returns+"\nLANGUAGE plpgsql STABLE PARALLEL "+parallel+" SECURITY DEFINER "+
			"ROWS 100 SET search_path = pg_catalog, pg_temp AS $$\n#variable_conflict use_column\n"+body+"\nEND $$")
		signatures = append(signatures, signature)
	}
	queryFunction := func(why, name, returns, query string) {
		function(why, name, returns, "SAFE", "BEGIN\nRETURN QUERY "+query+";")
	}
	view("Which view agents read in place of a relation.", "reads", f.readViewsSQL())
	view(waiting, "waiting", f.waitingColumns())
	view(narrowed, "narrowed", f.narrowedColumns()+`
UNION ALL
SELECT w.attrelid, w.attnum, true FROM pgconsent.waiting AS w`)
	// The names are in views and not in a function's text, where a proxy would take them for calls of functions.
	view(why, "listed_table", "SELECT c.oid, n.nspname, c.relname FROM "+tables.fromRelations())
	view(why, "listed_function", "SELECT p.oid, n.nspname, p.proname FROM "+functions.fromItem("l", "name")+`
JOIN pg_catalog.pg_namespace AS n ON n.nspname = l.nspname
JOIN pg_catalog.pg_proc AS p ON p.proname = l.name AND p.pronamespace = n.oid`)
	queryFunction(waiting, "waiting_columns", "TABLE (attnum pg_catalog.int2, attname pg_catalog.name, "+
		"nspname pg_catalog.name, relname pg_catalog.name)", "SELECT w.attnum, w.attname, w.nspname, w.relname FROM pgconsent.waiting AS w")
	queryFunction(narrowed, "hidden_columns", "TABLE (attrelid pg_catalog.oid, attnum pg_catalog.int2)",
		"SELECT w.attrelid, w.attnum FROM pgconsent.narrowed AS w WHERE w.hidden")
	queryFunction(narrowed, "narrowed_columns", "TABLE (attrelid pg_catalog.oid, attnum pg_catalog.int2, "+
		"nspname pg_catalog.name, relname pg_catalog.name, attname pg_catalog.name)",
		`SELECT w.attrelid, w.attnum, n.nspname, c.relname, a.attname FROM pgconsent.narrowed AS w
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = w.attrelid AND a.attnum = w.attnum
JOIN pg_catalog.pg_class AS c ON c.oid = w.attrelid JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace`)
	queryFunction(narrowed, "masked_types", "TABLE (attrelid pg_catalog.oid, attnum pg_catalog.int2, atttypid pg_catalog.oid, "+
		"atttypmod pg_catalog.int4)", `SELECT a.attrelid, a.attnum, v.atttypid, v.atttypmod FROM pgconsent.reads AS r
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = r.oid
JOIN pg_catalog.pg_attribute AS v ON v.attrelid = r.view AND v.attname = a.attname`)
	queryFunction(why, "listed_tables", "TABLE (oid pg_catalog.oid, nspname pg_catalog.name, relname pg_catalog.name)",
		"SELECT l.oid, l.nspname, l.relname FROM pgconsent.listed_table AS l")
	lists := slices.Sorted(maps.Keys(keptLists))
	replace("Lists of the relations, types and constraints that agents see.", "FUNCTION pgconsent.keep_lists(version pg_catalog.text) "+
		"RETURNS pg_catalog.void\nLANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$\n"+keepListsBody(lists)+"\nEND $$")
	for _, name := range lists {
		// PostgreSQL changes no setting while it runs a plan in parallel.
		function("The list "+name+", which a session keeps.", name, "SETOF pg_catalog.oid", "UNSAFE", keptListBody(name))
	}
	queryFunction(why, "foreign_key_tables", "SETOF pg_catalog.oid", withListed+`
SELECT e.oid FROM listed AS l
CROSS JOIN LATERAL (SELECT k.conrelid, k.confrelid FROM pg_catalog.pg_constraint AS k
  WHERE k.conrelid = l.oid AND k.contype = 'f' OFFSET 0) AS k
CROSS JOIN LATERAL (VALUES (k.conrelid), (k.confrelid)) AS e (oid)
WHERE k.confrelid IN (SELECT r.oid FROM listed AS r)`)
	queryFunction(why, "listed_functions", "TABLE (oid pg_catalog.oid, nspname pg_catalog.name, proname pg_catalog.name)",
		"SELECT l.oid, l.nspname, l.proname FROM pgconsent.listed_function AS l")
	signatureList := strings.Join(signatures, ", ")
	for _, sql := range []string{
		"REVOKE ALL ON FUNCTION " + signatureList + ", pgconsent.keep_lists(pg_catalog.text) FROM PUBLIC",
		"GRANT EXECUTE ON FUNCTION " + signatureList + " TO " + f.agent,
	} {
		o.why = why
		o.create(sql)
		o.ReplaceStatements = append(o.ReplaceStatements, Statement{SQL: sql, Why: why})
	}
	o.drop("Take the shadows away.", "DROP FUNCTION IF EXISTS "+signatureList+", pgconsent.keep_lists(pg_catalog.text)")
	o.drop("Take the shadows away.", "DROP VIEW IF EXISTS pgconsent.listed_function, pgconsent.listed_table, "+
		"pgconsent.narrowed, pgconsent.waiting, pgconsent.reads")
	return []Object{o.Object}
}

// visibleNames returns the names of the relations and of the functions that agents may use.
func (f shownObjects) visibleNames() (tables, functions nameList) {
	for _, t := range f.policy.Tables() {
		tables.add(t.Relation.Name)
	}
	for _, c := range f.children {
		if c.ReadableByName {
			tables.add(c.Relation.Name)
		}
	}
	for _, v := range f.policy.Views() {
		if v.Listed {
			tables.add(v.Relation.Name)
		}
	}
	for _, fn := range f.policy.Functions() {
		functions.add(fn.Name)
	}
	return tables, functions
}

// readViewsSQL returns the query of the view reads (oid, nspname, relname, relkind, owner, view, view_schema,
// view_name). It maps each relation that agents read through a view of pgconsent to that view.
func (f shownObjects) readViewsSQL() string {
	var writtenNames nameList
	var views []string
	for _, name := range f.relationsReadByView() {
		writtenNames.add(name)
		views = append(views, predicate.RowView(name).Name)
	}
	return "SELECT c.oid, n.nspname, c.relname, c.relkind, pg_catalog.pg_get_userbyid(c.relowner) AS owner, " +
		`v.oid AS view, vn.nspname AS view_schema, v.relname AS view_name
FROM ` + writtenNames.fromRelations(listColumn{"view", "name", views}) + `
JOIN pg_catalog.pg_class AS v ON v.relname = l.view JOIN pg_catalog.pg_namespace AS vn ON vn.oid = v.relnamespace
WHERE vn.nspname = '` + predicate.RowsSchema + `'`
}

// narrowedColumns returns a query that lists the hidden and masked columns of tables. Columns that are added later
// count as hidden.
func (f shownObjects) narrowedColumns() string {
	var tables, shownTables, plainTables nameList
	var shownColumns, plainColumns []string
	for _, t := range f.restrictedTables() {
		tables.add(t.Relation.Name)
		for _, c := range t.Columns.Columns {
			shownTables.add(t.Relation.Name)
			shownColumns = append(shownColumns, c.Name)
			if c.IsPlain() {
				plainTables.add(t.Relation.Name)
				plainColumns = append(plainColumns, c.Name)
			}
		}
	}
	isNotIn := func(list nameList, columns []string) string {
		return "(n.nspname, c.relname, a.attname) NOT IN (SELECT s.nspname, s.relname, s.attname FROM " +
			list.fromItem("s", "relname", listColumn{"attname", "name", columns}) + ")"
	}
	return `SELECT a.attrelid, a.attnum, ` + isNotIn(shownTables, shownColumns) + ` AS hidden
FROM ` + tables.fromRelations() + `
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
WHERE a.attnum > 0 AND ` + isNotIn(plainTables, plainColumns)
}

// waitingColumns returns the query of the view waiting (attrelid, attnum, attname, nspname, relname). It lists the
// columns of the policy's tables and partitions that did not exist when the plan was made. The known columns of a table
// are a single constant, which PostgreSQL parses once.
func (f shownObjects) waitingColumns() string {
	var tables nameList
	var columnArrays []string
	for _, r := range f.knownTables {
		tables.add(r.Name)
		names := make([]string, len(r.Columns))
		for i, c := range r.Columns {
			names[i] = c.Name
		}
		columnArrays = append(columnArrays, predicate.WriteArray(names))
	}
	return `SELECT a.attrelid, a.attnum, a.attname, k.nspname, k.relname
FROM (SELECT c.oid, n.nspname, c.relname, l.known::pg_catalog.name[] AS known
  FROM ` + tables.fromRelations(listColumn{"known", "text", columnArrays}) + `
  OFFSET 0) AS k
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.oid
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attname <> ALL (k.known)`
}

// nameList is a list of object names with their schemas. SQL queries contain it as two array constants, which
// PostgreSQL plans fast whatever their length: the catalog shadows contain such lists a dozen times.
type nameList struct{ schemas, names []string }

// listColumn is an additional column of a nameList in a query.
type listColumn struct {
	name, sqlType string
	values        []string
}

func (n *nameList) add(name catalog.Name) {
	n.schemas, n.names = append(n.schemas, name.Schema), append(n.names, name.Name)
}

// fromItem returns the list as a FROM item with the columns alias (nspname, name, …).
func (n *nameList) fromItem(alias, name string, furtherColumns ...listColumn) string {
	var arrays, columns []string
	for _, c := range append([]listColumn{{"nspname", "name", n.schemas}, {name, "name", n.names}}, furtherColumns...) {
		arrays = append(arrays, catalog.QuoteLiteral(predicate.WriteArray(c.values))+"::pg_catalog."+c.sqlType+"[]")
		columns = append(columns, c.name)
	}
	return "unnest(" + strings.Join(arrays, ", ") + ") AS " + alias + " (" + strings.Join(columns, ", ") + ")"
}

// fromRelations returns FROM items that join the list (l) with pg_namespace (n) and pg_class (c).
func (n *nameList) fromRelations(furtherColumns ...listColumn) string {
	return n.fromItem("l", "relname", furtherColumns...) + `
JOIN pg_catalog.pg_namespace AS n ON n.nspname = l.nspname
JOIN pg_catalog.pg_class AS c ON c.relname = l.relname AND c.relnamespace = n.oid`
}

// shadowViews makes the catalog shadows: views and functions that agents use in place of PostgreSQL's catalogs. First
// come the views that only filter a catalog, then functions that read them, then views that use both. A catalog that
// this server does not have gets no shadow.
type shadowViews struct{ *planFacts }

const shadowsIdentity = "shadows of the catalogs"

func (f shadowViews) objects() []Object {
	const whyDrop = "Take the shadows away."
	o := newObject(shadowsIdentity, "")
	o.NeededObjects = listOf(shownIdentity)
	var filterStatements, queryStatements []Statement
	var filterViews, queryViews, functions []string
	for _, s := range catalog.Shadows() {
		source, ok := f.snap.Relation(s.Source)
		switch {
		case !ok:
		case s.Query != "":
			queryStatements, queryViews = append(queryStatements, f.shadowStatements(s, source)...), append(queryViews, s.View().SQL())
		default:
			filterStatements, filterViews = append(filterStatements, f.shadowStatements(s, source)...), append(filterViews, s.View().SQL())
		}
	}
	o.MakeStatements = filterStatements
	for _, s := range catalog.ShadowFunctions() {
		if s.InformationSchema || f.snap.HasCatalogFunction(s.Name) { // to_regtypemod exists since PostgreSQL 17
			o.MakeStatements = append(o.MakeStatements, f.shadowFunction(s)...)
		}
		functions = append(functions, fmt.Sprintf("%s(%s)",
			catalog.Name{Schema: catalog.ShadowSchema, Name: s.Name}.SQL(), strings.Join(s.Args, ", ")))
	}
	o.MakeStatements = append(o.MakeStatements, queryStatements...)
	if len(queryViews) > 0 {
		o.drop(whyDrop, "DROP VIEW IF EXISTS "+strings.Join(queryViews, ", "))
	}
	o.drop(whyDrop, "DROP FUNCTION IF EXISTS "+strings.Join(functions, ", "))
	if len(filterViews) > 0 {
		o.drop(whyDrop, "DROP VIEW IF EXISTS "+strings.Join(filterViews, ", "))
	}
	return []Object{o.Object}
}

func (f shadowViews) shadowStatements(s catalog.Shadow, source *catalog.Relation) []Statement {
	why := "Agents see the catalogs through these views: what tells of data is null, what is not theirs is absent."
	view := s.View().SQL()
	query := s.Query
	if query == "" {
		query = f.shadowQuery(s, source)
	}
	if s.ReadsColumns != nil && len(f.relationsReadByView()) > 0 {
		// The outer SELECT is needed, since PostgreSQL flattens a view that is a UNION ALL, even if it is a security barrier.
		query = "SELECT u.* FROM (" + query + "\nUNION ALL\n" + f.readsQuery(s, source) + ") AS u"
	}
	barrier := ""
	if s.HidesRows() || source.Kind == catalog.View && !s.IsEmpty {
		// So no expression of the agent runs on a row that the view filters out.
		barrier = " WITH (security_barrier)"
	}
	return []Statement{
		{SQL: fmt.Sprintf("CREATE VIEW %s%s AS\n%s", view, barrier, query), Why: why},
		{SQL: fmt.Sprintf("GRANT SELECT ON %s TO %s", view, f.agent), Why: why},
	}
}

// replacementOf returns the expression that replaces the value of a column of a catalog.
func (f shadowViews) replacementOf(s catalog.Shadow, column string) (expression string, isReplaced bool) {
	if expression, isReplaced = s.MaskedColumns[column]; isReplaced && len(f.restrictedTables()) > 0 {
		return expression, true
	}
	expression, isReplaced = s.ReplacedColumns[column]
	return expression, isReplaced
}

// overestimatedRow is a FROM item of one row for which the planner estimates a hundred rows. The planner has no
// statistics for the columns of a security-barrier view. Without this item it would estimate one row for a join of two
// shadows, and choose nested loops over the next shadow, which can use no index.
const overestimatedRow = "pg_catalog.json_array_elements('[0]') AS guessed"

// shadowQuery returns the query of a catalog's shadow. It has the catalog's columns in their order, each unchanged,
// replaced, or as a NULL of its type.
func (f shadowViews) shadowQuery(s catalog.Shadow, source *catalog.Relation) string {
	columns := make([]string, len(source.Columns))
	for i, c := range source.Columns {
		value := "t." + catalog.QuoteIdent(c.Name)
		replacement, isReplaced := f.replacementOf(s, c.Name)
		switch {
		case isReplaced:
			value = replacement
		case s.IsEmpty, s.KeptColumns != nil && !slices.Contains(s.KeptColumns, c.Name), !isShownType(c.Type):
			value = "NULL::" + nullType(c.Type)
		}
		columns[i] = value + " AS " + catalog.QuoteIdent(c.Name)
	}
	query := "SELECT " + strings.Join(columns, ", ")
	switch {
	case s.IsEmpty:
		return query + "\nWHERE false"
	case s.Listed != "":
		return query + "\nFROM (" + listedRowsQuery(s, source) + ") AS t"
	case s.Where == "":
		return query + "\nFROM " + s.Source.SQL() + " AS t"
	default:
		return query + "\nFROM " + s.Source.SQL() + " AS t, " + overestimatedRow + "\nWHERE " + s.Where
	}
}

// listedRowsQuery returns the query of the rows of a shadow that are found in parts. The OIDs of the first part are those
// of the list, so that a condition on the OID limits the list. OFFSET 0 makes the planner use the catalog's index for
// each of them.
func listedRowsQuery(s catalog.Shadow, source *catalog.Relation) string {
	listedColumns, columns := make([]string, len(source.Columns)), make([]string, len(source.Columns))
	for i, c := range source.Columns {
		columns[i] = "t." + catalog.QuoteIdent(c.Name)
		listedColumns[i] = columns[i]
		if c.Name == "oid" {
			listedColumns[i] = "l.oid"
		}
	}
	query := "SELECT " + strings.Join(listedColumns, ", ") + "\nFROM " + s.Listed +
		"\nCROSS JOIN LATERAL (SELECT t.* FROM " + s.Source.SQL() + " AS t WHERE t.oid OPERATOR(pg_catalog.=) l.oid AND " +
		s.ListedWhere + " OFFSET 0) AS t"
	for _, where := range s.OtherWheres {
		query += "\nUNION ALL\nSELECT " + strings.Join(columns, ", ") + "\nFROM " + s.Source.SQL() + " AS t WHERE " + where
	}
	return query
}

// readsQuery returns the query of catalog rows for relations that agents read through a view of pgconsent. The rows
// describe that view under the relation's name.
func (f shadowViews) readsQuery(s catalog.Shadow, source *catalog.Relation) string {
	columns := make([]string, len(source.Columns))
	for i, c := range source.Columns {
		value, ok := s.ReadsColumns[c.Name]
		if !ok {
			value, ok = f.replacementOf(s, c.Name)
		}
		if !ok {
			value = "t." + catalog.QuoteIdent(c.Name)
		}
		columns[i] = value + " AS " + catalog.QuoteIdent(c.Name)
	}
	return "SELECT " + strings.Join(columns, ", ") + "\nFROM " + s.Source.SQL() +
		" AS t JOIN pgconsent.reads AS r ON " + s.JoinCondition
}

// isShownType reports whether a shadow may show catalog columns of this type. Expressions, access lists and statistics
// values are hidden.
func isShownType(sqlType string) bool {
	switch sqlType {
	case "pg_node_tree", "aclitem[]", "anyarray":
		return false
	}
	return true
}

// nullType returns the type of the NULL in place of a hidden column. A view cannot have a column of the pseudo-type
// anyarray.
func nullType(sqlType string) string {
	if sqlType == "anyarray" {
		return "pg_catalog.text[]"
	}
	return sqlType
}

func (f shadowViews) shadowFunction(s catalog.ShadowFunctionSpec) []Statement {
	const why = "Stand-ins for the functions that print definitions, comments and sizes."
	name := catalog.Name{Schema: catalog.ShadowSchema, Name: s.Name}.SQL()
	query := s.Query
	if query == "" {
		query = "SELECT NULL::" + s.Returns
	}
	language, body := "sql", "BEGIN ATOMIC\n"+query+";\nEND"
	if s.KeepsPlan {
		language, body = "plpgsql", "AS $$\nBEGIN\nRETURN ("+query+");\nEND $$"
	}
	signature := fmt.Sprintf("%s(%s)", name, strings.Join(s.Args, ", "))
	volatility := "STABLE PARALLEL SAFE"
	switch {
	case s.Volatile:
		volatility = "VOLATILE PARALLEL RESTRICTED"
	case s.ReadsShadows():
		volatility = "STABLE PARALLEL UNSAFE" // as the lists that a session keeps
	}
	return []Statement{
		{
			SQL: fmt.Sprintf("CREATE FUNCTION %s RETURNS %s LANGUAGE %s %s\n%s", signature, s.Returns, language, volatility, body),
			Why: why,
		},
		{SQL: fmt.Sprintf("REVOKE ALL ON FUNCTION %s FROM PUBLIC", signature), Why: why},
		{SQL: fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s TO %s", signature, f.agent), Why: why},
	}
}
