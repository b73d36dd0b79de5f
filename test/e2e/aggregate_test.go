package e2e

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// This file holds a reference model of aggregates in plain Go: it computes from rows in memory what the proxy may
// answer.

const (
	aggregateSchema = `
CREATE TABLE people (id int PRIMARY KEY, status text);
CREATE TABLE events (id int PRIMARY KEY, person int, kind text, level int, at timestamptz, amount int, score float8, note text);`
	aggregateMinimum = 3
)

// aggregatePolicy returns a policy with the dimensions and measures of a table. sharePercent is the largest share that
// one person may have in a cell, 0 for no limit.
func aggregatePolicy(sharePercent int, hasClosedMonths bool) string {
	shareLine := ""
	if sharePercent > 0 {
		shareLine = fmt.Sprintf("\n      share: %d", sharePercent)
	}
	return fmt.Sprintf(`version: 1
attributes: {}
tables:
  people: { rows: [ status: { column: status, is: shown } ] }
  events:
    rows: [ visible: { people: { id: person } } ]
    aggregate:
      subject: person
      rows: [ consent: { every: [ people: { id: person } ], status: status, is: counted } ]
      minimum: %d%s
      dimensions: { kind: allow, level: allow, at: { by: month, closed: %t } }
      measures: { amount: { between: [0, 50] }, score: { between: [-1, 1.5] } }
`, aggregateMinimum, shareLine, hasClosedMonths)
}

type event struct {
	id, person, level int
	kind              string // "": NULL
	happenedAt        time.Time
	amount            int // -1: NULL
	score             int // the score in thousandths
	status            string
}

func (e event) month() string { return e.happenedAt.UTC().Format("2006-01") }

func (e event) cell() string { return fmt.Sprint(e.kind, "|", e.level, "|", e.month()) }

func randomBetween(n, low, high int) int { return max(low, min(n, high)) }

// randomEvents returns random events, so few in each cell that many cells are below the minimum.
func randomEvents(r *rand.Rand, now time.Time) []event {
	status := map[int]string{}
	for p := range 30 {
		status[p+1] = []string{"shown", "counted", "counted", "counted", "refused", ""}[r.IntN(6)]
	}
	out := make([]event, 300)
	for i := range out {
		e := event{id: i + 1, person: 1 + r.IntN(30), level: 1 + r.IntN(3), kind: []string{"a", "A", "b", ""}[r.IntN(4)]}
		e.happenedAt = time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, -r.IntN(3), 0).Add(time.Duration(r.IntN(28*24)) * time.Hour)
		e.amount, e.score = r.IntN(80)-1, r.IntN(4000)-2000
		if r.IntN(20) == 0 {
			e.person = 31 // a person who does not exist
		}
		e.status = status[e.person]
		out[i] = e
	}
	return out
}

// countableEvents returns the events that aggregates may count.
func countableEvents(events []event, sharePercent int, hasClosedMonths bool, now time.Time) []event {
	hiddenByCell := map[string][]event{}
	var out []event
	for _, e := range events {
		switch {
		case e.status == "shown":
			out = append(out, e)
		case e.status == "counted" && (!hasClosedMonths || e.month() < now.UTC().Format("2006-01")):
			hiddenByCell[e.cell()] = append(hiddenByCell[e.cell()], e)
		}
	}
	for _, cell := range hiddenByCell {
		rows, amounts, scores := map[int]int{}, map[int]int{}, map[int]int{}
		for _, e := range cell {
			rows[e.person]++
			amounts[e.person] += randomBetween(max(e.amount, 0), 0, 50)
			scores[e.person] += max(randomBetween(e.score, -1000, 1500), -randomBetween(e.score, -1000, 1500))
		}
		isLargeEnough := len(rows) >= aggregateMinimum
		for _, parts := range []map[int]int{rows, amounts, scores} {
			largest, total := 0, 0
			for _, n := range parts {
				largest, total = max(largest, n), total+n
			}
			isLargeEnough = isLargeEnough && (sharePercent == 0 || largest*100 <= total*sharePercent)
		}
		if isLargeEnough {
			out = append(out, cell...)
		}
	}
	return out
}

// condition is an SQL condition. eval returns its truth for an event: 1, 0, or -1 for NULL.
type condition struct {
	sql  string
	eval func(e event) int
}

func isTrue(b bool) int {
	if b {
		return 1
	}
	return 0
}

