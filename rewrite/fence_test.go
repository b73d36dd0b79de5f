package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A table whose rows an approximate index might order is wrapped in a subquery with OFFSET 0. Where the policy accepts
// such an index, and a search is the whole statement, the rewriter adds an exact second form instead.
func TestSearchesAreFenced(t *testing.T) {
	rewriter(t, RowSecurityMode)
	memories, _ := fixture.snap.Relation(catalog.Name{Schema: "public", Name: "memories"})
	patients, _ := fixture.snap.Relation(catalog.Name{Schema: "public", Name: "patients"})
	memories.HasApproximateIndex, patients.HasApproximateIndex = true, true
	defer func() { memories.HasApproximateIndex, patients.HasApproximateIndex = false, false }()
	pol := *fixture.pol
	memoriesTable, _ := pol.Table(memories.Name)
	defer func() { memoriesTable.Approximate = false }()
	const table, view, injectedText, wholeTable = "(SELECT * FROM public.memories OFFSET 0)", "public_patients OFFSET 0)",
		"END) IS NOT NULL OFFSET 0)", "END) IS NOT NULL) AS memories OFFSET 0)"
	for i, mode := range []Mode{RowSecurityMode, RowSecurityMode, AutoMode, AutoMode, InjectedMode, InjectedMode} {
		memoriesTable.Approximate = i%2 == 1
		r := New(fixture.snap, &pol, mode)
		searches := map[bool]int{true: 1}[!memoriesTable.Approximate]
		for sql, fenced := range map[string]int{
			"SELECT count(*) FROM (SELECT id FROM memories ORDER BY embedding <-> '(1,1)' LIMIT 3) x":                                    1,
			"SELECT min(m.embedding <-> '(1,1)') FROM memories m":                                                                        1,
			"SELECT id FROM memories ORDER BY embedding <-> '(1,1)'":                                                                     1,
			"SELECT id FROM memories ORDER BY embedding <-> '(1,1)' LIMIT 3":                                                             searches,
			"SELECT id FROM ONLY memories ORDER BY embedding <-> '(1,1)' LIMIT 3":                                                        searches,
			"SELECT id FROM memories * ORDER BY embedding <-> '(1,1)' LIMIT 3":                                                           searches,
			"SELECT id, (SELECT count(*) FROM memories) FROM memories ORDER BY embedding <-> '(1,1)' LIMIT 3":                            searches,
			"SELECT id, (SELECT min(m.embedding <-> '(1,1)') FROM memories m) FROM memories ORDER BY embedding <-> '(1,1)' LIMIT 3":      1 + searches,
			"WITH n AS (SELECT id, embedding FROM memories) SELECT id FROM n ORDER BY embedding <-> '(1,1)' LIMIT 3":                     1,
			"SELECT a.id FROM memories a JOIN memories b ON a.embedding <-> b.embedding < 1":                                             2,
			"SELECT p.name FROM people p, LATERAL (SELECT id FROM memories ORDER BY embedding OPERATOR(public.<->) '(1,1)' LIMIT 1) n":   1,
			"SELECT public.memories.id FROM memories JOIN people USING (user_id) ORDER BY public.memories.embedding <-> '(1,1)' LIMIT 1": 1,
			"SELECT name FROM people WHERE user_id IN (SELECT user_id FROM memories) ORDER BY name":                                      0,
			"SELECT id FROM memories WHERE title = 'x' ORDER BY title":                                                                   0,
			"SELECT title, min(embedding <-> '(1,1)') FROM memories GROUP BY id":                                                         0,
			"SELECT id FROM memories GROUP BY embedding <-> '(1,1)', id LIMIT 3":                                                         1,
			"SELECT m.id, m.embedding <-> '(1,1)' AS d FROM memories AS m GROUP BY d, m.id LIMIT 3":                                      1,
			"SELECT embedding <-> '(1,1)', id FROM memories GROUP BY 1, 2 LIMIT 3":                                                       1,
			"SELECT id FROM memories GROUP BY ROLLUP (id, (embedding <-> '(1,1)', id))":                                                  1,
			// the window function counts the rows that the index found
			"SELECT count(*) OVER () FROM memories ORDER BY embedding <-> '(1,1)' LIMIT 1":                                     1,
			"SELECT id FROM memories ORDER BY embedding <-> '(1,1)', rank() OVER (ORDER BY id) LIMIT 1":                        1,
			"SELECT min(embedding <-> '(1,1)') FROM memories ORDER BY '(1,1)'::cube <-> '(1,2)' LIMIT 1":                       1,
			"SELECT array_agg(id ORDER BY embedding <-> '(1,1)') FROM memories ORDER BY '(1,1)'::cube <-> '(1,2)' LIMIT 1":     1,
			"SELECT json_arrayagg(id ORDER BY embedding <-> '(1,1)') FROM memories ORDER BY '(1,1)'::cube <-> '(1,2)' LIMIT 1": 1,
			"UPDATE drafts SET title = 'x' WHERE id IN (SELECT id FROM memories ORDER BY embedding <-> '(1,1)' LIMIT 3)":       1,
			"COPY (SELECT id FROM memories m ORDER BY m.embedding <-> '(1,1)') TO STDOUT":                                      1,
			"PREPARE p AS SELECT id FROM memories m ORDER BY m.embedding <-> $1 LIMIT 3":                                       1,
			// the rewriter cannot write an exact form of this search
			"SELECT id FROM memories ORDER BY embedding <-> (SELECT '(1,1)'::cube) LIMIT 3":                  1,
			"SELECT public.memories.id FROM memories ORDER BY public.memories.embedding <-> '(1,1)' LIMIT 3": searches,
			"SELECT id FROM patients ORDER BY '(1,1)'::cube <-> '(1,1)'":                                     1,
		} {
			result, refusal := r.Rewrite(sql, false)
			if refusal != nil {
				t.Errorf("%d, %s: %v", mode, sql, refusal)
				continue
			}
			text := result.Text
			if twinStart := strings.Index(text, "UNION ALL SELECT * FROM ("); twinStart >= 0 {
				text = text[:twinStart]
			}
			text = strings.NewReplacer("ONLY ", "", "memories *", "memories").Replace(text)
			got := strings.Count(text, table) + strings.Count(text, view) + strings.Count(text, injectedText) + strings.Count(text, wholeTable)
			if got != fenced || strings.Contains(text, "public.memories.id") && fenced > 0 {
				t.Errorf("%d, %s: %d fences, want %d:\n%s", mode, sql, got, fenced, result.Text)
			}
		}
		for _, sql := range []string{
			"SELECT tableoid FROM memories ORDER BY embedding <-> '(1,1)'",
			"SELECT id FROM ONLY memories ORDER BY embedding <-> '(1,1)'", "SELECT id FROM memories * ORDER BY embedding <-> '(1,1)'",
		} {
			if _, refusal := r.Rewrite(sql, false); refusal == nil || refusal.Code != "0A000" {
				t.Errorf("%s: %v", sql, refusal)
			}
		}
	}
	memories.HasApproximateIndex, patients.HasApproximateIndex = false, false
	if result, refusal := New(fixture.snap, &pol,
		RowSecurityMode).Rewrite("SELECT min(embedding <-> '(1,1)') FROM memories",
		false); refusal != nil || strings.Contains(result.Text, "OFFSET") {
		t.Errorf("without such an index: %v, %s", refusal, result.Text)
	}
}

