package shapes

import (
	"fmt"
	"strings"
)

// operandTexts are expressions about x, a row of the table task, by their types.
var operandTexts = map[string][]string{
	"int": {"x.place", "-x.place", "(x.place)", "x.place::int", "CAST(x.place AS bigint)", "coalesce(x.place, 0)",
		"(SELECT max(y.place) FROM task y)", "CASE WHEN x.done THEN 1 ELSE 2 END", "(ARRAY[x.place, 2])[1]",
		"length(x.title)", "3", "extract(day FROM x.due)::int", "(x.labels ->> 'p')::int", "+x.place",
		"pg_catalog.abs(x.place)", "(SELECT count(*)::int FROM project p WHERE p.id = x.project)", "x.\"place\"", "lower(x.hours)"},
	"text": {"x.title", "x.title::text", "upper(x.title)", "'a'", "E'a\\'b'", "U&'\\0061'", "$q$it's$q$",
		"x.title COLLATE \"C\"", "(x.title)", "x.title || 'b'", "substring(x.title FROM 2 FOR 3)", "trim(x.title)", "x.labels ->> 's'",
		"(SELECT p.title FROM project p WHERE p.id = x.project)", "CASE x.done WHEN true THEN 'y' ELSE x.title END",
		"nullif(x.title, 'z')", "x.place::text", "'' || x.id", "format('%s', x.id)"},
	"bool": {"x.done", "NOT x.done", "(x.done OR true)::bool", "x.place > 3", "x.title IS NULL", "x.title LIKE 'T%'",
		"x.place IN (1, 2, 3)", "x.place BETWEEN 2 AND 9", "EXISTS (SELECT 1 FROM project p WHERE p.id = x.project)",
		"x.place = ANY (ARRAY[1, 2])", "x.done IS NOT TRUE", "x.place IS DISTINCT FROM 3", "true",
		"(x.place, 1) < (5, 2)", "x.labels ? 'p'", "x.hours @> 5", "x.due > timestamp '2024-02-01'",
		"x.place NOT IN (SELECT y.place FROM task y WHERE y.place > 20)"},
}

