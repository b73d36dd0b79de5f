package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// shownViews are the views that list which relations, types and functions the shadows show. They have the same columns
// under every policy, so that they can be replaced while the shadows read them.
type shownViews struct{ *facts }

const shownIdentity = "views of what agents see of the catalogs"

func (f shownViews) objects() []Object {
	const why = "What agents see of the catalogs: the relations and functions of the policy, and the system's own."
	tables, functions := f.shown()
	o := newObject(shownIdentity, why)
	view := func(why, name, query string) {
		o.why = why
		o.create("CREATE VIEW pgconsent." + name + " AS\n" + query)
		o.Replace = append(o.Replace, Statement{SQL: "CREATE OR REPLACE VIEW pgconsent." + name + " AS\n" + query, Why: why})
	}
	view("Which view agents read in place of a relation.", "reads", f.reads())
	view("Which columns tables got since pgconsent migrate: agents do not see them before the next one.", "waiting",
		f.waitingColumns())
	view("Which columns agents do not see, or not as they are.", "narrowed", f.narrowedColumns()+`
UNION ALL
SELECT w.attrelid, w.attnum, true FROM pgconsent.waiting AS w`)
	view(why, "shown_table", `SELECT c.oid, n.nspname, c.relname
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname IN ('pg_catalog', 'information_schema')
  OR (c.relkind = 'c' AND n.nspname NOT IN ('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows'))
UNION ALL
SELECT c.oid, n.nspname, c.relname
FROM `+tables.relations())
	view(why, "shown", `SELECT s.oid, s.nspname, s.relname FROM pgconsent.shown_table AS s
UNION ALL
SELECT i.indexrelid, n.nspname, x.relname
FROM `+tables.relations()+`
JOIN pg_catalog.pg_index AS i ON i.indrelid = c.oid
JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
WHERE i.indexprs IS NULL AND i.indpred IS NULL
  AND i.indexrelid NOT IN (SELECT h.indexrelid FROM pgconsent.narrowed AS w `+
		`JOIN pg_catalog.pg_index AS h ON h.indrelid = w.attrelid
    WHERE w.hidden AND w.attnum = ANY (h.indkey::pg_catalog.int2[]))
UNION ALL
SELECT q.oid, n.nspname, q.relname
FROM `+tables.relations()+`
JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = c.oid
JOIN pg_catalog.pg_class AS q ON q.oid = d.objid
WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype IN ('a', 'i') AND q.relkind = 'S'
  AND q.relnamespace = c.relnamespace
  AND (d.refobjid, d.refobjsubid) NOT IN (SELECT w.attrelid, w.attnum FROM pgconsent.narrowed AS w)`)
	view(why, "shown_constraint", shownConstraint)
	view(why, "shown_type", `SELECT t.oid
FROM pg_catalog.pg_type AS t
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_type AS e ON e.oid = t.typelem
WHERE n.nspname NOT IN ('pgconsent', 'pgconsent_signed', 'pgconsent_catalog', 'pgconsent_rows')
  AND (t.typrelid = 0 OR t.typrelid IN (SELECT s.oid FROM pgconsent.shown_table AS s))
  AND (e.oid IS NULL OR e.typrelid = 0 OR e.typrelid IN (SELECT s.oid FROM pgconsent.shown_table AS s))`)
	view(why, "shown_function", `SELECT p.oid, n.nspname, p.proname
FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = 'pg_catalog' OR (n.nspname, p.proname) IN (SELECT l.nspname, l.name FROM `+
		functions.fromItem("l", "name")+`)`)
	o.drop("Take the shadows away.",
		"DROP VIEW IF EXISTS pgconsent.shown_function, pgconsent.shown_type, pgconsent.shown_constraint, "+
			"pgconsent.shown, pgconsent.shown_table, pgconsent.narrowed, pgconsent.waiting, pgconsent.reads")
	return []Object{o.Object}
}

