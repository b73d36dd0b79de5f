package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A parameter may replace a literal that a condition of the outermost query compares with a column of the same type. A
// "!" says that the statement is planned for the value: all but numbers, uuids and unique strings compared by "=", if the
// statement may find several rows.
func TestBindableLiterals(t *testing.T) {
	const uuid, upperCaseUUID = "'00000000-0000-4000-8000-000000000001'", "'00000000-0000-4000-8000-00000000000A'"
	r, _ := altered(t, InjectedMode, `ALTER TABLE memories ADD product int, ADD big bigint, ADD small smallint, ADD price numeric,
		ADD slug varchar(20) UNIQUE, ADD kind text, ADD day date, ADD rate real, ADD at timestamptz, ADD UNIQUE (product, big)`)
	for sql, want := range map[string]string{
		"SELECT title FROM memories WHERE id = " + uuid:                                                    uuid,
		"SELECT title FROM memories WHERE " + uuid + " = id":                                               uuid,
		"SELECT title FROM memories m WHERE m.product = 5 AND big IN (6, 7)":                               "5 6 7",
		"SELECT title FROM memories WHERE NOT (product = 5 OR id IN (" + uuid + "," + upperCaseUUID + "))": "5 " + uuid + " " + upperCaseUUID,
		"SELECT title FROM memories WHERE slug = 'a' OR kind = 'b' AND product = 5":                        "'a' 'b'! 5",
		"SELECT 7, title FROM memories WHERE product = 5 ORDER BY 1 LIMIT 20 OFFSET 3":                     "5",
		"SELECT 1 FROM memories m JOIN memories n ON m.id = n.id AND n.product = 5":                        "5",
		"WITH m AS (SELECT product FROM memories) SELECT 1 FROM memories WHERE product = 5":                "5",

		// at most one row is found, by a unique key
		"SELECT title FROM memories WHERE slug = 'a' AND kind = 'b' AND product > 5":     "'a' 'b' 5",
		"SELECT title FROM memories WHERE 5 > 6 AND (kind > 'b' AND slug = 'a')":         "5 'b' 'a'",
		"SELECT title FROM memories WHERE product = 5 AND big = 6 AND kind = 'b'":        "5 6 'b'",
		"SELECT title FROM memories WHERE product = 5 AND big > 6 AND kind = 'b'":        "5 6! 'b'!",
		"SELECT title FROM memories WHERE NOT (slug = 'a' AND kind = 'b')":               "'a' 'b'!",
		"SELECT title FROM memories WHERE slug IN ('a', 'c') AND kind = 'b'":             "'a' 'c' 'b'!",
		"SELECT title FROM memories WHERE slug <> 'a' AND kind = 'b'":                    "'a'! 'b'!",
		"SELECT m.title FROM memories m, people p WHERE m.slug = 'a' AND m.kind = 'b'":   "'a' 'b'!",
		"SELECT n.title FROM memories m JOIN memories n ON m.slug = 'a' AND n.price > 5": "'a' 5!",

		"SELECT title FROM memories WHERE id = 'x'":                                                      "", // the literal fails at Parse
		"SELECT title FROM memories WHERE small = 5 AND rate = 6":                                        "",
		"SELECT title FROM memories WHERE price = 5 AND day = '2024-01-01'":                              "5! '2024-01-01'!",
		"SELECT title FROM memories WHERE product > 5 AND product <> 6 AND 7 >= product":                 "5! 6! 7!", // other values get other plans
		"SELECT title FROM memories WHERE product NOT IN (5, 6) OR slug < 'a'":                           "5! 6! 'a'!",
		"SELECT title FROM memories WHERE price BETWEEN 5 AND 6 AND kind NOT BETWEEN 'a' AND 'b'":        "5! 6! 'a'! 'b'!",
		"SELECT title FROM memories WHERE at >= '2024-01-01 10:00:00' AND at < '2024-02-30'":             "'2024-01-01 10:00:00'!",
		"SELECT title FROM memories WHERE at > 'yesterday' AND day > '2024-1-1'":                         "",
		"SELECT title FROM memories WHERE kind LIKE 'a' AND kind ~ 'b' AND kind ILIKE 'c'":               "", // an index may serve this pattern only
		"SELECT title FROM memories WHERE kind IS DISTINCT FROM 'a' AND price BETWEEN SYMMETRIC 5 AND 6": "",
		"SELECT title FROM memories WHERE 5 > 6 AND 'a' = 'b' AND 7 + 8 > 9 AND 1 > 'a'":                 "5!",
		"SELECT title FROM memories WHERE product = -5 AND product IN (1, -2)":                           "",
		"SELECT title FROM memories WHERE product = 5 + 5 AND product + 5 = 5":                           "",
		"SELECT product = 5 FROM memories GROUP BY product = 5":                                          "",
		"SELECT count(*) FROM memories GROUP BY product HAVING product = 5":                              "",
		"SELECT 1 FROM memories WHERE product = (SELECT 5)":                                              "",
		"SELECT 1 FROM memories WHERE product = 5 UNION SELECT 2":                                        "",
		"SELECT 1 FROM (SELECT product + 1 AS product FROM memories) m WHERE product = 5":                "",
		"SELECT 1 FROM memories m, LATERAL (SELECT 1 AS x) n WHERE x = 5":                                "",
		"SELECT title FROM memories WHERE product = 5 /* 6 */":                                           "",
		"SELECT title FROM memories WHERE nothing = 5":                                                   "",
		"":     "",
		" ;":   "",
		"-- 5": "",
		"SELECT 1 FROM pg_class WHERE relpages = 5":                                "",
		"UPDATE drafts SET title = 'x' WHERE title = 'a'":                          "",
		"SELECT title FROM memories WHERE product = 5; SELECT title FROM memories": "",
	} {
		result, _ := r.Rewrite(sql, false)
		_, literals := sqltext.TextShape(sql)
		var got []string
		for _, b := range result.Bindable {
			l := literals[b.Number]
			literal := sql[l.Start:l.End]
			if b.NeedsPlan {
				literal += "!"
			}
			got = append(got, literal)
			if (b.Form == UUIDLiteral) != (l.End-l.Start == len(uuid)) || (b.Form == TimeLiteral) != strings.HasPrefix(literal, "'20") {
				t.Errorf("%s: %s is taken for %s", sql, literal, fmt.Sprint(b))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
}

// A literal fits a form only if PostgreSQL accepts it for each type that the form is for.
func TestFormsOfLiterals(t *testing.T) {
	for value, want := range map[string]LiteralForm{
		"00000000-0000-4000-8000-00000000000a": UUIDLiteral, "{00000000-0000-4000-8000-00000000000}": AnyLiteral,
		"2024-12-31": TimeLiteral, "2024-12-31 23:59:59": TimeLiteral, "2024-02-29 00:00:00.123456": TimeLiteral,
		"2023-02-29": AnyLiteral, "0000-01-01": AnyLiteral, "2024-12-31 24:00:00": AnyLiteral, "2024-12-31T10:00:00": AnyLiteral,
		"2024-12-31 10:00:00,5": AnyLiteral, "2024-12-31 10:00:00.1234567": AnyLiteral, "2024-12-31 10:00:00Z": AnyLiteral,
		"infinity": AnyLiteral, "": AnyLiteral,
	} {
		for form := range TimeLiteral + 1 {
			if form.Fits(value) != (form == AnyLiteral || form == want) {
				t.Errorf("%q and form %d: %v", value, form, form.Fits(value))
			}
		}
	}
}