// binaryOperators are expressions with placeholders for up to two operands.
var binaryOperators = []struct{ kind, left, right, text string }{
	{"int", "int", "int", "{a} + {b}"}, {"int", "int", "int", "{a} - {b}"}, {"int", "int", "int", "{a} * {b}"}, {
		"int", "int", "int", "{a} / nullif({b}, 0)"}, {"int", "int", "int", "{a} % (abs({b}) + 1)"}, {"int", "int", "int", "- {a} - {b}"},
	{"int", "int", "int", "({a}) & ({b})"}, {"int", "int", "int", "{a} | {b}"}, {"int", "int", "int", "~ {a}"}, {
		"int", "int", "int", "@ {a}"}, {"int", "int", "int", "{a} << 1"}, {"int", "int", "int", "greatest({a}, {b})"},
	{"int", "int", "int", "{a} OPERATOR(pg_catalog.+) {b}"},
	{"int", "text", "text", "position({a} IN {b})"}, {"int", "text", "text", "strpos({a}, {b})"}, {
		"int", "bool", "int", "CASE WHEN {a} THEN {b} END"},
	{"int", "int", "int", "CASE {a} WHEN {b} THEN 1 ELSE 0 END"}, {"int", "int", "int", "(ARRAY[{a}, {b}])[1]"}, {
		"int", "int", "int", "nullif({a}, {b})"},
	{"text", "text", "text", "{a} || {b}"}, {"text", "text", "int", "{a} || {b}"}, {
		"text", "text", "text", "concat({a}, {b})"}, {"text", "text", "text", "coalesce({a}, {b})"},
	{"text", "text", "int", "left({a}, 2)"}, {"text", "text", "text", "overlay({a} PLACING {b} FROM 1)"},
	{"text", "text", "text", "{a} COLLATE \"C\""}, {"text", "int", "int", "({a})::text"}, {
		"text", "int", "int", "CAST({a} AS varchar(3))"}, {"text", "text", "text", "replace({a}, {b}, 'x')"},
	{"text", "text", "text", "(ROW({a}, {b}))::text"}, {"text", "text", "text", "({a}, {b})::text"},
	{"bool", "int", "int", "{a} = {b}"}, {"bool", "int", "int", "{a} <> {b}"}, {"bool", "int", "int", "{a} != {b}"}, {
		"bool", "int", "int", "{a} < {b}"}, {"bool", "int", "int", "{a} >= {b}"},
	{"bool", "text", "text", "{a} > {b}"}, {"bool", "bool", "bool", "{a} AND {b}"}, {"bool", "bool", "bool", "{a} OR {b}"},
	{"bool", "bool", "bool", "NOT {a}"}, {"bool", "bool", "bool", "({a}) = ({b})"}, {
		"bool", "bool", "bool", "({a}) IS TRUE"}, {"bool", "bool", "bool", "({a}) IS NOT FALSE"},
	{"bool", "bool", "bool", "({a}) IS UNKNOWN"}, {"bool", "text", "text", "({a}) IS NULL"}, {"bool", "text", "text", "{a} NOTNULL"},
	{"bool", "text", "text", "{a} LIKE {b}"}, {"bool", "text", "text", "{a} NOT ILIKE {b} ESCAPE '!'"}, {
		"bool", "text", "text", "{a} SIMILAR TO {b}"}, {"bool", "text", "text", "{a} ~ '^T'"},
	{"bool", "text", "text", "{a} !~* {b}"}, {"bool", "int", "int", "{a} BETWEEN {b} AND 9"}, {
		"bool", "int", "int", "{a} NOT BETWEEN SYMMETRIC 9 AND {b}"},
	{"bool", "int", "int", "{a} IN ({b}, 4)"}, {"bool", "int", "int", "{a} NOT IN (1, {b})"}, {
		"bool", "int", "int", "{a} IS DISTINCT FROM {b}"}, {"bool", "text", "text", "{a} IS NOT DISTINCT FROM {b}"},
	{"bool", "int", "int", "{a} = ANY (ARRAY[{b}, 7])"}, {"bool", "int", "int", "{a} <> ALL ('{1,2}'::int[])"},
	{"bool", "int", "int", "({a}, {b}) = (1, 2)"}, {"bool", "int", "int", "ROW({a}, {b}) < ROW(3, 4)"}, {
		"bool", "bool", "bool", "({a} OR {b} OR true)::bool"},
	{"bool", "bool", "bool", "({a} AND false) IS NOT NULL"}, {"bool", "int", "int", "{a} IN (SELECT y.place FROM task y WHERE y.id > {b})"},
	{"bool", "int", "int", "{a} >= ALL (SELECT y.place FROM task y)"}, {
		"bool", "text", "text", "EXISTS (SELECT FROM person p WHERE p.name < {a})"},
	{"bool", "int", "int", "(SELECT {a} = {b})"}, {"bool", "text", "text", "starts_with({a}, {b})"}, {
		"bool", "text", "text", "{a} ^@ {b}"}, {"bool", "int", "int", "NOT {a} = {b} AND x.id > 0"},
	{"bool", "int", "int", "({a}) = {b} IS NOT TRUE"}, {"bool", "text", "text", "x.labels @> to_jsonb({a})"}, {
		"bool", "int", "int", "int4range(1, 9) @> ({a})::int"},
	{"bool", "text", "text", "to_tsvector('simple', {a}) @@ plainto_tsquery('simple', {b})"}, {
		"bool", "int", "int", "(x.due, x.due) OVERLAPS (timestamp '2024-01-01', x.due)"},
}

