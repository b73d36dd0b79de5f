package rewrite

import (
	"context"
	"strings"
	"testing"
)

// LIKE with a prefix is rewritten to ^@ where both mean the same and an index supports ^@, and nowhere else.
func TestPrefixSearch(t *testing.T) {
	r, conn := altered(t, RowSecurityMode, `CREATE INDEX ON memories (title text_pattern_ops); CREATE INDEX ON memories (body);
		ALTER TABLE people ALTER name TYPE text COLLATE "C"; CREATE INDEX ON people (name text_pattern_ops)`)
	for sql, want := range map[string]string{
		"SELECT 1 FROM memories WHERE title LIKE 'abc%'":                                       "(title OPERATOR(pg_catalog.^@) 'abc')",
		"SELECT 1 FROM memories m WHERE NOT m.title LIKE 'it''s%' AND 1 = 1":                   "NOT (m.title OPERATOR(pg_catalog.^@) 'it''s') AND 1 = 1",
		`SELECT 1 FROM memories WHERE "title"LIKE'abc%'OR 1 = 1`:                               `("title" OPERATOR(pg_catalog.^@) 'abc')OR 1 = 1`,
		"SELECT 1 FROM memories WHERE title NOT LIKE 'abc%'":                                   "",
		"SELECT 1 FROM memories WHERE title ILIKE 'abc%'":                                      "",
		"SELECT 1 FROM memories WHERE title LIKE 'a_c%'":                                       "",
		"SELECT 1 FROM memories WHERE title LIKE 'a%c%'":                                       "",
		"SELECT 1 FROM memories WHERE title LIKE 'abc'":                                        "",
		"SELECT 1 FROM memories WHERE title LIKE '%'":                                          "",
		`SELECT 1 FROM memories WHERE title LIKE 'a\%'`:                                        "",
		"SELECT 1 FROM memories WHERE title LIKE 'abc%' ESCAPE 'b'":                            "",
		"SELECT 1 FROM memories WHERE title || 'x' LIKE 'abc%'":                                "",
		"SELECT 1 FROM memories WHERE title LIKE 'abc%' COLLATE \"C\"":                         "",
		"SELECT 1 FROM memories WHERE body LIKE 'abc%'":                                        "", // the index has another operator class
		"SELECT 1 FROM people WHERE name LIKE 'abc%'":                                          "", // the column has another collation
		"SELECT 1 FROM memories WHERE title LIKE $1":                                           "",
		"SELECT 1 FROM memories a, memories b WHERE title LIKE 'abc%'":                         "",
		"SELECT 1 FROM memories WHERE EXISTS (SELECT FROM memories b WHERE title LIKE 'abc%')": "",
		"SELECT 1 FROM (SELECT title FROM memories) m WHERE title LIKE 'abc%'":                 "",
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		if got := strings.Contains(result.Text, "^@"); got != (want != "") || !strings.Contains(result.Text, want) {
			t.Errorf("%s becomes %s", sql, result.Text)
		}
	}
	// PostgreSQL returns the same result for both forms.
	var differingRows int
	if err := conn.QueryRow(context.Background(), `SELECT count(*)
		FROM (VALUES ('abc'), ('abcd'), ('ab'), (''), ('ABC'), (NULL), ('xabc'), ('abc%'), ('äbc')) AS v (x),
		(VALUES ('abc'), ('a'), ('ä'), ('abc ')) AS p (y) WHERE (x LIKE y || '%') IS DISTINCT FROM (x ^@ y)`).Scan(&differingRows); err != nil ||
		differingRows != 0 {
		t.Errorf("%d differ, %v", differingRows, err)
	}
}
