package e2e

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Random statements over the three tables get the answers of a copy from which the hidden rows were deleted. LIMIT is
// used only with a total order, since PostgreSQL may return tied rows in any order.
func TestRandomSelectsEqualTheFilteredCopy(t *testing.T) {
	tier.All(t)
	n, seed := tier.Count(40, 150, 10_000), tier.Seed()
	t.Logf("%d statements, seed %d", n, seed)
	in := startForReading(t, options{})
	agent, filteredConn, unfilteredConn := in.agent(t), harness.Connect(t, filteredCopy(t).DSN("postgres", "")), in.superuserConn(t)
	answeredCount, sensitiveCount, failedCount := 0, 0, 0
	for i := range n {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		sql := g.statement()
		want, got := harness.Ask(filteredConn, sql), harness.Ask(agent, sql)
		if want.Err != "" {
			failedCount++
			// The error must be the same. If the proxy has added or removed parts of the text, only the code may differ, which
			// depends on visible rows only.
			if got.Code != want.Code {
				t.Errorf("statement %d: %s\nagent:\n%s\nfiltered copy:\n%s", i, sql, harness.Truncate(got.SortedString()), harness.Truncate(want.SortedString()))
			}
			continue
		}
		if got.Err != "" {
			t.Errorf("statement %d: %s\n%s", i, sql, got.Err)
			continue
		}
		answeredCount++
		if got.SortedString() != want.SortedString() {
			t.Errorf("statement %d: %s\nagent:\n%s\nfiltered copy:\n%s", i, sql, harness.Truncate(got.SortedString()), harness.Truncate(want.SortedString()))
		}
		if harness.Ask(unfilteredConn, sql).SortedString() != want.SortedString() {
			sensitiveCount++
		}
	}
	t.Logf("%d statements: %d answered, %d of them sensitive to hidden rows, %d failed on both sides", n, answeredCount, sensitiveCount,
		failedCount)
	if answeredCount*10 < n*8 {
		t.Errorf("only %d of %d random statements were answered", answeredCount, n)
	}
	if sensitiveCount*5 < answeredCount*2 {
		t.Errorf("only %d of %d answered statements are sensitive to hidden rows", sensitiveCount, answeredCount)
	}
	in.requireNoMarker(t)
}

// generator generates SELECTs that are valid, end soon and have only one correct answer.
type generator struct {
	*rand.Rand
	aliases int
	ctes    []source
}

// source is something to select from: its text without an alias, and its columns by type.
type source struct {
	text    string
	columns []typedColumn
	key     []string // columns that give a total order
}

type typedColumn struct{ name, kind string }

var tables = []source{
	{"memories", []typedColumn{{"id", "uuid"}, {"user_id", "uuid"}, {"title", "text"}, {"body", "text"},
		{"metadata", "jsonb"}, {"occurred_at", "time"}}, []string{"id"}},
	{"public.people", []typedColumn{{"id", "uuid"}, {"user_id", "uuid"}, {"name", "text"}, {"is_self", "bool"},
		{"consent_status", "text"}, {"created_at", "time"}}, []string{"id"}},
	{"memory_participants", []typedColumn{{"memory_id", "uuid"}, {"person_id", "uuid"}, {"role", "text"}}, []string{"memory_id", "person_id"}},
}

