package attacks

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// domainSchema is signedSchema with a domain over another domain in place of each type. In the sessions of agents the
// domain's check fails for every value.
var domainSchema = strings.Replace(signedSchema, "CREATE VIEW odd", `DO $$ DECLARE c record; BEGIN
	FOR c IN SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute
	  WHERE attrelid = 'big'::regclass AND attnum > 0 AND attname NOT IN ('id', 'a') LOOP
		EXECUTE format('CREATE DOMAIN inner_%1$s AS %2$s; CREATE DOMAIN of_%1$s AS inner_%1$s CHECK (VALUE IS NULL OR current_setting(''domains.fail'', true) `+
	`IS NULL); ALTER TABLE big ALTER %1$s DROP DEFAULT, ALTER %1$s TYPE of_%1$s', c.attname, c.type);
	END LOOP;
END $$;
CREATE VIEW odd`, 1)

// Columns of domain types must take the same path as their base types. No value may be cast to the domain on the way,
// because its check would run for hidden rows.
func TestDomainsOnTheSignedPath(t *testing.T) {
	tier.All(t)
	var cases []signedCase
	for _, condition := range append([]string{
		"n > 1 AND p BETWEEN 1 AND 2 AND i8 IN (1, 2)", "COALESCE(n, 1) = 5", "COALESCE(body, 'x') = 'y'",
		"COALESCE(mail, 'x') = 'y'", "GREATEST(n, p) = 5", "NULLIF(i8, 1) = 5",
		"CASE body WHEN 'x' THEN mail ELSE 'y' END = 'z'", "CASE WHEN b > 0 THEN body ELSE 'y' END = 'z'",
		"n IN (f, 1)", "b IN (i8, 1)", "n = ANY (ARRAY[p, 1])", "f = ANY (ARRAY[n, f])", "'a' = ANY (ta)",
		"ta && ARRAY['a', 'b']", "doc @> '{\"a\": 1}' AND doc ->> 'a' = 'b'",
		"body ~ 'pl.*n' AND body ILIKE 'p%' AND lower(body) = 'x' AND length(body) > 3",
		"EXISTS (SELECT FROM big o WHERE o.n = big.n AND o.mail = big.mail)", "b = (SELECT max(b) FROM big)",
		"body IN (SELECT body FROM big UNION SELECT 'x')", "mail IN (SELECT mail FROM big UNION ALL SELECT 'x')",
		"n IN (SELECT n FROM big UNION SELECT p FROM big)",
		"id IN (SELECT x.id FROM big x JOIN big y USING (n, body, mail))", "body = 'x'::of_body", "mail = 'x'::of_mail",
	}, signedConditions...) {
		cases = append(cases, signedSQL("SELECT count(*) FROM big WHERE a = 123 AND "+condition),
			signedSQL("SELECT count(*) FROM big WHERE a = 123 AND (b < 0 OR "+condition+")"))
	}
	cases = append(cases,
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND (body = $1 OR mail = $2 OR n > $3)", nil, "x", "y", "1e400"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND (i8 = $1 OR b = $1::int4)", nil, "999999999999"),
		signedParams("SELECT count(*) FROM big WHERE a = 123 AND (ta && $1 OR body ILIKE $2)", nil, "{a}", "%x%"),
		signedSQL("SELECT n, body, mail, m, span, count(*), max(p), min(body) FROM big WHERE a = 123 GROUP BY 1, 2, "+
			"3, 4, 5 ORDER BY 1, 2"), signedSQL("SELECT DISTINCT mail, nums, low FROM big WHERE a = 123"),
		signedSQL("SELECT x FROM (SELECT n AS x FROM big WHERE a = 123 UNION ALL SELECT 1 UNION ALL SELECT p FROM "+
			"big) q ORDER BY x LIMIT 3"),
		signedSQL("WITH q AS (SELECT body, mail FROM big WHERE a = 123) SELECT array_agg(body ORDER BY body), string_agg(mail, ',' ORDER BY mail) FROM q"))
	cases = everyFifth(cases, 0)
	var plans []string
	for _, plan := range signedPlans {
		plans = append(plans, "domains.fail = 'yes'; "+plan)
	}
	for _, row := range signedRows {
		askSignedPathUnder(t, signedPolicy, domainSchema, row, instance.SignedViews, plans[:1], cases)
	}
	if !tier.IsNightly() {
		plans = plans[1:3]
	}
	askSignedPathUnder(t, signedPolicy, domainSchema, signedRows[0], instance.Auto, plans, cases)
}
