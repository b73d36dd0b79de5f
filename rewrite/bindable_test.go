package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A parameter may replace a number or a uuid that a condition of the outermost query compares with a column. It may
// replace a string where the column is unique, and nothing else.
func TestBindableLiterals(t *testing.T) {
	const uuid, upperCaseUUID = "'00000000-0000-4000-8000-000000000001'", "'00000000-0000-4000-8000-00000000000A'"
	r, _ := altered(t, InjectedMode, `ALTER TABLE memories ADD product int, ADD big bigint, ADD small smallint, ADD price numeric,
		ADD slug varchar(20) UNIQUE, ADD kind text, ADD day date`)
	for sql, want := range map[string]string{
		"SELECT title FROM memories WHERE id = " + uuid:                                                    uuid,
		"SELECT title FROM memories WHERE " + uuid + " = id":                                               uuid,
		"SELECT title FROM memories m WHERE m.product = 5 AND big IN (6, 7)":                               "5 6 7",
		"SELECT title FROM memories WHERE NOT (product = 5 OR id IN (" + uuid + "," + upperCaseUUID + "))": "5 " + uuid + " " + upperCaseUUID,
		"SELECT title FROM memories WHERE slug = 'a' AND kind = 'b' AND product = 5":                       "'a' 5",
		"SELECT 7, title FROM memories WHERE product = 5 ORDER BY 1 LIMIT 20 OFFSET 3":                     "5",
		"SELECT 1 FROM memories m JOIN memories n ON m.id = n.id AND n.product = 5":                        "5",
		"WITH m AS (SELECT product FROM memories) SELECT 1 FROM memories WHERE product = 5":                "5",

		"SELECT title FROM memories WHERE id = 'x'":                                       "", // the literal fails at Parse
		"SELECT title FROM memories WHERE small = 5 AND price = 5 AND day = '2024-01-01'": "",
		"SELECT title FROM memories WHERE product > 5 AND product <> 6":                   "", // other values get other plans
		"SELECT title FROM memories WHERE product = -5 AND product IN (1, -2)":            "",
		"SELECT title FROM memories WHERE product = 5 + 5 AND product + 5 = 5":            "",
		"SELECT product = 5 FROM memories GROUP BY product = 5":                           "",
		"SELECT count(*) FROM memories GROUP BY product HAVING product = 5":               "",
		"SELECT 1 FROM memories WHERE product = (SELECT 5)":                               "",
		"SELECT 1 FROM memories WHERE product = 5 UNION SELECT 2":                         "",
		"SELECT 1 FROM (SELECT product + 1 AS product FROM memories) m WHERE product = 5": "",
		"SELECT 1 FROM memories m, LATERAL (SELECT 1 AS x) n WHERE x = 5":                 "",
		"SELECT title FROM memories WHERE product = 5 /* 6 */":                            "",
		"SELECT title FROM memories WHERE nothing = 5":                                    "",
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
			got = append(got, sql[l.Start:l.End])
			if b.IsUUID != (l.End-l.Start == len(uuid)) {
				t.Errorf("%s: %s is taken for %s", sql, sql[l.Start:l.End], fmt.Sprint(b))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
}
