package plans_test

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

//go:embed schema.sql indexes.sql shop.sql star.sql bitmaps.sql
var files embed.FS

func TestMain(m *testing.M) { pgtest.Main(m) }

const rules = `version: 1
tables:
  memories: { rows: [ { consent: { every: [ participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted } } ] }
  people: { rows: [ { status: { column: consent_status, is: granted } } ] }
  participants: { rows: [ { visible: { memories: { id: memory_id } } }, { visible: { people: { id: person_id } } } ] }
views: { titled: {} }
`

const (
	consents = `NOT EXISTS (SELECT 1 FROM participants x JOIN people y ON y.id = x.person_id WHERE x.memory_id = m.id AND y.consent_status <> 'granted')`
	settings = "SET jit = off; SET max_parallel_workers_per_gather = 0; SET search_path = public; "
)

// classes are the compared queries: as an agent writes them, and with the rules written by hand.
var classes = []struct{ name, sql, hand string }{
	{"point by id", "SELECT title FROM memories WHERE id = 4242", "SELECT title FROM memories m WHERE id = 4242 AND " + consents},
	{"latest 20", "SELECT id, title FROM memories ORDER BY occurred_at DESC LIMIT 20",
		"SELECT id, title FROM memories m WHERE " + consents + " ORDER BY occurred_at DESC LIMIT 20"},
	{"by owner", "SELECT id, title FROM memories WHERE owner_id = 17", "SELECT id, title FROM memories m WHERE owner_id = 17 AND " + consents},
	{"month by month", "SELECT date_trunc('month', occurred_at), count(*) FROM memories GROUP BY 1",
		"SELECT date_trunc('month', occurred_at), count(*) FROM memories m WHERE " + consents + " GROUP BY 1"},
	{"count", "SELECT count(*) FROM memories", "SELECT count(*) FROM memories m WHERE " + consents},
	{"full text", "SELECT id FROM memories WHERE tsv @@ plainto_tsquery('simple', 'w17 w23')",
		"SELECT id FROM memories m WHERE tsv @@ plainto_tsquery('simple', 'w17 w23') AND " + consents},
	{"full text by month",
		"SELECT date_trunc('month', occurred_at), count(*) FROM memories WHERE tsv @@ plainto_tsquery('simple', " +
			"'w17 w23') AND title ~ 'w' GROUP BY 1",
		"SELECT date_trunc('month', occurred_at), count(*) FROM memories m WHERE tsv @@ plainto_tsquery('simple', " +
			"'w17 w23') AND title ~ 'w' AND " + consents + " GROUP BY 1"},
	{"trigram", "SELECT id FROM memories WHERE title ILIKE '%w171 w23%'", "SELECT id FROM memories m WHERE title ILIKE '%w171 w23%' AND " + consents},
	{"prefix", "SELECT id FROM memories WHERE title LIKE 'w171 w23%'", "SELECT id FROM memories m WHERE title LIKE 'w171 w23%' AND " + consents},
	{"jsonb", `SELECT id FROM memories WHERE metadata @> '{"k": 771}'`, `SELECT id FROM memories m WHERE metadata @> '{"k": 771}' AND ` + consents},
	{"full text of a view", "SELECT id FROM titled WHERE tsv @@ plainto_tsquery('simple', 'w17 w23')",
		"SELECT id FROM memories m WHERE title <> '' AND tsv @@ plainto_tsquery('simple', 'w17 w23') AND " + consents},
	{"join", "SELECT count(*) FROM memories m JOIN participants p ON p.memory_id = m.id WHERE p.person_id = 99",
		"SELECT count(*) FROM memories m JOIN participants p ON p.memory_id = m.id JOIN people q ON q.id = " +
			"p.person_id WHERE p.person_id = 99 AND q.consent_status = 'granted' AND " + consents},
}