func randomCondition(r *rand.Rand, depth int) condition {
	if depth > 0 {
		a, b := randomCondition(r, depth-1), randomCondition(r, depth-1)
		switch r.IntN(4) {
		case 0:
			return condition{"(" + a.sql + " AND " + b.sql + ")", func(e event) int {
				x, y := a.eval(e), b.eval(e)
				if x == 0 || y == 0 {
					return 0
				}
				return min(x, y)
			}}
		case 1:
			return condition{"(" + a.sql + " OR " + b.sql + ")", func(e event) int {
				x, y := a.eval(e), b.eval(e)
				if x == 1 || y == 1 {
					return 1
				}
				return min(x, y)
			}}
		case 2:
			return condition{"NOT " + a.sql, func(e event) int {
				if x := a.eval(e); x >= 0 {
					return 1 - x
				}
				return -1
			}}
		}
		return a
	}
	knownKind := func(f func(kind string) bool) func(event) int {
		return func(e event) int {
			if e.kind == "" {
				return -1
			}
			return isTrue(f(e.kind))
		}
	}
	n := 1 + r.IntN(3)
	k := []string{"a", "A", "b"}[r.IntN(3)]
	switch r.IntN(7) {
	case 0:
		return condition{"kind = '" + k + "'", knownKind(func(kind string) bool { return kind == k })}
	case 1:
		return condition{"lower(ev.kind) IN ('a', 'x')", knownKind(func(kind string) bool { return strings.ToLower(kind) == "a" })}
	case 2:
		return condition{"kind IS NULL", func(e event) int { return isTrue(e.kind == "") }}
	case 3:
		return condition{fmt.Sprintf("ev.level < %d", n), func(e event) int { return isTrue(e.level < n) }}
	case 4:
		return condition{fmt.Sprintf("level %% 2 = %d", n%2), func(e event) int { return isTrue(e.level%2 == n%2) }}
	case 5:
		return condition{"CASE kind WHEN '" + k + "' THEN level = 1 ELSE true END", func(e event) int { return isTrue(e.kind != k || e.level == 1) }}
	default:
		month := time.Date(2026, time.Month(1+r.IntN(12)), 1, 0, 0, 0, 0, time.UTC)
		return condition{"date_trunc('month', at) <= '" + month.Format("2006-01-02") + " 00:00+00'",
			func(e event) int { return isTrue(e.month() <= month.Format("2006-01")) }}
	}
}

type output struct {
	sql   string
	value func(rows []event) string
}

var aggregateKeys = []output{
	{"kind", func(rows []event) string {
		if rows[0].kind == "" {
			return `\N`
		}
		return rows[0].kind
	}},
	{"ev.level", func(rows []event) string { return fmt.Sprint(rows[0].level) }},
	{"to_char(date_trunc('month', ev.at), 'YYYY-MM')", func(rows []event) string { return rows[0].month() }},
	{"to_char(date_trunc('year', at), 'YYYY')", func(rows []event) string { return rows[0].month()[:4] }},
	{"upper(kind)", func(rows []event) string {
		if rows[0].kind == "" {
			return `\N`
		}
		return strings.ToUpper(rows[0].kind)
	}},
}

func sumColumns(rows []event) (amounts, n, scores int) {
	for _, e := range rows {
		if e.amount >= 0 {
			amounts, n = amounts+min(e.amount, 50), n+1
		}
		scores += randomBetween(e.score, -1000, 1500)
	}
	return amounts, n, scores
}

func countPeople(rows []event) int {
	persons := map[int]bool{}
	for _, e := range rows {
		persons[e.person] = true
	}
	return len(persons)
}

func randomAggregate(r *rand.Rand) output {
	switch r.IntN(7) {
	case 0:
		return output{"count(*)", func(rows []event) string { return fmt.Sprint(len(rows)) }}
	case 1:
		return output{"count(person)", func(rows []event) string { return fmt.Sprint(len(rows)) }}
	case 2:
		return output{"sum(amount)", func(rows []event) string {
			amounts, n, _ := sumColumns(rows)
			if n == 0 {
				return `\N`
			}
			return fmt.Sprint(amounts)
		}}
	case 3:
		return output{"round(avg(ev.amount), 4)", func(rows []event) string {
			amounts, n, _ := sumColumns(rows)
			if n == 0 {
				return `\N`
			}
			return new(big.Rat).SetFrac64(int64(amounts), int64(n)).FloatString(4)
		}}
	case 4:
		return output{"sum(score)", func(rows []event) string {
			_, _, scores := sumColumns(rows)
			return new(big.Rat).SetFrac64(int64(scores), 1000).FloatString(6)
		}}
	case 5:
		c := randomCondition(r, 1)
		return output{"count(amount) FILTER (WHERE " + c.sql + ")", func(rows []event) string {
			_, n, _ := sumColumns(slices.DeleteFunc(slices.Clone(rows), func(e event) bool { return c.eval(e) != 1 }))
			return fmt.Sprint(n)
		}}
	default:
		return output{"count(DISTINCT kind) * 10 + 1", func(rows []event) string {
			kinds := map[string]bool{}
			for _, e := range rows {
				if e.kind != "" {
					kinds[e.kind] = true
				}
			}
			return fmt.Sprint(len(kinds)*10 + 1)
		}}
	}
}

