package noninterference

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// statementWriter writes random statements about the tables of a schema.
type statementWriter struct {
	*rand.Rand
	schema       *schema
	vocabulary   *serverVocabulary
	aliasCount   int
	tables       []*table // tables that agents may read
	ctes         []fromItem
	cteTableName string // a WITH query has the name of this table: write it with its schema
	safeOnly     bool   // use only expressions that do not fail on safe values
}

// fromItem is an item in FROM whose columns an expression can use.
type fromItem struct {
	alias    string
	columns  []column
	keyCount int
}

func (w *statementWriter) newAlias() string {
	w.aliasCount++
	return pick(w.Rand, "t", "x", "Q q", "select", "notes", "é") + fmt.Sprint(w.aliasCount)
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// pickColumn picks a column of this kind. It returns false if the items have none.
func (w *statementWriter) pickColumn(items []fromItem, kind string) (string, bool) {
	var list []string
	for _, it := range items {
		for _, c := range it.columns {
			if c.expressionKind() == kind {
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

// expression returns a random expression of this kind. Many expressions fail on some values, or raise a notice.
func (w *statementWriter) expression(items []fromItem, kind string, depth int) string {
	if depth <= 0 || w.IntN(5) == 0 {
		if c, ok := w.pickColumn(items, kind); ok && w.IntN(8) > 0 {
			return c
		}
		return w.constant(kind)
	}
	e := func(k string) string { return w.expression(items, k, depth-1) }
	if w.IntN(12) == 0 {
		return w.anyPlaceExpression(items, kind, depth)
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
		if !w.safeOnly {
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
		list = append(list, w.schema.functionCalls...)
		if !w.safeOnly {
			list = append(list, "("+e("text")+")::int", "100 / "+e("int"), e("int")+" * "+e("int"),
				"("+e("int")+")::int2::int", "("+e("json")+" ->> 'n')::int", "("+e("num")+")::int", "mod(7, "+e("int")+")",
				"extract(epoch FROM "+e("time")+")::int", "width_bucket("+e("num")+", 0, 10, "+e("int")+
					")", "to_number("+e("text")+", '999')::int", "pg_catalog.int4div(1, "+e("int")+")")
		}
	case "num":
		list = []string{"(" + e("int") + ")::numeric", "round(" + e("num") + ", 1)", "abs(" + e("num") + ")",
			"greatest(" + e("num") + ", 1)", "trunc(" + e("num") + ")", e("num") + " + 1"}
		if !w.safeOnly {
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
		if !w.safeOnly {
			list = append(list, e("text")+" LIKE "+e("text"), e("text")+" ~ "+e("text"),
				e("text")+" SIMILAR TO "+e("text"), "("+e("text")+")::bool", "to_tsvector("+e("text")+") @@ to_tsquery("+e("text")+")",
				"jsonb_path_exists("+e("json")+", '$.n ? (@ > 3)')", "jsonb_path_exists("+e("json")+", ("+e("text")+
					")::jsonpath)", "("+e("int")+")::bool", e("text")+" ~~* "+e("text"), "("+e("text")+") LIKE 'abc\\'",
				"xml_is_well_formed("+e("text")+")", "(1 / "+e("int")+") > 0", e("int")+" = ANY (string_to_array("+e("text")+", ',')::int[])")
		}
		if depth > 1 && len(w.tables) > 0 {
			list = append(list, w.subqueryCondition(items, depth), w.subqueryCondition(items, depth), w.subqueryCondition(items, depth))
		}
	case "time":
		list = []string{"date_trunc('day', " + e("time") + ")", "coalesce(" + e("time") + ", '2020-01-01')", "greatest(" + e("time") + ", '2021-01-01')"}
		if !w.safeOnly {
			list = append(list, "("+e("text")+")::timestamptz", e("time")+" + make_interval(days => "+e("int")+")",
				"to_date("+e("text")+", 'YYYY-MM-DD')::timestamptz", "make_date("+e("int")+
					", 1, 1)::timestamptz", "("+e("time")+")::date::timestamptz + interval '1000 years'")
		}
	case "json":
		list = []string{"to_jsonb(" + e(pick(w.Rand, kinds...)) + ")", "jsonb_build_object('k', " + e("text") + ")",
			"(" + e("json") + " -> 'l')", "(" + e("json") + " || '{\"z\": 1}')", "jsonb_build_array(" + e("int") + ", " + e("text") + ")"}
		if !w.safeOnly {
			list = append(list, "("+e("text")+")::jsonb", "jsonb_set("+e("json")+", "+e("arr")+", '1')",
				"("+e("json")+" - 'n')", "jsonb_insert("+e("json")+", '{n}', '1')", "jsonb_object("+e("arr")+")")
		}
	case "arr":
		list = []string{"ARRAY[" + e("text") + ", " + e("text") + "]", "string_to_array(" + e("text") + ", ' ')",
			e("arr") + " || " + e("arr"), "array_remove(" + e("arr") + ", 'a')", "(" + e("arr") + ")[1:2]"}
		if !w.safeOnly {
			list = append(list, "("+e("text")+")::text[]", "regexp_split_to_array("+e("text")+", "+e("text")+")",
				"array_fill("+e("text")+", ARRAY[abs("+e("int")+") % 4])")
		}
	}
	return pick(w.Rand, list...)
}

// anyPlaceExpression returns an expression that is possible at any place: a scalar subquery, a CASE, or a call of a
// function from the catalog.
func (w *statementWriter) anyPlaceExpression(items []fromItem, kind string, depth int) string {
	switch w.IntN(4) {
	case 0:
		return "CASE WHEN " + w.expression(items, "bool", depth-1) + " THEN " + w.expression(items, kind, depth-1) + " END"
	case 1:
		if len(w.tables) > 0 {
			it, from := w.newFromItem(items, depth-1)
			inner := append([]fromItem{it}, items...)
			if w.IntN(3) > 0 {
				return fmt.Sprintf("(SELECT %s FROM %s WHERE %s ORDER BY %s LIMIT 1)", w.expression(inner, kind, depth-1),
					from, w.expression(inner, "bool", depth-1), w.totalOrder(it))
			}
			return fmt.Sprintf("(SELECT %s FROM %s WHERE %s)", w.expression(inner, kind, depth-1), from, w.expression(inner, "bool", depth-1))
		}
	case 2:
		if kind == "bool" {
			return "(" + w.functionCall(items, depth) + ") IS NOT NULL"
		}
		if kind == "text" {
			return "(" + w.functionCall(items, depth) + ")::text"
		}
	}
	return w.expression(items, kind, 0)
}

// subqueryCondition returns a condition that contains a subquery.
func (w *statementWriter) subqueryCondition(items []fromItem, depth int) string {
	it, from := w.newFromItem(items, depth-1)
	inner := append([]fromItem{it}, items...)
	k := pick(w.Rand, "text", "int", "num", "time")
	where := w.expression(inner, "bool", depth-2)
	switch w.IntN(5) {
	case 0:
		return fmt.Sprintf("%s %s (SELECT %s FROM %s WHERE %s)", w.expression(items, k, depth-2),
			pick(w.Rand, "IN", "NOT IN", "= ANY", "< ALL"), w.expression([]fromItem{it}, k, depth-2), from, where)
	case 1:
		return fmt.Sprintf("%sEXISTS (SELECT %s FROM %s WHERE %s)", pick(w.Rand, "", "NOT "), w.expression(inner, k, depth-2), from, where)
	case 2:
		return fmt.Sprintf("(SELECT count(*) FROM %s WHERE %s) > %d", from, where, w.IntN(4))
	case 3:
		return fmt.Sprintf("%s > (SELECT max(%s) FROM %s WHERE %s)", w.expression(items, k, depth-2), w.expression([]fromItem{it}, k, depth-2), from, where)
	}
	return fmt.Sprintf("(SELECT bool_or(%s) FROM %s)", where, from)
}

// functionCall returns a call of a function from the catalog, with columns of the items as arguments.
func (w *statementWriter) functionCall(items []fromItem, depth int) string {
	f := pick(w.Rand, w.vocabulary.functions...)
	if w.IntN(3) == 0 {
		f = pick(w.Rand, w.vocabulary.objectFunctions...)
	}
	var args []string
	for _, a := range f.args {
		args = append(args, w.argument(items, a, depth-1))
	}
	if len(args) == 1 && w.IntN(4) == 0 { // the notation (x).f
		return "(" + args[0] + ")." + f.name
	}
	return f.name + "(" + strings.Join(args, ", ") + ")"
}

func (w *statementWriter) argument(items []fromItem, sqlType string, depth int) string {
	switch sqlType {
	case "text", "name", "character varying", "cstring", "anyelement", "unknown", "any", "anynonarray", "character":
		if sqlType == "name" {
			return "(" + w.expression(items, "text", depth) + ")::name"
		}
		return w.expression(items, "text", depth)
	case "integer":
		return w.expression(items, "int", depth)
	case "bigint", "smallint", "double precision", "real":
		return "(" + w.expression(items, pick(w.Rand, "int", "num"), depth) + ")::" + sqlType
	case "numeric":
		return w.expression(items, "num", depth)
	case "boolean":
		return w.expression(items, "bool", depth)
	case "timestamp with time zone", "timestamp without time zone", "date":
		return "(" + w.expression(items, "time", depth) + ")::" + sqlType
	case "jsonb", "json":
		return "(" + w.expression(items, "json", depth) + ")::" + sqlType
	case "text[]", "anyarray":
		return w.expression(items, "arr", depth)
	case "record":
		if len(items) > 0 {
			return quoted(pick(w.Rand, items...).alias)
		}
		return "ROW(1, 'a')"
	case "oid":
		return w.relationConstant() + "::oid"
	case "regclass":
		return w.relationConstant()
	case "bytea":
		return "(" + w.expression(items, "text", depth) + ")::bytea"
	case "interval":
		return "interval '1 day'"
	case "tsvector":
		return "to_tsvector(" + w.expression(items, "text", depth) + ")"
	case "uuid", "xml", "tsquery", "jsonpath", "regtype", "regproc", "regconfig":
		return "(" + w.expression(items, "text", 0) + ")::" + sqlType
	}
	return "NULL::" + sqlType
}

// relationConstant returns the name of a table as a regclass constant.
func (w *statementWriter) relationConstant() string {
	name := "pg_class"
	if len(w.tables) > 0 {
		name = pick(w.Rand, w.schema.tables...).sql()
	}
	return "'" + strings.ReplaceAll(name, "'", "''") + "'::regclass"
}

func (w *statementWriter) constant(kind string) string {
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
