package e2e

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Aggregates work over a partitioned table whose names need quotes and whose columns are partly hidden from agents. The
// dimensions are an enum and a date; the measures are decimals with NaN.
func TestAggregatesOverOddTables(t *testing.T) {
	tier.All(t)
	t.Parallel()
	for _, mode := range enforcedModes {
		t.Run(mode.Name, func(t *testing.T) {
			db := pgtest.Database(t)
			harness.Exec(t, db, `
				CREATE SCHEMA "Case Files";
				CREATE TYPE "Case Files".stage AS ENUM ('draft', 'final');
				CREATE TABLE "Case Files"."Order" ("Id" bigint, "Who" uuid, "group" "Case Files".stage, "On" date, at timestamp,
				  "Limit" numeric, "having" real, secret text, open bool NOT NULL)
					PARTITION BY RANGE ("Id");
				CREATE TABLE "Case Files".part1 PARTITION OF "Case Files"."Order" FOR VALUES FROM (0) TO (100);
				CREATE TABLE "Case Files".part2 PARTITION OF "Case Files"."Order" FOR VALUES FROM (100) TO (10000);
				INSERT INTO "Case Files"."Order"
				SELECT n, md5((n % 7)::text)::uuid, CASE WHEN n % 2 = 0 THEN 'draft' ELSE 'final' END::"Case Files".stage, date '2026-01-01' + n % 60,
				  timestamp '2026-01-31 23:30' + n % 3 * interval '1 hour',
				       n / 3.0, CASE WHEN n = 5 THEN 'NaN'::real WHEN n = 6 THEN '-Infinity'::real ELSE n END, 'HIDDENMARK0000000a', n % 7 = 0
				FROM generate_series(1, 199) n`)
			policy := `version: 1
attributes: {}
tables:
  Case Files.Order:
    rows: [ status: { column: open, is: "true" } ]
    columns: { Id: allow, group: allow, On: { mask: { generalise: year } }, open: allow }
    aggregate:
      subject: Who
      rows: [ sql: "open IS NOT NULL" ]
      minimum: 4
      dimensions: { group: allow, On: { by: month }, at: { by: day } }
      measures: { Limit: { between: [0.5, 30.25] }, having: { between: [0, 100] } }
      accept: [values]
`
			proxy := harness.Start(t, mode, harness.Database{Name: "odd", DB: db, Policy: policy, SearchPath: []string{"public"}}, nil)
			agent, super := proxy.Agent(t, "agent", "odd"), harness.ConnectSuperuser(t, db)
			oneText(super, `CREATE TEMP TABLE counted AS SELECT *, greatest(least("Limit", 30.25), 0.5) AS l,
				CASE WHEN "having" > 100 THEN 100 WHEN "having" < 0 THEN 0 ELSE "having" END AS h FROM "Case Files"."Order" o
				WHERE open OR (SELECT count(DISTINCT "Who") FROM "Case Files"."Order" p
					WHERE NOT p.open AND p."group" = o."group" AND date_trunc('month', p."On") = date_trunc('month', o."On") AND p.at::date = o.at::date) >= 4`)
			for _, q := range [][2]string{
				{`SELECT count(*) FROM "Case Files"."Order"`, `SELECT count(*) FROM counted`},
				{`SELECT "group", sum("Limit"), sum(o."having") FROM "Case Files"."Order" o GROUP BY o."group" HAVING count(*) > 1 ORDER BY "group"`,
					`SELECT "group", round(sum(round(l, 6)), 6), round(sum(h::numeric), 6) FROM counted GROUP BY 1 ORDER BY 1`},
				{`SELECT date_trunc('month', "On")::date, date_trunc('day', at), count(*) FROM "Case Files"."Order" GROUP BY 1, 2 ORDER BY 1, 2`,
					`SELECT date_trunc('month', "On")::date, date_trunc('day', at), count(*) FROM counted GROUP BY 1, 2 HAVING count(DISTINCT "Who") >= 4 ORDER BY 1, 2`},
				{`SELECT count(*) FROM "Case Files"."Order" AS "x y" WHERE "x y"."group" = 'final' AND date_trunc('year', "x y"."On") = '2026-01-01'`,
					`SELECT count(*) FROM counted WHERE "group" = 'final'`},
				{`SELECT count(*) FROM "Case Files"."Order" visible_o`, `SELECT count(*) FROM "Case Files"."Order" WHERE open`},
			} {
				if got, want := oneText(agent, q[0]), oneText(super, q[1]); got != want {
					t.Errorf("%s:\n%s\nwant\n%s", q[0], got, want)
				}
			}
			for _, sql := range []string{
				`SELECT sum("Id") FROM "Case Files"."Order"`, `SELECT max(secret) FROM "Case Files"."Order"`, `SELECT count(secret) FROM "Case Files"."Order"`,
				`SELECT "Case Files"."Order"."group", count(*) FROM "Case Files"."Order" GROUP BY 1`, `SELECT count(*) FROM "Case Files"."Order" GROUP BY "On"`,
				`SELECT open, count(*) FROM "Case Files"."Order" GROUP BY open`,
			} {
				if got := oneText(agent, sql); got != "42501" {
					t.Errorf("%s: %s", sql, got)
				}
			}
			proxy.Tap().RequireNoMarker(t)
		})
	}
}

// When a person withdraws, no aggregate counts that person from the next statement on. Older snapshots end with an
// error.
func TestCirisC_WithdrawalCountsAtOnce(t *testing.T) {
	runInModes(t, "", func(t *testing.T, c *ciris) {
		agent, otherAgent := c.agent(t), c.agent(t)
		const question = `SELECT sum(usage_statistics) FROM interactions WHERE channel_type = 'api'`
		oneText(otherAgent, `BEGIN ISOLATION LEVEL REPEATABLE READ`)
		sumBefore := oneText(agent, question)
		if got := oneText(otherAgent, question); got != sumBefore {
			t.Errorf("two agents are told %s and %s", sumBefore, got)
		}
		harness.Exec(t, c.db, `UPDATE users SET stream = NULL WHERE stream = 'ANONYMOUS'`)
		if got := oneText(otherAgent, question); got != "40001" {
			t.Errorf("an older snapshot answers %s", got)
		}
		visibleSum := oneText(agent, `SELECT sum(usage_statistics) FROM interactions AS visible_i WHERE channel_type = 'api'`)
		if got := oneText(agent, question); got == sumBefore || got != visibleSum {
			t.Errorf("after everybody withdrew the sum is %s, before %s, of the rows that show %s", got, sumBefore, visibleSum)
		}
		harness.Exec(t, c.db, `UPDATE users SET stream = 'ANONYMOUS' WHERE stream IS NULL`)
		if got := oneText(agent, question); got == visibleSum {
			t.Errorf("nobody counts again: %s", got)
		}
	})
}
