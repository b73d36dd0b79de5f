package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The outermost SELECT may return the result of any PostgreSQL function, operator and cast on the signed path. It may
// not sort, group or compare by each of them.
func TestOutputsTakeTheSignedPath(t *testing.T) {
	r, _ := altered(t, AlwaysSignedMode, "ALTER TABLE memories ADD n integer, ADD price numeric, ADD day date, ADD f float8")
	cases := map[string]bool{
		"SELECT id, ts_headline('english', body, plainto_tsquery('english', $1)) FROM memories WHERE body ILIKE " +
			"'%' || $1 || '%' LIMIT $2": true,
		"SELECT title || ' x' || to_char(occurred_at, 'YYYY') FROM memories ORDER BY occurred_at": true,
		"SELECT (metadata ->> 'stars')::float8, price::bigint / n, md5(title), ARRAY[title, body], -n, n % 2 = 0 " +
			"FROM memories": true,
		"SELECT id, (SELECT count(*) FROM people) / n FROM memories": true,
		"SELECT user_id, count(*) FILTER (WHERE date_trunc('day', occurred_at) > now() - interval '1 day') * " +
			"100.0 / count(*) AS pct FROM memories GROUP BY 1 ORDER BY pct DESC": true,
		"SELECT user_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS p FROM memories GROUP BY 1 HAVING " +
			"avg(n + 1) > 3 AND (stddev(n) > 0 OR sum(n) / 2 > 1) ORDER BY 2": true,
		"SELECT id, row_number() OVER (PARTITION BY user_id ORDER BY occurred_at) AS rn, lag(n, 1) OVER w FROM " +
			"memories WINDOW w AS (ORDER BY n ROWS 3 PRECEDING) ORDER BY rn": true,
		"SELECT jsonb_agg(jsonb_build_object('id', id, 'title', left(title, n)) ORDER BY occurred_at DESC) FROM " +
			"memories": true,
		"SELECT n, sum(count(*)) OVER (PARTITION BY n ORDER BY sum(n) / 2) FROM memories GROUP BY n":                 true,
		"SELECT DISTINCT ON (n) n, n / 2 FROM memories":                                                              true,
		"SELECT max(n) FILTER (WHERE n / 2 > 3), string_agg(upper(title) || n::text, ', ' ORDER BY n) FROM memories": true,
		"WITH m AS (SELECT n FROM memories) SELECT n / 2 FROM m":                                                     true,
		"SELECT n / 2 FROM (SELECT n FROM memories ORDER BY n LIMIT 3) m":                                            true,

		"SELECT id FROM memories WHERE $1::int IS NULL OR n = $1":    true, // one type, whichever operand PostgreSQL sees first
		"SELECT id FROM memories WHERE $1::bigint IS NULL OR n = $1": true,
		"SELECT id FROM memories WHERE $1::int2 IS NULL OR n = $1":   false,
		"SELECT id FROM memories WHERE $1::float4 IS NULL OR f > $1": false,
		"SELECT id FROM memories WHERE n = $1::int LIMIT $1":         false,
		"SELECT id FROM memories WHERE f = ANY (ARRAY[1.5, 2])":      true,
		"SELECT id FROM memories WHERE f = ANY (ARRAY[1.5, f])":      true,
		"SELECT id FROM memories WHERE price = ANY (ARRAY[1.5, n])":  true,
		"SELECT id FROM memories WHERE f = ANY (ARRAY[1.5, n])":      false,

		"SELECT n / 2 AS k FROM memories ORDER BY k":                                                         false,
		"SELECT n / 2 FROM memories ORDER BY 1":                                                              false,
		"SELECT id FROM memories ORDER BY n / 2":                                                             false,
		"SELECT id FROM memories ORDER BY n / (SELECT count(*) FROM people)":                                 false, // the count is of another table
		"SELECT DISTINCT n / 2 FROM memories":                                                                false,
		"SELECT DISTINCT ON (n / 2) n FROM memories":                                                         false,
		"SELECT n / 2, count(*) FROM memories GROUP BY 1":                                                    false,
		"SELECT n, count(*) FROM memories GROUP BY n HAVING n / 2 > 5":                                       false,
		"SELECT n, count(*) FROM memories GROUP BY n HAVING count(*) > 3 AND n / 2 > 5":                      false,
		"SELECT n, count(*) FROM memories GROUP BY n HAVING n / 2 > 5 OR count(*) > 3":                       false,
		"SELECT n, count(*) FROM memories GROUP BY n HAVING NOT (n / 2 > 5)":                                 false,
		"SELECT max(n / 2) FROM memories":                                                                    false, // the planner adds IS NOT NULL
		"SELECT bool_and(n / 2 > 1) FROM memories":                                                           false,
		"SELECT max(n / 2) OVER () FROM memories":                                                            false,
		"SELECT rank() OVER (ORDER BY n / 2) FROM memories":                                                  false,
		"SELECT rank() OVER w FROM memories WINDOW w AS (PARTITION BY n / 2)":                                false,
		"SELECT array_agg(n) FROM memories":                                                                  false, // the order depends on the plan
		"SELECT jsonb_agg(n / 2) FROM memories":                                                              false,
		"SELECT row_number() OVER (PARTITION BY n) FROM memories":                                            false,
		"SELECT lag(n / 2) OVER w FROM memories WINDOW w AS (PARTITION BY n)":                                false,
		"SELECT lag(n / 2) OVER v FROM memories WINDOW w AS (ORDER BY n), v AS (w)":                          true,
		"SELECT stddev(price), variance(n) FROM memories":                                                    true,
		"SELECT stddev(n / 2.0) FROM memories":                                                               false,
		"SELECT array_agg(n ORDER BY n / 2) FROM memories":                                                   false,
		"SELECT array_agg(DISTINCT n / 2) FROM memories":                                                     false,
		"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n / 2) FROM memories":                            false,
		"SELECT n / 2 FROM memories UNION ALL SELECT n FROM memories":                                        false,
		"SELECT q FROM (SELECT n / 2 AS q FROM memories) m":                                                  false,
		"WITH m AS (SELECT n / 2 AS q FROM memories) SELECT q FROM m":                                        false,
		"SELECT (SELECT n / 2) FROM memories":                                                                false,
		"SELECT EXISTS (SELECT n / 2 FROM people) FROM memories":                                             false,
		"SELECT id FROM memories WHERE n / 2 > 1":                                                            false,
		"SELECT m.id FROM memories m JOIN people p ON n / 2 > 1":                                             false,
		"SELECT n, count(*) FROM memories GROUP BY n HAVING CASE WHEN true THEN n / 2 ELSE count(*) END > 5": false, // constant folding moves it into WHERE
		"SELECT n, count(*) FROM memories GROUP BY n HAVING (count(*) > 0 AND n / 2 > 5) = true":             false,
		"SELECT n, count(*) FROM memories GROUP BY n ORDER BY CASE WHEN true THEN n / 2 ELSE count(*) END":   false,
		"SELECT n, CASE WHEN true THEN n / 2 ELSE count(*) END FROM memories GROUP BY n ORDER BY 2":          false,
		"SELECT price::float8 FROM memories ORDER BY price":                                                  false, // price means the result column
		"SELECT price::float8 FROM memories ORDER BY memories.price":                                         true,
		"SELECT ROW(n, 1) FROM memories ORDER BY id":                                                         false,
		"SELECT sum(n) OVER (ROWS UNBOUNDED PRECEDING) FROM memories":                                        false,
		"SELECT sum(n) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) FROM memories":                            true,
		"SELECT 1 / (length($1) + CASE WHEN true THEN 0 ELSE n END) FROM memories":                           false,
		"SELECT repeat(title, $1) FROM memories":                                                             false, // the parameter's type is not known
		"SELECT 1 / length($1) FROM memories":                                                                false,
		"SELECT coalesce(1 / length($1), n) FROM memories":                                                   false,
		"SELECT n / length($1) FROM memories":                                                                true,
		"SELECT n + $1 FROM memories":                                                                        false,
		"SELECT unnest(string_to_array(title, ' ')) FROM memories":                                           false,
		"SELECT generate_series(1, n) FROM memories":                                                         false,
		"SELECT random() * n FROM memories":                                                                  false,
		"SELECT clock_timestamp() > occurred_at FROM memories":                                               false,
		"SELECT title::regclass FROM memories":                                                               false,
		"SELECT pg_get_userbyid(n) || 'x' FROM memories":                                                     false,
		"SELECT (ROW(n, 1)).f1 / 2 FROM memories":                                                            false,
		"SELECT round(price, 1) FROM memories":                                                               false, // another role's function has the name, too
	}
	// the last digits of floating-point aggregates depend on the order of the rows
	for _, name := range []string{"stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp"} {
		cases["SELECT "+name+"(n), "+name+"(price) FROM memories"] = true
		cases["SELECT "+name+"(f) FROM memories"] = false
	}
	for _, name := range []string{"array_agg", "json_agg", "jsonb_agg"} {
		cases["SELECT "+name+"(n ORDER BY n) FROM memories"] = true
		cases["SELECT "+name+"(n) FROM memories"] = false
	}
	for _, call := range []string{"row_number()", "ntile(2)", "lag(n)", "lead(n)", "first_value(n)", "last_value(n)", "nth_value(n, 2)"} {
		cases["SELECT "+call+" OVER (PARTITION BY f ORDER BY n) FROM memories"] = true
		cases["SELECT "+call+" OVER (PARTITION BY f) FROM memories"] = false
	}
	for sql, isSigned := range cases {
		result, refusal := r.Rewrite(sql, false)
		switch {
		case refusal != nil && isSigned:
			t.Errorf("%s: %v", sql, refusal)
		case refusal == nil && (result.Path == verdict.PathSigned) != isSigned:
			t.Errorf("%s: %s: %s", sql, result.Path, result.RowSecurityReason)
		case isSigned:
			checkQualified(t, sql, result.Text)
		}
	}
}