// shown are the relations and the functions of the policy.
func (f shownViews) shown() (tables, functions nameList) {
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

// shownConstraint are the constraints on and between shown relations that are not about hidden columns.
const shownConstraint = `SELECT k.oid
FROM pg_catalog.pg_constraint AS k
WHERE k.contype IN ('p', 'u', 'f', 'n')
  AND (k.conrelid IN (SELECT s.oid FROM pgconsent.shown_table AS s)) IS TRUE
  AND (k.confrelid = 0 OR k.confrelid IN (SELECT s.oid FROM pgconsent.shown_table AS s))
  AND k.oid NOT IN (SELECT h.oid FROM pgconsent.narrowed AS w ` +
	`JOIN pg_catalog.pg_constraint AS h ON h.conrelid = w.attrelid WHERE w.hidden AND w.attnum = ANY (h.conkey))
  AND k.oid NOT IN (SELECT h.oid FROM pgconsent.narrowed AS w ` +
	`JOIN pg_catalog.pg_constraint AS h ON h.confrelid = w.attrelid WHERE w.hidden AND w.attnum = ANY (h.confkey))`

// reads maps the relations that agents read through a view of pgconsent's: reads (oid, nspname, relname, relkind,
// owner, view, view_schema, view_name).
func (f shownViews) reads() string {
	var written nameList
	var views []string
	for _, name := range f.readByView() {
		written.add(name)
		views = append(views, predicate.RowView(name).Name)
	}
	return "SELECT c.oid, n.nspname, c.relname, c.relkind, pg_catalog.pg_get_userbyid(c.relowner) AS owner, " +
		`v.oid AS view, vn.nspname AS view_schema, v.relname AS view_name
FROM ` + written.relations(listColumn{"view", "name", views}) + `
JOIN pg_catalog.pg_class AS v ON v.relname = l.view JOIN pg_catalog.pg_namespace AS vn ON vn.oid = v.relnamespace
WHERE vn.nspname = '` + predicate.RowsSchema + `'`
}

// narrowedColumns lists the hidden columns of restricted tables, including columns that they get later, and the masked
// ones.
func (f shownViews) narrowedColumns() string {
	var tables, shown, plain nameList
	var shownColumns, plainColumns []string
	for _, t := range f.restrictedTables() {
		tables.add(t.Relation.Name)
		for _, c := range t.Columns.Columns {
			shown.add(t.Relation.Name)
			shownColumns = append(shownColumns, c.Name)
			if c.IsPlain() {
				plain.add(t.Relation.Name)
				plainColumns = append(plainColumns, c.Name)
			}
		}
	}
	not := func(list nameList, columns []string) string {
		return "(n.nspname, c.relname, a.attname) NOT IN (SELECT s.nspname, s.relname, s.attname FROM " +
			list.fromItem("s", "relname", listColumn{"attname", "name", columns}) + ")"
	}
	return `SELECT a.attrelid, a.attnum, ` + not(shown, shownColumns) + ` AS hidden
FROM ` + tables.relations() + `
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
WHERE a.attnum > 0 AND ` + not(plain, plainColumns)
}

// waitingColumns lists the columns of tables of the policy, and of their parts, that did not exist when the plan was
// made: waiting (attrelid, attnum, attname, nspname, relname). The names of a table's columns are one constant, which
// is parsed once.
func (f shownViews) waitingColumns() string {
	var tables nameList
	var known []string
	for _, r := range f.knownTables {
		tables.add(r.Name)
		names := make([]string, len(r.Columns))
		for i, c := range r.Columns {
			names[i] = c.Name
		}
		known = append(known, predicate.WriteArray(names))
	}
	return `SELECT a.attrelid, a.attnum, a.attname, k.nspname, k.relname
FROM (SELECT c.oid, n.nspname, c.relname, l.known::pg_catalog.name[] AS known
  FROM ` + tables.relations(listColumn{"known", "text", known}) + `
  OFFSET 0) AS k
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.oid
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attname <> ALL (k.known)`
}

// nameList is a list of objects by schema and name. In a query it is two arrays, each one constant whatever its length:
// the catalog shadows contain it a dozen times, and it is planned again for every statement.
type nameList struct{ schemas, names []string }

// listColumn is one more column of a nameList.
type listColumn struct {
	name, typ string
	values    []string
}

func (n *nameList) add(name catalog.Name) {
	n.schemas, n.names = append(n.schemas, name.Schema), append(n.names, name.Name)
}

// fromItem is the list as an item of FROM: alias (nspname, name, …).
func (n *nameList) fromItem(alias, name string, more ...listColumn) string {
	var arrays, columns []string
	for _, c := range append([]listColumn{{"nspname", "name", n.schemas}, {name, "name", n.names}}, more...) {
		arrays = append(arrays, catalog.QuoteLiteral(predicate.WriteArray(c.values))+"::pg_catalog."+c.typ+"[]")
		columns = append(columns, c.name)
	}
	return "unnest(" + strings.Join(arrays, ", ") + ") AS " + alias + " (" + strings.Join(columns, ", ") + ")"
}

// relations is the list as items of FROM: l, the list, n, the schema, and c, the relation.
func (n *nameList) relations(more ...listColumn) string {
	return n.fromItem("l", "relname", more...) + `
JOIN pg_catalog.pg_namespace AS n ON n.nspname = l.nspname
JOIN pg_catalog.pg_class AS c ON c.relname = l.relname AND c.relnamespace = n.oid`
}

// shadows are the views and functions that agents read in place of the catalogs: first the views that only filter, then
// the functions over them, then the views that use both. A relation that this server does not have gets none.
type shadows struct{ *facts }

const shadowsIdentity = "shadows of the catalogs"

func (f shadows) objects() []Object {
	const whyDrop = "Take the shadows away."
	o := newObject(shadowsIdentity, "")
	o.Needs = one(shownIdentity)
	var filters, queries []Statement
	var filterViews, queryViews, functions []string
	for _, s := range catalog.Shadows() {
		source, ok := f.snap.Relation(s.Source)
		switch {
		case !ok:
		case s.Query != "":
			queries, queryViews = append(queries, f.shadow(s, source)...), append(queryViews, s.View().SQL())
		default:
			filters, filterViews = append(filters, f.shadow(s, source)...), append(filterViews, s.View().SQL())
		}
	}
	o.Make = filters
	for _, s := range catalog.ShadowFunctions() {
		if s.InformationSchema || f.snap.HasCatalogFunction(s.Name) { // to_regtypemod came with 17
			o.Make = append(o.Make, f.shadowFunction(s)...)
		}
		functions = append(functions, fmt.Sprintf("%s(%s)",
			catalog.Name{Schema: catalog.ShadowSchema, Name: s.Name}.SQL(), strings.Join(s.Args, ", ")))
	}
	o.Make = append(o.Make, queries...)
	if len(queryViews) > 0 {
		o.drop(whyDrop, "DROP VIEW IF EXISTS "+strings.Join(queryViews, ", "))
	}
	o.drop(whyDrop, "DROP FUNCTION IF EXISTS "+strings.Join(functions, ", "))
	if len(filterViews) > 0 {
		o.drop(whyDrop, "DROP VIEW IF EXISTS "+strings.Join(filterViews, ", "))
	}
	return []Object{o.Object}
}

func (f shadows) shadow(s catalog.Shadow, source *catalog.Relation) []Statement {
	why := "Agents see the catalogs through these views: what tells of data is null, what is not theirs is absent."
	view := s.View().SQL()
	query := s.Query
	if query == "" {
		query = shadowQuery(s, source)
	}
	if s.Reads != nil && len(f.readByView()) > 0 {
		query += "\nUNION ALL\n" + readsQuery(s, source)
	}
	barrier := ""
	if s.Where != "" {
		// No expression of the agent runs on a row that the view leaves out.
		barrier = " WITH (security_barrier)"
	}
	return []Statement{
		{SQL: fmt.Sprintf("CREATE VIEW %s%s AS\n%s", view, barrier, query), Why: why},
		{SQL: fmt.Sprintf("GRANT SELECT ON %s TO %s", view, f.agent), Why: why},
	}
}

// overestimatedRow is one row that the planner estimates as a hundred. It has no statistics of a barrier's columns, so
// it would estimate a join of two shadows as one row, and scan the next one again and again: no index can be used from
// outside a barrier.
const overestimatedRow = "pg_catalog.json_array_elements('[0]') AS guessed"

// shadowQuery selects the original's columns in its order: each itself, its replacement, or a NULL of its type.
func shadowQuery(s catalog.Shadow, source *catalog.Relation) string {
	columns := make([]string, len(source.Columns))
	for i, c := range source.Columns {
		value := "t." + catalog.QuoteIdent(c.Name)
		set, isSet := s.Set[c.Name]
		switch {
		case isSet:
			value = set
		case s.Empty, s.Keep != nil && !slices.Contains(s.Keep, c.Name), !isShownType(c.Type):
			value = "NULL::" + nullType(c.Type)
		}
		columns[i] = value + " AS " + catalog.QuoteIdent(c.Name)
	}
	query := "SELECT " + strings.Join(columns, ", ")
	switch {
	case s.Empty:
		return query + "\nWHERE false"
	case s.Where == "":
		return query + "\nFROM " + s.Source.SQL() + " AS t"
	default:
		return query + "\nFROM " + s.Source.SQL() + " AS t, " + overestimatedRow + "\nWHERE " + s.Where
	}
}

// readsQuery shows, for relations that agents read through a view of pgconsent's, the original's row of that view.
func readsQuery(s catalog.Shadow, source *catalog.Relation) string {
	columns := make([]string, len(source.Columns))
	for i, c := range source.Columns {
		value, ok := s.Reads[c.Name]
		if !ok {
			value, ok = s.Set[c.Name]
		}
		if !ok {
			value = "t." + catalog.QuoteIdent(c.Name)
		}
		columns[i] = value + " AS " + catalog.QuoteIdent(c.Name)
	}
	return "SELECT " + strings.Join(columns, ", ") + "\nFROM " + s.Source.SQL() +
		" AS t JOIN pgconsent.reads AS r ON " + s.On
}

// isShownType is false for the types of expressions and access lists, which no shadow shows.
func isShownType(sqlType string) bool {
	switch sqlType {
	case "pg_node_tree", "aclitem[]", "anyarray":
		return false
	}
	return true
}

// nullType is the type of a column that shows nothing. A view cannot have the pseudo-type anyarray.
func nullType(sqlType string) string {
	if sqlType == "anyarray" {
		return "pg_catalog.text[]"
	}
	return sqlType
}

func (f shadows) shadowFunction(s catalog.ShadowFunctionSpec) []Statement {
	const why = "Stand-ins for the functions that print definitions, comments and sizes."
	name := catalog.Name{Schema: catalog.ShadowSchema, Name: s.Name}.SQL()
	query := s.Query
	if query == "" {
		query = "SELECT NULL::" + s.Returns
	}
	signature := fmt.Sprintf("%s(%s)", name, strings.Join(s.Args, ", "))
	runs := "STABLE PARALLEL SAFE"
	if s.Volatile {
		runs = "VOLATILE PARALLEL RESTRICTED"
	}
	return []Statement{
		{
			SQL: fmt.Sprintf("CREATE FUNCTION %s RETURNS %s LANGUAGE sql %s\nBEGIN ATOMIC\n%s;\nEND",
				signature, s.Returns, runs, query),
			Why: why,
		},
		{SQL: fmt.Sprintf("REVOKE ALL ON FUNCTION %s FROM PUBLIC", signature), Why: why},
		{SQL: fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s TO %s", signature, f.agent), Why: why},
	}
}
