package predicate_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
)

// expressions use every node, operator and function of the closed list over the columns of expressionTable.
var expressions = []string{
	"flag", "NOT flag", "flag IS TRUE", "flag IS NOT FALSE", "flag IS UNKNOWN", "flag = true", "flag IS NULL OR flag",
	"a = 'x'", "a <> 'x'", "a < 'm'", "a >= 'm'", "a = b", "a < b", "b = attribute('name')", "a IS DISTINCT FROM b",
	"a IS NOT DISTINCT FROM b", "a IS DISTINCT FROM attribute('name')",
	`"Order" = 'x'`, `"Order" IN ('x', 'y', a)`, "a IN ('x', 'it''s', '\\')", "a NOT IN ('x', 'y')", "a = ANY (tags)",
	"a <> ALL (tags)", "'x' = ANY (tags)", "a = ANY (attribute('contexts'))",
	"a <> ALL (attribute('contexts'))", "tags && attribute('contexts')", "tags @> '{x}'",
	"tags <@ attribute('contexts')", "numbers @> '{1,2}'", "n = ANY (numbers)", "id = ANY (ids)", "cardinality(tags) > 1",
	"n = 1", "n > -2", "n <= attribute('level')", "n BETWEEN 0 AND 5", "n NOT BETWEEN 0 AND 5", "amount >= 1.50",
	"amount < n", "f > 0.5", "n IN (1, 2)", "nullif(n, 0) > 1", "nullif(a, b) = 'x'",
	"mood = 'bad'", "mood IS DISTINCT FROM 'bad'", "mood = a", "id = attribute('user')", "id::text = a",
	"n::text = a", "flag::text = 'true'", "id > '00000000-0000-0000-0000-000000000001'",
	"a LIKE 'x%'", "a LIKE '%x'", "a NOT LIKE '_'", `a LIKE '\_%'`, `a LIKE '%\\\\%'`, "b LIKE ''", "a LIKE '%s%'",
	"coalesce(a, b) = 'x'", "coalesce(n, 7) = 7", "coalesce(a, 'none') = 'none'",
	"CASE a WHEN 'x' THEN flag WHEN b THEN true ELSE false END", "CASE WHEN n > 1 THEN a WHEN flag THEN b END = 'x'",
	"lower(a) = 'x'", "upper(a) = a", "length(a) > 1", "char_length(a) = 0", "octet_length(a) = 2",
	"left(a, 1) = 'x'", "left(a, -1) = 'x'", "right(a, 1) = 's'", "right(a, -2) = ''", "trim(a) = 'x'",
	"trim(both 'x' from a) = ''", "ltrim(a) = 'x'", "rtrim(a, ' s') = 'it'''", "starts_with(a, 'x')",
	"starts_with(a, b)", "starts_with(a, attribute('name'))",
	"doc ->> 'kind' = 'x'", "doc -> 'in' ->> 'kind' = 'x'", "doc ? 'kind'", "doc ->> 'kind' IS NULL",
	"jsonb_typeof(doc) = 'object'", "doc -> 'kind' IS NULL", "doc ->> 'n' = '5'",
	"at > now()", "at <= now() - interval '30 days'", "at > now() + interval '1 month 2 hours'",
	"at > '2020-02-29 00:00:00+00:00'", "at BETWEEN now() - interval '1 year' AND now()",
	"naive < now()", "naive > now() - interval '90 minutes'", "day <= current_date", "day > '2024-02-29'",
	"day = current_date", "naive < localtimestamp", "at IS DISTINCT FROM now()",
	"code = 'x'", "code <> attribute('name')", "code IN ('x', 'é')", "code LIKE 'x%'", "length(code) > 1", "code = a",
	"ip IS NULL", "ip IS NOT NULL AND spell IS NULL", "spell IS NOT NULL OR flag", "pair IS NULL",
	"NOT (raw IS NULL)", "pairs IS NOT NULL", "shape IS NULL",
	"(a = 'x' AND n > 1) OR (NOT flag AND at > now())", "NOT (a = 'x' OR n = 1)", "(a = 'x') IS NOT TRUE", "(n > 1) IS UNKNOWN", "(a = 'x') = flag",
}

