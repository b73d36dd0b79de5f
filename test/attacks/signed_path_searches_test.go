package attacks

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// indexHintRules are rules, a part of which has another form under the hint that few rows are searched for. The field
// hides is an assignment that hides the odd row by that part as well.
var indexHintRules = []struct{ name, rows, hides string }{
	{"another's", "{ own: { column: owner, is: user } }", ", owner = 'other'"},
	{"one's own", "{ own: { column: owner, is: user } }", ""},
	{"another tenant's", "{ tenant: { column: owner, is: user } }", ", owner = 'other'"},
	{"not granted", "{ grant: { column: team, to: user } }", ", team = '{other}'"},
	{"neither", "{ any: [ { own: { column: owner, is: user } }, { grant: { column: team, to: user } } ] }", ", owner = 'other', team = '{other}'"},
}

const indexHintSchema = signedSchema + `
ALTER TABLE big ADD owner text NOT NULL DEFAULT 'me', ADD team text[] NOT NULL DEFAULT '{me}';
CREATE INDEX ON big (owner);
CREATE INDEX ON big USING gin (team);
CREATE INDEX ON big USING gin (found);
CREATE INDEX ON big USING gin (body gin_trgm_ops);
CREATE INDEX ON link (person_id);
CREATE TABLE few (k int);
INSERT INTO few VALUES (1), (2);
`

func policyWithRule(rows string) string {
	policy := strings.Replace(signedPolicy, "big: { rows: [ ", "big: { rows: [ "+rows+", ", 1)
	return strings.Replace(policy, "  wide:", "  few: { rows: [ open ] }\n  wide:", 1)
}

// fallibleExpressions fail for some rows, except the last ones, which are safe and take the signed path.
var fallibleExpressions = []string{
	"1 / (a - 123)", "body::int", "to_date(body, 'YYYY-MM-DD')", "n::bigint",
	"jsonb_path_query_first(doc, 'strict $.a.b')", "(regexp_match(body, repeat('(', a - 122)))[1]", "ta[1]::int",
	"i8 + 1", "date_trunc('year', ts)", "substring(body from 1 for 122 - a)", "f::float4",
	"(body || '')::jsonb", "('{' || body)::int[]", "CASE WHEN a = 123 THEN 1 / (b - 1) END", "NULLIF(i8, f)::bigint",
	"a = ANY (ARRAY[n, f])", "length(body)", "lower(body)",
}

