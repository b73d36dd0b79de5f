package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// A search may be in a join, a sub-select or a WITH query, beside expressions that are not leak-safe. The rewriter then
// finds its rows by primary key on the signed path; the rest runs under row security.
func TestFoundByKey(t *testing.T) {
	r, _ := altered(t, AutoMode,
		"CREATE EXTENSION pg_trgm; ALTER TABLE memories ADD n integer, ADD price numeric, ADD found tsvector, ADD "+
			"secret text COLLATE \"en-x-icu\", ADD code text COLLATE \"C\"; CREATE INDEX ON memories USING gin "+
			"(found); CREATE INDEX ON memories USING gin (title gin_trgm_ops); CREATE INDEX ON memories USING gin "+
			"(secret gin_trgm_ops); CREATE INDEX ON memories USING gin (code gin_trgm_ops); CREATE INDEX ON "+
			"memories USING gin (to_tsvector('simple', coalesce(title, '')))")
	const searchCondition, leakyCondition = "m.found @@ plainto_tsquery('english', 'lake')", "p.name ~ '(?=x)'"
	const words = "to_tsvector('simple', coalesce(m.title, '')) @@ '!a'::tsquery"
	keys := func(condition string) string {
		return " AND m.id = ANY (ARRAY(SELECT m.id FROM pgconsent_signed.visible_public_memories AS m WHERE " + condition + "))"
	}
	found := searchCondition + keys(searchCondition)
	const from, fromQualified = " FROM memories m JOIN people p ON p.id = m.user_id WHERE ",
		" FROM public.memories m JOIN public.people p ON p.id = m.user_id WHERE "
	for sql, want := range map[string]string{
		"SELECT m.id" + from + searchCondition + " AND " +
			leakyCondition: "SELECT m.id" + fromQualified + found + " AND " + leakyCondition,
		"SELECT m.id" + from + leakyCondition + " AND (" + searchCondition +
			") ORDER BY n / 2 LIMIT 3;": "SELECT m.id" + fromQualified + leakyCondition + " AND (" + searchCondition + ")" +
			keys("("+searchCondition+")") +
			" ORDER BY n / 2 LIMIT 3;",
		"SELECT m.id" + from + "(" + searchCondition + " AND " + leakyCondition +
			") AND n / 2 > 1": "SELECT m.id" + fromQualified + "(" + found + " AND " + leakyCondition + ") AND n / 2 > 1",
		"SELECT m.id" + from + leakyCondition + " AND (" + searchCondition +
			" AND n / 2 > 1)": "SELECT m.id" + fromQualified + leakyCondition + " AND (" + found + " AND n / 2 > 1)",
		"SELECT date_trunc('day', m.occurred_at), count(*)" + from + searchCondition +
			" AND n > 3 AND m.title LIKE '%abc%' GROUP BY 1": "SELECT date_trunc('day', m.occurred_at), count(*)" +
			fromQualified + searchCondition + " AND n > 3 AND m.title LIKE '%abc%'" +
			keys(searchCondition+" AND n > 3 AND m.title LIKE '%abc%'") + " GROUP BY 1",
		"SELECT m.id FROM memories m LEFT JOIN people p ON p.id = m.user_id WHERE " + searchCondition + " AND coalesce(" +
			leakyCondition + ", true)": "SELECT m.id FROM public.memories m LEFT JOIN public.people p ON p.id = " +
			"m.user_id WHERE " + found + " AND coalesce(" + leakyCondition + ", true)",
		"WITH hits AS (SELECT m.id, m.n FROM memories m WHERE " + searchCondition +
			") SELECT n / 2, count(*) FROM hits GROUP BY 1": "WITH hits AS (SELECT m.id, m.n FROM public.memories " +
			"m WHERE " + found + ") SELECT n / 2, count(*) FROM hits GROUP BY 1",
		"SELECT * FROM (SELECT m.id, lpad(m.title, m.n) AS t FROM memories m WHERE " +
			searchCondition + ") q WHERE t > 'a'": "SELECT * FROM (SELECT m.id, lpad(m.title, m.n) AS t FROM public.memories m WHERE " + found + ") q WHERE t > 'a'",
		"SELECT p.id FROM people p, people q WHERE " + leakyCondition +
			" AND NOT EXISTS (SELECT FROM memories m WHERE m.user_id = p.id AND " + searchCondition +
			")": "SELECT p.id FROM public.people p, public.people q WHERE " + leakyCondition +
			" AND NOT EXISTS (SELECT FROM public.memories m WHERE m.user_id = p.id AND " + found + ")",
		"SELECT p.id FROM people p, people q WHERE " + leakyCondition +
			" AND p.id IN (SELECT m.user_id FROM memories m WHERE " + searchCondition +
			")": "SELECT p.id FROM public.people p, public.people q WHERE " + leakyCondition +
			" AND p.id IN (SELECT m.user_id FROM public.memories m WHERE " + found + ")",
		// it needs a hardened plan, because a sub-select may fail
		"SELECT p.id FROM people p, people q WHERE " + leakyCondition + " AND p.id IN (SELECT m.user_id FROM memories m WHERE " +
			searchCondition + " AND n / 2 = 1)": "",
		"SELECT m.id" + from + "m.found @@ plainto_tsquery('english', $1) AND " +
			leakyCondition: "SELECT m.id" + fromQualified + "m.found @@ plainto_tsquery('english', $1)" +
			keys("m.found @@ plainto_tsquery('english', $1)") + " AND " + leakyCondition,
		// it needs a hardened plan
		"SELECT m.id" + from + "m.found @@ plainto_tsquery('english', $1) AND p.name = lower($2) AND " + leakyCondition: "",
		"SELECT memories.id FROM memories, people p WHERE title ~* 'a{2}bcd' AND memories.user_id = p.id AND " +
			leakyCondition: "SELECT memories.id FROM public.memories, public.people p WHERE title ~* 'a{2}bcd' AND " +
			"memories.id = ANY (ARRAY(SELECT memories.id FROM pgconsent_signed.visible_public_memories AS memories " +
			"WHERE title ~* 'a{2}bcd')) AND memories.user_id = p.id AND " + leakyCondition,
		"SELECT m.id" + from + "m.found @@ 'a'::tsquery AND m.title::text LIKE '%abc%' AND " +
			leakyCondition: "SELECT m.id" + fromQualified + "m.found @@ 'a'::tsquery AND m.title::text LIKE '%abc%'" +
			keys("m.found @@ 'a'::tsquery AND m.title::text LIKE '%abc%'") + " AND " + leakyCondition,
		"SELECT m.id" + from +
			"m.title ILIKE $1 AND lpad(p.name, 3) = $2": "SELECT m.id" + fromQualified + "m.title ILIKE $1" + keys("m.title ILIKE $1") + " AND lpad(p.name, 3) = $2",

		"SELECT m.id FROM people p LEFT JOIN memories m ON m.user_id = p.id WHERE " + searchCondition + " AND " +
			leakyCondition: "SELECT m.id FROM public.people p LEFT JOIN public.memories m ON m.user_id = p.id WHERE " + found + " AND " +
			leakyCondition,
		"SELECT m.id" + from + words + " AND " +
			leakyCondition: "SELECT m.id" + fromQualified + words + keys(words) + " AND " + leakyCondition,
		"SELECT m.id FROM memories m LEFT JOIN people p ON p.id = m.user_id WHERE " + words + " AND " +
			leakyCondition: "SELECT m.id FROM public.memories m LEFT JOIN public.people p ON p.id = m.user_id WHERE " + words + keys(words) +
			" AND " + leakyCondition,
		// the outer join also returns people without a memory
		"SELECT p.id FROM people p LEFT JOIN memories m ON m.user_id = p.id WHERE " + words + " AND " + leakyCondition: "",
		"SELECT p.id FROM memories m RIGHT JOIN people p ON m.user_id = p.id WHERE " + words + " AND " +
			leakyCondition: "",
		"SELECT p.id FROM memories m FULL JOIN people p ON m.user_id = p.id WHERE " + words + " AND " +
			leakyCondition: "",
		"SELECT p.id FROM people q LEFT JOIN (people p JOIN memories m ON m.user_id = p.id) ON q.id = p.id WHERE " +
			words + " AND " + leakyCondition: "",
		"SELECT m.id, ts_rank_cd(found, q) AS rank FROM memories m, to_tsquery('english', 'a & b') q WHERE q @@ " +
			"found ORDER BY rank DESC LIMIT 10": "SELECT m.id, ts_rank_cd(found, q) AS rank FROM public.memories " +
			"m, to_tsquery('english', 'a & b') q WHERE q @@ found AND m.id = ANY (ARRAY(SELECT m.id FROM " +
			"pgconsent_signed.visible_public_memories AS m, to_tsquery('english', 'a & b') AS q WHERE q @@ found)) ORDER BY rank DESC LIMIT 10",
		"SELECT m.id FROM memories m CROSS JOIN plainto_tsquery('english', $1) AS w (words) JOIN people p ON p.id " +
			"= m.user_id WHERE m.found @@ words AND n > 1 AND " +
			leakyCondition: "SELECT m.id FROM public.memories m CROSS JOIN plainto_tsquery('english', $1) AS w (words) " +
			"JOIN public.people p ON p.id = m.user_id WHERE m.found @@ words AND n > 1 AND m.id = ANY " +
			"(ARRAY(SELECT m.id FROM pgconsent_signed.visible_public_memories AS m, plainto_tsquery('english', $1) AS " +
			"w (words) WHERE m.found @@ words AND n > 1)) AND " + leakyCondition,
		"SELECT m.id FROM memories m, to_tsquery('a | b') WHERE found @@ to_tsquery AND lpad(m.title, 3) = 'x'": "SELECT m.id " +
			"FROM public.memories m, to_tsquery('a | b') WHERE found @@ to_tsquery AND m.id = ANY (ARRAY(SELECT m.id " +
			"FROM pgconsent_signed.visible_public_memories AS m, to_tsquery('a | b') WHERE found @@ to_tsquery)) AND lpad(m.title, 3) = 'x'",
		"SELECT m.id FROM memories m, to_tsquery('a') q, to_tsquery('b') r WHERE found @@ r AND lpad(m.title, " +
			"3) = 'x'": "SELECT m.id FROM public.memories m, to_tsquery('a') q, to_tsquery('b') r WHERE found @@ " +
			"r AND m.id = ANY (ARRAY(SELECT m.id FROM pgconsent_signed.visible_public_memories AS m, to_tsquery('b') " +
			"AS r WHERE found @@ r)) AND lpad(m.title, 3) = 'x'",
		// the outer join may leave q NULL
		"SELECT p.id FROM people p, memories m LEFT JOIN to_tsquery('a') q ON m.n > 3 WHERE found @@ q AND " + leakyCondition: "",
		// the type of $1 cannot be inferred at this position
		"SELECT m.id FROM memories m, to_tsquery('english', $1) q WHERE found @@ q AND lpad(m.title, 3) = $1": "",
		"SELECT m.id FROM memories m, to_tsquery('english', m.title) q WHERE found @@ q":                      "",
		// the query text is invalid, so the conversion fails
		"SELECT m.id FROM memories m, to_tsquery('a b') q WHERE found @@ q AND lpad(m.title, 3) = 'x'":               "",
		"SELECT m.id FROM memories m, to_tsquery('a') WITH ORDINALITY q WHERE found @@ q AND lpad(m.title, 3) = 'x'": "",
		// the outer join also returns people without a memory
		"SELECT p.id FROM people p LEFT JOIN memories m ON m.user_id = p.id, to_tsquery('simple', '!x') q WHERE q " +
			"@@ to_tsvector('simple', coalesce(m.title, '')) AND " + leakyCondition: "",
		// the type of $1 cannot be inferred at this position
		"SELECT m.id" + from + "m.title ILIKE $1 AND lpad(p.name, 3) = $1": "",
		// the pattern has no trigram
		"SELECT m.id" + from + "m.title ILIKE '%ab%' AND " + leakyCondition: "",
		// body has no index
		"SELECT m.id" + from + "m.body LIKE '%abc%' AND " + leakyCondition: "",
		"SELECT m.id" + from + "m.code LIKE '%abc%' AND " +
			leakyCondition: "SELECT m.id" + fromQualified + "m.code LIKE '%abc%'" + keys("m.code LIKE '%abc%'") + " AND " + leakyCondition,
		// secret has another collation
		"SELECT m.id" + from + "m.secret LIKE '%abc%' AND " + leakyCondition: "",
		"SELECT m.id" + from + "(" + searchCondition + " OR " + leakyCondition +
			")": "",
		// the pattern has a column of another table
		"SELECT m.id" + from + "m.title LIKE '%' || p.name AND " + leakyCondition: "",
		"SELECT m.id" + from + "m.title ~ '(?=abc)' AND " +
			leakyCondition: "",
		"SELECT m.id FROM memories m JOIN people p USING (id) WHERE " + searchCondition + " AND " +
			leakyCondition: "",
		"SELECT j.n FROM (memories m JOIN people p ON true) AS j WHERE j.found @@ plainto_tsquery('english', " +
			"'lake') AND j.name ~ '(?=x)'": "",
		"SELECT m.a FROM memories AS m(a), people p WHERE " + searchCondition + " AND " +
			leakyCondition: "",
		// the sub-select depends on each row of people
		"SELECT p.id, (SELECT max(m.n / 2) FROM memories m WHERE m.user_id = p.id AND " + searchCondition + ") FROM people p": "",
		"SELECT p.id FROM people p, LATERAL (SELECT m.n / 2 FROM memories m WHERE m.user_id = p.id AND " + searchCondition +
			") x": "",
		// it needs a hardened plan
		"SELECT m.id" + from + searchCondition + " AND p.name = (SELECT min(1 / n)::text FROM memories)": "",
		"SELECT m.id FROM memories m JOIN pg_class p ON p.oid::text = m.title WHERE " + searchCondition +
			" AND p.relname ~ '(?=x)'": "",
		"SELECT m.id" + from + searchCondition + " AND " + leakyCondition +
			"; SELECT 1": "",
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		text := strings.ReplaceAll(result.Text, "pg_catalog.", "")
		switch {
		case want == "" && (result.NeedsSignature || len(result.SearchedByKey) > 0 || strings.Contains(text, "pgconsent_signed.visible_")):
			t.Errorf("%s: %s", sql, text)
		case want != "" && (text != want || len(result.SearchedByKey) != 1 || !result.NeedsSignature ||
			result.HardenedReason != "" || result.Path != verdict.PathRowSecurity):
			t.Errorf("%s: path %s, hardened %q, by key %v\n%s\n%s", sql, result.Path, result.HardenedReason, result.SearchedByKey, text, want)
		}
	}
}

