package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// In a statement with a search in one table, the other conditions, groups and sort keys may be anything. They are
// evaluated only for rows that the search has found.
func TestConditionsRunAfterTheSearch(t *testing.T) {
	r, _ := altered(t, AlwaysSignedMode, "ALTER TABLE memories ADD n integer, ADD price numeric, ADD found tsvector")
	const search = "found @@ plainto_tsquery('english', 'lake')"
	const fromFoundRows = " FROM (SELECT * FROM pgconsent_signed.visible_public_memories AS memories WHERE " + search +
		" OFFSET 0) AS memories"
	for sql, want := range map[string]string{
		"SELECT id FROM memories WHERE " + search +
			" AND title ~ '(?=x)'": "SELECT id" + fromFoundRows + " WHERE title ~ '(?=x)'",
		"SELECT id FROM memories WHERE title ~ '(?=x)' AND " +
			search + " AND n / 2 > 1 LIMIT 3": "SELECT id" + fromFoundRows + " WHERE title ~ '(?=x)' AND n / 2 > 1 LIMIT 3",
		"SELECT date_trunc('day', occurred_at), count(*) FROM memories WHERE " + search +
			" GROUP BY 1 ORDER BY 1": "SELECT date_trunc('day', occurred_at), count(*)" + fromFoundRows + " GROUP BY 1 ORDER BY 1",
		"SELECT date_trunc('day', occurred_at) AS d, max(n / 2) FROM memories WHERE " + search +
			" GROUP BY d HAVING min(n % 3) > 1;": "SELECT date_trunc('day', occurred_at) AS d, max(n / 2)" + fromFoundRows + " GROUP BY d HAVING min(n % 3) > 1;",
		"SELECT DISTINCT lpad(title, n) FROM memories WHERE " +
			search: "SELECT DISTINCT lpad(title, n)" + fromFoundRows,
		"SELECT DISTINCT ON (n / 2) n, * FROM memories WHERE " + search +
			" ORDER BY n / 2, title || 'x' LIMIT 5": "SELECT DISTINCT ON (n / 2) n, *" + fromFoundRows + " ORDER BY n / 2, title || 'x' LIMIT 5",
		"SELECT rank() OVER (PARTITION BY n / 2 ORDER BY price * 2) FROM memories WHERE " +
			search: "SELECT rank() OVER (PARTITION BY n / 2 ORDER BY price * 2)" + fromFoundRows,
		"SELECT id FROM memories WHERE (" + search +
			" AND title || 'x' = 'a') ORDER BY id LIMIT 1": "SELECT id" + fromFoundRows + " WHERE title || 'x' = 'a' ORDER BY id LIMIT 1",
		"SELECT id FROM memories WHERE " + search +
			" AND date_trunc('day', occurred_at) = $1 AND (n / 2 BETWEEN 1 AND 3 OR title ~ '(?=x)')": "SELECT id" +
			fromFoundRows + " WHERE date_trunc('day', occurred_at) = $1 AND (n / 2 BETWEEN 1 AND 3 OR title ~ '(?=x)')",
		"SELECT id FROM memories WHERE CASE WHEN n > 1 AND n < 9 THEN n / 2 > 2 END AND n BETWEEN 1 AND 9 AND " +
			search: strings.Replace("SELECT id"+fromFoundRows, "WHERE ", "WHERE n BETWEEN 1 AND 9 AND ", 1) + " WHERE CASE WHEN n > 1 AND n < 9 THEN n / 2 > 2 END",
		"SELECT m.id /* a */ FROM public.memories m -- b\nWHERE m.title LIKE '%x%' AND m.title ~ '(?=x)'": "SELECT m.id /* a */ " +
			"FROM (SELECT * FROM pgconsent_signed.visible_public_memories m WHERE m.title LIKE '%x%' OFFSET 0) AS m WHERE m.title ~ '(?=x)'",
		// keywords used as aliases, which must not be mistaken for clauses
		"SELECT title AS where, n AS from FROM memories WHERE n / 2 > 1 AND n IS DISTINCT FROM 3 AND " +
			search: strings.Replace("SELECT title AS where, n AS from"+fromFoundRows, "WHERE ", "WHERE n IS DISTINCT FROM 3 AND ", 1) +
			" WHERE n / 2 > 1",

		"SELECT id, (SELECT count(*) FROM people p WHERE p.id = memories.id) FROM memories WHERE " + search +
			" AND EXISTS (SELECT FROM people WHERE people.id = memories.id) AND title ~ '(?=x)'": "SELECT id, " +
			"(SELECT count(*) FROM pgconsent_signed.visible_public_people p WHERE p.id = memories.id)" + strings.Replace(fromFoundRows, " OFFSET",
			" AND EXISTS (SELECT FROM pgconsent_signed.visible_public_people AS people WHERE people.id = memories.id) OFFSET", 1) + " WHERE title ~ '(?=x)'",

		// row security can use the same index, so no rewriting is needed
		"SELECT id FROM memories WHERE n = 1 AND title ~ '(?=x)'":                                "",
		"SELECT id FROM memories WHERE title ~ '(?=x)' OR " + search:                             "",
		"SELECT id FROM memories WHERE title LIKE '%x%' AND title ~ '(?=x)' ORDER BY id LIMIT 3": "", // an index returns the rows in this order
		"SELECT id FROM memories WHERE " + search + " AND title ~ (title || $1)":                 "", // the pattern may fail during planning
		"SELECT id FROM memories WHERE " + search + " AND n / $1 > 1":                            "",
		"SELECT id FROM memories WHERE " + search + " AND 1 / $1 > 1":                            "",
		"SELECT id FROM memories WHERE " + search +
			" AND n / 2 > (SELECT count(*) FROM people)": "SELECT id" + fromFoundRows +
			" WHERE n / 2 > (SELECT count(*) FROM pgconsent_signed.visible_public_people AS people)",
		"SELECT id FROM memories WHERE " + search + " AND n / 2 IN (SELECT n FROM memories)":                       "",
		"SELECT id FROM memories WHERE " + search + " AND EXISTS (SELECT FROM people WHERE n / 2 = 1)":             "",
		"SELECT m.id FROM memories m, people WHERE " + search + " AND title ~ '(?=x)'":                             "",
		"WITH m AS (SELECT 1) SELECT id FROM memories WHERE " + search + " AND title ~ '(?=x)'":                    "",
		"SELECT id FROM memories AS m(x) WHERE " + search + " AND title ~ '(?=x)'":                                 "",
		"SELECT m FROM memories m WHERE " + search + " AND title ~ '(?=x)'":                                        "",
		"SELECT array_agg(n) FROM memories WHERE " + search + " AND title ~ '(?=x)'":                               "", // the order depends on the plan
		"SELECT id FROM memories WHERE " + search + " AND title ~ '(?=x)' ORDER BY 1 FETCH FIRST 3 ROWS WITH TIES": "",
		"SELECT id FROM memories WHERE " + search + " AND title ~ '(?=x)' UNION SELECT 1":                          "",
		"SELECT id FROM memories WHERE " + search + " AND random() > 0.5":                                          "",
		"SELECT generate_series(1, n) FROM memories WHERE " + search + " AND title ~ '(?=x)'":                      "",
		"SELECT id FROM memories WHERE " + search + " AND title OPERATOR(pg_catalog.~) '(?=x)'":                    "",
	} {
		result, refusal := r.Rewrite(sql, false)
		result.Text = strings.ReplaceAll(result.Text, "pg_catalog.", "")
		switch {
		case refusal != nil:
			t.Errorf("%s: %v", sql, refusal)
		case want == "" && (result.Path == verdict.PathSigned || strings.Contains(result.Text, "OFFSET 0")):
			t.Errorf("%s: %s", sql, result.Text)
		case want != "" && (result.Text != want || result.AboveFenceReason == "" || !result.NeedsSignature ||
			result.HardenedReason != ""):
			t.Errorf("%s: %q, above %q\n%s\n%s", sql, result.RowSecurityReason, result.AboveFenceReason, result.Text, want)
		}
	}
}

