package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// expressionSnapshot is a catalog with the table that the expressions are compiled against.
func expressionSnapshot() *catalog.Snapshot {
	column := func(name, sqlType string) catalog.Column {
		c := catalog.Column{Name: name, Type: sqlType}
		c.TypeOID = map[string]uint32{"public.mood": 20001, "inet": 869, "public.place": 20002, "public.placed": 20003, "public.spell": 20004}[sqlType]
		return c
	}
	name := catalog.Name{Schema: "public", Name: "t"}
	return catalog.NewSnapshot(catalog.Spec{
		Database: "d", ServerVersion: 150000, SearchPath: []string{"public"},
		Relations: []*catalog.Relation{{Name: name, Kind: catalog.Table, PrimaryKey: []string{"id"}, Columns: []catalog.Column{
			column("id", "uuid"), column("a", "text"), column("b", "character varying(9)"), column("n",
				"integer"), column("amount", "numeric(10,2)"), column("f", "double precision"),
			column("flag", "boolean"), column("mood", "public.mood"), column("at",
				"timestamp(3) with time zone"), column("naive", "timestamp without time zone"), column("day", "date"),
			column("tags", "text[]"), column("numbers", "integer[]"), column("ids", "uuid[]"), column("doc",
				"jsonb"), column("raw", "json"), column("Order", "text"), column("padded", "character(4)"),
			column("ip", "inet"), column("place", "public.place"), column("placed", "public.placed"), column("spell", "public.spell"),
		}}},
		Types: []*catalog.Type{{OID: 20001, Name: catalog.Name{Schema: "public", Name: "mood"}, Kind: 'e'},
			{OID: 869, Name: catalog.Name{Schema: "pg_catalog", Name: "inet"}, Kind: 'b'},
			{OID: 20002, Name: catalog.Name{Schema: "public", Name: "place"}, Kind: 'c'}, {
				OID: 20003, Name: catalog.Name{Schema: "public", Name: "placed"}, Kind: 'd', BaseName: "public.place", Base: 20002},
			{OID: 20004, Name: catalog.Name{Schema: "public", Name: "spell"}, Kind: 'd', BaseName: "tstzrange",
				Base: 3910}, {OID: 3910, Name: catalog.Name{Schema: "pg_catalog", Name: "tstzrange"}, Kind: 'r'}},
	})
}

const expressionHead = `version: 1
attributes:
  user: { type: uuid, source: credential }
  name: { type: text, source: credential }
  contexts: { type: "text[]", source: credential }
  level: { type: integer, source: credential }
tables:
  t:
    rows:
      - sql: `

func compileExpression(yaml string) (*policy.Policy, error) {
	doc, err := policy.Parse("p.yaml", []byte(expressionHead+yaml))
	if err != nil {
		return nil, err
	}
	return policy.Compile(doc, expressionSnapshot())
}

func quoteYAML(expression string) string {
	return "'" + strings.ReplaceAll(expression, "'", "''") + "'"
}

