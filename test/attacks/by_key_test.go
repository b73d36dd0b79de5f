package attacks

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Rows that a search has found are joined by key, and further conditions may fail for some of them. Wherever such a
// condition stands in the statement, it must run for visible rows only.
func TestFoundByKeyTellsNothing(t *testing.T) {
	tier.All(t)
	text := []uint32{25}
	const join = " FROM big o JOIN link l ON l.big_id = o.id WHERE o.found @@ 'z'::tsquery AND "
	cases := []signedCase{
		signedSQL("SELECT count(*)" + join + "o.body::int = 5"),
		signedSQL("SELECT count(*)" + join + "1 / (o.b - 7) = 5"),
		signedSQL("SELECT count(*)" + join + "o.body ~ '(' AND o.f4 > 0"),
		signedSQL("SELECT count(*)" + join + "o.body::int = 5 AND o.body LIKE '%odd%'"),
		signedSQL("SELECT count(*)" + join + "(o.n / 0 > 1 OR o.body LIKE 'abc%')"),
		signedSQL("SELECT date_trunc('day', o.ts), sum(1 / (o.b - 7))" + join + "l.person_id > 0 GROUP BY 1"),
		signedSQL("SELECT o.body::int" + join + "l.person_id > 0 ORDER BY 1 / (o.b - 7) LIMIT 3"),
		signedSQL("SELECT count(*) FROM link l LEFT JOIN big o ON l.big_id = o.id WHERE o.body ILIKE '%odd%' AND o.body::int = l.person_id"),
		signedSQL("SELECT count(*) FROM link l JOIN big o ON l.big_id = o.id AND o.body::int = l.person_id WHERE o.body ILIKE '%odd%'"),
		signedSQL("SELECT count(*) FROM link l JOIN big o ON l.big_id = o.body::int WHERE o.body ~ 'od+' AND o.found @@ 'z'::tsquery"),
		signedSQL("WITH hits AS (SELECT o.id, o.body FROM big o WHERE o.found @@ 'z'::tsquery) SELECT count(*) FROM hits WHERE body::int > 5"),
		signedSQL("WITH hits AS MATERIALIZED (SELECT o.body::int AS x FROM big o WHERE o.found @@ 'z'::tsquery) " +
			"SELECT count(*) FROM hits JOIN wide ON wide.k = x"),
		signedSQL("SELECT count(*) FROM (SELECT o.id, o.body::int AS x FROM big o WHERE o.found @@ 'z'::tsquery) q WHERE x > 5"),
		signedSQL("SELECT l.person_id FROM link l, wide w WHERE l.big_id IN (SELECT o.id FROM big o WHERE o.found @@ 'z'::tsquery AND o.body::int > 5)"),
		signedSQL("SELECT count(*) FROM wide w, wide v WHERE w.k + 1 > 0 AND NOT EXISTS (SELECT FROM big o WHERE " +
			"o.found @@ 'z'::tsquery AND o.body::int = w.k)"),
		signedSQL("SELECT count(*) FROM wide w, wide v WHERE w.k + 1 > 0 AND EXISTS (SELECT FROM big o WHERE " +
			"o.found @@ 'a'::tsquery AND o.f / (o.b - 7) > w.k AND o.b = 7)"),
		signedSQL("SELECT count(*)" + join + "o.id = 5001"),
		signedSQL("SELECT l.person_id, o.body" + join + "o.id > 0 AND lpad(o.body, 2) = 'od'"),
		signedSQL("SELECT x.id, o.id FROM big o, big x WHERE o.found @@ 'z'::tsquery AND x.body ILIKE '%odd%' AND x.body::int = o.b"),
		signedSQL("SELECT count(*)" + join + "o.id = ANY (ARRAY(SELECT big_id FROM link WHERE 1 / (person_id - 0) > 0))"),
		signedParams("SELECT count(*) FROM big o JOIN link l ON l.big_id = o.id WHERE o.found @@ "+
			"plainto_tsquery('simple', $1) AND o.body::int = 5", text, "z"),
		signedParams("SELECT count(*) FROM big o JOIN link l ON l.big_id = o.id WHERE o.found @@ "+
			"plainto_tsquery('simple', $1) AND o.body::int = 5", nil, manyWords(3000)),
		signedParams("SELECT count(*) FROM big o JOIN link l ON l.big_id = o.id WHERE o.body ~ $1 AND o.found @@ 'z'::tsquery AND o.n / 0 > 5", text, "("),
		signedParams("SELECT count(*) FROM big o JOIN link l ON l.big_id = o.id WHERE o.body ILIKE $1 AND o.found "+
			"@@ 'z'::tsquery AND o.n / 0 > 5", nil, `%od\`),
		signedParams("SELECT count(*) FROM big o JOIN link l ON l.big_id = o.id WHERE o.body LIKE '%odd%' AND o.i8 "+
			"= $1 AND o.n / 0 > 5", []uint32{1700}, "1e400"),
		signedParams("SELECT o.f + $1 FROM big o JOIN link l ON l.big_id = o.id WHERE o.body LIKE '%odd%' AND o.n = $1 AND o.body::int > 5", nil, "1"),
		signedParams("SELECT count(*) FROM big o JOIN link l ON l.big_id = o.id WHERE o.body LIKE '%odd%' AND (o.i8 "+
			"= $1 OR o.b = $1::int2) AND o.f / 2 > 5", nil, "99999999"),
	}
	const row = "n = '1e400'::numeric, b = 7, i8 = 9223372036854775807, f = 1e300, body = 'odd', found = 'a:1 z:3'::tsvector"
	askSignedPathPlanned(t, row, instance.Auto, signedPlans, cases)
	askSignedPath(t, row, instance.SignedViews, cases)
}

// The same for writes: the conditions, new values and RETURNING lists of an UPDATE or DELETE must be evaluated for
// visible rows only.
func TestWritesFoundByKeyTellNothing(t *testing.T) {
	tier.All(t)
	text := []uint32{25}
	policy := strings.Replace(signedPolicy, "status: consent, is: granted } } ] }\n  link:",
		"status: consent, is: granted } } ], write: { commands: [update, delete], columns: [n, b, f, body], accept: [references, values] } }\n  link:", 1)
	cases := []signedCase{
		signedSQL("UPDATE big o SET f = 1 WHERE o.found @@ 'z'::tsquery AND o.body::int = 5"),
		signedSQL("UPDATE big o SET body = 'u' WHERE o.found @@ 'z'::tsquery AND 1 / (o.b - 7) = 5"),
		signedSQL("UPDATE big o SET b = 1 / (o.b - 7) WHERE o.found @@ 'z'::tsquery"),
		signedSQL("UPDATE big o SET (b, f) = ROW(1, 1 / (o.b - 7)) WHERE o.body ILIKE '%odd%' RETURNING o.body::int"),
		signedSQL("UPDATE big o SET f = 2 WHERE o.body ~ 'odd+' RETURNING 1 / (o.b - 7)"),
		signedSQL("UPDATE big o SET f = l.person_id FROM link l WHERE l.big_id = o.id AND o.found @@ 'z'::tsquery AND o.body::int = l.person_id"),
		signedSQL("UPDATE big o SET f = x.f FROM big x WHERE x.found @@ 'z'::tsquery AND o.body ILIKE '%odd%' AND x.body::int = o.b"),
		signedSQL("DELETE FROM big o WHERE o.found @@ 'z'::tsquery AND o.n / 0 > 5"),
		signedSQL("DELETE FROM big o WHERE o.found @@ 'z'::tsquery RETURNING o.body::int"),
		signedSQL("DELETE FROM big o USING link l, wide w WHERE o.found @@ 'z'::tsquery AND l.big_id = o.id AND w.k = o.body::int"),
		signedSQL("DELETE FROM big o WHERE o.body LIKE '%odd%' AND o.id = 5001"),
		signedSQL("UPDATE big SET f = f + 1, body = body || id WHERE found @@ 'a'::tsquery AND id / 2 < 100 RETURNING id, f"),
		signedSQL("DELETE FROM big WHERE found @@ 'a & b'::tsquery AND id / 2 = 7 RETURNING body"),
		signedSQL("UPDATE big SET b = 1 / (id - 20) WHERE found @@ 'a'::tsquery AND id / 10 = 2"),
		signedParams("UPDATE big o SET body = $2 WHERE o.found @@ plainto_tsquery('simple', $1) AND o.body::int = 5", text, "z", "x"),
		signedParams("UPDATE big o SET f = 1 WHERE o.found @@ plainto_tsquery('simple', $1) AND o.body::int = 5", nil, manyWords(3000)),
		signedParams("DELETE FROM big o WHERE o.body ~ $1 AND o.found @@ 'z'::tsquery AND o.n / 0 > 5", text, "("),
		signedParams("DELETE FROM big o WHERE o.body ILIKE $1 AND o.found @@ 'z'::tsquery AND o.n / 0 > 5", nil, `%od\`),
		signedParams("DELETE FROM big o WHERE o.body LIKE '%odd%' AND o.i8 = $1 AND o.n / 0 > 5", []uint32{1700}, "1e400"),
		signedSQL("SELECT count(*), sum(f), sum(b), max(body) FROM big"),
	}
	db := pgtest.Database(t)
	instance.Exec(t, db, signedSchema)
	m := instance.Compile(t, instance.Database{Name: "pair", DB: db, Policy: policy, SearchPath: []string{"public"}}, instance.Auto)
	for _, c := range cases[:len(cases)-1] {
		if result, refused := rewrite.New(m.Snapshot, m.Policy, rewrite.AutoMode).Rewrite(c.sql,
			c.args != nil); refused != nil || len(result.SearchedByKey) == 0 {
			t.Errorf("%s: %v, by key %v, hardened %q", c.sql, refused, result.SearchedByKey, result.HardenedReason)
		}
	}
	const row = "n = '1e400'::numeric, b = 7, i8 = 9223372036854775807, f = 1e300, body = 'odd', found = 'a:1 z:3'::tsvector"
	askSignedPathUnder(t, policy, signedSchema, row, instance.Auto, signedPlans, cases)
}
