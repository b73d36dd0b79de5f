package plans_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rewrite"
)

// vectorRules is a policy for chunks; RULE is replaced by the rule of its rows.
const vectorRules = `version: 1
attributes: { member: { type: bigint, source: credential } }
tables: { chunks: { rows: [ RULE ] } }
`

// vectorData has chunks around a thousand topics. Of these, 10 % belong to member 1, 1 % to member 2 and 0.01 % to
// member 3. The rest belongs to many members.
const vectorData = `CREATE EXTENSION vector;
CREATE TABLE chunks (id bigint PRIMARY KEY, member bigint NOT NULL, state text NOT NULL, kind text NOT NULL, emb vector(%[2]d) NOT NULL);
SELECT setseed(0.42);
INSERT INTO chunks SELECT i,
  CASE WHEN i %% 10000 = 7 THEN 3 WHEN i %% 100 = 8 THEN 2 WHEN i %% 10 = 9 THEN 1 ELSE 100 + hashint8(i) %% 5000 END, 'shared', 'k' || i %% 50,
  ARRAY(SELECT (sin((i %% 1000 * 7919 %% 1000) * d * 1.7) + random() * 2)::real FROM generate_series(1, %[2]d) AS d)::vector
  FROM generate_series(1, %[1]d) AS i;
CREATE INDEX ON chunks (member);
CREATE INDEX ON chunks (kind);
SET maintenance_work_mem = '2GB';
CREATE INDEX ON chunks USING hnsw (emb vector_l2_ops);
VACUUM ANALYZE chunks`

// TestNearest is a measurement of nearest-neighbour searches. VECTORS_ROWS is the number of chunks, PLANS_OUT the file
// for the table.
func TestNearest(t *testing.T) {
	rows, _ := strconv.Atoi(os.Getenv("VECTORS_ROWS"))
	if rows == 0 {
		t.Skip("a measurement: make bench-plans")
	}
	const dimensions = 128
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	if _, err := super.Exec(context.Background(), "CREATE EXTENSION vector; DROP EXTENSION vector"); err != nil {
		if os.Getenv("REQUIRE_PGVECTOR") != "" {
			t.Fatal(err)
		}
		t.Skipf("NOT MEASURED, since pgvector is not installed: %v", err)
	}
	began := time.Now()
	for stmt := range strings.SplitSeq(fmt.Sprintf(vectorData, rows, dimensions), ";\n") {
		exec(t, super, stmt)
		fmt.Printf("plans: %.40q, %s\n", stmt, time.Since(began).Round(time.Second))
	}
	var table strings.Builder
	table.WriteString("| visible | by hand, ms | recall | `approximate: accept` | recall | exact | recall | with " +
		"a condition by hand, ms | exact |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	migrate(t, super, strings.Replace(vectorRules, "RULE", "open", 1))
	hand, agent := db.Connect(t, "postgres"), db.Connect(t, migrations.DefaultAgentRole)
	for _, conn := range []*pgx.Conn{hand, agent} {
		exec(t, conn, settings+fmt.Sprintf(
			"SET work_mem = '%dMB'; SET hash_mem_multiplier = %d; SET hnsw.iterative_scan = strict_order; SET "+
				"hnsw.ef_search = 200", rewrite.WorkMemMB, rewrite.HashMemMultiplier))
	}
	var points []string
	for i := range 20 {
		points = append(points, firstColumn(t, super, fmt.Sprintf("SELECT emb::text FROM chunks WHERE id = %d", 1+(i*7919+13)%rows))[0])
	}
	for _, part := range []struct{ share, rule, hand, member string }{
		{"100 %", "status: { column: state, is: shared }", "state = 'shared'", "1"},
		{"10 %", "own: { column: member, is: member }", "member = 1", "1"},
		{"1 %", "own: { column: member, is: member }", "member = 2", "2"},
		{"0.01 %", "own: { column: member, is: member }", "member = 3", "3"},
	} {
		attributes, rule := map[string]string{"member": part.member}, " WHERE "+part.hand
		exactRules := strings.Replace(vectorRules, "RULE", "{ "+part.rule+" }", 1)
		truth := make([][]string, len(points))
		for i, p := range points {
			truth[i] = firstColumn(t, super, fmt.Sprintf("SELECT id FROM (SELECT * FROM chunks%s OFFSET 0) AS c ORDER BY emb <-> '%s' LIMIT 10", rule, p))
		}
		const search, limit = "SELECT id FROM chunks", " ORDER BY emb <-> '%s' LIMIT 10"
		recall := func(conn *pgx.Conn, write func(sql string) string, reseal func(), where string) float64 {
			foundCount, wantCount := 0, 0
			for i, p := range points {
				reseal()
				got := firstColumn(t, conn, write(search+where+fmt.Sprintf(limit, p)))
				if len(got) != len(truth[i]) {
					t.Errorf("%s: %d rows of %d", part.share, len(got), len(truth[i]))
				}
				wantCount += len(truth[i])
				for _, id := range got {
					if slices.Contains(truth[i], id) {
						foundCount++
					}
				}
			}
			return float64(foundCount) / float64(wantCount)
		}
		firstOrder := fmt.Sprintf(limit, points[0])
		unchanged := func(sql string) string { return sql }
		base := cpu(t, hand, search+rule+firstOrder, nil)
		cells := []string{part.share, fmt.Sprintf("%.3g", base), fmt.Sprintf("%.3f", recall(hand, unchanged, func() {}, rule))}
		for _, rules := range []string{strings.Replace(exactRules, "rows:", "approximate: accept, rows:", 1), exactRules} {
			w := migrate(t, super, rules)
			w.attributes = attributes
			write := func(sql string) string { out, _ := w.text(t, rewrite.AutoMode, true, sql); return out }
			seal := func() { w.reseal(t, agent) }
			cells = append(cells, fmt.Sprintf("%.2f×", cpu(t, agent, write(search+firstOrder), seal)/base), fmt.Sprintf("%.3f", recall(agent, write, seal, "")))
			if rules == exactRules {
				const kind = " kind = 'k7'"
				hand := cpu(t, hand, search+rule+" AND"+kind+firstOrder, nil)
				cells = append(cells, fmt.Sprintf("%.3g", hand), fmt.Sprintf("%.2f×", cpu(t, agent, write(search+" WHERE"+kind+firstOrder), seal)/hand))
			}
		}
		fmt.Fprintf(&table, "| %s |\n", strings.Join(cells, " | "))
		fmt.Printf("plans: nearest, %s visible, %s\n", part.share, time.Since(began).Round(time.Second))
	}
	fmt.Print(table.String())
	if out := os.Getenv("PLANS_OUT"); out != "" {
		writeTable(t, out, "<!-- vectors: written by make bench-plans -->\n",
			fmt.Sprintf("%d chunks of %d dimensions, top 10, PostgreSQL %s, load average %s:\n\n", rows, dimensions,
				pgtest.Binaries().Version, load()), table.String())
	}
}

// firstColumn returns the first column of a query's rows.
func firstColumn(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	results, err := conn.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%.300s: %v", sql, err)
	}
	var out []string
	for _, row := range results[0].Rows {
		out = append(out, string(row[0]))
	}
	return out
}
