package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/world"
)

// ciris is the world of that name behind a proxy.
type ciris struct {
	db    *pgtest.DB
	proxy *harness.Proxy
}

func startCiris(t *testing.T, mode harness.Mode, change string) *ciris {
	t.Helper()
	w, err := world.Get("ciris")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := w.File("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.Template(t, "ciris", func(ctx context.Context, conn *pgx.Conn) error { return w.Load(ctx, conn, nil) })
	if change != "" {
		harness.Exec(t, db, change)
	}
	d := harness.Database{Name: "ciris", DB: db, Policy: string(policy), SearchPath: []string{"public"}}
	return &ciris{db: db, proxy: harness.Start(t, mode, d, nil)}
}

func (c *ciris) agent(t *testing.T) *pgconn.PgConn { return c.proxy.Agent(t, "agent", "ciris") }

// told is what a statement returns as text, or its SQLSTATE.
func told(c *pgconn.PgConn, sql string) string {
	a := harness.Ask(c, sql)
	if a.Code != "" {
		return a.Code
	}
	var rows []string
	for _, r := range a.Results {
		rows = append(rows, r.Rows...)
	}
	return strings.Join(rows, "\n")
}

var enforced = []harness.Mode{harness.Both, harness.Doors}

func inModes(t *testing.T, change string, test func(t *testing.T, c *ciris)) {
	for _, mode := range enforced {
		t.Run(mode.Name, func(t *testing.T) { test(t, startCiris(t, mode, change)) })
	}
}

// Which rows count, in words of its own: those of users whose stream shows, and of cells with five anonymous users.
const cirisCounted = `(
	WITH all_rows AS (
	  SELECT i.*, u.stream, to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM') AS month FROM interactions i JOIN users u USING (user_id)
	), cells AS (
	  SELECT channel_type, trend_analysis, month FROM all_rows WHERE stream = 'ANONYMOUS'
	  GROUP BY 1, 2, 3 HAVING count(DISTINCT user_id) >= 5
	)
	SELECT channel_type, trend_analysis, month, user_id, performance_benchmarks, least(usage_statistics, 200) AS usage_statistics
	FROM all_rows a WHERE stream IN ('TEMPORARY', 'PARTNERED')
	   OR stream = 'ANONYMOUS' AND EXISTS (SELECT FROM cells c WHERE (c.channel_type, c.trend_analysis, c.month) = (a.channel_type, a.trend_analysis, a.month))
) counted`

// ANONYMOUS: "Aggregated statistics, no PII" (seeds/001, lines 38 to 42; STATISTICAL: lines 62 to 66).
func TestCirisC_AnonymousUsersCountInGroups(t *testing.T) {
	inModes(t, "", func(t *testing.T, c *ciris) {
		agent, super := c.agent(t), harness.Super(t, c.db)
		told(agent, "SET timezone = 'UTC'")
		told(super, "SET timezone = 'UTC'")
		for _, q := range [][2]string{
			{`SELECT count(*) FROM interactions`, `SELECT count(*) FROM ` + cirisCounted},
			{`SELECT count(user_id), sum(usage_statistics), round(avg(performance_benchmarks), 3) FROM public.interactions AS i`,
				`SELECT count(*), sum(usage_statistics), round(avg(performance_benchmarks), 3) FROM ` + cirisCounted},
			{`SELECT channel_type, count(*) FROM interactions GROUP BY channel_type ORDER BY channel_type`,
				`SELECT channel_type, count(*) FROM ` + cirisCounted + ` GROUP BY 1 ORDER BY 1`},
			{`SELECT to_char(date_trunc('month', occurred_at), 'YYYY-MM') AS month, sum(i.usage_statistics) AS messages FROM interactions i GROUP BY month ORDER BY messages DESC`,
				`SELECT month, sum(usage_statistics) FROM ` + cirisCounted + ` GROUP BY 1 ORDER BY 2 DESC`},
			{`SELECT channel_type, trend_analysis, date_trunc('month', occurred_at), count(DISTINCT user_id) FROM interactions GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`,
				`SELECT channel_type, trend_analysis, (month || '-01 00:00+00')::timestamptz, count(DISTINCT user_id) FROM ` + cirisCounted + ` GROUP BY 1, 2, 3 HAVING count(DISTINCT user_id) >= 5 ORDER BY 1, 2, 3`},
			{`SELECT trend_analysis, avg(performance_benchmarks)::int, count(*) FILTER (WHERE channel_type = 'api') FROM interactions WHERE channel_type IN ('api', 'discord') AND date_trunc('month', occurred_at) >= '2026-03-01' GROUP BY trend_analysis HAVING count(*) > 10 OR count(*) > 20 ORDER BY avg(performance_benchmarks) LIMIT 2`,
				`SELECT trend_analysis, avg(performance_benchmarks)::int, count(*) FILTER (WHERE channel_type = 'api') FROM ` + cirisCounted + ` WHERE channel_type IN ('api', 'discord') AND month >= '2026-03' GROUP BY 1 ORDER BY avg(performance_benchmarks) LIMIT 2`},
			{`SELECT channel_type, grouping(channel_type), count(*) FROM interactions GROUP BY ROLLUP (channel_type) ORDER BY count(*) DESC;`,
				`SELECT channel_type, grouping(channel_type), count(*) FROM ` + cirisCounted + ` GROUP BY ROLLUP (channel_type) ORDER BY count(*) DESC`},
			{`SELECT upper(channel_type) || '!', round(100.0 * sum(usage_statistics) / nullif(count(*), 0), 2) AS x FROM interactions GROUP BY channel_type HAVING sum(usage_statistics) > 0 ORDER BY x OFFSET 1`,
				`SELECT upper(channel_type) || '!', round(100.0 * sum(usage_statistics) / nullif(count(*), 0), 2) AS x FROM ` + cirisCounted + ` GROUP BY channel_type ORDER BY x OFFSET 1`},
			{`SELECT date_trunc('year', occurred_at) = '2026-01-01 00:00+00', count(*) FROM interactions GROUP BY 1`, `SELECT true, count(*) FROM ` + cirisCounted},
		} {
			if got, want := told(agent, q[0]), told(super, q[1]); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", q[0], got, want)
			}
		}
		if a, b := told(agent, `SELECT count(*) FROM interactions`), told(agent, `SELECT count(*) FROM (SELECT * FROM interactions) AS i`); a == b {
			t.Errorf("anonymous users do not count: %s", a)
		}
		c.proxy.Tap().NoMarker(t)
	})
}

var _ = fmt.Sprint
var _ = slices.Sort[[]string]
