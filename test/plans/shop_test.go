package plans_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rewrite"
)

// shopRules show an order if its customer is visible, and an item if its order is. A ticket is visible to its assignee
// and to the groups in its acl.
const shopRules = `version: 1
attributes:
  tenant: { type: bigint, source: credential }
  user: { type: bigint, source: credential }
  groups: { type: "text[]", source: credential }
tables:
  customers: { rows: [ { own: { column: tenant_id, is: tenant } }, { status: { column: consent, is: granted } } ] }
  orders: { rows: [ { own: { column: tenant_id, is: tenant } }, { visible: { customers: { id: customer_id } } } ] }
  items: { rows: [ { visible: { orders: { id: order_id } } } ] }
  products: { rows: [ open ] }
  tickets: { rows: [ { own: { column: tenant_id, is: tenant } },
    { any: [ { own: { column: assignee_id, is: user } }, { grant: { column: acl, to: [groups], all: "*" } } ] } ] }
`

// byHand writes the rules into a query: ORDERS for the row o, CUSTOMERS for c, TICKETS for t.
var byHand = strings.NewReplacer(
	"ORDERS", "o.tenant_id = 3 AND EXISTS (SELECT 1 FROM customers k WHERE k.id = o.customer_id AND k.tenant_id = 3 AND k.consent = 'granted')",
	"CUSTOMERS", "c.tenant_id = 3 AND c.consent = 'granted'",
	"TICKETS", "t.tenant_id = 3 AND (t.assignee_id = 33 OR t.acl && '{g1,g2,g3,*}')")

var shopQueries = []struct{ name, sql, hand string }{
	{"order by id", "SELECT total FROM orders WHERE id = 4243", "SELECT total FROM orders o WHERE id = 4243 AND ORDERS"},
	{"a customer's latest", "SELECT id, total FROM orders WHERE customer_id = 78 ORDER BY placed_at DESC LIMIT 10",
		"SELECT id, total FROM orders o WHERE customer_id = 78 AND ORDERS ORDER BY placed_at DESC LIMIT 10"},
	{"latest 20", "SELECT id, total FROM orders ORDER BY placed_at DESC LIMIT 20",
		"SELECT id, total FROM orders o WHERE ORDERS ORDER BY placed_at DESC LIMIT 20"},
	{"page 6", "SELECT id, total FROM orders ORDER BY placed_at DESC, id DESC LIMIT 20 OFFSET 100",
		"SELECT id, total FROM orders o WHERE ORDERS ORDER BY placed_at DESC, id DESC LIMIT 20 OFFSET 100"},
	{"count", "SELECT count(*) FROM orders", "SELECT count(*) FROM orders o WHERE ORDERS"},
	{"revenue by day", "SELECT date_trunc('day', placed_at), sum(total) FROM orders WHERE placed_at >= " +
		"'2024-06-01' AND placed_at < '2024-07-01' GROUP BY 1",
		"SELECT date_trunc('day', placed_at), sum(total) FROM orders o WHERE placed_at >= '2024-06-01' AND placed_at < '2024-07-01' AND ORDERS GROUP BY 1"},
	{"by status", "SELECT status, count(*), avg(total) FROM orders GROUP BY status",
		"SELECT status, count(*), avg(total) FROM orders o WHERE ORDERS GROUP BY status"},
	{"best customers", "SELECT c.name, sum(o.total) FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.name ORDER BY 2 DESC LIMIT 10",
		"SELECT c.name, sum(o.total) FROM orders o JOIN customers c ON c.id = o.customer_id WHERE o.tenant_id = 3 " +
			"AND CUSTOMERS GROUP BY c.name ORDER BY 2 DESC LIMIT 10"},
	{"an order's items", "SELECT o.id, i.product_id, i.qty FROM orders o JOIN items i ON i.order_id = o.id WHERE o.id = 4243",
		"SELECT o.id, i.product_id, i.qty FROM orders o JOIN items i ON i.order_id = o.id WHERE o.id = 4243 AND ORDERS"},
	{"best products", "SELECT p.name, sum(i.qty) FROM items i JOIN products p ON p.id = i.product_id GROUP BY p.name ORDER BY 2 DESC, 1 LIMIT 5",
		"SELECT p.name, sum(i.qty) FROM items i JOIN products p ON p.id = i.product_id WHERE EXISTS (SELECT 1 " +
			"FROM orders o WHERE o.id = i.order_id AND ORDERS) GROUP BY p.name ORDER BY 2 DESC, 1 LIMIT 5"},
	{"latest of each", "SELECT DISTINCT ON (customer_id) customer_id, id FROM orders WHERE customer_id <= 2000 ORDER BY customer_id, placed_at DESC",
		"SELECT DISTINCT ON (customer_id) customer_id, id FROM orders o WHERE customer_id <= 2000 AND ORDERS ORDER BY customer_id, placed_at DESC"},
	{"three of each", "SELECT c.id, x.id FROM customers c CROSS JOIN LATERAL (SELECT id FROM orders o WHERE " +
		"o.customer_id = c.id ORDER BY placed_at DESC LIMIT 3) x WHERE c.id < 500",
		"SELECT c.id, x.id FROM customers c CROSS JOIN LATERAL (SELECT id FROM orders o WHERE o.customer_id = " +
			"c.id AND o.tenant_id = 3 ORDER BY placed_at DESC LIMIT 3) x WHERE c.id < 500 AND CUSTOMERS"},
	{"who ordered nothing", "SELECT count(*) FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)",
		"SELECT count(*) FROM customers c WHERE CUSTOMERS AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.tenant_id = 3)"},
	{"rank in a week", "SELECT id, rank() OVER (PARTITION BY status ORDER BY total DESC) FROM orders WHERE " +
		"placed_at >= '2024-06-01' AND placed_at < '2024-06-08'",
		"SELECT id, rank() OVER (PARTITION BY status ORDER BY total DESC) FROM orders o WHERE placed_at >= " +
			"'2024-06-01' AND placed_at < '2024-06-08' AND ORDERS"},
	{"my open tickets", "SELECT id, title FROM tickets WHERE state = 'open' ORDER BY created_at DESC LIMIT 20",
		"SELECT id, title FROM tickets t WHERE state = 'open' AND TICKETS ORDER BY created_at DESC LIMIT 20"},
	{"tickets by state", "SELECT state, count(*) FROM tickets GROUP BY state", "SELECT state, count(*) FROM tickets t WHERE TICKETS GROUP BY state"},
	{"ticket by id", "SELECT title FROM tickets WHERE id = 778", "SELECT title FROM tickets t WHERE id = 778 AND TICKETS"},
	{"tickets by words",
		"SELECT id FROM tickets WHERE to_tsvector('simple', title) @@ to_tsquery('simple', 'w17 & w23')",
		"SELECT id FROM tickets t WHERE to_tsvector('simple', title) @@ to_tsquery('simple', 'w17 & w23') AND TICKETS"},
}