// expressionPlaces are statements with a placeholder for an expression: {e} of any type, {t} for text, {c} for a
// condition.
var expressionPlaces = []string{
	"SELECT x.id, {e} FROM task x",
	"SELECT x.id, {e} AS \"select\" FROM public.task AS x",
	"SELECT x.id FROM task x WHERE {c}",
	"SELECT x.id FROM task x WHERE ({c}) AND x.id > 3 OR x.done",
	"SELECT x.id FROM task x WHERE NOT ({c})",
	"SELECT x.id FROM task x ORDER BY {e}, x.id",
	"SELECT x.id FROM task x ORDER BY {e} DESC NULLS LAST, x.id LIMIT 5",
	"SELECT {e} AS g, count(*) FROM task x GROUP BY {e}",
	"SELECT {e}, count(*) FROM task x GROUP BY 1",
	"SELECT x.project, count(*) FROM task x GROUP BY x.project HAVING bool_or({c})",
	"SELECT x.id, p.id FROM task x JOIN project p ON p.id = x.project AND {c}",
	"SELECT x.id, p.id FROM task x LEFT JOIN project p ON {c}",
	"SELECT x.id FROM (SELECT * FROM task) x WHERE {c}",
	"SELECT count({e}), min({t}), max({t}) FROM task x",
	"SELECT count(*) FILTER (WHERE {c}) FROM task x",
	"SELECT string_agg({t}, ',' ORDER BY {t}, x.id) FROM task x",
	"SELECT x.id, row_number() OVER (PARTITION BY {e} ORDER BY x.id) FROM task x",
	"SELECT x.id, first_value({e}) OVER (ORDER BY x.id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM task x",
	"SELECT DISTINCT {e} FROM task x",
	"SELECT DISTINCT ON ({e}) {e}, x.id FROM task x ORDER BY {e}, x.id",
	"SELECT x.id, CASE WHEN {c} THEN 'a' ELSE 'b' END FROM task x",
	"SELECT x.id, coalesce({t}, 'none'), ARRAY[{e}], ROW({e}, 1) FROM task x",
	"SELECT x.id, ({e})::text, CAST({e} AS text) FROM task x",
	"SELECT x.id, v.v FROM task x, LATERAL (SELECT {e} AS v) v",
	"SELECT x.id, v.v FROM task x CROSS JOIN LATERAL (VALUES ({e})) AS v (v)",
	"SELECT (SELECT {t} FROM task x ORDER BY x.id LIMIT 1)",
	"SELECT n.id FROM note n WHERE n.task IN (SELECT x.id FROM task x WHERE {c})",
	"WITH \"with\" AS (SELECT x.id, {e} AS v FROM task x) SELECT count(*), count(v) FROM \"with\"",
	"SELECT {t} FROM task x UNION SELECT title FROM project",
	"SELECT {t} FROM task x EXCEPT ALL SELECT {t} FROM task x WHERE x.done",
	"SELECT x.id, f FROM task x, unnest(ARRAY[{t}]) WITH ORDINALITY AS f (f, o)",
	"COPY (SELECT x.id, {e} FROM task x ORDER BY x.id) TO STDOUT",
	"SELECT x.id FROM task x WHERE EXISTS (SELECT 1 FROM project p WHERE p.id = x.project AND {c})",
	"SELECT id FROM task AS \"x\" WHERE {c} FETCH FIRST 500 ROWS ONLY",
	"SELECT grouping({e}), count(*) FROM task x GROUP BY ROLLUP ({e})",
}

// rewritings change how an expression is written, but not what it means.
var rewritings = []func(string) string{
	func(s string) string { return s },
	func(s string) string { return "(" + s + ")" },
	func(s string) string { return "((" + s + "))" },
	func(s string) string { return "/* a */ " + s + " -- b\n" },
	func(s string) string { return strings.ReplaceAll(s, " ", "\n\t ") },
	func(s string) string { return strings.ReplaceAll(s, " ", " /* 'x' /* y */ \"z */ ") },
	func(s string) string { return strings.ReplaceAll(s, "x.", "x /**/ . ") },
	func(s string) string { return strings.ReplaceAll(s, "x.", "\"x\".") },
}