// TestPlans is a measurement. PLANS_ROWS is the number of memories, PLANS_OUT the file for the table.
func TestPlans(t *testing.T) {
	rows, _ := strconv.Atoi(os.Getenv("PLANS_ROWS"))
	if rows == 0 {
		t.Skip("a measurement: make bench-plans")
	}
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	fill(t, super, rows)
	w := migrate(t, super, rules)
	hand := db.Connect(t, "postgres")
	agent := db.Connect(t, migrations.DefaultAgentRole)
	configureSessions(t, hand, agent)
	var table strings.Builder
	table.WriteString("| query | by hand, ms | row security | with its hint | auto | path | both | " +
		"prepared: by hand, ms | auto | both |\n|---|---:|---:|---:|---:|---|---:|---:|---:|---:|\n")
	for _, c := range classes {
		began := time.Now()
		unhinted, _ := w.text(t, rewrite.RowSecurityMode, false, c.sql)
		hinted, hintedRes := w.text(t, rewrite.RowSecurityMode, true, c.sql)
		auto, signedRes := w.text(t, rewrite.AutoMode, true, c.sql)
		injected, _ := w.text(t, rewrite.InjectedMode, true, c.sql)
		w.reseal(t, agent)
		usePlanSettings(t, agent, signedRes)
		base := cpu(t, hand, c.hand, nil)
		want := digestRows(t, hand, c.hand)
		cell := func(sql string) string {
			w.reseal(t, agent)
			if got := digestRows(t, agent, sql); got != want {
				t.Errorf("%s: %q, by hand %q\n%s", c.name, got, want, sql)
			}
			return fmt.Sprintf("%.2f×", cpu(t, agent, sql, func() { w.reseal(t, agent) })/base)
		}
		path := pathOf(signedRes)
		hint := cell(hinted)
		if !hintedRes.UseHash {
			hint = "none given"
		}
		handPrepared := preparedCPU(t, hand, c.hand, nil)
		preparedCell := func(sql string) string {
			return fmt.Sprintf("%.2f×", preparedCPU(t, agent, sql, func() { w.reseal(t, agent) })/handPrepared)
		}
		fmt.Fprintf(&table, "| %s | %.3g | %s | %s | %s | %s | %s | %.3g | %s | %s |\n",
			c.name, base, cell(unhinted), hint, cell(auto), path, cell(injected), handPrepared, preparedCell(auto), preparedCell(injected))
		fmt.Printf("plans: %-16s %s\n", c.name, time.Since(began).Round(time.Second))
	}
	fmt.Print(table.String())
	hardened := hardenedPlans(t, w, agent)
	fmt.Print(hardened)
	materialized, filled := materializedPlans(t, super, hand, agent)
	fmt.Print(materialized)
	shop := shopPlans(t, rows)
	fmt.Print(shop)
	if out := os.Getenv("PLANS_OUT"); out != "" {
		writeTable(t, out, "<!-- table: written by make bench-plans -->\n", caption(rows), table.String())
		writeTable(t, out, "<!-- hardened: written by make bench-plans -->\n",
			fmt.Sprintf("%d memories, PostgreSQL %s:\n\n", rows, pgtest.Binaries().Version), hardened)
		writeTable(t, out, "<!-- materialized: written by make bench-plans -->\n",
			fmt.Sprintf("%d memories; filling in took %s:\n\n", rows, filled), materialized)
		writeTable(t, out, "<!-- a shop: written by make bench-plans -->\n", fmt.Sprintf("%d orders, load average %s:\n\n", rows/2, load()), shop)
	}
}

// configureSessions gives both connections the memory settings of an agent's session, and the agent's connection also
// the join limits.
func configureSessions(t *testing.T, hand, agent *pgx.Conn) {
	t.Helper()
	for _, conn := range []*pgx.Conn{hand, agent} {
		exec(t, conn, settings+fmt.Sprintf("SET work_mem = '%dMB'; SET hash_mem_multiplier = %d", rewrite.WorkMemMB,
			rewrite.HashMemMultiplier))
	}
	exec(t, agent, fmt.Sprintf("SET from_collapse_limit = %d; SET join_collapse_limit = %[1]d", rewrite.JoinLimit))
}

