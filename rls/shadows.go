package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/predicate"
)

// shown makes the views that say which relations, types and functions the shadows show.
func (p *Plan) shown() []Statement {
	const why = "What agents see of the catalogs: the relations and functions of the policy, and the system's own."
	var tables, functions []string
	for _, t := range p.policy.Tables() {
		tables = append(tables, pair(t.Relation.Name))
	}
	for _, c := range p.children {
		if c.Direct {
			tables = append(tables, pair(c.Relation.Name))
		}
	}
	for _, v := range p.policy.Views() {
		if v.Listed {
			tables = append(tables, pair(v.Relation.Name))
		}
	}
	for _, f := range p.policy.Functions() {
		functions = append(functions, pair(f.Name))
	}
	return []Statement{
		{SQL: "CREATE VIEW pgconsent.reads AS\n" + p.reads(), Why: "Which view agents read in place of a relation."},
		{SQL: "CREATE VIEW pgconsent.narrowed AS\n" + p.narrowedColumns(), Why: "Which columns agents do not see, or not as they are."},
		{SQL: `CREATE VIEW pgconsent.shown AS
SELECT c.oid, n.nspname, c.relname
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname IN ('pg_catalog', 'information_schema')
  OR (c.relkind = 'c' AND n.nspname NOT IN ('pgconsent', 'pgconsent_gate', 'pgconsent_catalog', 'pgconsent_rows'))
  OR ` + in("n.nspname", "c.relname", tables) + `
UNION ALL
SELECT i.indexrelid, n.nspname, x.relname
FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.indrelid
JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE i.indexprs IS NULL AND i.indpred IS NULL AND ` + in("n.nspname", "c.relname", tables) + `
  AND NOT EXISTS (SELECT 1 FROM pgconsent.narrowed AS w WHERE w.attrelid = i.indrelid AND w.hidden AND w.attnum = ANY (i.indkey::pg_catalog.int2[]))`, Why: why},

		{SQL: `CREATE VIEW pgconsent.shown_type AS
SELECT t.oid
FROM pg_catalog.pg_type AS t
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_type AS e ON e.oid = t.typelem
WHERE n.nspname NOT IN ('pgconsent', 'pgconsent_gate', 'pgconsent_catalog', 'pgconsent_rows')
  AND (t.typrelid = 0 OR t.typrelid IN (SELECT s.oid FROM pgconsent.shown AS s))
  AND (e.oid IS NULL OR e.typrelid = 0 OR e.typrelid IN (SELECT s.oid FROM pgconsent.shown AS s))`, Why: why},

		{SQL: `CREATE VIEW pgconsent.shown_function AS
SELECT p.oid, n.nspname, p.proname
FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = 'pg_catalog' OR ` + in("n.nspname", "p.proname", functions), Why: why},
	}
}

// reads maps the relations that agents read through a view of ours: reads (oid, nspname, relname, relkind, owner, view, view_schema, view_name).
func (p *Plan) reads() string {
	var pairs []string
	for _, name := range p.readThrough() {
		pairs = append(pairs, triple(name, predicate.RowView(name).Name))
	}
	where := "false"
	if len(pairs) > 0 {
		where = "(n.nspname, c.relname, v.relname) IN (" + strings.Join(pairs, ", ") + ")"
	}
	return `SELECT c.oid, n.nspname, c.relname, c.relkind, pg_catalog.pg_get_userbyid(c.relowner) AS owner, v.oid AS view, vn.nspname AS view_schema, v.relname AS view_name
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN pg_catalog.pg_class AS v JOIN pg_catalog.pg_namespace AS vn ON vn.oid = v.relnamespace
WHERE vn.nspname = '` + predicate.RowsSchema + `' AND ` + where
}

// narrowedColumns lists what is hidden of narrowed tables, columns that they get later included, and what is masked.
func (p *Plan) narrowedColumns() string {
	var tables, shown, plain []string
	for _, t := range p.narrowed() {
		tables = append(tables, pair(t.Relation.Name))
		for _, c := range t.Columns.Columns {
			shown = append(shown, triple(t.Relation.Name, c.Name))
			if c.Plain() {
				plain = append(plain, triple(t.Relation.Name, c.Name))
			}
		}
	}
	const column = "(n.nspname, c.relname, a.attname)"
	not := func(triples []string) string {
		if len(triples) == 0 {
			return "true"
		}
		return column + " NOT IN (" + strings.Join(triples, ", ") + ")"
	}
	return `SELECT a.attrelid, a.attnum, ` + not(shown) + ` AS hidden
FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE a.attnum > 0 AND ` + in("n.nspname", "c.relname", tables) + ` AND ` + not(plain)
}

func triple(n catalog.Name, third string) string {
	return "(" + catalog.QuoteLiteral(n.Schema) + ", " + catalog.QuoteLiteral(n.Name) + ", " + catalog.QuoteLiteral(third) + ")"
}

func pair(n catalog.Name) string {
	return "(" + catalog.QuoteLiteral(n.Schema) + ", " + catalog.QuoteLiteral(n.Name) + ")"
}