const expressionTable = `
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TYPE both_of AS (a integer, b text);
CREATE DOMAIN spell AS tstzrange;
CREATE TABLE t (row_id int PRIMARY KEY, id uuid, a text, b varchar(9), n integer, amount numeric(40,2), f double precision, flag boolean, mood mood,
  at timestamptz(3), naive timestamp, day date, tags text[], numbers integer[], ids uuid[], doc jsonb, "Order" text COLLATE "POSIX", code character(3),
  ip inet, spell spell, pair hstore, raw json, pairs both_of[], shape point);`

const expressionPolicy = `version: 1
attributes:
  user: { type: uuid, source: credential }
  name: { type: text, source: credential }
  contexts: { type: "text[]", source: credential }
  level: { type: integer, source: credential }
tables: { t: { rows: [ sql: '%s' ] } }`

// oddValues has values for each column, many at the limits of its type. Those in unreadableValues are values that the
// model does not read.
var oddValues = map[string][]string{
	"id":      {"00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
	"a":       {"x", "", "X", " x ", "it's", `\`, `_`, "y", "é", "😀x", "xs", "5", "true", "bad", "00000000-0000-0000-0000-000000000001"},
	"b":       {"x", "", "é", "s"},
	"n":       {"0", "1", "2", "5", "7", "-2", "2147483647", "-2147483648"},
	"amount":  {"1.50", "0.00", "99999999999999999999999999999999999999.99"},
	"f":       {"0.5", "1.25", "-3"},
	"flag":    {"true", "false"},
	"mood":    {"good", "bad"},
	"at":      {"2020-02-29 00:00:00+00:00", "1999-12-31 23:59:59.999+00:00", "2100-01-01 00:00:00+00:00"},
	"naive":   {"2020-02-29 00:00:00", "2100-01-01 00:00:00"},
	"day":     {"2024-02-29", "2100-01-01", "1999-01-01"},
	"tags":    {"{}", "{x}", "{x,y}", "{NULL}", "{NULL,x}", `{"",é}`},
	"numbers": {"{}", "{1,2}", "{NULL,7}", "{-2147483648}"},
	"ids":     {"{}", "{00000000-0000-0000-0000-000000000001,NULL}"},
	"doc":     {`{}`, `{"kind": "x"}`, `{"kind": null}`, `{"n": 5, "in": {"kind": "x"}}`, `["kind"]`, `"kind"`, `null`, `5`, `true`},
	"Order":   {"x", "z"},
	"code":    {"x", "", "é", " s", "xs"},
	"ip":      {"::1", "10.0.0.0/8"},
	"spell":   {"empty", "(,)"},
	"pair":    {"", "a=>NULL"},
	"raw":     {"null", "{}"},
	"pairs":   {"{}", "{NULL}", `{"(,)"}`},
	"shape":   {"(0,NaN)"},
}

var unreadableValues = map[string][]string{
	"amount": {"NaN"}, "f": {"NaN", "Infinity", "-Infinity", "1e308", "-1e-308"},
	"at":    {"infinity", "-infinity", "294276-12-31 23:59:59.999+00", "4714-11-24 00:00:00+00 BC"},
	"naive": {"infinity", "-infinity", "294276-12-31 23:59:59.999999", "4714-11-24 00:00:00 BC"},
	"day":   {"infinity", "-infinity", "5874897-12-31", "4714-11-24 BC"},
	"tags":  {"[5:6]={x,y}", "{{x,y},{a,b}}"},
	"a":     {strings.Repeat("xé", 5000)},
}

// Each expression has the same result in SQL as in the model, and raises no error for any row, whatever the session's
// settings are.
func TestExpressionsAgree(t *testing.T) {
	b := newTestDatabase(t)
	ctx := context.Background()
	run := func(sql string) {
		t.Helper()
		if _, err := b.conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run(expressionTable)
	// Times close to now: with another time zone of the session, comparisons with them would change.
	now := time.Now().UTC()
	oddValues := maps.Clone(oddValues)
	for _, offset := range []time.Duration{-time.Hour, time.Hour} {
		oddValues["at"] = append(slices.Clone(oddValues["at"]), now.Add(offset).Format("2006-01-02 15:04:05+00:00"))
		oddValues["naive"] = append(slices.Clone(oddValues["naive"]), now.Add(offset).Format("2006-01-02 15:04:05"))
	}
	oddValues["day"] = append(slices.Clone(oddValues["day"]), now.Format("2006-01-02"))
	var rows []predicate.Row
	insert := func(row predicate.Row) {
		columns, values := "row_id", row["row_id"]
		for column, value := range row {
			if column != "row_id" {
				columns += ", " + catalog.QuoteIdent(column)
				values += ", " + catalog.QuoteLiteral(value)
			}
		}
		run("INSERT INTO t (" + columns + ") VALUES (" + values + ")")
	}
	for i := range 60 { // each value is combined with several others
		row := predicate.Row{"row_id": fmt.Sprint(i)}
		for k, column := range slices.Sorted(maps.Keys(oddValues)) {
			if values := oddValues[column]; (i+k)%7 > 0 {
				row[column] = values[(i*(k+3)+i/5)%len(values)]
			}
		}
		rows = append(rows, row)
		insert(row)
	}
	rowID := 1000
	for column, values := range unreadableValues {
		for _, value := range values {
			rowID++
			insert(predicate.Row{"row_id": fmt.Sprint(rowID), column: value})
		}
	}
	snap, err := pgcatalog.Load(ctx, b.conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	w := predicate.World{Sealed: true, Now: now,
		Attributes: map[string]string{"user": "00000000-0000-0000-0000-000000000001", "name": "x", "contexts": `{"x","é"}`, "level": "2"}}
	if err := b.setSeal(w); err != nil {
		t.Fatal(err)
	}
	settings := []string{
		"SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'; SET IntervalStyle = postgres",
		"SET TimeZone = '+167:00'; SET DateStyle = 'German, DMY'; SET IntervalStyle = sql_standard; SET " +
			"extra_float_digits = -15; SET bytea_output = escape; SET array_nulls = off",
		"SET TimeZone = '-167:00'; SET lc_messages = 'C'; SET search_path = ''",
	}
	for _, expression := range expressions {
		doc, err := policy.Parse("p.yaml", fmt.Appendf(nil, expressionPolicy, strings.ReplaceAll(expression, "'", "''")))
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		pol, err := policy.Compile(doc, snap)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		table := pol.Tables()[0]
		for _, node := range []predicate.Node{table.Rows, predicate.Not{Node: table.Rows}} {
			want := []string{}
			for _, row := range rows {
				if predicate.Eval(node, row, w) {
					want = append(want, row["row_id"])
				}
			}
			slices.Sort(want)
			injectedSQL, _ := predicate.InjectedCondition(node, "t")
			for _, condition := range []string{predicate.RowPolicySQL(node, table.Relation), injectedSQL} {
				for _, setting := range settings {
					run(setting)
					if got := b.queryIDs("SELECT row_id FROM public.t WHERE (" + condition + ") AND row_id < 1000"); got != strings.Join(want, ",") {
						t.Errorf("%s\n%s\n  got %s\n want %s", expression, condition, got, strings.Join(want, ","))
					}
					if got := b.queryIDs("SELECT count(*) FROM public.t WHERE " + condition); strings.Contains(got, "ERROR") {
						t.Errorf("%s: %s", expression, got)
					}
				}
			}
		}
	}
}
