package rewrite

import (
	"strings"
	"testing"
)

// An agent that knows how accesses are detected tries to get around a contract; each attempt is refused.
func TestContractsHostile(t *testing.T) {
	r := underContract(t)
	for _, c := range []struct{ stage, sql, refusal string }{
		// The condition of a join compares an expression from a LATERAL sub-select by likeness.
		{"4", "SELECT a.id FROM agreement a JOIN LATERAL (SELECT a.description || '' AS x) s ON s.x % 'abc'",
			"contract retrieval, stage 4: agreement is not allowed; this statement would search it by likeness (vector)"},
		{"4", "SELECT a.id FROM agreement a JOIN LATERAL (SELECT description || '' AS x) s ON similarity(s.x, " +
			"'abc') > 0.3", "contract retrieval, stage 4: agreement is not allowed; this statement would search it by likeness (vector)"},
		{"4", "SELECT a.id FROM agreement a, LATERAL (SELECT a.description || '' AS x) s, LATERAL (SELECT s.x || " +
			"'' AS y) z WHERE z.y % 'abc'", "contract retrieval, stage 4: agreement is not allowed; this statement would search it by likeness (vector)"},
		// Set operations compare and count rows without a WHERE clause.
		{"0", "SELECT count(*) FROM (SELECT title FROM event INTERSECT ALL SELECT 'x') s",
			"contract retrieval, stage 0: event is not allowed; this statement would read it (structured)"},
		{"0", "SELECT count(*) FROM (SELECT title FROM event EXCEPT ALL SELECT 'x') s",
			"contract retrieval, stage 0: event is not allowed; this statement would read it (structured)"},
		{"0", "SELECT count(*) FROM (SELECT title FROM event UNION SELECT 'x') s",
			"contract retrieval, stage 0: event is not allowed; this statement would read it (structured)"},
		{"0", "SELECT count(*) FROM (SELECT title FROM event UNION ALL SELECT 'x') s", ""},
		{"0", "SELECT count(*) FROM (SELECT DISTINCT title FROM event) s", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT count(*) FROM (SELECT title FROM event OFFSET 1) s", ""},
		{"0", "SELECT count(*) FROM event e JOIN (VALUES ('x')) v (title) USING (title)", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT count(*) FROM event e NATURAL JOIN (SELECT 'x' AS title) v", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT count(*) FROM (SELECT title AS a, id FROM event) s JOIN (SELECT 'x' AS a) v USING (a)",
			"contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT count(*) FROM (SELECT id, title FROM event) s (title, id) WHERE s.id = 'x'", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT count(*) FROM event e (a, b, c, d, f) WHERE ROW(e) IS NULL", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT id FROM event ORDER BY event", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT count(*) FROM event e WHERE (e).title = 'x'", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT count(DISTINCT title) FROM event", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT count(*) FILTER (WHERE title > 'm') FROM event", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT rank() OVER (ORDER BY title) FROM event", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT rank() OVER w FROM event WINDOW w AS (ORDER BY title)", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT id, title AS id2 FROM event GROUP BY GROUPING SETS ((1), (2))", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT count(*) FROM event GROUP BY ROLLUP (title)", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT count(*) FROM (SELECT title t, id FROM event ORDER BY 1 LIMIT 1) s", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT id FROM (SELECT DISTINCT ON (1) title, id FROM event) s", "contract retrieval, stage 0: event is not allowed"},
		{"0", "WITH RECURSIVE w AS (SELECT title AS a, id FROM event UNION ALL SELECT a, id FROM w WHERE a > 'x') " +
			"SELECT count(*) FROM w", "contract retrieval, stage 0: event is not allowed"},
		{"0", "WITH RECURSIVE w AS (SELECT title AS a, id FROM event UNION SELECT a, id FROM w WHERE false) " +
			"SELECT count(*) FROM w", "contract retrieval, stage 0: event is not allowed"},
		{"0", "WITH event AS (SELECT title AS id, id AS title FROM event) SELECT id FROM event", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT s IS NOT NULL FROM (SELECT nullif(title, 'x') FROM event) s", "contract retrieval, stage 0: event is not allowed"},
		{"0", "SELECT count(s.x) FROM (SELECT nullif(title, 'x') AS x FROM event) s", "contract retrieval, stage 0: event is not allowed"},
		{"4", "SELECT id FROM agreement ORDER BY description OPERATOR(public.<->) 'we'",
			"contract retrieval, stage 4: agreement is not allowed; this statement would search it by likeness"},
		{"4", "SELECT id FROM agreement WHERE description OPERATOR(public.%) ANY (ARRAY['we'])",
			"contract retrieval, stage 4: agreement is not allowed; this statement would search it by likeness"},
		{"4", "WITH x (d, i) AS (SELECT description, id FROM agreement) SELECT i FROM x AS y (a, b, i) ORDER BY a " +
			"<-> 'we'", "contract retrieval, stage 4: agreement is not allowed"},
		{"4", "SELECT id FROM agreement a WHERE 'we' <% ANY (SELECT a.description)",
			"contract retrieval, stage 4: agreement is not allowed; this statement would search it by likeness"},
		{"4", "SELECT max(similarity(v, 'we')) FROM agreement a, unnest(ARRAY[a.description]) AS v",
			"contract retrieval, stage 4: agreement is not allowed; this statement would search it by likeness"},
		{"4", "SELECT j ->> 'description' <-> 'we' FROM (SELECT to_jsonb(a) AS j FROM agreement a) s",
			"contract retrieval, stage 4: agreement is not allowed; this statement would search it by likeness"},
		{"4", "SELECT k.x <-> 'we' FROM agreement a CROSS JOIN LATERAL (VALUES (a.description)) k (x)",
			"contract retrieval, stage 4: agreement is not allowed; this statement would search it by likeness"},
		{"4", "SELECT 1 FROM agreement a JOIN LATERAL (VALUES (a.description || '')) k (x) ON k.x % 'we'",
			"contract retrieval, stage 4: agreement is not allowed; this statement would search it by likeness"},
		{"4", "SELECT 1 FROM agreement a JOIN LATERAL ROWS FROM (upper(a.description)) AS k (x) ON k.x % 'we'",
			"contract retrieval, stage 4: agreement is not allowed; this statement would search it by likeness"},
	} {
		err := contractRefusal(t, r, c.sql, map[string]string{"stage": c.stage, "intent": "any"})
		switch {
		case err == nil && c.refusal != "":
			t.Errorf("stage %s: %s\n\tallowed; want %s", c.stage, c.sql, c.refusal)
		case err != nil && (c.refusal == "" || !strings.HasPrefix(err.Message, c.refusal)):
			t.Errorf("stage %s: %s\n\t%s; want %q", c.stage, c.sql, err.Message, c.refusal)
		}
	}
}
