package noninterference

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// writer writes statements over a schema.
type writer struct {
	*rand.Rand
	schema  *schema
	catalog *vocabulary
	aliases int
	tables  []*table // those that the policy lists
	ctes    []item
	hidden  string // the table whose name a WITH query has: it needs its schema
	tameOps bool   // only expressions that do not fail on tame values
}

// item is a FROM item in sight.
type item struct {
	alias   string
	columns []column
	keys    int
}

func (w *writer) alias() string {
	w.aliases++
	return pick(w.Rand, "t", "x", "Q q", "select", "notes", "é") + fmt.Sprint(w.aliases)
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// column picks one of a kind, or none.
func (w *writer) column(items []item, kind string) (string, bool) {
	var list []string
	for _, it := range items {
		for _, c := range it.columns {
			if c.textual() == kind {
				list = append(list, quoted(it.alias)+"."+quoted(c.name))
			}
		}
	}
	if len(list) == 0 {
		return "", false
	}
	return pick(w.Rand, list...), true
}

var kinds = []string{"text", "int", "num", "bool", "time", "json", "arr"}

// expr is an expression of a kind. Many fail on some values, or act in the sight of the agent.
func (w *writer) expr(items []item, kind string, depth int) string {
	if depth <= 0 || w.IntN(5) == 0 {
		if c, ok := w.column(items, kind); ok && w.IntN(8) > 0 {
			return c
		}
		return w.constant(kind)
	}
	e := func(k string) string { return w.expr(items, k, depth-1) }
	if w.IntN(12) == 0 {
		return w.anywhere(items, kind, depth)
	}
	var list []string
	switch kind {
	case "text":
		list = []string{
			"upper(" + e("text") + ")", e("text") + " || " + e("text"), "(" + e(pick(w.Rand, kinds...)) + ")::text", "left(" + e("text") + ", 3)",
			"substr(" + e("text") + ", abs(" + e("int") + ") % 5 + 1)", "replace(" + e("text") + ", 'a', " + e("text") + ")", "(" + e("json") + " ->> 'k')",
			"md5(" + e("text") + ")", "(" + e("arr") + ")[1]", "array_to_string(" + e("arr") + ", ',')", "coalesce(" +
				e("text") + ", '-')", "nullif(" + e("text") + ", " + e("text") + ")",
			"concat(" + e("text") + ", " + e("int") + ")", "split_part(" + e("text") +
				", 'a', 1)", "quote_nullable(" + e("text") + ")", "to_char(" + e("num") + ", '999')",
		}
		if !w.tameOps {
			list = append(list, "chr("+e("int")+")", "substring("+e("text")+", 1, "+e("int")+")",
				"regexp_replace("+e("text")+", "+e("text")+", '')", "encode(decode("+e("text")+", 'hex'), 'base64')",
				"split_part("+e("text")+", ',', "+e("int")+")", "overlay("+e("text")+" PLACING 'x' FROM "+e("int")+
					")", "convert_from(decode("+e("text")+", 'escape'), 'UTF8')")
		}
	case "int":
		list = []string{
			"length(" + e("text") + ")", "coalesce(" + e("int") + ", 0)", "cardinality(" + e("arr") + ")", "(" +
				e("bool") + ")::int", "position('a' IN " + e("text") + ")",
			"CASE WHEN " + e("bool") + " THEN " + e("int") + " ELSE 1 END", "extract(month FROM " + e("time") +
				")::int", "sign(" + e("num") + ")::int", "ascii(" + e("text") + ")", "-(" + e("int") + " % 97)",
		}
		list = append(list, w.schema.calls...)
		if !w.tameOps {
			list = append(list, "("+e("text")+")::int", "100 / "+e("int"), e("int")+" * "+e("int"),
				"("+e("int")+")::int2::int", "("+e("json")+" ->> 'n')::int", "("+e("num")+")::int", "mod(7, "+e("int")+")",
				"extract(epoch FROM "+e("time")+")::int", "width_bucket("+e("num")+", 0, 10, "+e("int")+
					")", "to_number("+e("text")+", '999')::int", "pg_catalog.int4div(1, "+e("int")+")")
		}
	case "num":
		list = []string{"(" + e("int") + ")::numeric", "round(" + e("num") + ", 1)", "abs(" + e("num") + ")",
			"greatest(" + e("num") + ", 1)", "trunc(" + e("num") + ")", e("num") + " + 1"}
		if !w.tameOps {
			list = append(list, "("+e("text")+")::numeric", "1 / "+e("num"), "sqrt("+e("num")+")", "ln("+e("num")+")",
				"power("+e("num")+", 0.5)", "("+e("num")+")::numeric(5,2)", "("+e("json")+" -> 'n')::numeric", "log(2, "+e("num")+")")
		}
	case "bool":
		list = []string{
			e("int") + pick(w.Rand, " = ", " < ", " >= ", " <> ") + e("int"), e("text") +
				pick(w.Rand, " = ", " > ", " <= ", " <> ") + e("text"), e("num") + " > " + e("num"), e("time") + " > " + e("time"),
			"(" + e("bool") + " AND " + e("bool") + ")", "(" + e("bool") + " OR " + e("bool") + ")", "NOT (" +
				e("bool") + ")", "(" + e(pick(w.Rand, kinds...)) + ") IS " + pick(w.Rand, "", "NOT ") + "NULL",
			"(" + e("bool") + ") IS " + pick(w.Rand, "TRUE", "NOT TRUE", "UNKNOWN", "NOT FALSE"), e("text") +
				" LIKE '%a%'", e("text") + " IN ('tea', " + e("text") + ")", e("int") + " BETWEEN 2 AND " + e("int"),
			e("arr") + pick(w.Rand, " @> ", " && ", " = ") + e("arr"), e("text") + " = ANY (" + e("arr") +
				")", e("json") + pick(w.Rand, " @> ", " = ", " <@ ") + e("json"), e("json") + " ? 'n'",
			"(" + e("int") + ", " + e("text") + ") < (" + e("int") + ", " + e("text") + ")", "(" + e("text") +
				") IS DISTINCT FROM (" + e("text") + ")", "(" + e("bool") + " OR true)::bool", "starts_with(" + e("text") + ", 'a')",
			"to_tsvector('simple', " + e("text") + ") @@ plainto_tsquery('simple', 'tea')",
		}
		if !w.tameOps {
			list = append(list, e("text")+" LIKE "+e("text"), e("text")+" ~ "+e("text"),
				e("text")+" SIMILAR TO "+e("text"), "("+e("text")+")::bool", "to_tsvector("+e("text")+") @@ to_tsquery("+e("text")+")",
				"jsonb_path_exists("+e("json")+", '$.n ? (@ > 3)')", "jsonb_path_exists("+e("json")+", ("+e("text")+
					")::jsonpath)", "("+e("int")+")::bool", e("text")+" ~~* "+e("text"), "("+e("text")+") LIKE 'abc\\'",
				"xml_is_well_formed("+e("text")+")", "(1 / "+e("int")+") > 0", e("int")+" = ANY (string_to_array("+e("text")+", ',')::int[])")
		}
		if depth > 1 && len(w.tables) > 0 {
			list = append(list, w.subquery(items, depth), w.subquery(items, depth), w.subquery(items, depth))
		}
	case "time":
		list = []string{"date_trunc('day', " + e("time") + ")", "coalesce(" + e("time") + ", '2020-01-01')", "greatest(" + e("time") + ", '2021-01-01')"}
		if !w.tameOps {
			list = append(list, "("+e("text")+")::timestamptz", e("time")+" + make_interval(days => "+e("int")+")",
				"to_date("+e("text")+", 'YYYY-MM-DD')::timestamptz", "make_date("+e("int")+
					", 1, 1)::timestamptz", "("+e("time")+")::date::timestamptz + interval '1000 years'")
		}
	case "json":
		list = []string{"to_jsonb(" + e(pick(w.Rand, kinds...)) + ")", "jsonb_build_object('k', " + e("text") + ")",
			"(" + e("json") + " -> 'l')", "(" + e("json") + " || '{\"z\": 1}')", "jsonb_build_array(" + e("int") + ", " + e("text") + ")"}
		if !w.tameOps {
			list = append(list, "("+e("text")+")::jsonb", "jsonb_set("+e("json")+", "+e("arr")+", '1')",
				"("+e("json")+" - 'n')", "jsonb_insert("+e("json")+", '{n}', '1')", "jsonb_object("+e("arr")+")")
		}
	case "arr":
		list = []string{"ARRAY[" + e("text") + ", " + e("text") + "]", "string_to_array(" + e("text") + ", ' ')",
			e("arr") + " || " + e("arr"), "array_remove(" + e("arr") + ", 'a')", "(" + e("arr") + ")[1:2]"}
		if !w.tameOps {
			list = append(list, "("+e("text")+")::text[]", "regexp_split_to_array("+e("text")+", "+e("text")+")",
				"array_fill("+e("text")+", ARRAY[abs("+e("int")+") % 4])")
		}
	}
	return pick(w.Rand, list...)
}

// anywhere is what may stand in the place of any expression: a scalar sub-query, a case, or a call of a function drawn
// from the catalog.
func (w *writer) anywhere(items []item, kind string, depth int) string {
	switch w.IntN(4) {
	case 0:
		return "CASE WHEN " + w.expr(items, "bool", depth-1) + " THEN " + w.expr(items, kind, depth-1) + " END"
	case 1:
		if len(w.tables) > 0 {
			it, from := w.source(items, depth-1)
			inner := append([]item{it}, items...)
			if w.IntN(3) > 0 {
				return fmt.Sprintf("(SELECT %s FROM %s WHERE %s ORDER BY %s LIMIT 1)", w.expr(inner, kind, depth-1),
					from, w.expr(inner, "bool", depth-1), w.order(it))
			}
			return fmt.Sprintf("(SELECT %s FROM %s WHERE %s)", w.expr(inner, kind, depth-1), from, w.expr(inner, "bool", depth-1))
		}
	case 2:
		if kind == "bool" {
			return "(" + w.call(items, depth) + ") IS NOT NULL"
		}
		if kind == "text" {
			return "(" + w.call(items, depth) + ")::text"
		}
	}
	return w.expr(items, kind, 0)
}

// subquery is a condition over another table.
func (w *writer) subquery(items []item, depth int) string {
	it, from := w.source(items, depth-1)
	inner := append([]item{it}, items...)
	k := pick(w.Rand, "text", "int", "num", "time")
	where := w.expr(inner, "bool", depth-2)
	switch w.IntN(5) {
	case 0:
		return fmt.Sprintf("%s %s (SELECT %s FROM %s WHERE %s)", w.expr(items, k, depth-2),
			pick(w.Rand, "IN", "NOT IN", "= ANY", "< ALL"), w.expr([]item{it}, k, depth-2), from, where)
	case 1:
		return fmt.Sprintf("%sEXISTS (SELECT %s FROM %s WHERE %s)", pick(w.Rand, "", "NOT "), w.expr(inner, k, depth-2), from, where)
	case 2:
		return fmt.Sprintf("(SELECT count(*) FROM %s WHERE %s) > %d", from, where, w.IntN(4))
	case 3:
		return fmt.Sprintf("%s > (SELECT max(%s) FROM %s WHERE %s)", w.expr(items, k, depth-2), w.expr([]item{it}, k, depth-2), from, where)
	}
	return fmt.Sprintf("(SELECT bool_or(%s) FROM %s)", where, from)
}

// call is a call of a function of the catalog on what is in sight.
func (w *writer) call(items []item, depth int) string {
	f := pick(w.Rand, w.catalog.functions...)
	if w.IntN(3) == 0 {
		f = pick(w.Rand, w.catalog.ofObjects...)
	}
	var args []string
	for _, a := range f.args {
		args = append(args, w.argument(items, a, depth-1))
	}
	if len(args) == 1 && w.IntN(4) == 0 { // a call without call syntax
		return "(" + args[0] + ")." + f.name
	}
	return f.name + "(" + strings.Join(args, ", ") + ")"
}

func (w *writer) argument(items []item, sqlType string, depth int) string {
	switch sqlType {
	case "text", "name", "character varying", "cstring", "anyelement", "unknown", "any", "anynonarray", "character":
		if sqlType == "name" {
			return "(" + w.expr(items, "text", depth) + ")::name"
		}
		return w.expr(items, "text", depth)
	case "integer":
		return w.expr(items, "int", depth)
	case "bigint", "smallint", "double precision", "real":
		return "(" + w.expr(items, pick(w.Rand, "int", "num"), depth) + ")::" + sqlType
	case "numeric":
		return w.expr(items, "num", depth)
	case "boolean":
		return w.expr(items, "bool", depth)
	case "timestamp with time zone", "timestamp without time zone", "date":
		return "(" + w.expr(items, "time", depth) + ")::" + sqlType
	case "jsonb", "json":
		return "(" + w.expr(items, "json", depth) + ")::" + sqlType
	case "text[]", "anyarray":
		return w.expr(items, "arr", depth)
	case "record":
		if len(items) > 0 {
			return quoted(pick(w.Rand, items...).alias)
		}
		return "ROW(1, 'a')"
	case "oid":
		return w.relation() + "::oid"
	case "regclass":
		return w.relation()
	case "bytea":
		return "(" + w.expr(items, "text", depth) + ")::bytea"
	case "interval":
		return "interval '1 day'"
	case "tsvector":
		return "to_tsvector(" + w.expr(items, "text", depth) + ")"
	case "uuid", "xml", "tsquery", "jsonpath", "regtype", "regproc", "regconfig":
		return "(" + w.expr(items, "text", 0) + ")::" + sqlType
	}
	return "NULL::" + sqlType
}

// relation names a table as a constant of type regclass.
func (w *writer) relation() string {
	name := "pg_class"
	if len(w.tables) > 0 {
		name = pick(w.Rand, w.schema.tables...).sql()
	}
	return "'" + strings.ReplaceAll(name, "'", "''") + "'::regclass"
}

func (w *writer) constant(kind string) string {
	switch kind {
	case "text":
		return pick(w.Rand, "'tea'", "'a'", "'7'", "NULL::text", "'HIDDEN'", "E'a\\\\'", "U&'\\0061'", "$$b$$", "''")
	case "int":
		return pick(w.Rand, "1", "0", "3", "12", "NULL::int", "-1", "2")
	case "num":
		return pick(w.Rand, "1.5", "0", "10", "NULL::numeric", "1e3", ".25")
	case "bool":
		return pick(w.Rand, "true", "false", "NULL::bool", "true")
	case "time":
		return pick(w.Rand, "timestamptz '2022-05-15 05:30:00+00'", "timestamptz '2021-01-01'", "NULL::timestamptz")
	case "json":
		return pick(w.Rand, `'{"n": 3}'::jsonb`, `'[]'::jsonb`, "NULL::jsonb", `'{"k": "a"}'::jsonb`)
	}
	return pick(w.Rand, "'{a,b}'::text[]", "ARRAY['x']", "NULL::text[]", "'{}'::text[]")
}