// expressionPlaces are statements with a placeholder where such an expression may stand.
var expressionPlaces = []string{
	"SELECT count(*) FROM big WHERE a = 123 AND ({}) IS NOT NULL",
	"SELECT count(*) FROM big WHERE a BETWEEN 123 AND 123 AND ({}) IS NOT NULL AND found @@ 'b'::tsquery",
	"SELECT count(*) FROM big WHERE body LIKE '%' AND a > 122 AND a < 124 AND ({})::text <> 'q'",
	"SELECT count(*) FROM few JOIN big ON a = 123 AND ({}) IS NOT NULL",
	"SELECT count(*) FROM few LEFT JOIN big ON a = 123 AND ({})::text = few.k::text",
	"SELECT count(*) FROM big RIGHT JOIN few ON a = 123 AND ({})::text = few.k::text AND found @@ 'b'::tsquery",
	"SELECT count(*) FROM few FULL JOIN (SELECT * FROM big WHERE a = 123) q ON ({})::text = few.k::text",
	"SELECT id FROM big WHERE a = 123 ORDER BY ({}), id",
	"SELECT id FROM big WHERE a = 123 AND found @@ 'b'::tsquery ORDER BY ({}) DESC, id LIMIT 1",
	"SELECT {}, count(*) FROM big WHERE a = 123 GROUP BY 1",
	"SELECT a, count(*) FROM big GROUP BY GROUPING SETS ((a), (a, ({}))) HAVING a = 123",
	"SELECT a FROM big GROUP BY a HAVING a = 123 AND min(({})::text) IS NULL",
	"SELECT DISTINCT ON ({}) id FROM big WHERE a = 123 ORDER BY {}, id",
	"SELECT DISTINCT {} FROM big WHERE a = 123",
	"SELECT id, rank() OVER (PARTITION BY ({}) ORDER BY id) FROM big WHERE a = 123",
	"SELECT * FROM (SELECT id, a, rank() OVER (PARTITION BY a ORDER BY ({})) AS r FROM big) q WHERE a = 123",
	"SELECT count(*) FILTER (WHERE ({}) IS NOT NULL) FROM big WHERE a = 123",
	"SELECT count(*) FROM few LIMIT (SELECT count({}) + 1 FROM big WHERE a = 123)",
	"SELECT count(*) FROM few OFFSET (SELECT count(*) FROM big WHERE a = 123 AND ({}) IS NOT NULL)",
	"SELECT v.x FROM (VALUES (123), (2)) v(x) JOIN big ON a = v.x WHERE ({})::text <> 'q'",
	"SELECT w.k, q.* FROM few w, LATERAL (SELECT count({}) FROM big WHERE a = 122 + w.k) q",
	"SELECT w.k, q.* FROM few w LEFT JOIN LATERAL (SELECT id FROM big WHERE a = 122 + w.k AND ({}) IS NOT NULL LIMIT 1) q ON true",
	"SELECT w.k FROM few w WHERE EXISTS (SELECT FROM big WHERE a = 122 + w.k AND ({}) IS NOT NULL)",
	"SELECT w.k FROM few w WHERE NOT EXISTS (SELECT FROM big WHERE a = 122 + w.k AND ({}) IS NOT NULL)",
	"SELECT w.k FROM few w WHERE w.k::text NOT IN (SELECT ({})::text FROM big WHERE a = 123)",
	"SELECT w.k FROM few w WHERE w.k > ALL (SELECT length(({})::text) FROM big WHERE a = 123)",
	"SELECT w.k, (SELECT max(({})::text) FROM big WHERE a = 122 + w.k) FROM few w",
	"WITH q AS MATERIALIZED (SELECT *, ({})::text AS e FROM big) SELECT count(e) FROM q WHERE a = 123",
	"WITH q AS NOT MATERIALIZED (SELECT *, ({})::text AS e FROM big) SELECT count(*) FROM q WHERE a = 123 AND e <> 'q'",
	"WITH q AS (SELECT id, ({})::text AS e, a FROM big WHERE a = 123) SELECT count(x.e) FROM q x JOIN q y USING (a)",
	"WITH RECURSIVE r AS (SELECT 123 AS a UNION ALL SELECT r.a + 1 FROM r JOIN big ON big.a = r.a AND ({}) IS NOT NULL WHERE r.a < 124) SELECT * FROM r",
	"SELECT ({})::text FROM big WHERE a = 123 EXCEPT SELECT 'x'",
	"SELECT ({})::text FROM big WHERE a = 123 INTERSECT ALL SELECT body FROM big",
	"SELECT count(*) FROM (SELECT a, ({})::text AS e FROM big UNION ALL SELECT k, 'x' FROM few) q WHERE a = 123 AND e <> 'q'",
	"SELECT count(*) FROM big WHERE (a, ({})::text) = (123, 'q')",
	"SELECT count(*) FROM big WHERE (a, ({})::text) > (122, 'q') AND a < 124",
	"SELECT count(*) FROM big WHERE a = 123 AND 'q' IN (body, ({})::text)",
	"SELECT count(*) FROM big WHERE CASE WHEN a = 123 THEN ({})::text = 'q' ELSE false END",
	"SELECT count(*) FROM big WHERE a = 123 AND COALESCE(({})::text, body) = 'q'",
	"SELECT count(*) FROM big WHERE a = 123 AND owner = 'other' AND ({}) IS NOT NULL",
	"SELECT count(*) FROM big WHERE a = 123 AND team && '{other}' AND ({}) IS NOT NULL",
	"SELECT count(*) FROM big WHERE id = 5001 AND ({}) IS NOT NULL",
	"SELECT count(*) FROM big x JOIN big y ON x.a = y.a AND x.owner = y.owner WHERE x.a = 123 AND (SELECT ({}) IS NULL FROM big WHERE big.id = y.id)",
	"SELECT p.id FROM person p JOIN link l ON l.person_id = p.id JOIN big ON big.id = l.big_id AND big.a = 123 WHERE ({})::text <> 'q'",
	"SELECT count(*) FROM big WHERE a = 123 AND b = ANY (ARRAY(SELECT length(({})::text) FROM big WHERE a = 123))",
	"SELECT string_agg(({})::text, ',' ORDER BY ({})) FROM big WHERE a = 123",
	"SELECT min(({})::text), max(a) FROM big WHERE a <= 123 AND a > 122",
	"SELECT q.e FROM (SELECT DISTINCT a, ({})::text AS e FROM big) q WHERE a = 123",
	"SELECT max(a) FROM big WHERE a < 124 AND ({}) IS NULL",
	"SELECT generate_series(1, a - 122), ({})::text FROM big WHERE a = 123",
	"SELECT count(*) FROM big, generate_series(1, length(({})::text)) WHERE a = 123",
}

// An agent may hint that few rows are searched for, and then a part of a rule has another form. An expression that
// fails for the hidden odd row must not fail anywhere in a statement, by any path or plan.
func TestIndexHintOnTheSignedPath(t *testing.T) {
	tier.All(t)
	oddRow := "n = '1e400'::numeric, i8 = 9223372036854775807, f = 1e300, ts = '4714-11-24 BC', body = 'zz', ta = '{zz}'"
	for r, rule := range indexHintRules {
		if !tier.IsPicked(r, 2*len(indexHintRules)) {
			continue
		}
		var cases []signedCase
		for p, place := range expressionPlaces {
			for f, expression := range fallibleExpressions {
				if tier.IsPicked(p+f, 8) {
					cases = append(cases, signedSQL(predicate.UseIndexHint+strings.ReplaceAll(place, "{}", expression)))
				}
			}
		}
		for _, mode := range modesOf(instance.SignedViews, instance.Auto) {
			t.Run(rule.name+", "+mode.Name, func(t *testing.T) {
				var plans []string
				for k, plan := range signedPlans {
					if tier.IsPicked(k, 2*len(signedPlans)) {
						plans = append(plans, plan)
					}
				}
				askSignedPathUnder(t, policyWithRule(rule.rows), indexHintSchema, oddRow+rule.hides, mode, plans, cases)
			})
		}
	}
}
