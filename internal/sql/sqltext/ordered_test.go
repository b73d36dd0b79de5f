package sqltext

import (
	"slices"
	"strings"
	"testing"
)

// The order of a result may be decided by the rows of each relation in FROM, however FROM is written. Relations that
// are written to, or that only a condition reads, are not sorted.
func TestRelationsOrderedBy(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT a FROM t ORDER BY b <-> c":                                               "t",
		"SELECT a FROM t, u ORDER BY t.b <-> u.b":                                        "t u",
		"SELECT a FROM t JOIN u ON t.a = u.a ORDER BY t.b <-> c":                         "t u",
		"SELECT a FROM t LEFT JOIN (u CROSS JOIN v) ON true, w ORDER BY t.b <#> c":       "t u v w",
		"SELECT a FROM (SELECT * FROM t NATURAL JOIN u ORDER BY b <-> c LIMIT 1) AS q":   "t u",
		"WITH q AS (SELECT * FROM t JOIN u USING (a)) SELECT FROM q ORDER BY b <-> c":    "q t u",
		"SELECT a FROM t WHERE EXISTS (SELECT FROM u JOIN v USING (a)) ORDER BY b <-> c": "t",
		"INSERT INTO t SELECT a FROM u JOIN v USING (a) ORDER BY b <-> c":                "u v",
		"SELECT a FROM t JOIN u USING (a) ORDER BY b - c":                                "",
	} {
		tree, refusal := Parse(sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		var names []string
		for r := range RelationsOrderedBy(tree, []string{"<->", "<#>"}) {
			names = append(names, r.Relname)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s\nsorts %s, want %s", sql, got, want)
		}
	}
}