// Only a plain search gets the exact second form, and only where the policy accepts the index. In other statements each
// reference that the index might order is below OFFSET 0, or the statement is refused.
func TestOnlyPlainSearchesHaveTwins(t *testing.T) {
	tier.All(t)
	rewriter(t, RowSecurityMode)
	memories, _ := fixture.snap.Relation(catalog.Name{Schema: "public", Name: "memories"})
	memories.HasApproximateIndex = true
	memoriesTable, _ := fixture.pol.Table(memories.Name)
	defer func() { memories.HasApproximateIndex, memoriesTable.Approximate = false, false }()
	const plainFrom, distance = "memories AS m", "m.embedding <-> '(1,1)'"
	for i, mode := range []Mode{RowSecurityMode, AutoMode, InjectedMode, RowSecurityMode, AutoMode, InjectedMode} {
		memoriesTable.Approximate = i < 3
		r := New(fixture.snap, fixture.pol, mode)
		twins, fenced := 0, 0
		for _, withClause := range []string{"", "WITH x AS (SELECT id FROM memories ORDER BY embedding <-> '(1,1)' LIMIT 1) "} {
			for _, list := range []string{"m.id", "DISTINCT " + distance, "DISTINCT ON (" + distance + ") m.id", "m", "count(*) OVER ()"} {
				for _, from := range []string{plainFrom, "memories AS m (a)", "memories AS m, people",
					"people JOIN memories AS m ON true", "(SELECT * FROM memories) AS m", "people CROSS JOIN LATERAL (SELECT * FROM memories) AS m"} {
					for _, afterFrom := range []string{
						"", "WHERE m.title = 'a' ", "GROUP BY m.title, m.embedding ", "GROUP BY " + distance + ", m.id ", "WINDOW w AS () "} {
						for _, end := range []string{"LIMIT 3", "", "LIMIT ALL", "LIMIT 1 + 1", "FETCH FIRST 3 ROWS WITH TIES", "LIMIT 3 OFFSET 1"} {
							sql := withClause + "SELECT " + list + " FROM " + from + " " + afterFrom + "ORDER BY " + distance + " " + end
							result, refusal := r.Rewrite(sql, false)
							if refusal != nil {
								continue
							}
							mentionCount := strings.Count(result.Text, "public.memories")
							fencedMentions := strings.Count(result.Text, "public.memories OFFSET 0)") + strings.Count(result.Text, "IS NOT NULL OFFSET 0)")
							if !memoriesTable.Approximate && from == plainFrom &&
								fencedMentions < mentionCount { // the search itself and its WHERE are not below OFFSET 0
								fencedMentions += strings.Count(result.Text, " OFFSET 0) AS m ORDER BY m.embedding <->")
							}
							if !strings.Contains(result.Text, nearHead) {
								if fenced++; mentionCount != fencedMentions {
									t.Fatalf("mode %d, %s: %d of %d mentions are fenced in: %s", mode, sql, fencedMentions, mentionCount, result.Text)
								}
								continue
							}
							twins++
							if !memoriesTable.Approximate || withClause != "" || from != plainFrom ||
								strings.Contains(list, "DISTINCT") || strings.Contains(list, "OVER") || list == "m" ||
								strings.HasPrefix(afterFrom, "GROUP") || strings.HasPrefix(afterFrom, "WINDOW") || !strings.HasPrefix(end, "LIMIT 3") {
								t.Fatalf("mode %d, %s has a twin: %s", mode, sql, result.Text)
							}
						}
					}
				}
			}
		}
		if memoriesTable.Approximate && twins < 4 || fenced < 300 {
			t.Errorf("mode %d: %d twins, %d that are fenced in", mode, twins, fenced)
		}
	}
}

