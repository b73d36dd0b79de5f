package plans_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rewrite"
)

// starRules show a sale if its customer and its store are visible, so that its rule reads two tables.
const starRules = `version: 1
attributes: { tenant: { type: integer, source: credential } }
tables:
  customers: { rows: [ { status: { column: consent, is: "yes" } } ] }
  stores: { rows: [ { own: { column: tenant, is: tenant } } ] }
  items: { rows: open }
  dates: { rows: open }
  sales: { rows: [ { visible: { customers: { id: customer } } }, { visible: { stores: { id: store } } } ] }
  returns: { rows: [ { visible: { customers: { id: customer } } }, { visible: { stores: { id: store } } } ] }
`

// starByHand writes the rules into a query: SALES for the row f, RETURNS for r.
var starByHand = strings.NewReplacer("SALES", starRule("f"), "RETURNS", starRule("r"))

func starRule(row string) string {
	return "EXISTS (SELECT 1 FROM customers x WHERE x.id = " + row + ".customer AND x.consent = 'yes') AND " +
		"EXISTS (SELECT 1 FROM stores y WHERE y.id = " + row + ".store AND y.tenant = 1)"
}

// starQueries has queries with placeholders for the rules in their WHERE clauses. Without " AND SALES" and the like
// they are what an agent writes.
var starQueries = []struct{ name, sql string }{
	{"count and sum", "SELECT count(*), sum(f.qty) FROM sales f WHERE true AND SALES"},
	{"by brand", "SELECT i.brand, sum(f.qty * f.price) FROM sales f JOIN items i ON i.id = f.item WHERE true AND SALES GROUP BY 1 ORDER BY 2 DESC"},
	{"by brand of a year and category", "SELECT i.brand, sum(f.qty * f.price) FROM sales f JOIN items i ON i.id = f.item JOIN dates d ON d.id = f.day " +
		"WHERE d.year = 2024 AND i.category = 'category 3' AND SALES GROUP BY 1"},
	{"by city of a year", "SELECT c.city, sum(f.price / nullif(f.qty, 0)) FROM sales f JOIN customers c ON c.id = f.customer JOIN dates d ON d.id = f.day " +
		"WHERE d.year = 2024 AND c.consent = 'yes' AND SALES GROUP BY 1"},
	{"by store and city", "SELECT s.name, c.city, sum(f.price) FROM sales f JOIN stores s ON s.id = f.store JOIN customers c ON c.id = f.customer " +
		"JOIN dates d ON d.id = f.day WHERE d.year = 2024 AND s.tenant = 1 AND c.consent = 'yes' AND SALES GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 20"},
	{"returned", "SELECT i.name, count(*) FROM sales f JOIN items i ON i.id = f.item JOIN returns r ON r.sale = f.id WHERE true AND SALES AND RETURNS " +
		"GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10"},
	{"returned, by two words of an item", "SELECT i.name, count(*) FROM items i JOIN sales f ON f.item = i.id JOIN returns r ON r.sale = f.id " +
		"WHERE i.name ILIKE '%em 1%' AND i.brand ILIKE 'BRAND 1%' AND SALES AND RETURNS GROUP BY 1"},
	{"by a word of an item", "SELECT i.name, sum(f.qty) FROM sales f JOIN items i ON i.id = f.item WHERE i.name ~ '9$' AND SALES GROUP BY 1"},
	{"items that were sold", "SELECT i.name FROM items i WHERE i.name ILIKE '%9%' AND EXISTS (SELECT 1 FROM sales f WHERE f.item = i.id AND SALES)"},
	{"since a week", "SELECT count(*), sum(f.price) FROM sales f WHERE f.made >= now() - interval '7 days' AND SALES"},
	{"by brand since last week", "SELECT i.brand, count(*) FROM sales f JOIN items i ON i.id = f.item " +
		"WHERE f.made >= date_trunc('week', CURRENT_DATE) - interval '1 week' AND SALES GROUP BY 1"},
	{"by day between", "SELECT to_char(f.made, 'IYYY-IW'), count(*) FROM sales f WHERE f.made BETWEEN now() - interval '30 days' AND now() AND SALES GROUP BY 1"},
}

// TestStar is a measurement. PLANS_ROWS is the number of sales, PLANS_OUT the file for the table.
func TestStar(t *testing.T) {
	rows, _ := strconv.Atoi(os.Getenv("PLANS_ROWS"))
	if rows == 0 {
		t.Skip("a measurement: make bench-plans")
	}
	tables := "| query | by hand, ms | auto | path | by hand, ms | auto | path |\n|---|---:|---:|---|---:|---:|---|\n"
	small, large := starPlans(t, 30_000), starPlans(t, rows)
	for i, c := range starQueries {
		tables += "| " + c.name + small[i] + large[i] + " |\n"
	}
	fmt.Print(tables)
	if out := os.Getenv("PLANS_OUT"); out != "" {
		writeTable(t, out, "<!-- a star: written by make bench-plans -->\n",
			fmt.Sprintf("30000 sales, and %d, load average %s:\n\n", rows, load()), tables)
	}
}

// starPlans measures the queries with so many sales, and returns the cells of the table.
func starPlans(t *testing.T, sales int) (cells []string) {
	t.Helper()
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	for stmt := range strings.SplitSeq(strings.ReplaceAll(read(t, "star.sql"), ":sales", strconv.Itoa(sales)), ";\n") {
		if strings.TrimSpace(stmt) != "" {
			exec(t, super, stmt)
		}
	}
	w := migrate(t, super, starRules)
	w.attributes = map[string]string{"tenant": "1"}
	hand, agent := db.Connect(t, "postgres"), db.Connect(t, migrations.DefaultAgentRole)
	configureSessions(t, hand, agent)
	withoutRules := strings.NewReplacer(" AND SALES", "", " AND RETURNS", "", " AND s.tenant = 1", "", " AND c.consent = 'yes'", "")
	for _, c := range starQueries {
		text, res := w.text(t, rewrite.AutoMode, true, withoutRules.Replace(c.sql))
		usePlanSettings(t, agent, res)
		handText := starByHand.Replace(c.sql)
		w.reseal(t, agent)
		if got, want := digestRows(t, agent, text), digestRows(t, hand, handText); got != want && !strings.Contains(c.sql, "now()") {
			t.Errorf("%s: %q, by hand %q\n%s", c.name, got, want, text)
		}
		base, agentTime := cpu(t, hand, handText, nil), cpu(t, agent, text, func() { w.reseal(t, agent) })
		cells = append(cells, fmt.Sprintf(" | %.3g | %.2f× | %s", base, agentTime/base, pathOf(res)))
		fmt.Printf("plans: %d sales, %s\n", sales, c.name)
	}
	return cells
}