func pickOne[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

func (g *generator) alias() string {
	g.aliases++
	return pickOne(g, "t", "x", "r", "memories", "people") + strconv.Itoa(g.aliases)
}

// fromItem is an item of a FROM clause, with its alias.
type fromItem struct {
	alias string
	source
}

func (g *generator) source(depth int) source {
	switch n := g.IntN(10); {
	case n == 0 && len(g.ctes) > 0:
		return pickOne(g, g.ctes...)
	case n <= 1 && depth > 0:
		inner := pickOne(g, tables...)
		a := g.alias()
		text := fmt.Sprintf("(SELECT * FROM %s AS %s WHERE %s)", inner.text, a, g.condition([]fromItem{{a, inner}}, depth-1))
		return source{text, inner.columns, inner.key}
	default:
		return pickOne(g, tables...)
	}
}

// statement returns a query, with or without WITH, set operations and ORDER BY.
func (g *generator) statement() string {
	var b strings.Builder
	if g.IntN(4) == 0 {
		inner := pickOne(g, tables...)
		name := pickOne(g, "memories", "people", "c", "memory_participants")
		b.WriteString("WITH " + name + " AS " + pickOne(g, "", "MATERIALIZED ", "NOT MATERIALIZED ") +
			"(SELECT * FROM " + qualifiedName(inner.text) + " AS i WHERE " + g.condition([]fromItem{{"i", inner}}, 1) + ") ")
		g.ctes = []source{{name, inner.columns, inner.key}}
		// The WITH query has the name of a table, so that the table and its columns cannot be used inside.
		b.WriteString(g.query(name))
		return b.String()
	}
	if g.IntN(6) == 0 {
		b.WriteString(g.ids() + pickOne(g, " UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT ", " EXCEPT ALL ") + g.ids())
		return b.String()
	}
	return g.query("")
}

func qualifiedName(table string) string { return "public." + strings.TrimPrefix(table, "public.") }

// ids returns a query that selects one column of type uuid.
func (g *generator) ids() string {
	s := pickOne(g, tables...)
	a := g.alias()
	return fmt.Sprintf("SELECT %s.%s FROM %s AS %s WHERE %s", a, g.column(s, "uuid"), s.text, a, g.condition([]fromItem{{a, s}}, 1))
}

func (g *generator) column(s source, kind string) string {
	var names []string
	for _, c := range s.columns {
		if c.kind == kind {
			names = append(names, c.name)
		}
	}
	return pickOne(g, names...)
}

// query returns a query over one to three items. takenName is a table name that a WITH query has taken.
func (g *generator) query(takenName string) string {
	var items []fromItem
	var fromClause strings.Builder
	for i := range 1 + g.IntN(3) {
		s := g.source(2)
		if i == 0 && takenName != "" {
			s = g.ctes[0]
		}
		if takenName != "" && s.text == takenName {
			s = g.ctes[0]
		}
		item := fromItem{g.alias(), s}
		if i == 0 {
			fromClause.WriteString(s.text + " AS " + item.alias)
			items = append(items, item)
			continue
		}
		otherItem := items[g.IntN(len(items))]
		join := pickOne(g, "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
		fmt.Fprintf(&fromClause, " %s %s AS %s ON %s.%s = %s.%s", join, s.text, item.alias, item.alias, g.joinColumn(s), otherItem.alias,
			g.joinColumn(otherItem.source))
		items = append(items, item)
	}
	whereClause := ""
	if g.IntN(4) > 0 {
		whereClause = " WHERE " + g.condition(items, 2)
	}
	switch g.IntN(5) {
	case 0: // one row
		return fmt.Sprintf("SELECT %s FROM %s%s", g.aggregates(items), fromClause.String(), whereClause)
	case 1: // groups
		groupExpression := g.expression(items)
		return fmt.Sprintf("SELECT %s AS k, %s FROM %s%s GROUP BY %s%s", groupExpression, g.aggregates(items), fromClause.String(),
			whereClause, pickOne(g, "1", groupExpression), pickOne(g, "", " HAVING count(*) > 1"))
	case 2: // grouped by the key of the one table
		if len(items) == 1 && len(items[0].key) == 1 && takenName == "" && !strings.HasPrefix(items[0].text, "(") {
			a := items[0].alias
			return fmt.Sprintf("SELECT %s.*, count(*) FROM %s%s GROUP BY %s.id", a, fromClause.String(), whereClause, a)
		}
		return fmt.Sprintf("SELECT DISTINCT %s, %s FROM %s%s", g.expression(items), g.expression(items), fromClause.String(), whereClause)
	case 3: // windows and whole rows
		var orderTerms []string
		for _, item := range items {
			for _, k := range item.key {
				orderTerms = append(orderTerms, item.alias+"."+k)
			}
		}
		groupExpression := strings.Join(orderTerms, ", ")
		return fmt.Sprintf("SELECT %s, row_number() OVER (ORDER BY %s), count(*) OVER (PARTITION BY %s), %s FROM %s%s ORDER BY %s LIMIT %d",
			g.expression(items), groupExpression, g.expression(items), pickOne(g, items[0].alias, "to_jsonb("+items[0].alias+")",
				"1"), fromClause.String(), whereClause, groupExpression, 1+g.IntN(50))
	default:
		selectList := pickOne(g, "*", items[0].alias+".*", g.expression(items)+" AS a, "+g.expression(items)+" AS b")
		if len(items) == 3 {
			selectList = g.expression(items) + ", " + g.expression(items)
		}
		return "SELECT " + selectList + " FROM " + fromClause.String() + whereClause
	}
}

// joinColumn returns a column for joins that do not multiply all rows by all rows.
func (g *generator) joinColumn(s source) string {
	if len(s.key) == 2 {
		return pickOne(g, s.key...)
	}
	return "id"
}

func (g *generator) aggregates(items []fromItem) string {
	e := g.expression(items)
	return pickOne(g,
		"count(*), count("+e+")",
		"count(DISTINCT "+e+")",
		"min(("+e+")::text), max(("+e+")::text)",
		"md5(string_agg(("+e+")::text, ',' ORDER BY ("+e+")::text))",
		"count(*) FILTER (WHERE "+g.condition(items, 0)+")",
		"bool_or("+g.condition(items, 0)+"), count(*)",
		"(array_agg(DISTINCT ("+e+")::text))[1:3]",
		"sum(length(("+e+")::text))")
}

// expression is a scalar that cannot fail.
func (g *generator) expression(items []fromItem) string {
	item := items[g.IntN(len(items))]
	c := item.columns[g.IntN(len(item.columns))]
	name := item.alias + "." + c.name
	switch c.kind {
	case "text":
		return pickOne(g, name, "upper("+name+")", "length("+name+")", "substr("+name+", 1, 4)", name+" || '!'", "coalesce("+name+", '-')")
	case "jsonb":
		return pickOne(g, name+" ->> 'mood'", name+" -> 'stars'", "jsonb_typeof("+name+")", "("+name+" ->> 'stars')::int")
	case "time":
		return pickOne(g, name, "date_trunc('month', "+name+")", "extract(year FROM "+name+")")
	case "bool":
		return pickOne(g, name, "NOT "+name, "CASE WHEN "+name+" THEN 'self' ELSE 'other' END")
	default:
		return pickOne(g, name, name+"::text", "nullif("+name+", "+name+")")
	}
}

// condition returns a boolean expression, with subqueries up to a depth.
func (g *generator) condition(items []fromItem, depth int) string {
	item := items[g.IntN(len(items))]
	a := item.alias
	if depth > 0 {
		inner := pickOne(g, tables...)
		// A WITH query may have taken the table's name.
		inner.text = qualifiedName(inner.text)
		i := g.alias()
		in := []fromItem{{i, inner}}
		switch g.IntN(8) {
		case 0:
			return fmt.Sprintf("%s.%s %s (SELECT %s.%s FROM %s AS %s WHERE %s)", a, g.column(item.source, "uuid"),
				pickOne(g, "IN", "NOT IN", "= ANY"), i, g.joinColumn(inner), inner.text, i, g.condition(in, depth-1))
		case 1:
			return fmt.Sprintf("%sEXISTS (SELECT 1 FROM %s AS %s WHERE %s.%s = %s.%s AND %s)", pickOne(g, "", "NOT "),
				inner.text, i, i, g.joinColumn(inner), a, g.column(item.source, "uuid"), g.condition(in, depth-1))
		case 2:
			return fmt.Sprintf("(SELECT count(*) FROM %s AS %s WHERE %s.%s = %s.%s) %s %d", inner.text, i, i,
				g.joinColumn(inner), a, g.joinColumn(item.source), pickOne(g, "=", ">", "<="), g.IntN(3))
		case 3:
			return "(" + g.condition(items, depth-1) + pickOne(g, " AND ", " OR ") + g.condition(items, depth-1) + ")"
		case 4:
			return "NOT (" + g.condition(items, depth-1) + ")"
		case 5:
			return "(" + g.condition(items, depth-1) + ") IS " + pickOne(g, "TRUE", "NOT TRUE", "UNKNOWN", "NOT NULL", "DISTINCT FROM true")
		}
	}
	c := item.columns[g.IntN(len(item.columns))]
	name := a + "." + c.name
	switch c.kind {
	case "text":
		return pickOne(g, name+" LIKE '%a%'", name+" ILIKE 'b%'", name+" > 'm'", name+" IS NULL",
			"length("+name+") % 3 = 0", name+" ~ '[0-9]'", "("+name+" = 'granted' OR true)::bool",
			"to_tsvector('english', "+name+") @@ plainto_tsquery('walk')", name+" IN ('granted', 'present', 'x')")
	case "jsonb":
		return pickOne(g, name+" @> '{\"mood\": \"calm\"}'", name+" ? 'tags'", "("+name+" ->> 'stars')::int > 2",
			name+" IS NULL", "jsonb_path_exists("+name+", '$.stars ? (@ > 3)')")
	case "time":
		return pickOne(g, name+" > '2024-01-01'", name+" BETWEEN '2023-01-01' AND '2024-06-01'", "extract(dow FROM "+name+") IN (0, 6)")
	case "bool":
		return pickOne(g, name, name+" IS NOT TRUE", "coalesce("+name+", true)")
	default:
		return pickOne(g, name+"::text < '8'", name+" IS NOT NULL", name+" = '"+user1+"'", name+" <> '"+user1+"'", "md5("+name+"::text) > '4'")
	}
}