// hardenedPlans measures two costs of a hardened plan under row security: that of the SET statements in front of a
// statement, and that of the plan which they cause.
func hardenedPlans(t *testing.T, w *world, agent *pgx.Conn) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| query | row security, ms | the same, hardened | prepared, ms | the same, hardened |\n|---|---:|---:|---:|---:|\n")
	reseal := func() { w.reseal(t, agent) }
	for _, c := range append(slices.Clone(classes),
		struct{ name, sql, hand string }{"two of a range",
			"SELECT count(*) FROM memories WHERE owner_id IN (17, 18, 19) AND occurred_at > '2020-01-01'", ""}) {
		sql, _ := w.text(t, rewrite.RowSecurityMode, true, c.sql)
		exec(t, agent, "RESET cpu_operator_cost; RESET enable_bitmapscan; RESET plan_cache_mode")
		plain, plainPrepared := cpu(t, agent, sql, reseal), preparedCPU(t, agent, sql, reseal)
		hardened := cpu(t, agent, verdict.WithHardenedPlan(sql), reseal)
		exec(t, agent, strings.ReplaceAll(verdict.HardenedPlanPrefix, "SET LOCAL", "SET"))
		hardenedPrepared := preparedCPU(t, agent, sql, reseal)
		fmt.Fprintf(&table, "| %s | %.3g | %.2f× | %.3g | %.2f× |\n", c.name, plain, hardened/plain, plainPrepared, hardenedPrepared/plainPrepared)
		fmt.Printf("plans: %s hardened\n", c.name)
	}
	exec(t, agent, "RESET cpu_operator_cost; RESET enable_bitmapscan; RESET plan_cache_mode")
	return table.String()
}

// materializedPlans measures the queries with materialized consent for memories, and how long it takes to compute the
// answers.
func materializedPlans(t *testing.T, super, hand, agent *pgx.Conn) (string, time.Duration) {
	t.Helper()
	w := migrate(t, super, strings.Replace(rules, "is: granted } } ] }\n  people", "is: granted, materialize: true } } ] }\n  people", 1))
	began := time.Now()
	err := migrations.FillAll(context.Background(), super, w.plan.Fills(), func(f migrations.Fill, left int64) {
		if left%100_000 == 0 {
			fmt.Printf("plans: %d of %s to fill in, %s\n", left, f.Relation, time.Since(began).Round(time.Second))
		}
	})
	if err != nil || len(w.plan.Fills()) == 0 {
		t.Fatal("nothing is materialized: ", err)
	}
	filled := time.Since(began).Round(time.Second)
	exec(t, super, "VACUUM ANALYZE")
	var table strings.Builder
	table.WriteString("| query | by hand, ms | row security | auto | path | prepared: by hand, ms | row " +
		"security | auto |\n|---|---:|---:|---:|---|---:|---:|---:|\n")
	for _, c := range classes {
		rows, _ := w.text(t, rewrite.RowSecurityMode, true, c.sql)
		auto, res := w.text(t, rewrite.AutoMode, true, c.sql)
		want := digestRows(t, hand, c.hand)
		base, basePrepared := cpu(t, hand, c.hand, nil), preparedCPU(t, hand, c.hand, nil)
		var onceCells, preparedCells []string
		for _, sql := range []string{rows, auto} {
			w.reseal(t, agent)
			if got := digestRows(t, agent, sql); got != want {
				t.Errorf("%s, kept: %q, by hand %q\n%s", c.name, got, want, sql)
			}
			onceCells = append(onceCells, fmt.Sprintf("%.2f×", cpu(t, agent, sql, func() { w.reseal(t, agent) })/base))
			preparedCells = append(preparedCells, fmt.Sprintf("%.2f×", preparedCPU(t, agent, sql, func() { w.reseal(t, agent) })/basePrepared))
		}
		fmt.Fprintf(&table, "| %s | %.3g | %s | %s | %.3g | %s |\n", c.name, base, strings.Join(onceCells, " | "),
			pathOf(res), basePrepared, strings.Join(preparedCells, " | "))
		fmt.Printf("plans: %-16s kept\n", c.name)
	}
	return table.String(), filled
}

func pathOf(r *rewrite.Result) string {
	if r.UseHash {
		return string(r.Path) + ", hint"
	}
	return string(r.Path)
}