// Each construct is compiled to SQL with every name qualified, and every constant with its type.
func TestExpressions(t *testing.T) {
	attr := func(name, sqlType string) string {
		return "(SELECT pgconsent_signed.attr('" + name + "'))::pg_catalog." + sqlType
	}
	now := "pg_catalog.timezone('UTC'::pg_catalog.text, pg_catalog.statement_timestamp())"
	for expression, want := range map[string]string{
		"flag":                      "t.flag",
		"NOT flag":                  "(NOT t.flag)",
		"a = 'x'":                   "(t.a OPERATOR(pg_catalog.=) 'x'::pg_catalog.text)",
		"t.a != 'it''s'":            "(t.a OPERATOR(pg_catalog.<>) 'it''s'::pg_catalog.text)",
		`"Order" = 'x' -- trailing`: `(t."Order" OPERATOR(pg_catalog.=) 'x'::pg_catalog.text)`,
		"a = b":                     `((t.a COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) t.b)`,
		"n > -5":                    "(t.n OPERATOR(pg_catalog.>) '-5'::pg_catalog.int8)",
		"amount >= 1.50":            "(t.amount OPERATOR(pg_catalog.>=) '1.50'::pg_catalog.numeric)",
		"f < 2":                     "(t.f OPERATOR(pg_catalog.<) '2'::pg_catalog.float8)",
		"1 < f":                     "('1'::pg_catalog.float8 OPERATOR(pg_catalog.<) t.f)",
		"mood = 'bad'":              "(t.mood::pg_catalog.text OPERATOR(pg_catalog.=) 'bad'::pg_catalog.text)",
		"id = attribute('user')":    "(t.id OPERATOR(pg_catalog.=) " + attr("user", "uuid") + ")",
		"n <= attribute('level')":   "(t.n OPERATOR(pg_catalog.<=) " + attr("level", "int4") + ")",
		"a = ANY (attribute('contexts'))": "(t.a OPERATOR(pg_catalog.=) ANY ((SELECT " +
			"pgconsent_signed.attr('contexts')::pg_catalog.text[])::pg_catalog.text[]))",
		"tags && attribute('contexts')": "(t.tags OPERATOR(pg_catalog.&&) (SELECT pgconsent_signed.attr('contexts')::pg_catalog.text[]))",
		"tags @> '{a,b}'":               "(t.tags OPERATOR(pg_catalog.@>) '{a,b}'::pg_catalog.text[])",
		"'x' <> ALL (tags)":             "(NOT ('x'::pg_catalog.text OPERATOR(pg_catalog.=) ANY (t.tags)))",
		"n = ANY (numbers)":             "(t.n OPERATOR(pg_catalog.=) ANY (t.numbers::pg_catalog.int8[]))",
		"cardinality(tags) = 0":         "(pg_catalog.cardinality(t.tags) OPERATOR(pg_catalog.=) '0'::pg_catalog.int8)",
		"a IN ('x', 'y')":               "(t.a OPERATOR(pg_catalog.=) ANY (ARRAY['x'::pg_catalog.text, 'y'::pg_catalog.text]))",
		"n NOT IN (1, 2)":               "(NOT (t.n OPERATOR(pg_catalog.=) ANY (ARRAY['1'::pg_catalog.int8, '2'::pg_catalog.int8])))",
		"a IN ('x', b)":                 `((t.a OPERATOR(pg_catalog.=) 'x'::pg_catalog.text) OR ((t.a COLLATE pg_catalog."C") OPERATOR(pg_catalog.=) t.b))`,
		"n BETWEEN 1 AND 2":             "((t.n OPERATOR(pg_catalog.>=) '1'::pg_catalog.int8) AND (t.n OPERATOR(pg_catalog.<=) '2'::pg_catalog.int8))",
		"a LIKE 'x%\\_'":                `((t.a COLLATE pg_catalog."C") OPERATOR(pg_catalog.~~) E'x%\\_'::pg_catalog.text)`,
		"a NOT LIKE '%x'":               `(NOT ((t.a COLLATE pg_catalog."C") OPERATOR(pg_catalog.~~) '%x'::pg_catalog.text))`,
		"a IS DISTINCT FROM 'x'": "(CASE WHEN (t.a IS NULL) THEN (NOT ('x'::pg_catalog.text IS NULL)) " +
			"WHEN ('x'::pg_catalog.text IS NULL) THEN (NOT (t.a IS NULL)) ELSE (NOT (t.a OPERATOR(pg_catalog.=) 'x'::pg_catalog.text)) END)",
		"coalesce(a, b) = 'x'": `((((CASE WHEN (NOT (t.a IS NULL)) THEN t.a ELSE t.b END) COLLATE pg_catalog."C") COLLATE pg_catalog."C") ` +
			`OPERATOR(pg_catalog.=) 'x'::pg_catalog.text)`,
		"nullif(n, 0) > 1": "((CASE WHEN (NOT ((t.n OPERATOR(pg_catalog.=) '0'::pg_catalog.int8) " +
			"IS TRUE)) THEN t.n END) OPERATOR(pg_catalog.>) '1'::pg_catalog.int8)",
		"CASE a WHEN 'x' THEN flag ELSE false END": "(CASE WHEN (t.a " +
			"OPERATOR(pg_catalog.=) 'x'::pg_catalog.text) THEN t.flag ELSE 'false'::pg_catalog.bool END)",
		"flag IS NOT TRUE OR flag IS UNKNOWN": "((NOT (t.flag IS TRUE)) OR (t.flag IS NULL))",
		"lower(left(a, 3)) = 'abc'": "(pg_catalog.lower(pg_catalog.\"left\"(t.a, '3'::pg_catalog.int4)) " +
			"OPERATOR(pg_catalog.=) 'abc'::pg_catalog.text)",
		"starts_with(a, attribute('name'))": `pg_catalog.starts_with((t.a COLLATE pg_catalog."C"), ` + attr("name", "text") + ")",
		"trim(a) <> ''":                     "(pg_catalog.btrim(t.a) OPERATOR(pg_catalog.<>) ''::pg_catalog.text)",
		"doc ->> 'kind' = 'x' AND doc ? 'k'": "(((t.doc OPERATOR(pg_catalog.->>) " +
			"'kind'::pg_catalog.text) OPERATOR(pg_catalog.=) 'x'::pg_catalog.text) AND (t.doc OPERATOR(pg_catalog.?) 'k'::pg_catalog.text))",
		"id::text = attribute('name')": "(t.id::pg_catalog.text OPERATOR(pg_catalog.=) " + attr("name", "text") + ")",
		"at > now()":                   "(t.at OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp())",
		"at > now() - interval '30 days'": "(t.at OPERATOR(pg_catalog.>) " +
			"pg_catalog.timezone('UTC'::pg_catalog.text, (" + now + " OPERATOR(pg_catalog.+) pg_catalog.make_interval(0, 0, 0, -30, 0, 0, 0))))",
		"naive < current_timestamp + '1 year 2 weeks 90 minutes'::interval": "(t.naive OPERATOR(pg_catalog.<) (" +
			now + " OPERATOR(pg_catalog.+) pg_catalog.make_interval(0, 12, 0, 14, 0, 0, 5400)))",
		"day >= current_date":               "(t.day OPERATOR(pg_catalog.>=) " + now + "::pg_catalog.date)",
		"ip IS NOT NULL OR t.spell IS NULL": "((NOT (t.ip IS NULL)) OR (t.spell IS NULL))",
		"day < date '2026-12-31'":           "(t.day OPERATOR(pg_catalog.<) '2026-12-31'::pg_catalog.date)",
		"at < '2026-12-31 23:59:59+00:00'": "(t.at OPERATOR(pg_catalog.<) " +
			"'2026-12-31 23:59:59+00:00'::pg_catalog.timestamptz)",
	} {
		p, err := compileExpression(quoteYAML(expression))
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		table := p.Tables()[0]
		got := predicate.RowPolicySQL(table.Rows, table.Relation)
		if i := strings.Index(got, " IS NOT NULL AND "); i >= 0 && strings.HasPrefix(got, "(SELECT") {
			got = got[i+len(" IS NOT NULL AND "):]
		}
		if got = strings.TrimPrefix(got, "(SELECT pgconsent_signed.sealed()) AND "); got != want {
			t.Errorf("%s\n got %s\nwant %s", expression, got, want)
		}
	}
}

