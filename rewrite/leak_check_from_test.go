package rewrite

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// A function in FROM takes the signed path if it makes a text search query, as it does in an expression.
func TestSearchesInFrom(t *testing.T) {
	r, _ := altered(t, AlwaysSignedMode, `ALTER TABLE memories ADD found tsvector; CREATE INDEX ON memories USING gin (found)`)
	for sql, isSigned := range map[string]bool{
		"SELECT id, ts_rank(found, q) AS rank FROM memories, plainto_tsquery('english', 'lake') q WHERE found @@ q ORDER BY rank DESC, id LIMIT 5": true,
		"SELECT id FROM memories m CROSS JOIN websearch_to_tsquery('lake -storm') AS q WHERE m.found @@ q":                                         true,
		"SELECT id FROM memories m JOIN to_tsquery('english', 'a & b') AS s (q) ON m.found @@ s.q":                                                 true,
		"SELECT id, ts_rank(found, query, 32) FROM memories, pg_catalog.phraseto_tsquery('simple', $1) query WHERE query @@ found":                 true,
		"SELECT id, ts_rank(found, query, 32) FROM memories, pg_catalog.phraseto_tsquery('simple', $1) query WHERE found @@ query":                 true,
		"SELECT id FROM memories, plainto_tsquery('english', 'lake') WHERE found @@ plainto_tsquery":                                               true,
		"SELECT max(ts_rank(found, q)) FROM memories, plainto_tsquery('english', 'lake') q WHERE found @@ q AND ts_rank(found, q) > 0.1":           true,
		"SELECT id FROM memories, plainto_tsquery('english', 'lake') q WHERE found @@ q ORDER BY ts_rank('{0.1, 0.2, 0.4, 1.0}', found, q)":        false,
		"SELECT id, ts_rank(found, q, level) FROM memories, plainto_tsquery('english', 'lake') q WHERE found @@ q":                                 false,
		// this function needs stack in proportion to its argument, and may run out of it
		"SELECT id FROM memories, plainto_tsquery('english', 'lake') q WHERE found @@ q ORDER BY ts_rank_cd(found, q)":                            false,
		"SELECT id, ts_rank_cd(found, q), ts_headline('english', body, q) FROM memories, plainto_tsquery('english', 'lake') q WHERE found @@ q":   true,
		"SELECT id FROM memories, to_tsquery('lake') q WHERE found @@ q":                                                                          true,
		"SELECT id FROM memories, to_tsquery('lake boat') q WHERE found @@ q":                                                                     false,
		"SELECT id FROM memories, to_tsquery('english', $1) q WHERE found @@ q":                                                                   true,
		"SELECT id FROM memories, LATERAL plainto_tsquery('english', title) q WHERE found @@ q":                                                   false,
		"SELECT id FROM memories, plainto_tsquery('english', title) q WHERE found @@ q":                                                           false,
		"SELECT id FROM memories, plainto_tsquery('english', 'lake') WITH ORDINALITY q WHERE found @@ q":                                          false,
		"SELECT id FROM memories, ROWS FROM (plainto_tsquery('english', 'lake'), plainto_tsquery('english', 'b')) AS q (a, b) WHERE found @@ q.a": false,
		"SELECT id FROM memories, lower('LAKE') q WHERE title = q":                                                                                false,
		"SELECT DISTINCT q FROM memories, plainto_tsquery('english', 'lake') q WHERE found @@ q":                                                  false,
		"SELECT id FROM memories, generate_series(1, 3) q WHERE level = q":                                                                        false,
		"SELECT count(*) FROM memories, plainto_tsquery('english', 'lake') q GROUP BY q":                                                          false,
	} {
		result, refusal := r.Rewrite(sql, false)
		switch {
		case refusal != nil:
			t.Errorf("%s: %v", sql, refusal)
		case (result.Path == verdict.PathSigned) != isSigned:
			t.Errorf("%s: %s: %s", sql, result.Path, result.RowSecurityReason)
		}
	}
}

// JOIN USING converts two columns of different types into one. Some dates have no timestamp, and some numbers no
// floating-point value, so such a join does not take the signed path.
func TestJoinUsingOfTwoTypesIsNotLeakSafe(t *testing.T) {
	r, _ := altered(t, AlwaysSignedMode,
		"ALTER TABLE memories ADD at date, ADD on_day date, ADD n integer, ADD size numeric; ALTER TABLE people "+
			"ADD at timestamp, ADD on_day date, ADD n bigint, ADD size float8")
	for column, isSigned := range map[string]bool{"at": false, "on_day": true, "n": true, "size": false} {
		for _, join := range []string{"JOIN", "LEFT JOIN", "FULL JOIN"} {
			sql := "SELECT m.id FROM memories m " + join + " people p USING (" + column + ") WHERE " + column + " IS NOT NULL"
			result, refusal := r.Rewrite(sql, false)
			if refusal != nil || (result.Path == verdict.PathSigned) != isSigned {
				t.Errorf("%s: %v, path %s, %q", sql, refusal, result.Path, result.RowSecurityReason)
			}
		}
	}
}