// randomAggregateQuery returns a random aggregate query, and the model's answer to it over the countable rows.
func randomAggregateQuery(r *rand.Rand) (sql string, model func(rows []event) []string) {
	var keys, columns []output
	for _, k := range aggregateKeys {
		if r.IntN(3) == 0 {
			keys = append(keys, k)
		}
	}
	for range 1 + r.IntN(3) {
		columns = append(columns, randomAggregate(r))
	}
	if r.IntN(5) == 0 { // people can be counted only where each group is one cell
		keys = slices.Clone(aggregateKeys[:3])
		columns = append(columns, output{"count(DISTINCT ev.person)", func(rows []event) string { return fmt.Sprint(countPeople(rows)) }})
	}
	filter := condition{"true", func(event) int { return 1 }}
	if r.IntN(3) > 0 {
		filter = randomCondition(r, r.IntN(3))
	}
	minimum := 0
	havingClause := ""
	if r.IntN(3) == 0 {
		minimum = r.IntN(40)
		havingClause = fmt.Sprintf(" HAVING count(*) >= %d OR false", minimum)
	}
	allColumns := append(slices.Clone(keys), columns...)
	var selectList, groupColumns []string
	for i, c := range allColumns {
		selectList = append(selectList, c.sql)
		if i < len(keys) {
			groupColumns = append(groupColumns, fmt.Sprint(i+1))
		}
	}
	sql = "SELECT " + strings.Join(selectList, ", ") + " FROM events AS ev WHERE " + filter.sql
	if slices.ContainsFunc(columns, func(c output) bool { return strings.Contains(c.sql, "DISTINCT ev.person") }) {
		groupColumns = []string{"kind", "level", "date_trunc('month', at)"}
	}
	if len(groupColumns) > 0 {
		sql += " GROUP BY " + strings.Join(groupColumns, ", ")
	}
	return sql + havingClause, func(rows []event) []string {
		groups := map[string][]event{}
		for _, e := range rows {
			if filter.eval(e) != 1 {
				continue
			}
			key := ""
			for _, k := range keys {
				key += k.value([]event{e}) + "\t"
			}
			groups[key] = append(groups[key], e)
		}
		var out []string
		for _, g := range groups {
			if countPeople(g) < aggregateMinimum || len(g) < minimum {
				continue
			}
			var values []string
			for _, c := range allColumns {
				values = append(values, c.value(g))
			}
			out = append(out, strings.Join(values, "\t"))
		}
		slices.Sort(out)
		return out
	}
}

func insertEvents(t *testing.T, db *pgtest.DB, events []event) {
	t.Helper()
	var b strings.Builder
	status := map[int]string{}
	for _, e := range events {
		status[e.person] = e.status
		amount, kind := fmt.Sprint(e.amount), "'"+e.kind+"'"
		if e.amount < 0 {
			amount = "NULL"
		}
		if e.kind == "" {
			kind = "NULL"
		}
		fmt.Fprintf(&b, "INSERT INTO events VALUES (%d, %d, %s, %d, '%s', %s, %d / 1000.0::float8, "+
			"'HIDDENMARK%08x');\n", e.id, e.person, kind, e.level, e.happenedAt.UTC().Format("2006-01-02 15:04:05+00"), amount, e.score, e.id)
	}
	for _, p := range slices.Sorted(maps.Keys(status)) {
		if p != 31 {
			fmt.Fprintf(&b, "INSERT INTO people VALUES (%d, nullif('%s', ''));\n", p, status[p])
		}
	}
	harness.Exec(t, db, b.String())
}

