package rewrite

import "testing"

// EXPLAIN of a statement that reads tables is replaced by EXPLAIN of a query that reads none, with the same options and
// parameters.
func TestExplainStandIn(t *testing.T) {
	const (
		standInTable = `pg_catalog.generate_series(1, 1) AS "plan not shown to agents"`
		plan         = "SELECT  FROM " + standInTable
	)
	for _, mode := range []Mode{InjectedMode, RowSecurityMode, AutoMode} {
		r := rewriter(t, mode)
		for sql, want := range map[string]string{
			"EXPLAIN SELECT * FROM people":                                         "EXPLAIN " + plan,
			"explain verbose SELECT name FROM people WHERE name LIKE 'a%';":        "explain verbose " + plan,
			"EXPLAIN (VERBOSE, FORMAT JSON) SELECT * FROM people":                  "EXPLAIN (VERBOSE, FORMAT JSON) " + plan,
			"EXPLAIN /* a */ (COSTS (off)) -- b\n (SELECT name FROM people)":       "",
			"EXPLAIN (COSTS off) -- b\n (SELECT name FROM people) UNION SELECT ''": "EXPLAIN (COSTS off) -- b\n " + plan,
			"EXPLAIN (SELECT name FROM people)":                                    "EXPLAIN " + plan,
			"EXPLAIN WITH p AS (SELECT * FROM people) SELECT count(*) FROM p":      "EXPLAIN " + plan,
			"EXPLAIN SELECT * FROM pg_class":                                       "EXPLAIN " + plan,
			"EXPLAIN SELECT * FROM match_memories('x', 1)":                         "EXPLAIN " + plan,
			"EXPLAIN SELECT id FROM people WHERE name = $1 AND id = $3":            "EXPLAIN SELECT $1, $2, $3 FROM " + standInTable,
			"EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE q (NULL, NULL)":                "EXPLAIN (VERBOSE, FORMAT JSON) " + plan,
			"EXPLAIN SELECT 1": "EXPLAIN SELECT 1",
		} {
			res, refusal := r.Rewrite(sql, false)
			switch {
			case refusal != nil && want != "":
				t.Errorf("%s: %v", sql, refusal)
			case refusal == nil && (res.Text != want || res.Tag != "EXPLAIN" || len(res.Accesses) > 0 || res.NeedsSignature):
				t.Errorf("%s goes out as %s", sql, res.Text)
			}
		}
	}
	_, refusal := rewriter(t, RowSecurityMode).Rewrite("EXPLAIN SELECT 1, pg_read_file('x') FROM people", false)
	if refusal == nil || refusal.Position != 19 {
		t.Errorf("the place of what is refused: %+v", refusal)
	}
}
