package rewrite

import (
	"strings"
	"testing"
)

// Another role's cast makes a statement refused if it has a value of the cast's source type and names its target type.
// Other statements are unaffected. The type gauge is cast to integer by a function that the policy does not list.
func TestCastsOfOtherRolesCloseTheirTarget(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for sql, refused := range map[string]bool{
		"SELECT '1'::integer":                                                               false,
		"SELECT title::int FROM memories":                                                   false,
		"SELECT n::int, (g).n FROM gauges":                                                  true,
		"SELECT n::int FROM gauges":                                                         false,
		"SELECT id::int4[] FROM gauges WHERE n::positive > 0":                               false,
		"SELECT g::int FROM gauges":                                                         true,
		"SELECT CAST(g AS integer) FROM gauges":                                             true,
		"SELECT int4(g) FROM gauges":                                                        false, // no cast: PostgreSQL knows no such function
		"SELECT (g).int4 FROM gauges":                                                       true,
		"SELECT many::int[] FROM gauges":                                                    true,
		"SELECT many::_int4 FROM gauges":                                                    true,
		"SELECT many[1]::int FROM gauges":                                                   true,
		"SELECT main::int FROM gauges":                                                      true,
		"SELECT g::positive FROM gauges":                                                    true,
		"SELECT ROW(g)::wrapped FROM gauges":                                                true,
		"SELECT x.*::wrapped FROM (SELECT g FROM gauges) x":                                 true,
		"SELECT x.a::int FROM (SELECT * FROM gauges) x (b, a)":                              true,
		"SELECT x.a::int FROM (TABLE gauges) x (b, a)":                                      true,
		"WITH c (b, a) AS (SELECT * FROM gauges) SELECT a::int FROM c":                      true,
		"SELECT y.a::int FROM gauges x (b, a) JOIN gauges y (b, a) USING (a)":               true,
		"SELECT a::int FROM gauges AS x (b, a)":                                             true,
		"SELECT a::int FROM unnest((SELECT many FROM gauges LIMIT 1)) AS a":                 true,
		"SELECT '(1,a)'::gauge::int":                                                        true,
		"SELECT ('(1,a)'::main_gauge)::int":                                                 true,
		"SELECT ROW(1, 'a')::gauge":                                                         false,
		"SELECT '{}'::gauge[]":                                                              false,
		"SELECT ROW(ROW(1, 'a')::gauge, 'a')::gauge":                                        true, // an attribute of the row is cast
		"PREPARE p (gauge) AS SELECT ($1).n":                                                false,
		"SELECT measured()::int":                                                            true,
		"SELECT x::int FROM measured() AS x":                                                true,
		"SELECT x.a::int FROM jsonb_to_record('{}') AS x (a gauge)":                         true,
		"SELECT (jsonb_populate_record(NULL::gauges, '{}')).g::int":                         true,
		"SELECT (x).g::int FROM (SELECT gauges AS x FROM gauges) y":                         true,
		"SELECT pg_input_is_valid('1', 'integer') FROM gauges WHERE g IS NULL":              false, // it calls the type's input function, no cast
		"UPDATE gauges SET n = g::int":                                                      true,
		"UPDATE gauges SET n = '1' WHERE id = 1 RETURNING g::int":                           true,
		"INSERT INTO gauges (n) VALUES ('1') ON CONFLICT DO NOTHING RETURNING (g)::int":     true,
		"INSERT INTO gauges (n, g) SELECT n, g FROM gauges WHERE n::int > 0":                true,
		"INSERT INTO gauges (n) SELECT n FROM gauges WHERE n::int > 0":                      false,
		"PREPARE p (integer) AS SELECT n FROM gauges WHERE id = $1":                         false,
		"PREPARE p (gauge) AS SELECT $1::int":                                               true,
		"SELECT x.a FROM gauges, jsonb_to_record('{}') AS x (a int) WHERE gauges.n IS NULL": false,
		"SELECT x::converted FROM generate_series(1, 2) x":                                  true, // any statement may have an integer
	} {
		if strings.Contains(sql, "pg_input_is_valid") && r.snap.ServerVersion() < 160000 {
			continue
		}
		if result, err := r.Rewrite(sql, false); (err != nil) != refused {
			t.Errorf("%s: %v", sql, err)
		} else if err != nil && !strings.Contains(err.Message, "is not available to agents") && !strings.Contains(err.Message, "attribute notation") {
			t.Errorf("%s: refused for another reason: %v", sql, err)
		} else if err == nil && strings.Contains(result.Text, "gauged") {
			t.Errorf("%s: %s", sql, result.Text)
		}
	}
}

// A parameter's declared type also counts as a source type.
func TestParametersThatCastsOfOthersTake(t *testing.T) {
	r := rewriter(t, InjectedMode)
	gauge, gauges, integer := r.snap.TypesNamed("", "gauge")[0].OID, r.snap.TypesNamed("", "_gauge")[0].OID, r.snap.TypesNamed("", "int4")[0].OID
	for sql, refused := range map[string]bool{"SELECT $1::int": true, "SELECT $1::int[]": true, "SELECT $1::text": false, "SELECT $1::text[]": false} {
		result, err := r.Rewrite(sql, true)
		if err != nil {
			t.Fatal(err)
		}
		for description, oid := range map[string]uint32{"a gauge": gauge, "a list of them": gauges} {
			if got := result.ParameterTypeRefusal(r.snap, oid); (got != nil) != refused {
				t.Errorf("%s, %s: %v", sql, description, got)
			}
		}
		if got := result.ParameterTypeRefusal(r.snap, integer); got != nil {
			t.Errorf("%s, an integer: %v", sql, got)
		}
	}
}
