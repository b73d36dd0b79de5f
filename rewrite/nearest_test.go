package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// The exact second form of a search reads the same table below OFFSET 0. It runs only if the index search found too few
// rows.
func TestExactTwin(t *testing.T) {
	const beforeSearch, afterSearch, beforeLimit, afterTwin = "WITH pgconsent_near AS MATERIALIZED (SELECT * FROM (",
		") AS pgconsent_search WHERE EXISTS (SELECT 1 ",
		")) SELECT * FROM pgconsent_near WHERE (SELECT pg_catalog.count(*) FROM pgconsent_near) OPERATOR(pg_catalog.>=) COALESCE(",
		") AS pgconsent_exact WHERE (SELECT pg_catalog.count(*) FROM pgconsent_near) OPERATOR(pg_catalog.<) COALESCE("
	for text, want := range map[string]struct{ exact, resultColumns string }{
		"SELECT id FROM public.notes ORDER BY emb <-> '[1]' LIMIT 10": {
			"SELECT id FROM (SELECT * FROM public.notes OFFSET 0) AS notes ORDER BY emb <-> '[1]' LIMIT 10", "FROM public.notes WHERE emb IS NOT NULL"},
		"SELECT n.id FROM public.notes AS n WHERE n.a = 1 OR n.b ORDER BY n.emb <-> $1 LIMIT $2 OFFSET 3": {
			"SELECT n.id FROM (SELECT * FROM public.notes AS n WHERE n.a = 1 OR n.b OFFSET 0) AS n ORDER BY n.emb " +
				"<-> $1 LIMIT $2 OFFSET 3", "FROM public.notes AS n WHERE n.emb IS NOT NULL AND (n.a = 1 OR n.b)"},
		`SELECT "E" <=> '[1]', id FROM "S"."T" t ORDER BY 1 LIMIT 5`: {
			`SELECT "E" <=> '[1]', id FROM (SELECT * FROM "S"."T" t OFFSET 0) AS t ORDER BY 1 LIMIT 5`, `FROM "S"."T" t WHERE "E" IS NOT NULL`},
		`SELECT id, a <-> (b || a)::vector AS d FROM "S"."from" ORDER BY d LIMIT 5`: {
			`SELECT id, a <-> (b || a)::vector AS d FROM (SELECT * FROM "S"."from" OFFSET 0) AS "from" ` +
				`ORDER BY d LIMIT 5`, `FROM "S"."from" WHERE a IS NOT NULL AND b IS NOT NULL`},
		"SELECT (SELECT 1 FROM a.b) FROM (SELECT * FROM public.notes AS r WHERE (r.x = 1)) AS notes ORDER BY emb <-> '[1]' LIMIT 2": {
			"SELECT (SELECT 1 FROM a.b) FROM (SELECT * FROM (SELECT * FROM public.notes AS r WHERE (r.x = 1)) AS " +
				"notes OFFSET 0) AS notes ORDER BY emb <-> '[1]' LIMIT 2",
			"FROM (SELECT * FROM public.notes AS r WHERE (r.x = 1)) AS notes WHERE emb IS NOT NULL"},
		`SELECT "S".n.id FROM "S".n WHERE a = 1 AND "S".n.b ORDER BY "S".n.e <-> '[1]', n.id LIMIT 3`: {
			`SELECT n.id FROM (SELECT * FROM "S".n WHERE a = 1 AND "S".n.b OFFSET 0) AS n ORDER BY n.e <-> '[1]', n.id LIMIT 3`, `FROM "S".n ` +
				`WHERE "S".n.e IS NOT NULL AND (a = 1 AND "S".n.b)`},
		"SELECT a IS DISTINCT FROM (b) FROM (SELECT * FROM s.t) AS t WHERE a IS NOT DISTINCT FROM 1 ORDER BY e <-> '[1]' LIMIT 1": {
			"SELECT a IS DISTINCT FROM (b) FROM (SELECT * FROM (SELECT * FROM s.t) AS t WHERE a IS NOT DISTINCT " +
				"FROM 1 OFFSET 0) AS t ORDER BY e <-> '[1]' LIMIT 1", "FROM (SELECT * FROM s.t) AS t WHERE e IS NOT NULL AND (a IS NOT DISTINCT FROM 1)"},
		"SELECT id FROM s.t -- one\nWHERE a -- two\nORDER BY e <-> '[1]' -- three\nLIMIT 1 -- four": {
			"SELECT id FROM (SELECT * FROM s.t -- one\nWHERE a OFFSET 0) AS t -- two\nORDER BY e <-> '[1]' -- " +
				"three\nLIMIT 1", "FROM s.t WHERE e IS NOT NULL AND (a)"},
		"SELECT id FROM ONLY (s.t) WHERE a ORDER BY e <-> '[1]' LIMIT 1": {
			"SELECT id FROM (SELECT * FROM ONLY (s.t) WHERE a OFFSET 0) AS t ORDER BY e <-> '[1]' LIMIT 1", "FROM ONLY (s.t) WHERE e IS NOT NULL AND (a)"},
		"SELECT id FROM s.t * x ORDER BY e <-> '[1]' LIMIT 1": {
			"SELECT id FROM (SELECT * FROM s.t * x OFFSET 0) AS x ORDER BY e <-> '[1]' LIMIT 1", "FROM s.t * x WHERE e IS NOT NULL"},
		"SELECT id FROM s.t ORDER BY '[1]' <-> '[2]' LIMIT 1": {
			"SELECT id FROM (SELECT * FROM s.t OFFSET 0) AS t ORDER BY '[1]' <-> '[2]' LIMIT 1", "FROM s.t"},
		"/*pgconsent:use_hash*/SELECT extract(day FROM d) FROM public.notes ORDER BY e <-> 'ä' LIMIT 1; -- x": {
			"SELECT extract(day FROM d) FROM (SELECT * FROM public.notes OFFSET 0) AS notes ORDER BY e <-> 'ä' " +
				"LIMIT 1", "FROM public.notes WHERE e IS NOT NULL"},
	} {
		got, position, ok, refusal := withExactTwin(text)
		if refusal != nil || !ok {
			t.Errorf("%s: %v", text, refusal)
			continue
		}
		head, rest, _ := strings.Cut(got, beforeSearch)
		if head != text[:strings.Index(text, "SELECT")] {
			t.Errorf("%s: begins with %q", text, head)
		}
		search, rest, _ := strings.Cut(rest, afterSearch)
		rows, rest, _ := strings.Cut(rest, beforeLimit)
		limit, rest, _ := strings.Cut(rest, ", 0) UNION ALL SELECT * FROM (")
		twinText, limitAgain, _ := strings.Cut(rest, afterTwin)
		if !strings.HasPrefix(text[len(head):], search) || twinText != want.exact || rows != want.resultColumns ||
			limitAgain != limit+", 0)" || !strings.Contains(search, "LIMIT "+limit) {
			t.Errorf("%s became\n%s", text, got)
		}
		// An error position in the search maps to that position of the client's statement. A position in the second
		// form maps to the statement's beginning.
		searchPosition := strings.Index(got, search) + len("SELECT ") + 1
		if want := len(head) + len("SELECT ") + 1; position(searchPosition) != want {
			t.Errorf("%s: position %d, want %d", text, position(searchPosition), want)
		}
		if textLength := len([]rune(got)); position(textLength) != len(head)+1 || position(0) != 0 {
			t.Errorf("%s: the end is at %d", text, position(textLength))
		}
	}
	for _, text := range []string{
		"SELECT id FROM s.notes ORDER BY (SELECT e FROM s.b) <-> '[1]' LIMIT 5",
		"SELECT id FROM s.notes ORDER BY 1 LIMIT 5", "SELECT id FROM notes ORDER BY 1 LIMIT 5",
		"SELECT id FROM public.notes, public.notes n ORDER BY 1 LIMIT 5",
		"SELECT id FROM public.notes ORDER BY 1 LIMIT 2 + 3", "SELECT id FROM (SELECT 1 AS id LIMIT 1) AS n ORDER BY 1 LIMIT 5", "SELECT 1; SELECT 2",
		"SELECT a.n.id FROM a.n WHERE EXISTS (SELECT 1 FROM b.n) ORDER BY a.n.e <-> '[1]' LIMIT 3",
	} {
		if got, _, ok, refusal := withExactTwin(text); refusal != nil || ok || got != text {
			t.Errorf("%s: %v\n%s", text, refusal, got)
		}
	}
}

