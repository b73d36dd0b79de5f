package sqltext

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

func TestClauses(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT a FROM t WHERE b = 1":                                                        "t|b = 1",
		"SELECT a FROM t AS x WHERE b = 1 AND c AND (d OR e) ORDER BY a":                     "t AS x|b = 1|c|(d OR e)",
		"SELECT a FROM t WHERE b BETWEEN 1 AND 2 AND c BETWEEN SYMMETRIC 3 AND 4 GROUP BY a": "t|b BETWEEN 1 AND 2|c BETWEEN SYMMETRIC 3 AND 4",
		"SELECT a FROM t WHERE CASE WHEN b AND c THEN d AND e ELSE f END AND g LIMIT 3":      "t|CASE WHEN b AND c THEN d AND e ELSE f END|g",
		"SELECT a FROM t WHERE ((b AND c) AND (d AND (e)))  ; ":                              "t|b|c|d|(e)",
		"SELECT a FROM t WHERE (b OR c AND d)":                                               "t|(b OR c AND d)",
		"SELECT a FROM t WHERE b AND c OR d AND e HAVING f":                                  "t|b AND c OR d AND e",
		"SELECT a FROM t WHERE (b AND c) = (d AND e) AND NOT f AND g":                        "t|(b AND c) = (d AND e)|NOT f|g",
		"SELECT a IS DISTINCT FROM b, extract(day FROM c), x.from, y AS from FROM t /* d */ WHERE /* e */ t.and " +
			"AND t.where = 1 -- f": "t|t.and|t.where = 1",
		"SELECT a FROM t WHERE b = ANY (ARRAY[c AND d]) AND e[1] FETCH FIRST ROW ONLY": "t|b = ANY (ARRAY[c AND d])|e[1]",
		"SELECT a FROM t":            "",
		"SELECT 1 WHERE a":           "",
		"SELECT a FROM t GROUP BY b": "",
		"":                           "",
	} {
		source, refusal := Scan(sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		c, ok := source.Clauses()
		got := ""
		if ok {
			parts := []string{sql[c.From.Start:c.From.End]}
			for _, s := range c.WhereConditions {
				parts = append(parts, sql[s.Start:s.End])
			}
			got = strings.Join(parts, "|")
		}
		if got != want {
			t.Errorf("%s\n%s\n%s", sql, got, want)
		}
	}
}

// The clauses that are found in any text lie within it, one after the other.
func FuzzClauses(f *testing.F) {
	for _, sql := range []string{"SELECT a FROM t WHERE (b AND c) AND d", "FROM WHERE AND", "FROM ( WHERE ) AND",
		"FROM a WHERE (AND)", "FROM a WHERE CASE END AND b)"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		source, refusal := Scan(sql)
		if refusal != nil {
			return
		}
		c, ok := source.Clauses()
		if !ok {
			return
		}
		spans := append([]Span{c.From}, c.WhereConditions...)
		for _, s := range spans {
			if s.Start >= s.End || s.Start < 0 || int(s.End) > len(sql) {
				t.Errorf("%q: %v", sql, spans)
			}
		}
		if !slices.IsSortedFunc(spans, func(a, b Span) int { return int(a.Start - b.Start) }) || spans[len(spans)-1].End > c.WhereEnd {
			t.Errorf("%q: %v until %d", sql, spans, c.WhereEnd)
		}
	})
}

// The conditions of a query's WHERE are found wherever the query is in the text.
func TestJoined(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT a FROM t WHERE b = 1":                                                                "b = 1",
		"SELECT a FROM t WHERE ((b AND -c > 1) AND NOT d) GROUP BY a":                                "b|-c > 1|NOT d",
		"WITH x AS (SELECT a FROM t WHERE /* WHERE */ (b).c AND d) SELECT 1":                         "(b).c|d",
		"SELECT 1 FROM (SELECT a FROM t WHERE EXISTS (SELECT 1) AND d UNION SELECT 2) q":             "EXISTS (SELECT 1)|d",
		"SELECT 1 FROM u WHERE true AND (a IN (SELECT b FROM t WHERE c AND d ORDER BY e)) AND f":     "true|(a IN (SELECT b FROM t WHERE c AND d ORDER BY e))|f",
		"UPDATE t SET a = 1 WHERE CASE WHEN b THEN c END AND d RETURNING e":                          "CASE WHEN b THEN c END|d",
		"DELETE FROM t WHERE substring(a FROM 1 FOR 2) = 'b' AND t.where AND (c, d) = (1, 2)":        "substring(a FROM 1 FOR 2) = 'b'|t.where|(c, d) = (1, 2)",
		"SELECT a AS where FROM t WHERE CAST(a AS int) BETWEEN 1 AND 2 AND date 'x' < c FOR UPDATE;": "CAST(a AS int) BETWEEN 1 AND 2|date 'x' < c",
	} {
		source, refusal := Scan(sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		tree, refusal := source.Parse()
		if refusal != nil {
			t.Fatal(refusal)
		}
		where := whereOf(tree.ProtoReflect())
		spans, ok := source.WhereConditions(where)
		var got []string
		for _, s := range spans {
			got = append(got, sql[s.Start:s.End])
		}
		if !ok || strings.Join(got, "|") != want {
			t.Errorf("%s\n%s\n%s", sql, strings.Join(got, "|"), want)
		}
	}
}

// whereOf returns the first WHERE of a tree.
func whereOf(m protoreflect.Message) (where *Node) {
	if f := m.Descriptor().Fields().ByName("where_clause"); f != nil && m.Has(f) {
		return m.Get(f).Message().Interface().(*Node)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				if inner := whereOf(v.List().Get(i).Message()); inner != nil {
					where = inner
				}
			}
		default:
			if inner := whereOf(v.Message()); inner != nil {
				where = inner
			}
		}
		return where == nil
	})
	return where
}