// Random aggregates over random rows return what the model computes. They return the same after changes of hidden rows
// that cells may not reveal: rows that count nowhere are added or removed, and values move within a cell.
func TestAggregatesAgreeWithTheModel(t *testing.T) {
	tier.All(t)
	t.Parallel()
	now := time.Now()
	for seed, variant := range []struct {
		mode            harness.Mode
		sharePercent    int
		hasClosedMonths bool
	}{{harness.Both, 0, false}, {harness.Auto, 0, true}, {harness.Auto, 60, false}, {harness.Both, 40, true}} {
		t.Run(fmt.Sprintf("%s share %d closed %t", variant.mode.Name, variant.sharePercent, variant.hasClosedMonths), func(t *testing.T) {
			r := rand.New(rand.NewPCG(17, uint64(seed)))
			events := randomEvents(r, now)
			db := pgtest.Database(t)
			harness.Exec(t, db, aggregateSchema)
			insertEvents(t, db, events)
			proxy := harness.Start(t, variant.mode,
				harness.Database{Name: "events", DB: db, Policy: aggregatePolicy(variant.sharePercent, variant.hasClosedMonths),
					SearchPath: []string{"public"}}, nil)
			agent := proxy.Agent(t, "agent", "events")
			oneText(agent, "SET timezone = 'UTC'")
			countedEvents := countableEvents(events, variant.sharePercent, variant.hasClosedMonths, now)
			shownEvents := slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.status != "shown" })
			if len(countedEvents) == len(shownEvents) || len(countedEvents) == len(events) {
				t.Fatalf("%d rows, %d count and %d show: the data tests nothing", len(events), len(countedEvents), len(shownEvents))
			}
			type askedQuestion struct{ sql, answer string }
			var questions []askedQuestion
			returnedRows := 0
			for range tier.Count(50, 150, 1000) {
				sql, model := randomAggregateQuery(r)
				got, want := oneText(agent, sql), strings.Join(model(countedEvents), "\n")
				if sortedLines(got) != want {
					t.Errorf("%s:\n%s\nwant\n%s", sql, sortedLines(got), want)
				}
				if want != strings.Join(model(shownEvents), "\n") {
					returnedRows++
				}
				questions = append(questions, askedQuestion{sql, sortedLines(got)})
			}
			if returnedRows < len(questions)/5 {
				t.Errorf("only %d of %d answers have to do with hidden rows", returnedRows, len(questions))
			}
			changeUntoldDetails(t, r, db, events, countedEvents, variant.sharePercent > 0)
			for _, q := range questions {
				if got := sortedLines(oneText(agent, q.sql)); got != q.answer {
					t.Errorf("%s tells what hidden rows of a cell are:\n%s\nwas\n%s", q.sql, got, q.answer)
				}
			}
		})
	}
}

// changeUntoldDetails changes hidden rows in every way that no aggregate may reveal.
func changeUntoldDetails(t *testing.T, r *rand.Rand, db *pgtest.DB, events, countedEvents []event, hasShareLimit bool) {
	t.Helper()
	countedIDs := map[int]bool{}
	cells := map[string][]event{}
	for _, e := range countedEvents {
		countedIDs[e.id] = true
		if e.status == "counted" {
			cells[e.cell()] = append(cells[e.cell()], e)
		}
	}
	var b strings.Builder
	for _, e := range events {
		if hasShareLimit && e.status == "counted" {
			continue // the change could give a cell other shares
		}
		switch {
		case countedIDs[e.id] || e.status == "shown":
		case r.IntN(2) == 0:
			fmt.Fprintf(&b, "DELETE FROM events WHERE id = %d;\n", e.id)
		default:
			fmt.Fprintf(&b, "UPDATE events SET amount = %d, score = 'NaN' WHERE id = %d;\n", r.IntN(1000), e.id)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		cell := cells[name]
		rowOrder := func() []int {
			if !hasShareLimit {
				return r.Perm(len(cell))
			}
			sameOrder := make([]int, len(cell))
			for i := range sameOrder {
				sameOrder[i] = i
			}
			return sameOrder
		}
		for i, j := range rowOrder() {
			source := cell[j]
			amount := fmt.Sprint(source.amount)
			switch {
			case source.amount < 0:
				amount = "NULL"
			case source.amount >= 50:
				amount = fmt.Sprint(50 + r.IntN(1_000_000)) // values above the bound count as the bound
			}
			fmt.Fprintf(&b,
				"UPDATE events SET amount = %s, at = date_trunc('month', at, 'UTC') + interval '%d hours' WHERE id = %d;\n", amount, r.IntN(27*24), cell[i].id)
		}
		for i, j := range rowOrder() {
			fmt.Fprintf(&b, "UPDATE events SET note = 'other', score = %d / 1000.0::float8 WHERE id = %d;\n", cell[j].score, cell[i].id)
		}
	}
	// A person who counts is added, with rows in cells that stay below the minimum.
	b.WriteString("INSERT INTO people VALUES (40, 'counted');\nINSERT INTO events SELECT 1000 + n, 40, 'none', n, " +
		"'2020-01-01', 7, 0.5, 'x' FROM generate_series(1, 9) n;\n")
	harness.Exec(t, db, b.String())
}