// aliasNames are aliases that replace x.
var aliasNames = []string{"x", "\"Ünï x\"", "\"select\"", "value", "\"a\"\"b\"", "U&\"\\0078y\"", "_x$1", "X"}

// operatorStatements makes n statements for each operator at each place. It uses one operand and one rewriting after
// the other.
func operatorStatements(n int) []string {
	var out []string
	nextIndex := 0
	next := func(kind string) string {
		list := operandTexts[kind]
		nextIndex += 7
		return list[nextIndex%len(list)]
	}
	for _, place := range expressionPlaces {
		for o, operator := range binaryOperators {
			for i := range n {
				nextIndex += o + 3*i
				e := strings.NewReplacer("{a}", next(operator.left), "{b}", next(operator.right)).Replace(operator.text)
				e = rewritings[(o+nextIndex+i)%len(rewritings)](e)
				text, condition := "("+e+")::text", e
				if operator.kind != "bool" {
					condition = "(" + e + ") IS NOT NULL"
				}
				sql := strings.NewReplacer("{e}", e, "{t}", text, "{c}", condition).Replace(place)
				if alias := aliasNames[(o+i)%len(aliasNames)]; alias != "x" && !strings.Contains(sql, "AS \"x\"") {
					sql = withAlias(sql, alias)
				}
				out = append(out, sql)
			}
		}
	}
	return out
}

// withAlias replaces the alias x in a statement by another alias.
func withAlias(sql, alias string) string {
	sql = strings.NewReplacer("\"x\".", alias+".", "x /**/ .", alias+" /**/ .", " x.", " "+alias+".", "(x.",
		"("+alias+".", "\tx.", "\t"+alias+".", "-x.", "-"+alias+".", "+x.", "+"+alias+".", " x /", " "+alias+" /").Replace(sql)
	for _, item := range []string{"task x", "task AS x", "task) x", "task /**/ x"} {
		sql = strings.ReplaceAll(sql, item+" ", strings.TrimSuffix(item, "x")+alias+" ")
		sql = strings.ReplaceAll(sql, item+",", strings.TrimSuffix(item, "x")+alias+",")
		sql = strings.ReplaceAll(sql, item+")", strings.TrimSuffix(item, "x")+alias+")")
		if strings.HasSuffix(sql, item) {
			sql = strings.TrimSuffix(sql, "x") + alias
		}
	}
	return sql
}

// literalSpellings returns constants in all spellings of SQL.
func literalSpellings() []string {
	var out []string
	for _, l := range []string{"1", "1.5", ".5", "1e3", "1E-3", "'a'", "E'\\x41'", "E'a\\nb'", "U&'d\\0061t'",
		"U&'d!0061t' UESCAPE '!'", "$$a$$", "$t$a $$ b$t$", "B'101'", "X'1F'", "N'a'", "'a'\n'b'", "true", "NULL", "DATE '2024-01-01'",
		"interval '1' day", "interval(3) '1.5 s'", "timestamp with time zone '2024-01-01 00:00+00'", "'{1,2}'::int[]",
		"'(1,2)'::int4range", "'{\"a\": 1}'::jsonb", "int4 '3'", "current_date > '2000-01-01'", "ARRAY[]::text[]",
		"ROW()", "ROW(1)::text", "-1", "- -1", "+1", "1::int::text", "99999999999"} {
		for _, f := range []string{"SELECT x.id, %s FROM task x", "SELECT x.id FROM task x WHERE (%s) IS NOT NULL",
			"SELECT count(*) FROM task WHERE title <> (%s)::text", "VALUES (%s, (SELECT count(*) FROM task))"} {
			out = append(out, fmt.Sprintf(f, l))
		}
	}
	return out
}