// world is a migrated database.
type world struct {
	snap       *catalog.Snapshot
	pol        *policy.Policy
	plan       *rls.Plan
	sizes      catalog.Sizes
	key        seal.Key
	attributes map[string]string // the attributes of the agent
}

// text returns the statement that the proxy would send for an agent's statement. With hinted, it knows how large the
// tables are, and so may add hints.
func (w *world) text(t *testing.T, mode rewrite.Mode, hinted bool, sql string) (string, *rewrite.Result) {
	t.Helper()
	r := rewrite.New(w.snap, w.pol, mode)
	if hinted {
		r = r.WithSizes(w.sizes)
	}
	res, refused := r.Rewrite(sql, false)
	if refused != nil {
		t.Fatalf("%s: %v", sql, refused)
	}
	if res.NeedsSignature {
		return w.key.Sign("p", res.Text), res
	}
	return res.Text, res
}

// fill inserts the data. A memory of 800 bytes has two or three participants, and there are a tenth as many people as
// memories. Of 100 people, 8 are pending and 2 have revoked.
func fill(t *testing.T, conn *pgx.Conn, rows int) {
	t.Helper()
	began := time.Now()
	exec(t, conn, read(t, "schema.sql"))
	exec(t, conn, fmt.Sprintf(`INSERT INTO people SELECT i, 'person ' || i, CASE WHEN h < 90 THEN 'granted' WHEN h < 98 THEN 'pending' ELSE 'revoked' END
		FROM generate_series(1, %d) i, LATERAL (SELECT (hashint8(i + 7) & 2147483647) %% 100) x(h)`, rows/10))
	const chunk = 50_000
	for from := 1; from <= rows; from += chunk {
		to := min(from+chunk-1, rows)
		exec(t, conn, fmt.Sprintf(`INSERT INTO memories SELECT i, a %% 1000, 'w' || a %% 200 || ' w' || b %% 200, repeat(md5(i::text), 20),
			jsonb_build_object('k', a %% 10000, 'mood', 'm' || b %% 7), timestamptz '2020-01-01' + (b %% 157680000) * interval '1 second',
			to_tsvector('simple', 'w' || a %% 211 || ' w' || b %% 199 || ' w' || (a / 211) %% 197 || ' w' || (b / 199) %% 193)
			FROM generate_series(%d, %d) i, LATERAL (SELECT hashint8(i) & 2147483647, hashint8(i * 31 + 1) & 2147483647) x(a, b)`, from, to))
		exec(t, conn, fmt.Sprintf(`INSERT INTO participants SELECT DISTINCT i, 1 + (hashint8(i * 5 + k) & 2147483647) %% %d
			FROM generate_series(%d, %d) i, LATERAL generate_series(1, 2 + (i %% 2)::int) k`, rows/10, from, to))
		fmt.Printf("plans: %d of %d memories, %s\n", to, rows, time.Since(began).Round(time.Second))
	}
	for stmt := range strings.SplitSeq(read(t, "indexes.sql"), ";\n") {
		if strings.TrimSpace(stmt) != "" {
			exec(t, conn, stmt)
		}
	}
	exec(t, conn, "VACUUM ANALYZE memories")
	exec(t, conn, "VACUUM ANALYZE participants")
	exec(t, conn, "VACUUM ANALYZE people")
	fmt.Printf("plans: data and indexes, %s\n", time.Since(began).Round(time.Second))
}

