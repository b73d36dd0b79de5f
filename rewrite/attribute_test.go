package rewrite

import (
	"slices"
	"strings"
	"testing"
)

// In a.b PostgreSQL calls the function b, or casts to the type b, where a has no column b. Which FROM item the name a
// means depends on scopes. Each statement here is refused: a is not the item that seems meant, and lacks the column.
func TestAttributeNotationFindsNoFunction(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for _, sql := range []string{
		// the alias of a join hides the item inside
		"WITH c AS (SELECT 1 AS pg_stat_get_live_tuples) SELECT (SELECT m.pg_stat_get_live_tuples FROM (c AS m " +
			"CROSS JOIN c AS k) AS j) FROM to_regclass('memories') AS m",
		"WITH c AS (SELECT 1 AS current_setting) SELECT (SELECT m.current_setting FROM (c AS m CROSS JOIN c AS k) AS j) FROM lower('pgconsent.seal') AS m",
		"WITH c AS (SELECT 1 AS pg_sleep) SELECT (SELECT x.pg_sleep FROM (SELECT m.* FROM (c AS m CROSS JOIN c AS k) AS j) AS x) FROM people AS m",
		"WITH c AS (SELECT 1 AS pg_sleep) SELECT x.pg_sleep FROM (SELECT * FROM (c AS m CROSS JOIN c AS k) AS j (a, b)) AS x",
		// a join's condition does not see the items beside the join
		"WITH c AS (SELECT 1 AS pg_sleep) SELECT (SELECT 1 FROM c AS m, (c AS x JOIN c AS y ON m.pg_sleep IS NULL)) FROM sqrt(4) AS m",
		// an item that is named after a cast, a value or the first of several functions
		`WITH c AS (SELECT 1 AS pg_stat_get_live_tuples) SELECT (SELECT "regclass".pg_stat_get_live_tuples FROM CAST('memories' AS regclass)) FROM c AS "regclass"`,
		`WITH c AS (SELECT 1 AS pg_sleep) SELECT (SELECT "coalesce".pg_sleep FROM coalesce(sqrt(4))) FROM c AS "coalesce"`,
		`WITH c AS (SELECT 1 AS secret) SELECT (SELECT "current_user".secret FROM ROWS FROM (current_user, abs(1))) FROM c AS "current_user"`,
		// an alias renames the first columns of XMLTABLE, and without one it is an item all the same
		"SELECT x.pg_sleep FROM XMLTABLE('/a' PASSING xml '<a/>' COLUMNS pg_sleep int) AS x (b)",
		"SELECT x.pg_sleep FROM XMLTABLE('/a' PASSING xml '<a/>' COLUMNS a int) AS x",
		`WITH c AS (SELECT 1 AS pg_sleep) SELECT (SELECT "xmltable".pg_sleep FROM XMLTABLE('/a' PASSING xml '<a/>' COLUMNS b int)) FROM c AS "xmltable"`,
		// casts in attribute notation
		"SELECT age(((ARRAY['3'])._xid8)[1])",
		"SELECT x._xid8 FROM lower('{3}') AS x",
		"SELECT ('x'::text).checked_text",
		"SELECT (now()).age",
	} {
		if result, refusal := r.Rewrite(sql, false); refusal == nil {
			t.Errorf("%s: allowed as %s", sql, result.Text)
		} else if !strings.Contains(refusal.Message, "attribute notation") {
			t.Errorf("%s: refused for another reason: %s", sql, refusal.Message)
		}
	}
}

// Where a name is certain to be a column's, it is read as a column, even if functions have the same name.
func TestColumnsNamedLikeFunctions(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for _, sql := range []string{
		"WITH c AS (SELECT *, 1 AS age FROM people) SELECT c.age FROM c",
		"WITH c (id, age) AS (SELECT id, 1 FROM people) SELECT c.age FROM c",
		"SELECT x.age FROM (SELECT p.*, 1 AS age FROM people p) AS x",
		"SELECT y.age FROM (SELECT x.* FROM (SELECT 1 AS age) AS x) AS y",
		"SELECT x.age FROM (VALUES (1)) AS x (age)",
		"SELECT x.age FROM generate_series(1, 3) AS x (age)",
		"SELECT x.age FROM jsonb_to_record('{}') AS x (name text, age int)",
		"SELECT x.age, x.b FROM XMLTABLE('/a' PASSING xml '<a/>' COLUMNS b int, age int) AS x",
		"SELECT x.age, x.checked_text, x.b FROM XMLTABLE('/a' PASSING xml '<a/>' COLUMNS a int, age int, checked_text text) AS x (b)",
		"SELECT y.age FROM (SELECT * FROM XMLTABLE('/a' PASSING xml '<a/>' COLUMNS age int) AS x) AS y",
		"SELECT x.age FROM (SELECT 1 AS age) AS x WHERE EXISTS (SELECT 1 FROM people p WHERE x.age > 0)",
		"SELECT (m).system, (m).bernoulli FROM memories m", // a sampling method cannot be called with an expression
	} {
		if _, refusal := r.Rewrite(sql, false); refusal != nil {
			t.Errorf("%s: %s", sql, refusal.Message)
		}
	}
}

// A listed function of a row type is also a function in attribute notation. The audit record lists it, and the table
// still counts as read.
func TestListedFunctionsInAttributeNotation(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for _, sql := range []string{"SELECT m.caption FROM memories m", "SELECT memories.caption FROM memories",
		"SELECT public.memories.caption FROM memories", "SELECT (m).caption FROM memories AS m"} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %s", sql, refusal.Message)
			continue
		}
		if !slices.Contains(result.Functions, "public.caption") || strings.Contains(result.Text, "WHERE") {
			t.Errorf("%s: %s calls %q", sql, result.Text, result.Functions)
		}
	}
}

// A call in attribute notation does not take the signed path either, because the row types of its views differ.
func TestListedFunctionsInAttributeNotationAreNotLeakSafe(t *testing.T) {
	r := rewriter(t, AutoMode)
	for _, sql := range []string{"SELECT m.caption FROM memories m", "SELECT (m).caption FROM memories m",
		"SELECT count(*) FROM memories m WHERE m.caption = 'x'"} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %s", sql, refusal.Message)
		} else if result.NeedsSignature {
			t.Errorf("%s takes the signed path: %s", sql, result.Text)
		}
	}
	if result, refusal := r.Rewrite("SELECT count(*) FROM memories m WHERE m.title = 'x'", false); refusal != nil || !result.NeedsSignature {
		t.Errorf("a plain condition does not take the signed path: %v", refusal)
	}
}