// Where the policy does not accept the index, only the exact form is sent, and its error positions map to the client's
// text.
func TestExactSearch(t *testing.T) {
	const text = "/*ä*/SELECT s.t.id FROM s.t WHERE a = 'ö' ORDER BY s.t.e <-> $1 LIMIT $2"
	got, position, ok, refusal := fenceSearch(text)
	if want :=
		"/*ä*/SELECT t.id FROM (SELECT * FROM s.t WHERE a = 'ö' OFFSET 0) AS t ORDER BY t.e <-> $1 LIMIT $2"; refusal != nil || !ok || got != want {
		t.Fatalf("%v %v\n%s", ok, refusal, got)
	}
	// A column may be called order.
	if got, _, ok, refusal := fenceSearch("SELECT m.id FROM s.t AS m WHERE m.order = 1 ORDER BY m.order, m.e <-> $1 LIMIT 3"); refusal != nil || !ok ||
		got != "SELECT m.id FROM (SELECT * FROM s.t AS m WHERE m.order = 1 OFFSET 0) AS m ORDER BY m.order, m.e <-> $1 LIMIT 3" {
		t.Errorf("%v %v\n%s", ok, refusal, got)
	}
	for _, word := range []string{"a = 'ö'", "<-> $1", "$2"} {
		server, client := []rune(got[:strings.Index(got, word)]), []rune(text[:strings.Index(text, word)])
		if p := position(len(server) + 1); p != len(client)+1 {
			t.Errorf("%s is at %d, want %d", word, p, len(client)+1)
		}
	}
	for _, text := range []string{
		"SELECT s.t.id FROM s.t WHERE EXISTS (SELECT FROM s.b) ORDER BY s.t.e <-> '[1]' LIMIT 3",
		"SELECT 1; SELECT 2", "SELECT id FROM a.b, c.d ORDER BY e <-> f LIMIT 1"} {
		if got, _, ok, refusal := fenceSearch(text); ok || refusal != nil || got != text {
			t.Errorf("%s: %v\n%s", text, refusal, got)
		}
	}
}

func TestSortedByDistance(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT 1 ORDER BY emb <-> $1": true, "SELECT 1 ORDER BY emb OPERATOR(public.<=>) $1, id": true, "SELECT emb <#> $1 AS d ORDER BY d": true,
		"SELECT id, emb <+> $1 ORDER BY 2 DESC": true, "SELECT 1 ORDER BY id, emb <-> $1": false, "SELECT id AS d ORDER BY d": false,
		"SELECT id ORDER BY 1": false, "SELECT id ORDER BY 2": false, "SELECT d AS d ORDER BY d": false, "SELECT 1 ORDER BY a < b": false,
	} {
		tree, refusal := sqltext.Parse(sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		s := tree.Stmts[0].Stmt.GetSelectStmt()
		if got := isDistance(s.SortClause[0].GetSortBy().Node, s.TargetList); got != want {
			t.Errorf("%s: %v", sql, got)
		}
	}
}