func migrate(t *testing.T, conn *pgx.Conn, rules string) *world {
	t.Helper()
	ctx := context.Background()
	doc, err := policy.Parse("policy.yaml", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{}
	if w.snap, err = pgcatalog.Load(ctx, conn, []string{"public"}); err != nil {
		t.Fatal(err)
	}
	if w.pol, err = policy.Compile(doc, w.snap, policy.WithViews(rewrite.RewriteViewQuery)); err != nil {
		t.Fatal(err)
	}
	w.plan = rls.Generate(w.pol, w.snap, rls.Options{SignedViews: true})
	if err := migrations.Up(ctx, conn, migrations.Options{}, w.plan); err != nil {
		t.Fatal(err)
	}
	if w.sizes, err = pgcatalog.Sizes(ctx, conn, rls.PredicateTables(w.pol)); err != nil {
		t.Fatal(err)
	}
	ring, err := seal.LoadKeyring(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	w.key = ring.NewestKey()
	return w
}

func (w *world) reseal(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	value := w.key.Seal(seal.Claims{Nonce: 1, PID: conn.PgConn().PID(), Expires: time.Now().Add(seal.SealLifetime),
		Profile: "p", Attributes: w.attributes})
	if _, err := conn.Exec(context.Background(), "SELECT set_config('pgconsent.seal', $1, false)", pgx.QueryExecModeExec, value); err != nil {
		t.Fatal(err)
	}
}

// cpu returns the least CPU time of the server's process for a query, in milliseconds. A short query runs several times
// for each figure, because the process may answer before its time is accounted.
func cpu(t *testing.T, conn *pgx.Conn, sql string, reseal func()) float64 {
	t.Helper()
	return leastTime(t, conn, func() { exec(t, conn, sql) }, reseal)
}

// preparedCPU returns the same for a prepared statement, after enough executions for the server to choose between
// generic and custom plans.
func preparedCPU(t *testing.T, conn *pgx.Conn, sql string, reseal func()) float64 {
	t.Helper()
	ctx := context.Background()
	if reseal != nil {
		reseal()
	}
	if _, err := conn.PgConn().Prepare(ctx, "measured", sql, nil); err != nil {
		t.Fatalf("%.300s: %v", sql, err)
	}
	defer exec(t, conn, "DEALLOCATE measured")
	run := func() {
		if res := conn.PgConn().ExecPrepared(ctx, "measured", nil, nil, nil).Read(); res.Err != nil {
			t.Fatalf("%.300s: %v", sql, res.Err)
		}
	}
	for range 3 {
		run()
	}
	return leastTime(t, conn, run, reseal)
}

func leastTime(t *testing.T, conn *pgx.Conn, run func(), reseal func()) float64 {
	t.Helper()
	const shortest = 20 // the shortest measurement, in milliseconds
	var times []float64
	runs := 1
	for began := time.Now(); len(times) < 3 || len(times) < 40 && time.Since(began) < 2*time.Second; {
		if reseal != nil {
			reseal()
		}
		before := serverTime(t, conn)
		for range runs {
			run()
		}
		took := serverTime(t, conn) - before
		if took < shortest && runs < 1<<12 {
			runs *= 2
			continue
		}
		times = append(times, took/float64(runs))
		if time.Since(began) > 8*time.Second {
			break
		}
	}
	return slices.Min(times)
}

func serverTime(t *testing.T, conn *pgx.Conn) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", conn.PgConn().PID()))
	if err != nil {
		t.Fatal(err)
	}
	ns, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return ns / 1e6
}

// digestRows returns the number of a query's rows and a digest of them that does not depend on their order.
func digestRows(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	results, err := conn.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var lines []string
	for _, row := range results[0].Rows {
		lines = append(lines, fmt.Sprintf("%q", row))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return fmt.Sprintf("%d rows, %x", len(lines), sum[:4])
}

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		t.Fatalf("%.300s: %v", sql, err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func caption(rows int) string {
	return fmt.Sprintf("%d memories, PostgreSQL %s, %s, %d processors, load average %s:\n\n", rows,
		pgtest.Binaries().Version, runtime.GOARCH, runtime.NumCPU(), load())
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Fields(string(text) + " ?")[0]
}

// writeTable replaces the text between two marks of a page by a caption and a table.
func writeTable(t *testing.T, page, begin, heading, table string) {
	t.Helper()
	const end = "<!-- end of table -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table", page)
	}
	if err := os.WriteFile(page, []byte(before+begin+heading+table+"\n"+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// usePlanSettings sets the planner settings that the proxy would use for this statement.
func usePlanSettings(t *testing.T, agent *pgx.Conn, res *rewrite.Result) {
	t.Helper()
	exec(t, agent, "RESET cpu_operator_cost; RESET enable_bitmapscan; RESET plan_cache_mode")
	if res.HardenedReason != "" {
		exec(t, agent, strings.ReplaceAll(verdict.HardenedPlanPrefix, "SET LOCAL", "SET"))
	}
}