// An expression is refused, with its position, if it could raise an error, have side effects, read other tables, or
// depend on settings.
func TestExpressionErrors(t *testing.T) {
	for expression, want := range map[string]string{
		"a = ":                   "p.yaml:10:19: syntax error at end of input",
		"a == 'x' x y":           "p.yaml:10:",
		"":                       "",
		"true":                   `p.yaml:10:15: the expression speaks of no column and no attribute (say "open" if every row may show)`,
		"flag, flag":             "sql is one expression, not a statement",
		"flag FROM t":            "sql is one expression, not a statement",
		"flag AS x":              "sql is one expression, not a statement",
		"flag; SELECT 1":         "sql is one expression, not a statement",
		"flag UNION SELECT true": "sql is one expression, not a statement",
		"flag ORDER BY 1":        "sql is one expression, not a statement",
		"EXISTS (SELECT 1)":      "p.yaml:10:15: sql has no sub-selects",
		"a = ANY (SELECT 'x')":   "sql has no sub-selects",
		"a = $1":                 "p.yaml:10:19: sql has no parameters",
		"flag AND nope = 1":      `p.yaml:10:24: public.t has no column "nope"`,
		"x.a = 'b'":              "an expression speaks of columns of public.t only",
		"t.* IS NULL":            "an expression speaks of columns of public.t only",
		"raw ->> 'a' = 'b'":      "public.t.raw is a json, which sql does not compare",
		"ip = '::1'": "public.t.ip is an inet, which sql does not compare " +
			"(docs/reference/policy.md lists the types; IS NULL may be asked of this one)",
		"coalesce(ip, ip) IS NULL": "public.t.ip is an inet, which sql does not compare",
		"place IS NULL": "public.t.place is a public.place, which sql does not compare " +
			"(docs/reference/policy.md lists the types)",
		"placed IS NOT NULL": "public.t.placed is a public.placed, which sql does not " +
			"compare (docs/reference/policy.md lists the types)",
		"n + 1 > 2":                               "arithmetic is not part of sql expressions: it could overflow",
		"-n > 2":                                  "arithmetic is not part of sql expressions",
		"1 / n = 1":                               "the operator / is not part of sql expressions",
		"at + interval '1 day' > now()":           "(move the clock instead: column < now() - interval '30 days')",
		"at > now() - interval '1 mon'":           "this interval is not part of sql expressions",
		"at > now() - interval '9000 years'":      "this interval is not part of sql expressions",
		"at > now() - interval '-1 days'":         "this interval is not part of sql expressions",
		"at < '2026-12-31'":                       "the constant is not a timestamptz (write 2026-12-31 23:59:59+00:00, with its time zone)",
		"at > naive":                              "a timestamptz does not compare with a timestamp",
		"day = 'today'":                           "the constant is not a date",
		"at < 'now'":                              "the constant is not a timestamptz",
		"a LIKE 'x\\'":                            "a LIKE pattern does not end in a backslash",
		"a LIKE b":                                "LIKE takes a constant pattern here",
		"a LIKE attribute('name')":                "LIKE takes a constant pattern here",
		"a LIKE 'x!%' ESCAPE '!'":                 "LIKE takes a constant pattern here",
		"a ILIKE 'x'":                             "(write lower(column) LIKE 'pattern')",
		"a ~ 'x'":                                 "the operator ~ is not part of sql expressions",
		"a SIMILAR TO 'x'":                        "is not part of sql expressions",
		"a || b = 'x'":                            "the operator || is not part of sql expressions",
		"substr(a, n) = 'x'":                      "substr is not a function that sql expressions may call",
		"left(a, n) = 'x'":                        "argument 2 of left must be a constant",
		"left(a, 99999) = 'x'":                    "argument 2 of left must be a constant",
		"pg_sleep(1) IS NULL":                     "pg_sleep is not a function that sql expressions may call",
		"public.lower(a) = 'x'":                   "this call is not part of sql expressions",
		"count(*) > 1":                            "this call is not part of sql expressions",
		"row_number() OVER () = 1":                "this call is not part of sql expressions",
		"a = current_user":                        "(write attribute('name') for who is calling, now() for the time)",
		"a = attribute(a)":                        "attribute takes the name of an attribute",
		"a = attribute('nam')":                    `p.yaml:10:19: the policy declares no attribute "nam" (did you mean "name"?)`,
		"id = attribute('name')":                  "a uuid does not compare with a text",
		"id = 'x'":                                "p.yaml:10:20: the constant is not a uuid",
		"n = 'x'":                                 "the constant is not a number",
		"n = 1e5":                                 "the number 1e5 is not part of sql expressions",
		"f = amount":                              "a float does not compare with a number",
		"a = NULL":                                "nothing compares with NULL (write IS NULL)",
		"a":                                       "a condition is true or false, and this is a text",
		"flag AND n":                              "p.yaml:10:24: a condition is true or false, and this is a number",
		"a::uuid = id":                            "this cast is not part of sql expressions",
		"a::int = 1":                              "this cast is not part of sql expressions",
		"day::text = 'x'":                         "this cast is not part of sql expressions",
		"at::text = 'x'":                          "this cast is not part of sql expressions",
		"naive::text = 'x'":                       "this cast is not part of sql expressions",
		"'x'::public.mood = a":                    "this cast is not part of sql expressions",
		"doc = '{}'":                              "it cannot be written as a constant",
		"tags = tags":                             "text[] values are not compared whole",
		"n BETWEEN SYMMETRIC 1 AND 2":             "is not part of sql expressions",
		"(a, b) = ('x', 'y')":                     "a row is not part of sql expressions",
		"tags[1] = 'x'":                           "a subscript or field is not part of sql expressions",
		"ARRAY['a'] && tags":                      "ARRAY[…] is not part of sql expressions",
		"greatest(n, 1) = 1":                      "greatest or least is not part of sql expressions",
		`a COLLATE "C" = 'x'`:                     "COLLATE is not part of sql expressions",
		"at AT TIME ZONE 'UTC' > naive":           "timezone is not a function that sql expressions may call",
		"extract(year from at) = 2026":            "extract is not a function that sql expressions may call",
		"n OPERATOR(public.=) 1":                  "operators are those of pg_catalog",
		strings.Repeat("flag AND ", 950) + "flag": "longer than",
		strings.Repeat("(", 1100) + "flag" + strings.Repeat(")", 1100): "nested",
	} {
		_, err := compileExpression(quoteYAML(expression))
		var errs policy.Errors
		if !errors.As(err, &errs) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s:\n got %v\nwant %s", expression, err, want)
		}
	}
}

// Positions of errors are those in the file, however the YAML text is quoted or indented.
func TestExpressionPlaces(t *testing.T) {
	for yaml, want := range map[string]string{
		"a = 'é' AND nope = 1":                           "p.yaml:10:26:",
		`"a = 'é' AND nope = 1"`:                         "p.yaml:10:27:",
		"'a = ''x'' AND nope = 1'":                       "p.yaml:10:29:",
		"|\n          flag\n          AND nope = 1":      "p.yaml:12:15:",
		">-\n          flag\n          AND nope = 1":     "p.yaml:12:15:",
		"flag\n          AND nope = 1":                   "p.yaml:11:15:",
		"|\n          a =\n            lower(nope) OR a": "p.yaml:12:19:",
	} {
		_, err := compileExpression(yaml)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", yaml, err, want)
		}
	}
}