// A leak-safe statement that joins tables has its rows found by primary key in any case. Whether it takes the signed
// path depends on sizes, which include hidden rows.
func TestFoundByKeyForAnySizes(t *testing.T) {
	const change = "ALTER TABLE memories ADD found tsvector; CREATE INDEX ON memories USING gin (found)"
	r, _ := altered(t, AutoMode, change)
	for sql, want := range map[string]bool{
		"SELECT m.title FROM memories m, people p WHERE m.found @@ plainto_tsquery('english', $1) AND p.id = m.user_id":                    true,
		"SELECT m.title FROM memories m JOIN people p ON p.id = m.user_id WHERE m.found @@ plainto_tsquery('english', $1) AND p.name = $2": false,
		"SELECT m.title FROM memories m JOIN people p ON p.id = m.user_id WHERE m.id = $2 AND m.found @@ plainto_tsquery('english', $1)":   true,
		"SELECT title FROM memories WHERE id = $2 AND found @@ plainto_tsquery('english', $1)":                                             false,
	} {
		var forms []string
		for _, rows := range []float64{1, 1e6} {
			sizes := catalog.Sizes{}
			for _, name := range []string{"memories", "people", "memory_participants"} {
				sizes[catalog.Name{Schema: "public", Name: name}] = catalog.Size{Rows: rows}
			}
			result, refusal := r.WithSizes(sizes).Rewrite(sql, true)
			if refusal != nil {
				t.Fatal(sql, refusal)
			}
			if got := len(result.SearchedByKey) > 0; got != want ||
				want && (!result.NeedsSignature || result.Forms[1] != verdict.SearchWords || !result.ExpectsForms || result.MayDeclare([]uint32{23}) ||
					result.HardenedReason != "") { // a hardened plan could not use an index for the keys
				t.Errorf("%s, %v rows, path %s: by key %v, forms %v, hardened %q", sql, rows, result.Path, got, result.Forms, result.HardenedReason)
			}
			forms = append(forms, strings.NewReplacer("public.", "", "pgconsent_signed.visible_public_",
				"", " AS memories", "", " AS people", "", predicate.UseIndexHint, "", predicate.UseHashHint,
				"", predicate.EstimateRowsHint(catalog.Name{Schema: "public", Name: "memories"}), "").Replace(result.Text))
		}
		if forms[0] != forms[1] {
			t.Errorf("sizes change more than names:\n%s\n%s", forms[0], forms[1])
		}
	}
}