func in(schema, name string, pairs []string) string {
	if len(pairs) == 0 {
		return "false"
	}
	return "(" + schema + ", " + name + ") IN (" + strings.Join(pairs, ", ") + ")"
}

func (p *Plan) dropShown() []Statement {
	return []Statement{{SQL: "DROP VIEW IF EXISTS pgconsent.shown_function, pgconsent.shown_type, pgconsent.shown, pgconsent.narrowed, pgconsent.reads", Why: "Take the shadows away."}}
}

// shadows makes the views and functions that stand for the catalogs: first the views that only filter, then the
// functions over them, then the views that use both. A relation that this server does not have gets none.
func (p *Plan) shadows() []Statement {
	var filters, queries []Statement
	for _, s := range catalog.Shadows() {
		source, ok := p.snap.Relation(s.Source)
		if !ok {
			continue
		}
		statements := p.shadow(s, source)
		if s.Query != "" {
			queries = append(queries, statements...)
		} else {
			filters = append(filters, statements...)
		}
	}
	var functions []Statement
	for _, f := range catalog.ShadowFunctions() {
		functions = append(functions, p.standIn(f)...)
	}
	return slices.Concat(filters, functions, queries)
}

func (p *Plan) shadow(s catalog.Shadow, source *catalog.Relation) []Statement {
	why := "Agents see the catalogs through these views: what tells of data is null, what is not theirs is absent."
	view := s.View().SQL()
	query := s.Query
	if query == "" {
		query = shadowQuery(s, source)
	}
	if s.Reads != nil && len(p.readThrough()) > 0 {
		query += "\nUNION ALL\n" + readsQuery(s, source)
	}
	barrier := ""
	if s.Where != "" {
		// No expression of the agent's runs on a row that the view leaves out.
		barrier = " WITH (security_barrier)"
	}
	return []Statement{
		{SQL: fmt.Sprintf("CREATE VIEW %s%s AS\n%s", view, barrier, query), Why: why},
		{SQL: fmt.Sprintf("GRANT SELECT ON %s TO %s", view, p.agent), Why: why},
	}
}

// shadowQuery selects the original's columns in its order, each itself, its stand-in, or a null of its type.
func shadowQuery(s catalog.Shadow, source *catalog.Relation) string {
	columns := make([]string, len(source.Columns))
	for i, c := range source.Columns {
		value := "t." + catalog.QuoteIdent(c.Name)
		set, isSet := s.Set[c.Name]
		switch {
		case isSet:
			value = set
		case s.Empty, s.Keep != nil && !slices.Contains(s.Keep, c.Name), !tells(c.Type):
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
		return query + "\nFROM " + s.Source.SQL() + " AS t\nWHERE " + s.Where
	}
}

// readsQuery tells of relations that agents read through a view of ours what the original tells of the view.
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
	return "SELECT " + strings.Join(columns, ", ") + "\nFROM " + s.Source.SQL() + " AS t JOIN pgconsent.reads AS r ON " + s.On
}

// tells is false for the types of expressions and access lists, which no shadow shows.
func tells(sqlType string) bool {
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

func (p *Plan) standIn(f catalog.ShadowFunctionSpec) []Statement {
	const why = "Stand-ins for the functions that print definitions, comments and sizes."
	name := catalog.Name{Schema: catalog.ShadowSchema, Name: f.Name}.SQL()
	query := f.Query
	if query == "" {
		query = "SELECT NULL::" + f.Returns
	}
	signature := fmt.Sprintf("%s(%s)", name, strings.Join(f.Args, ", "))
	return []Statement{
		{
			SQL: fmt.Sprintf("CREATE FUNCTION %s RETURNS %s LANGUAGE sql STABLE PARALLEL SAFE\nBEGIN ATOMIC\n%s;\nEND", signature, f.Returns, query),
			Why: why,
		},
		{SQL: fmt.Sprintf("REVOKE ALL ON FUNCTION %s FROM PUBLIC", signature), Why: why},
		{SQL: fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s TO %s", signature, p.agent), Why: why},
	}
}

func (p *Plan) dropShadows() []Statement {
	const why = "Take the shadows away."
	var views, queries, functions []string
	for _, s := range catalog.Shadows() {
		if _, ok := p.snap.Relation(s.Source); !ok {
			continue
		}
		if s.Query != "" {
			queries = append(queries, s.View().SQL())
		} else {
			views = append(views, s.View().SQL())
		}
	}
	for _, f := range catalog.ShadowFunctions() {
		functions = append(functions, fmt.Sprintf("%s(%s)", catalog.Name{Schema: catalog.ShadowSchema, Name: f.Name}.SQL(), strings.Join(f.Args, ", ")))
	}
	var out []Statement
	if len(queries) > 0 {
		out = append(out, Statement{SQL: "DROP VIEW IF EXISTS " + strings.Join(queries, ", "), Why: why})
	}
	out = append(out, Statement{SQL: "DROP FUNCTION IF EXISTS " + strings.Join(functions, ", "), Why: why})
	if len(views) > 0 {
		out = append(out, Statement{SQL: "DROP VIEW IF EXISTS " + strings.Join(views, ", "), Why: why})
	}
	return out
}
