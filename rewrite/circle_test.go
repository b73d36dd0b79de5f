package rewrite

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// WITH RECURSIVE queries may refer only to themselves or to each other. PostgreSQL refuses most of these. The rewriter
// must terminate in each case.
func TestRecursiveQueriesTerminate(t *testing.T) {
	r := rewriter(t, AutoMode)
	for _, sql := range []string{
		"WITH RECURSIVE x (n) AS (SELECT n FROM x) SELECT * FROM x",
		"WITH RECURSIVE x (n) AS (SELECT n FROM x) SELECT count(x), count(x.n), max(n) FROM x ORDER BY x",
		"WITH RECURSIVE x AS (SELECT * FROM x) SELECT x FROM x",
		"WITH RECURSIVE x AS (SELECT (x).* FROM x) SELECT (x).* FROM x",
		"WITH RECURSIVE x (n) AS (SELECT m FROM y), y (m) AS (SELECT n FROM x) SELECT n, m FROM x, y",
		"WITH RECURSIVE x (a, b) AS (SELECT b, a FROM x) SELECT a FROM x WHERE b = a",
		"WITH RECURSIVE w (i) AS (SELECT n FROM x), x (n) AS (SELECT m FROM y), y (m) AS (SELECT k FROM z), z (k) AS (SELECT m FROM y) SELECT i FROM w",
		"WITH RECURSIVE x (n) AS (SELECT z.n FROM (SELECT n FROM x) AS z) DELETE FROM memories USING x RETURNING n",
	} {
		_, _ = r.Rewrite(sql, false)
	}
	dice := rand.New(rand.NewPCG(1, 2))
	names, columns := []string{"x", "y", "z", "memories"}, []string{"a", "b", "id", "content", "*", "(q).*", "q", "1"}
	pick := func(choices []string) string { return choices[dice.IntN(len(choices))] }
	body := func() string {
		randomQuery := func() string {
			return fmt.Sprintf("SELECT q.%s, %s FROM %s AS q", pick(columns[:5]), pick(columns), pick(names))
		}
		if dice.IntN(3) == 0 {
			return randomQuery() + " UNION ALL " + randomQuery()
		}
		return randomQuery()
	}
	answeredCount := 0
	for range 600 {
		var queries []string
		for _, name := range names[:1+dice.IntN(3)] {
			queries = append(queries, name+[]string{"", " (a, b)"}[dice.IntN(2)]+" AS ("+body()+")")
		}
		if _, refusal := r.Rewrite("WITH RECURSIVE "+strings.Join(queries, ", ")+" "+body()+" ORDER BY 1", false); refusal == nil {
			answeredCount++
		}
	}
	if answeredCount < 60 {
		t.Errorf("%d of 600 are answered: they ask little", answeredCount)
	}
}