// A parameter may be compared with the result of such an expression if the client does not declare the parameter's
// type.
func TestConditionsAfterTheSearchWithParameters(t *testing.T) {
	r, _ := altered(t, AlwaysSignedMode, "ALTER TABLE memories ADD n integer, ADD found tsvector")
	result, refusal := r.Rewrite("SELECT id FROM memories WHERE found @@ plainto_tsquery('english', $2) AND n / 2 > $1", true)
	if refusal != nil || result.AboveFenceReason == "" {
		t.Fatal(refusal, result.RowSecurityReason)
	}
	for _, c := range []struct {
		types     []uint32
		isAllowed bool
	}{{nil, true}, {[]uint32{0, 0}, true}, {[]uint32{0, 25}, true}, {[]uint32{23}, false}, {
		[]uint32{20, 25}, false}, {[]uint32{1700}, false}, {[]uint32{600}, false}, {[]uint32{0, 23}, false}} {
		if isAllowed := result.MayDeclare(c.types); isAllowed != c.isAllowed {
			t.Errorf("%v: %v", c.types, isAllowed)
		}
	}
}

// The position in a server error refers to the client's own text.
func TestConditionsAfterTheSearchKeepPositions(t *testing.T) {
	r, _ := altered(t, AlwaysSignedMode, "ALTER TABLE memories ADD n integer, ADD found tsvector")
	sql := "SELECT 'ä', date_trunc('nö', occurred_at) /* 1 */ FROM memories WHERE (title ~ 'b(' AND found @@ 'x'::tsquery) AND n/2 > 1 GROUP BY n % 5"
	result, refusal := r.Rewrite(sql, false)
	if refusal != nil || result.AboveFenceReason == "" {
		t.Fatal(refusal, result.RowSecurityReason)
	}
	for _, word := range []string{"'ä'", "'nö'", "/* 1 */", "memories", "title", "'b('", "found", "n/2", "> 1", "n % 5"} {
		positionOfWord := func(text string) int { return len([]rune(text[:strings.LastIndex(text, word)])) + 1 }
		if got := result.Position(positionOfWord(result.Text)); got != positionOfWord(sql) && word != "memories" {
			t.Errorf("%s: %d, want %d", word, got, positionOfWord(sql))
		}
	}
}