// shopPlans measures what everyday queries of a shop cost in the mode auto.
func shopPlans(t *testing.T, rows int) string {
	t.Helper()
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	for stmt := range strings.SplitSeq(strings.ReplaceAll(read(t, "shop.sql"), ":orders", strconv.Itoa(rows/2)), ";\n") {
		if strings.TrimSpace(stmt) != "" {
			exec(t, super, stmt)
		}
	}
	w := migrate(t, super, shopRules)
	w.attributes = map[string]string{"tenant": "3", "user": "33", "groups": "{g1,g2,g3}"}
	hand, agent := db.Connect(t, "postgres"), db.Connect(t, migrations.DefaultAgentRole)
	configureSessions(t, hand, agent)
	var table strings.Builder
	table.WriteString("| query | by hand, ms | auto, ms | | path |\n|---|---:|---:|---:|---|\n")
	for _, c := range shopQueries {
		began := time.Now()
		text, res := w.text(t, rewrite.AutoMode, true, c.sql)
		usePlanSettings(t, agent, res)
		handText := byHand.Replace(c.hand)
		w.reseal(t, agent)
		if got, want := digestRows(t, agent, text), digestRows(t, hand, handText); got != want {
			t.Errorf("%s: %q, by hand %q\n%s", c.name, got, want, text)
		}
		base, agentTime := cpu(t, hand, handText, nil), cpu(t, agent, text, func() { w.reseal(t, agent) })
		fmt.Fprintf(&table, "| %s | %.3g | %.3g | %.2f× | %s |\n", c.name, base, agentTime, agentTime/base, pathOf(res))
		fmt.Printf("plans: %-20s %s\n", c.name, time.Since(began).Round(time.Second))
	}
	return table.String()
}
