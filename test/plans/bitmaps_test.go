package plans_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rewrite"
)

// bitmapRules show a reading if its member is visible.
const bitmapRules = `version: 1
tables:
  members: { rows: [ { status: { column: consent, is: granted } } ] }
  readings: { rows: [ { visible: { members: { id: member } } } ] }
`

// bitmapQueries are queries for which PostgreSQL prefers bitmap scans. They use several indexes, lists, ranges of rows that
// are scattered over the table, and BRIN and GIN indexes, which have no other scans.
var bitmapQueries = []struct{ name, sql string }{
	{"two indexes", "SELECT id, value FROM readings WHERE device = 417 AND sensor = 233"},
	{"two ranges", "SELECT count(*) FROM readings WHERE device BETWEEN 100 AND 119 AND sensor BETWEEN 50 AND 63"},
	{"two ranges and a quotient", "SELECT id FROM readings WHERE device BETWEEN 100 AND 119 AND sensor BETWEEN 50 AND 63 AND value / nullif(amount, 0) > 10"},
	{"either of two", "SELECT id, value FROM readings WHERE device = 417 OR sensor = 233"},
	{"a hundred by id", "SELECT id, value FROM readings WHERE id IN (" + multiples(100, 7919) + ")"},
	{"a hundred members", "SELECT member, count(*), max(at) FROM readings WHERE member IN (" + multiples(100, 79) + ") GROUP BY 1"},
	{"1 % of a random order", "SELECT sum(amount) FROM readings WHERE shuffled BETWEEN 300000 AND 309999"},
	{"1 %, and a quotient", "SELECT count(*) FROM readings WHERE shuffled BETWEEN 300000 AND 309999 AND value / nullif(amount, 0) > 10"},
	{"5 %, and a quotient", "SELECT count(*) FROM readings WHERE shuffled BETWEEN 300000 AND 349999 AND value / nullif(amount, 0) > 10"},
	{"a day, BRIN", "SELECT count(*), sum(amount) FROM readings WHERE at >= '2024-03-04' AND at < '2024-03-05'"},
	{"a day, BRIN, and a cast", "SELECT count(*) FROM readings WHERE at >= '2024-03-04' AND at < '2024-03-05' AND (meta ->> 'k')::int > 2500"},
	{"a device's day, BRIN", "SELECT id, value FROM readings WHERE at >= '2024-03-04' AND at < '2024-03-05' AND device = 417"},
	{"JSON, and a quotient", `SELECT id FROM readings WHERE meta @> '{"k": 771}' AND value / nullif(amount, 0) > 10`},
	{"JSON, joined, and a quotient", `SELECT m.id, r.value / nullif(r.amount, 0) FROM readings r JOIN members m ON m.id = r.member WHERE r.meta @> '{"k": 771}'`},
	{"words, joined, and a cast", "SELECT r.id FROM readings r JOIN members m ON m.id = r.member WHERE r.tsv @@ plainto_tsquery('simple', 'w17 w23') " +
		"AND (r.meta ->> 'k')::int > 2500"},
	{"few of all, and a quotient", "SELECT id FROM readings WHERE amount = 3 AND value > 1420 AND value / nullif(amount, 0) > 10"},
}

// multiples returns a list of the first n multiples of a number.
func multiples(n, factor int) string {
	var out []string
	for i := range n {
		out = append(out, strconv.Itoa((i+1)*factor))
	}
	return strings.Join(out, ", ")
}

// TestBitmaps is a measurement: how each setting of a hardened plan slows queries that need bitmap scans. PLANS_ROWS is
// the number of readings, PLANS_OUT the file for the table.
func TestBitmaps(t *testing.T) {
	rows, _ := strconv.Atoi(os.Getenv("PLANS_ROWS"))
	if rows == 0 {
		t.Skip("a measurement: make bench-plans")
	}
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	for stmt := range strings.SplitSeq(strings.ReplaceAll(read(t, "bitmaps.sql"), ":readings", strconv.Itoa(rows)), ";\n") {
		if strings.TrimSpace(stmt) != "" {
			exec(t, super, stmt)
		}
	}
	w := migrate(t, super, bitmapRules)
	agent := db.Connect(t, migrations.DefaultAgentRole)
	configureSessions(t, agent, agent)
	columns := [][]string{verdict.HardenedPlanStatements[:1], verdict.HardenedPlanStatements[1:2], verdict.HardenedPlanStatements}
	var table strings.Builder
	table.WriteString("| query | path | auto, ms | policies first | no bitmaps | all three |\n|---|---|---:|---:|---:|---:|\n")
	for _, c := range bitmapQueries {
		text, res := w.text(t, rewrite.AutoMode, true, c.sql)
		path, reseal := pathOf(res), func() { w.reseal(t, agent) }
		if len(res.SearchedByKey) > 0 {
			path += ", by key"
		}
		usePlanSettings(t, agent, res)
		reseal()
		want, base := digestRows(t, agent, text), cpu(t, agent, text, reseal)
		fmt.Fprintf(&table, "| %s | %s | %.3g", c.name, path, base)
		for _, settings := range columns {
			usePlanSettings(t, agent, res)
			for _, setting := range settings {
				exec(t, agent, strings.Replace(setting, "SET LOCAL", "SET", 1))
			}
			reseal()
			if got := digestRows(t, agent, text); got != want {
				t.Errorf("%s: %q, else %q\n%s", c.name, got, want, text)
			}
			fmt.Fprintf(&table, " | %.2f×", cpu(t, agent, text, reseal)/base)
		}
		table.WriteString(" |\n")
		fmt.Printf("plans: %s\n", c.name)
	}
	fmt.Print(table.String())
	if out := os.Getenv("PLANS_OUT"); out != "" {
		writeTable(t, out, "<!-- bitmaps: written by make bench-plans -->\n",
			fmt.Sprintf("%d readings, PostgreSQL %s, load average %s:\n\n", rows, pgtest.Binaries().Version, load()), table.String())
	}
}