// The position in a server error refers to the client's own text.
func TestFoundByKeyKeepsPositions(t *testing.T) {
	r, _ := altered(t, AutoMode, "ALTER TABLE memories ADD found tsvector; CREATE INDEX ON memories USING gin (found)")
	sql := "SELECT 'ä', m.title FROM memories m JOIN people p ON p.id = m.user_id WHERE m.found @@ 'x('::tsquery " +
		"AND p.name ~ '(?=y)' ORDER BY p.consent_status"
	result, refusal := r.Rewrite(sql, false)
	if refusal != nil || len(result.SearchedByKey) == 0 {
		t.Fatal(refusal, result.RowSecurityReason)
	}
	for _, word := range []string{"'ä'", "m.title", "p.id =", "~ '(?=y)'", "p.consent_status"} {
		positionOfWord := func(text string) int { return len([]rune(text[:strings.LastIndex(text, word)])) + 1 }
		if got := result.Position(positionOfWord(result.Text)); got != positionOfWord(sql) {
			t.Errorf("%s: %d, want %d", word, got, positionOfWord(sql))
		}
	}
	if first := strings.Index(result.Text, "'x('"); result.Position(len([]rune(result.Text[:first]))+
		1) != len([]rune(sql[:strings.Index(sql, "'x('")]))+1 {
		t.Error("the condition is elsewhere")
	}
}