// An index of a partition or child may order the rows of its parent, at any depth, so the parent is wrapped in OFFSET
// 0.
func TestIndexesOfPartsAreFenced(t *testing.T) {
	r, _ := altered(t, RowSecurityMode, `CREATE TABLE shelf (id integer, owner uuid, at cube) PARTITION BY LIST (id);
		CREATE TABLE shelf_1 PARTITION OF shelf FOR VALUES IN (1) PARTITION BY LIST (id);
		CREATE TABLE shelf_2 PARTITION OF shelf_1 FOR VALUES IN (1)`)
	doc, err := policy.Parse("policy.yaml",
		[]byte("version: 1\nattributes: { user: { type: uuid, source: credential } }\ntables: { shelf: { rows: [ own: { column: owner, is: user } ] } }\n"))
	if err != nil {
		t.Fatal(err)
	}
	partition, _ := r.snap.Relation(catalog.Name{Schema: "public", Name: "shelf_2"})
	partition.HasApproximateIndex = true
	pol, err := policy.Compile(doc, r.snap, policy.WithViews(RewriteViewQuery))
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []Mode{RowSecurityMode, AutoMode, InjectedMode} {
		for _, sql := range []string{"SELECT id FROM shelf ORDER BY at <-> '(1,1)' LIMIT 3",
			"SELECT min(s.at <-> '(1,1)') FROM shelf AS s", "SELECT id FROM shelf ORDER BY at <-> '(1,1)'"} {
			result, refusal := New(r.snap, pol, mode).Rewrite(sql, false)
			if refusal != nil || !strings.Contains(result.Text, "OFFSET 0") {
				t.Errorf("mode %d, %s: %v, %s", mode, sql, refusal, result.Text)
			}
		}
	}
}

// A table is also wrapped in OFFSET 0 if an index may order it by a distance operator that fails for some values.
// Geometric types have such operators, and extensions for numbers and times.
func TestDistancesThatFailAreFenced(t *testing.T) {
	plain, _ := altered(t, RowSecurityMode, `ALTER TABLE memories ADD x point; ALTER TABLE people ADD x lseg; ALTER TABLE notes ADD x path;
		ALTER TABLE parents ADD x box; ALTER TABLE memory_participants ADD x polygon;
		CREATE DOMAIN round AS circle; ALTER TABLE meters ADD x round; ALTER TABLE drafts ADD x line`)
	times, _ := altered(t, RowSecurityMode, "CREATE EXTENSION btree_gist")
	for _, c := range []struct {
		r            *Rewriter
		sql          string
		fencedSearch bool
	}{
		{plain, "SELECT 1 FROM memories ORDER BY x <-> '(0,0)'::point LIMIT 3", true},
		{plain, "SELECT 1 FROM people ORDER BY x <-> '(0,0)'::point LIMIT 3", true},
		{plain, "SELECT 1 FROM notes ORDER BY x <-> '(0,0)'::point LIMIT 3", true},
		{plain, "SELECT 1 FROM parents ORDER BY x <-> '(0,0)'::point LIMIT 3", true},
		{plain, "SELECT 1 FROM memory_participants ORDER BY x <-> '(0,0)'::point LIMIT 3", true},
		{plain, "SELECT 1 FROM meters ORDER BY x <-> '(0,0)'::point LIMIT 3", true},
		{plain, "SELECT 1 FROM drafts ORDER BY x <-> '(0,0)'::point LIMIT 3", true},
		{plain, "SELECT 1 FROM memories ORDER BY title LIMIT 3", false},
		{plain, "SELECT 1 FROM pages ORDER BY '(1,1)'::point <-> '(0,0)'::point LIMIT 3", false},
		{times, "SELECT 1 FROM memories ORDER BY occurred_at <-> now() LIMIT 3", true},
		{times, "SELECT 1 FROM memories ORDER BY occurred_at LIMIT 3", false},
	} {
		result, refusal := c.r.Rewrite(c.sql, false)
		if refusal != nil || strings.Contains(result.Text, " OFFSET 0)") != c.fencedSearch {
			t.Errorf("%s: %v, %s", c.sql, refusal, result.Text)
		}
	}
}
