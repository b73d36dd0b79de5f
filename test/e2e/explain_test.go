package e2e

import (
	"strings"
	"testing"

	harness "github.com/pgconsent/pgconsent/test/instance"
)

// EXPLAIN returns a plan that clients can read. The plan does not depend on the rows in the tables.
func TestExplain(t *testing.T) {
	in := start(t, options{})
	c := in.agent(t)
	plan := func(a harness.Answer) string {
		if a.Err != "" {
			return a.Code
		}
		return strings.Join(a.Results[0].Rows, "\n")
	}
	const text = `Function Scan on generate_series "plan not shown to agents"  (cost=0.00..0.01 rows=1 width=0)`
	for sql, want := range map[string]string{
		"EXPLAIN SELECT * FROM memories":                          text,
		"EXPLAIN SELECT count(*) FROM memories WHERE title ~ 'a'": text,
		"EXPLAIN ANALYZE SELECT * FROM memories":                  "0A000",
		"EXPLAIN EXECUTE nothing":                                 "26000",
		"EXPLAIN SELECT * FROM nothing":                           "42501",
	} {
		if got := plan(harness.Ask(c, sql)); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
	before := plan(harness.Ask(c, "EXPLAIN (VERBOSE, FORMAT JSON) SELECT * FROM memories"))
	const changeSQL = "UPDATE people SET consent_status = 'revoked'; DELETE FROM memories WHERE title LIKE 'w%'; ANALYZE memories"
	if _, err := in.ownerConn(t).Exec(t.Context(), changeSQL); err != nil {
		t.Fatal(err)
	}
	if after := plan(harness.Ask(c, "EXPLAIN (VERBOSE, FORMAT JSON) SELECT * FROM memories")); after != before || !strings.Contains(after, `"Plan"`) {
		t.Errorf("the plan was\n%s\nand is\n%s", before, after)
	}
	// sqlx asks for the plan of the statement that it has prepared, and drivers bind EXPLAIN's parameters.
	if _, err := c.Prepare(t.Context(), "sqlx_s_1", "SELECT title FROM memories WHERE title LIKE $1", nil); err != nil {
		t.Fatal(err)
	}
	if got := plan(harness.Ask(c, "EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE sqlx_s_1(NULL)")); !strings.Contains(got, `"Plan"`) {
		t.Errorf("the plan of a prepared statement: %s", got)
	}
	if got := plan(harness.AskExtended(c, "EXPLAIN SELECT * FROM memories WHERE title = $1", []byte("x"))); !strings.Contains(got, "plan not shown") {
		t.Errorf("the plan of a statement with a parameter: %s", got)
	}
}