// The functions that an output may call have no side effects, depend on nothing but their arguments, and return no
// sets.
func TestOutputsAreValues(t *testing.T) {
	_, conn := altered(t, AlwaysSignedMode, "SELECT 1")
	rows, err := conn.Query(t.Context(),
		`SELECT DISTINCT proname::text FROM pg_catalog.pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND (proretset OR provolatile = 'v')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		n++
		if isPlainFunction(name) {
			t.Errorf("%s may stand in what is returned", name)
		}
	}
	if err := rows.Err(); err != nil || n < 100 {
		t.Error(n, err)
	}
	// A function that is listed with the reason groupAggregates is an aggregate in all its overloads.
	var plainFunctions []string
	if err := conn.QueryRow(t.Context(),
		`SELECT COALESCE(array_agg(DISTINCT proname::text), '{}') FROM pg_catalog.pg_proc `+
			`WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind NOT IN ('a', 'w')`).Scan(&plainFunctions); err != nil {
		t.Fatal(err)
	}
	for _, name := range plainFunctions {
		if catalogFunctions[name].why == groupAggregates {
			t.Errorf("%s is not always an aggregate", name)
		}
	}
	var sortableAggregates []string
	if err := conn.QueryRow(t.Context(),
		`SELECT array_agg(DISTINCT p.proname::text ORDER BY p.proname::text) FROM pg_catalog.pg_aggregate AS a JOIN pg_catalog.pg_proc AS p ON p.oid = a.aggfnoid `+
			`WHERE a.aggsortop <> 0`).Scan(&sortableAggregates); err != nil {
		t.Fatal(err)
	}
	for _, name := range sortableAggregates {
		if !isIndexedAggregate(name) {
			t.Errorf("an index may answer %s", name)
		}
	}
}

// Many output columns take the signed path. An expression with too many parts does not, and is given up quickly.
func TestLongOutputs(t *testing.T) {
	tier.All(t)
	r := rewriter(t, AlwaysSignedMode)
	for sql, isSigned := range map[string]bool{
		"SELECT " + strings.TrimSuffix(strings.Repeat("title, ", 1200), ", ") + " FROM memories":              true,
		"SELECT " + strings.TrimSuffix(strings.Repeat("md5(title), ", 100), ", ") + " FROM memories":          true,
		"SELECT title" + strings.Repeat(" || title", 400) + " FROM memories":                                  true,
		"SELECT title" + strings.Repeat(" || title", 900) + " FROM memories":                                  false,
		"SELECT " + strings.Repeat("md5(", 400) + "title" + strings.Repeat(")", 400) + " FROM memories":       true,
		"SELECT " + strings.TrimSuffix(strings.Repeat("md5(title), ", 1200), ", ") + " FROM memories LIMIT 3": false,
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil || (result.Path == verdict.PathSigned) != isSigned {
			t.Errorf("%.60s: %v, path %s, %q", sql, refusal, result.Path, result.RowSecurityReason)
		}
	}
}
