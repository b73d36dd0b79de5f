package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	harness "github.com/pgconsent/pgconsent/test/instance"
)

// ciris is a database with the example world ciris behind a proxy.
type ciris struct {
	db    *pgtest.DB
	proxy *harness.Proxy
}

func startCiris(t testing.TB, mode harness.Mode, setupSQL string) *ciris {
	t.Helper()
	w, err := world.Open("ciris")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := w.File("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.Template(t, "ciris", func(ctx context.Context, conn *pgx.Conn) error { return w.Load(ctx, conn, nil) })
	d := harness.Database{Name: "ciris", DB: db, Policy: string(policy), SearchPath: []string{"public"}, Setup: setupSQL}
	return &ciris{db: db, proxy: harness.Start(t, mode, d, map[string]string{"categories": "{ESSENTIAL,STATISTICAL}"})}
}

func (c *ciris) agent(t *testing.T) *pgconn.PgConn { return c.proxy.Agent(t, "agent", "ciris") }

// oneText returns the rows of a statement as text, or the SQLSTATE of its error.
func oneText(c *pgconn.PgConn, sql string) string {
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

var enforcedModes = []harness.Mode{harness.Both, harness.Auto}

// runInModesForReading runs a test in each mode, on a database that read-only tests share. Each test has its own tap.
func runInModesForReading(t *testing.T, test func(t *testing.T, c *ciris)) {
	for _, mode := range harness.Modes(enforcedModes...) {
		t.Run(mode.Name, func(t *testing.T) {
			sharedCiris := harness.Shared(t, "ciris, "+mode.Name, func(t testing.TB) (*ciris, *pgtest.DB) {
				c := startCiris(t, mode, "")
				return c, c.db
			})
			test(t, &ciris{db: sharedCiris.db, proxy: sharedCiris.proxy.WithOwnTap(t)})
		})
	}
}

func runInModes(t *testing.T, setupSQL string, test func(t *testing.T, c *ciris)) {
	for _, mode := range harness.Modes(enforcedModes...) {
		t.Run(mode.Name, func(t *testing.T) { test(t, startCiris(t, mode, setupSQL)) })
	}
}

// The rows that count, by an independent query: those of users whose stream is visible, and of cells with at least five
// anonymous users.
const cirisCountedSetup = `CREATE TEMP TABLE counted AS
	WITH all_rows AS (
	  SELECT i.*, u.stream, to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM') AS month FROM interactions i JOIN users u USING (user_id)
	), cells AS (
	  SELECT channel_type, trend_analysis, month FROM all_rows WHERE stream = 'ANONYMOUS'
	  GROUP BY 1, 2, 3 HAVING count(DISTINCT user_id) >= 5
	)
	SELECT channel_type, trend_analysis, month, user_id, performance_benchmarks, least(usage_statistics, 200) AS usage_statistics
	FROM all_rows a WHERE stream IN ('TEMPORARY', 'PARTNERED')
	   OR stream = 'ANONYMOUS' AND EXISTS (SELECT FROM cells c WHERE (c.channel_type, c.trend_analysis, c.month) = (a.channel_type, a.trend_analysis, a.month))`

// ANONYMOUS: "Aggregated statistics, no PII".
// seeds/001:37-41, 63-67.
func TestCirisC_AnonymousUsersCountInGroups(t *testing.T) {
	runInModesForReading(t, func(t *testing.T, c *ciris) {
		agent, super := c.agent(t), harness.ConnectSuperuser(t, c.db)
		oneText(agent, "SET timezone = 'UTC'")
		oneText(super, "SET timezone = 'UTC'")
		oneText(super, cirisCountedSetup)
		for _, q := range [][2]string{
			{`SELECT count(*) FROM interactions`, `SELECT count(*) FROM counted`},
			{`SELECT count(user_id), sum(usage_statistics), round(avg(performance_benchmarks), 3) FROM public.interactions AS i`,
				`SELECT count(*), sum(usage_statistics), round(avg(performance_benchmarks), 3) FROM counted`},
			{`SELECT channel_type, count(*) FROM interactions GROUP BY channel_type ORDER BY channel_type`,
				`SELECT channel_type, count(*) FROM counted GROUP BY 1 ORDER BY 1`},
			{
				`SELECT to_char(date_trunc('month', occurred_at), 'YYYY-MM') AS month, sum(i.usage_statistics) AS messages ` +
					`FROM interactions i GROUP BY month ORDER BY messages DESC`,
				`SELECT month, sum(usage_statistics) FROM counted GROUP BY 1 ORDER BY 2 DESC`},
			{
				`SELECT channel_type, trend_analysis, date_trunc('month', occurred_at), count(DISTINCT user_id) FROM interactions GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`,
				`SELECT channel_type, trend_analysis, (month || '-01 00:00+00')::timestamptz, count(DISTINCT user_id) FROM counted ` +
					`GROUP BY 1, 2, 3 HAVING count(DISTINCT user_id) >= 5 ORDER BY 1, 2, 3`},
			{
				`SELECT trend_analysis, avg(performance_benchmarks)::int, count(*) FILTER (WHERE channel_type = 'api') ` +
					`FROM interactions WHERE channel_type IN ('api', 'discord') AND date_trunc('month', occurred_at) >= '2026-03-01' ` +
					`GROUP BY trend_analysis HAVING count(*) > 10 OR count(*) > 20 ORDER BY avg(performance_benchmarks) LIMIT 2`,
				`SELECT trend_analysis, avg(performance_benchmarks)::int, count(*) FILTER (WHERE channel_type = 'api') FROM counted ` +
					`WHERE channel_type IN ('api', 'discord') AND month >= '2026-03' GROUP BY 1 ORDER BY avg(performance_benchmarks) LIMIT 2`},
			{`SELECT channel_type, grouping(channel_type), count(*) FROM interactions GROUP BY ROLLUP (channel_type) ORDER BY count(*) DESC;`,
				`SELECT channel_type, grouping(channel_type), count(*) FROM counted GROUP BY ROLLUP (channel_type) ORDER BY count(*) DESC`},
			{
				`SELECT upper(channel_type) || '!', round(100.0 * sum(usage_statistics) / nullif(count(*), 0), 2) AS x FROM interactions ` +
					`GROUP BY channel_type HAVING sum(usage_statistics) > 0 ORDER BY x OFFSET 1`,
				`SELECT upper(channel_type) || '!', round(100.0 * sum(usage_statistics) / nullif(count(*), 0), 2) AS x ` +
					`FROM counted GROUP BY channel_type ORDER BY x OFFSET 1`},
			{`SELECT date_trunc('year', occurred_at) = '2026-01-01 00:00+00', count(*) FROM interactions GROUP BY 1`, `SELECT true, count(*) FROM counted`},
		} {
			if got, want := oneText(agent, q[0]), oneText(super, q[1]); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", q[0], got, want)
			}
		}
		if a, b := oneText(agent, `SELECT count(*) FROM interactions`), oneText(agent, `SELECT count(*) FROM interactions AS visible_i`); a == b {
			t.Errorf("anonymous users do not count: %s", a)
		}
		c.proxy.Tap().RequireNoMarker(t)
	})
}

// No answer that returns single rows contains anonymous users, whatever its form. Other forms of aggregates are
// refused, or computed over the visible rows. seeds/001:37-41.
func TestCirisC_AnonymousRowsNeverShowOneByOne(t *testing.T) {
	runInModesForReading(t, func(t *testing.T, c *ciris) {
		agent, super := c.agent(t), harness.ConnectSuperuser(t, c.db)
		const visibleUsersOnly = ` WHERE user_id IN (SELECT user_id FROM users WHERE stream IN ('TEMPORARY', 'PARTNERED'))`
		for _, q := range [][2]string{
			{`SELECT id, user_id, usage_statistics FROM interactions ORDER BY id`,
				`SELECT id, user_id, usage_statistics FROM interactions` + visibleUsersOnly + ` ORDER BY id`},
			{`TABLE users`, `SELECT * FROM users` + visibleUsersOnly},
			{`SELECT DISTINCT channel_id FROM interactions ORDER BY 1`, `SELECT DISTINCT channel_id FROM interactions` + visibleUsersOnly +
				` ORDER BY 1`},
			{`SELECT id, count(*) OVER (), sum(usage_statistics) OVER (ORDER BY id) FROM interactions ORDER BY id`,
				`SELECT id, count(*) OVER (), sum(usage_statistics) OVER (ORDER BY id) FROM interactions` + visibleUsersOnly + ` ORDER BY id`},
			{`SELECT user_id, count(*) FROM interactions AS visible_interactions GROUP BY user_id ORDER BY 1`,
				`SELECT user_id, count(*) FROM interactions` + visibleUsersOnly + ` GROUP BY 1 ORDER BY 1`},
			{`WITH i AS (SELECT * FROM interactions AS visible_i) SELECT max(usage_statistics), min(user_id) FROM i`,
				`SELECT max(usage_statistics), min(user_id) FROM interactions` + visibleUsersOnly},
			{`SELECT count(*) FROM users u WHERE EXISTS (SELECT FROM interactions visible_i WHERE visible_i.user_id = u.user_id)`,
				`SELECT count(*) FROM users u` + visibleUsersOnly + ` AND EXISTS (SELECT FROM interactions i WHERE i.user_id = u.user_id)`},
			{`SELECT (SELECT usage_statistics FROM interactions i WHERE i.id = x.id) FROM interactions x ORDER BY id LIMIT 3`,
				`SELECT usage_statistics FROM interactions` + visibleUsersOnly + ` ORDER BY id LIMIT 3`},
			{`COPY (SELECT id FROM interactions ORDER BY id) TO STDOUT`, `COPY (SELECT id FROM interactions` + visibleUsersOnly +
				` ORDER BY id) TO STDOUT`},
			{`BEGIN; DECLARE c CURSOR FOR SELECT id FROM interactions ORDER BY id; FETCH ALL FROM c; COMMIT`,
				`SELECT id FROM interactions` + visibleUsersOnly + ` ORDER BY id`},
		} {
			want, got := oneText(super, q[1]), oneText(agent, q[0])
			if !strings.Contains(q[0], "ORDER BY") {
				want, got = sortedLines(want), sortedLines(got)
			}
			if got != want {
				t.Errorf("%s:\n%.300s\nwant\n%.300s", q[0], got, want)
			}
		}
		c.proxy.Tap().RequireNoMarker(t)
	})
}

func sortedLines(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// "Attempts to get round it": an aggregate that is not made of whole cells is refused. The hint says which form is
// allowed. seeds/001:37-41.
func TestCirisC_AggregatesThatAreRefused(t *testing.T) {
	runInModesForReading(t, func(t *testing.T, c *ciris) {
		agent := c.agent(t)
		for _, sql := range []string{
			// Unique group keys.
			`SELECT id, count(*) FROM interactions GROUP BY id`,
			`SELECT user_id, count(*) FROM interactions GROUP BY user_id`,
			`SELECT user_id FROM interactions GROUP BY 1`,
			`SELECT count(*) FROM interactions GROUP BY occurred_at`,
			`SELECT date_trunc('day', occurred_at), count(*) FROM interactions GROUP BY 1`,
			`SELECT date_trunc('month', occurred_at, 'Asia/Tokyo'), count(*) FROM interactions GROUP BY 1`,
			`SELECT date_trunc('month', occurred_at + interval '3 days'), count(*) FROM interactions GROUP BY 1`,
			`SELECT channel_id, count(*) FROM interactions GROUP BY channel_id`,
			`SELECT usage_statistics, count(*) FROM interactions GROUP BY usage_statistics`,
			`SELECT count(*) FROM interactions GROUP BY GROUPING SETS ((user_id), ())`,
			`SELECT count(*) FROM interactions GROUP BY ROLLUP (channel_type, id)`,
			`SELECT count(*) FROM interactions GROUP BY CUBE (channel_type, user_id)`,
			`SELECT count(*) FROM interactions GROUP BY (channel_type, user_id)`,
			`SELECT count(*) FROM interactions GROUP BY interactions`,
			`SELECT count(*) FROM interactions i GROUP BY i.*`,
			`SELECT count(*) FROM interactions GROUP BY random() < 0.01`,
			`SELECT count(*) FROM interactions GROUP BY md5(channel_type)`,
			// Filters that select one person, or a part of a cell.
			`SELECT count(*) FROM interactions WHERE user_id = 'user-1'`,
			`SELECT sum(usage_statistics) FROM interactions WHERE user_id <> 'user-1'`,
			`SELECT count(*) FROM interactions WHERE usage_statistics > 59`,
			`SELECT count(*) FROM interactions WHERE id % 7 = 0`,
			`SELECT count(*) FROM interactions WHERE random() < 0.01`,
			`SELECT count(*) FROM interactions WHERE occurred_at >= '2026-02-14'`,
			`SELECT count(*) FROM interactions WHERE ctid = '(0,1)'`,
			`SELECT count(*) FILTER (WHERE user_id = 'user-1') FROM interactions`,
			`SELECT sum(usage_statistics) FILTER (WHERE usage_statistics > 59) FROM interactions`,
			`SELECT sum(CASE WHEN user_id = 'user-1' THEN 1 ELSE 0 END) FROM interactions`,
			`SELECT sum(CASE WHEN channel_type = 'api' THEN usage_statistics END) FROM interactions`,
			`SELECT count(NULLIF(usage_statistics, 60)) FROM interactions`,
			`SELECT sum(usage_statistics / (usage_statistics - 60)) FROM interactions`,
			`SELECT sum(usage_statistics::numeric) FROM interactions`,
			`SELECT sum(1) FROM interactions`,
			// Aggregates that return single values, openly or in disguise.
			`SELECT max(usage_statistics) FROM interactions`,
			`SELECT min(user_id) FROM interactions`,
			`SELECT max(channel_type) FROM interactions`,
			`SELECT array_agg(user_id) FROM interactions`,
			`SELECT array_agg(channel_type) FROM interactions`,
			`SELECT string_agg(channel_type, ',' ORDER BY id) FROM interactions`,
			`SELECT json_agg(interactions) FROM interactions`,
			`SELECT jsonb_object_agg(id, usage_statistics) FROM interactions`,
			`SELECT JSON_ARRAYAGG(usage_statistics) FROM interactions`,
			`SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY usage_statistics) FROM interactions`,
			`SELECT mode() WITHIN GROUP (ORDER BY user_id) FROM interactions`,
			`SELECT stddev(usage_statistics), variance(usage_statistics) FROM interactions`,
			`SELECT bit_xor(usage_statistics) FROM interactions`,
			`SELECT regr_slope(usage_statistics, performance_benchmarks) FROM interactions`,
			`SELECT sum(DISTINCT usage_statistics) FROM interactions`,
			`SELECT count(DISTINCT usage_statistics) FROM interactions`,
			`SELECT count(DISTINCT (user_id, usage_statistics)) FROM interactions`,
			`SELECT avg(usage_statistics ORDER BY id) FROM interactions`,
			`SELECT count(interactions) FROM interactions`,
			`SELECT count(interactions.*) FROM interactions`,
			`SELECT sum(interaction_frequency) FROM interactions`,
			// Counts of subjects, which would reveal how cells overlap.
			`SELECT count(DISTINCT user_id) FROM interactions`,
			`SELECT channel_type, count(DISTINCT user_id) FROM interactions GROUP BY channel_type`,
			`SELECT count(DISTINCT user_id) FROM interactions GROUP BY channel_type, trend_analysis, date_trunc('year', occurred_at)`,
			`SELECT count(DISTINCT user_id) FROM interactions GROUP BY CUBE (channel_type, trend_analysis, date_trunc('month', occurred_at))`,
			`SELECT count(DISTINCT user_id) FROM interactions WHERE channel_type = 'api' OR trend_analysis = 'steady' ` +
				`GROUP BY date_trunc('month', occurred_at), trend_analysis`,
			// ORDER BY, HAVING, DISTINCT, LIMIT and windows over columns that are no dimensions.
			`SELECT channel_type, count(*) FROM interactions GROUP BY channel_type ORDER BY max(id)`,
			`SELECT channel_type, count(*) FROM interactions GROUP BY channel_type ORDER BY min(user_id) LIMIT 1`,
			`SELECT channel_type, count(*) FROM interactions GROUP BY channel_type HAVING bool_or(user_id = 'user-1')`,
			`SELECT channel_type, count(*) FROM interactions GROUP BY channel_type HAVING max(usage_statistics) > 100`,
			`SELECT 1 FROM interactions HAVING true AND count(*) FILTER (WHERE user_id = 'user-1') > 0`,
			`SELECT DISTINCT ON (user_id) count(*) FROM interactions GROUP BY channel_type, user_id`,
			`SELECT count(*), row_number() OVER (ORDER BY channel_type) FROM interactions GROUP BY channel_type`,
			`SELECT sum(count(*)) OVER w FROM interactions GROUP BY channel_type WINDOW w AS ()`,
			`SELECT count(*) FROM interactions LIMIT (SELECT count(*) FROM users)`,
			// Joins that select one person, and aggregates inside other statements.
			`SELECT count(*) FROM interactions JOIN users USING (user_id)`,
			`SELECT count(*) FROM interactions i, users u WHERE u.user_id = i.user_id AND u.name LIKE 'Ada%'`,
			`SELECT count(*) FROM interactions i JOIN (VALUES ('api')) v (t) ON v.t = i.channel_type`,
			`SELECT count(*) FROM interactions a, interactions b WHERE a.user_id = b.user_id`,
			`SELECT count(*) FROM users u LEFT JOIN interactions i ON i.user_id = u.user_id GROUP BY u.user_id`,
			`SELECT count(*) FROM users u, LATERAL (SELECT count(*) FROM interactions i WHERE i.user_id = u.user_id) x`,
			`SELECT u.user_id, (SELECT count(*) FROM interactions i WHERE i.user_id = u.user_id) FROM users u`,
			`SELECT 1 WHERE (SELECT count(*) FROM interactions) > 5000`,
			`SELECT EXISTS (SELECT FROM interactions GROUP BY channel_type HAVING count(*) > 4000)`,
			`SELECT count(*) FROM interactions WHERE channel_type = (SELECT 'api')`,
			`SELECT count(*) FROM interactions WHERE user_id IN (SELECT user_id FROM users)`,
			`WITH a AS (SELECT count(*) FROM interactions) SELECT * FROM a`,
			`WITH a AS (SELECT 1) SELECT count(*) FROM interactions`,
			`SELECT count(*) FROM interactions UNION ALL SELECT count(*) FROM users`,
			`SELECT count(*) FROM (SELECT channel_type, count(*) FROM interactions GROUP BY 1) x`,
			`(SELECT count(*) FROM interactions)`,
			`SELECT 1; SELECT count(*) FROM interactions`,
			`SELECT count(*) FROM interactions; SELECT count(*) FROM interactions`,
			`PREPARE a AS SELECT count(*) FROM interactions`,
			`BEGIN; DECLARE a CURSOR FOR SELECT count(*) FROM interactions`,
			`COPY (SELECT count(*) FROM interactions) TO STDOUT`,
			`SELECT count(*) FROM ONLY interactions`,
			`SELECT count(*) FROM interactions *`,
			`SELECT count(a) FROM interactions AS i (a)`,
			`SELECT sum(performance_benchmarks) FROM interactions AS i (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)`,
			`SELECT count(*), public.interactions.user_id FROM interactions GROUP BY 2`,
			`SELECT count(*) FROM interactions WHERE interactions IS NOT NULL`,
			`SELECT count(*) FROM interactions WHERE channel_type = 'a\b'`,
		} {
			a := harness.Ask(agent, sql)
			if a.Code != "42501" && a.Code != "0A000" && a.Code != "42703" {
				t.Errorf("%s: SQLSTATE %q, %d answers", sql, a.Code, len(a.Results))
			}
			for _, r := range a.Results {
				if len(r.Rows) > 0 && !strings.HasPrefix(sql, "SELECT 1;") {
					t.Errorf("%s returns %v", sql, r.Rows)
				}
			}
			harness.Ask(agent, "ROLLBACK")
		}
		a := harness.Ask(agent, `SELECT user_id, count(*) FROM interactions GROUP BY user_id`)
		for _, word := range []string{"42501", `"public.interactions"`, "user_id stands inside count only",
			"at least 5 subjects", "sum and avg of performance_benchmarks, usage_statistics",
			"channel_type, date_trunc('month', occurred_at), trend_analysis", "FROM interactions AS visible_interactions"} {
			if !strings.Contains(a.Err, word) {
				t.Errorf("the refusal does not say %q: %s", word, a.Err)
			}
		}
		c.proxy.Tap().RequireNoMarker(t)
	})
}

// A group of fewer than five is not returned, and no total includes it. This prevents differencing, trackers and
// complements.
// seeds/001:37-41, 63-67.
func TestCirisC_SmallGroupsAreInNoAnswer(t *testing.T) {
	const secretRows = `INSERT INTO interactions (id, user_id, channel_id, channel_type, trend_analysis, occurred_at, usage_statistics)
		SELECT 100000 + row_number() OVER (), user_id, 'HIDDENMARK', 'secret', 'steady', '2026-02-02', 7
		FROM (SELECT * FROM users WHERE stream = 'ANONYMOUS' ORDER BY user_id LIMIT 4) u`
	runInModes(t, secretRows, func(t *testing.T, c *ciris) {
		agent := c.agent(t)
		const fromVisible = ` FROM interactions AS visible_interactions`
		// Only four anonymous users are on cli, so that all who are counted there are visible users.
		for _, description := range []string{`count(*)`, `sum(usage_statistics)`, `avg(performance_benchmarks)`} {
			total := oneText(agent, `SELECT `+description+` FROM interactions WHERE channel_type = 'cli'`)
			if got := oneText(agent, `SELECT `+description+fromVisible+` WHERE channel_type = 'cli'`); got != total {
				t.Errorf("%s on cli is %s, of the rows that show %s", description, total, got)
			}
		}
		queryNumber := func(sql string) (n int) {
			t.Helper()
			if _, err := fmt.Sscan(oneText(agent, sql), &n); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			return n
		}
		// Overlapping filters, the complement and Denning's tracker: the parts add up to the whole, whichever of them are
		// small.
		totalCount := queryNumber(`SELECT count(*) FROM interactions`)
		for _, filter := range []string{`channel_type = 'cli'`, `channel_type = 'cli' AND trend_analysis = 'rising'`,
			`channel_type <> 'discord'`, `date_trunc('month', occurred_at) = '2026-06-01 00:00+00'`} {
			countWith := queryNumber(`SELECT count(*) FROM interactions WHERE ` + filter)
			countWithout := queryNumber(`SELECT count(*) FROM interactions WHERE NOT (` + filter + `)`)
			if countWith+countWithout != totalCount {
				t.Errorf("%s: %d and %d are not %d", filter, countWith, countWithout, totalCount)
			}
			trackerCount := queryNumber(`SELECT count(*) FROM interactions WHERE `+filter+` OR trend_analysis = 'steady'`) +
				queryNumber(`SELECT count(*) FROM interactions WHERE `+filter+` OR NOT trend_analysis = 'steady'`) - totalCount
			if trackerCount != countWith {
				t.Errorf("%s: the tracker finds %d, the question %d", filter, trackerCount, countWith)
			}
		}
		// The same holds for parameters of a prepared statement that is executed again.
		for _, want := range []string{"api", "cli", "api"} {
			a := harness.AskExtended(agent,
				`SELECT count(*) FROM interactions WHERE channel_type = $1 GROUP BY channel_type LIMIT $2`, []byte(want), []byte("10"))
			if got := oneText(agent, `SELECT count(*) FROM interactions WHERE channel_type = '`+want+
				`'`); len(a.Results) != 1 || len(a.Results[0].Rows) != 1 || a.Results[0].Rows[0] != got {
				t.Errorf("with a parameter %s is %+v, else %s", want, a, got)
			}
		}
		if got := oneText(agent, `SELECT count(*) FROM interactions WHERE channel_type = 'nowhere'`); got != "" {
			t.Errorf("an empty group is returned: %s", got)
		}
		// Errors come only from cells that count: no expression runs on rows of a cell that is too small.
		for _, condition := range []string{
			`1 / CASE channel_type WHEN 'secret' THEN 0 ELSE 1 END = 1`,
			`CASE WHEN channel_type LIKE 'sec%' THEN channel_type ELSE '1' END::int = 1`,
			`CASE WHEN upper(channel_type) = 'SECRET' THEN sqrt(-1 * length(channel_type)) ELSE 1 END = 1`,
		} {
			if got := oneText(agent, `SELECT count(*) FROM interactions WHERE `+condition); got != fmt.Sprint(totalCount) {
				t.Errorf("%s: %s, not %d", condition, got, totalCount)
			}
			if got := oneText(agent,
				`SELECT count(*) FILTER (WHERE `+condition+`) FROM interactions GROUP BY `+condition); got != fmt.Sprint(totalCount) {
				t.Errorf("grouped by %s: %s, not %d", condition, got, totalCount)
			}
		}
		if got := oneText(agent, `SELECT count(*) FROM interactions WHERE 1 / CASE channel_type WHEN 'api' THEN 0 ELSE 1 END = 1`); got != "22012" {
			t.Errorf("a division that fails where rows count: %s", got)
		}
		for _, sql := range []string{`SELECT channel_type FROM interactions GROUP BY 1`,
			`SELECT lower(channel_type), count(*) FROM interactions GROUP BY CUBE (1)`} {
			if got := oneText(agent, sql); strings.Contains(got, "secret") {
				t.Errorf("%s names a group of four: %s", sql, got)
			}
		}
		c.proxy.Tap().RequireNoMarker(t)
	})
}
