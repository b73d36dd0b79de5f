package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// withoutShape is a comment that keeps the proxy from replacing the literals of a text by parameters.
const withoutShape = " -- it's"

// Queries that differ only in their literals run as one prepared statement. Their answers are those of the unchanged
// text: the same rows, columns, tags and errors. Hidden rows stay hidden.
func TestQueriesWithOtherLiterals(t *testing.T) {
	for _, mode := range harness.Modes(harness.Auto, harness.Both, harness.SignedViews, harness.RLS) {
		t.Run(mode.Name, func(t *testing.T) {
			db := literalsDatabase(t)
			super := db.Connect(t, "postgres")
			proxy := harness.Start(t, mode, harness.Database{Name: "literals", DB: db, SearchPath: []string{"public"}, Policy: literalsPolicy}, nil)
			c := proxy.Agent(t, "agent", "literals")
			random := rand.New(rand.NewPCG(tier.Seed(), 1))
			boundQueries, shownRows := 0, 0
			for range tier.Count(300, 1000, 30_000) {
				text := textWithLiterals(random)
				got := harness.Ask(c, text)
				if strings.Contains(lastQueryOfAgents(t, super), "$1") {
					boundQueries++
				}
				if want := harness.Ask(c, text+withoutShape); got.SortedString() != want.SortedString() {
					t.Fatalf("%s\nwith parameters:\n%s\nas it is:\n%s", text, got, want)
				}
				shownRows += len(got.Results)
			}
			if boundQueries == 0 || shownRows == 0 {
				t.Errorf("%d were sent with parameters, %d had an answer", boundQueries, shownRows)
			}
			t.Logf("%d were sent with parameters", boundQueries)
		})
	}
}

const literalsPolicy = `version: 1
tables:
  people: { rows: [ sql: "agrees" ] }
  notes: { rows: [ visible: { people: { id: person } } ] }
`

// literalsDatabase returns a database with 600 notes of 30 people, ten of whom do not agree.
func literalsDatabase(t *testing.T) *pgtest.DB {
	t.Helper()
	return pgtest.Template(t, "other literals", func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `CREATE TABLE people (id int PRIMARY KEY, agrees boolean NOT NULL);
		CREATE TABLE notes (id bigint PRIMARY KEY, person int NOT NULL, code uuid NOT NULL, slug text NOT NULL UNIQUE, mood text,
			size smallint, price numeric, made timestamptz NOT NULL, day date, rate float8);
		CREATE INDEX ON notes (person);
		INSERT INTO people SELECT n, n % 3 > 0 FROM generate_series(1, 30) AS n;
		INSERT INTO notes SELECT n, n % 30 + 1, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'note ' || n,
			CASE WHEN n % 50 > 0 THEN 'good' ELSE 'bad' END, n % 10, n / 4.0,
			timestamptz '2024-01-01 00:00+00' + n * interval '1 hour', date '2024-01-01' + n, n / 3.0 FROM generate_series(1, 600) AS n;
		ANALYZE`)
		return err
	})
}

// textWithLiterals returns a random Query over the table notes, with literals that can become parameters and others.
func textWithLiterals(random *rand.Rand) string {
	n := func() int { return random.IntN(700) }
	uuid := func() string { return fmt.Sprintf("'00000000-0000-4000-8000-%012d'", n()) }
	conditions := []func() string{
		func() string { return fmt.Sprintf("n.id = %d", n()) },
		func() string { return fmt.Sprintf("n.person = %d", n()%40) },
		func() string { return fmt.Sprintf("n.person IN (%d, %d)", n()%40, n()%40) },
		func() string { return "n.code = " + uuid() },
		func() string { return fmt.Sprintf("slug = 'note %d'", n()) },
		func() string { return fmt.Sprintf("size = %d", n()*100) },
		func() string { return fmt.Sprintf("n.price > %d", n()/4) },
		func() string { return "mood = " + []string{"'good'", "'bad'", "'it''s'"}[n()%3] },
		func() string { return fmt.Sprintf("code = '%d'", n()) }, // this literal causes an error
		func() string { return fmt.Sprintf("100 / (id - %d) >= 0", n()%3) },
		func() string { return fmt.Sprintf("nothing = %d", n()) },
	}
	for _, c := range otherConditions {
		conditions = append(conditions, func() string { return c(n) })
	}
	outputs := []string{"*", "id, slug", "count(*)", "n.id, 7 AS seven, 'x' AS x", "max(n.price)"}
	text := "SELECT " + outputs[random.IntN(len(outputs))] + " FROM notes n"
	if random.IntN(4) == 0 {
		text = fmt.Sprintf("SELECT n.id FROM notes n JOIN people p ON p.id = n.person AND p.id = %d", n()%40)
	}
	for i := range 1 + random.IntN(2) {
		// About one of four kinds leads to an error.
		kind := random.IntN(6)
		if random.IntN(4) == 0 {
			kind = random.IntN(len(conditions))
		}
		text += []string{" WHERE ", " AND "}[i] + conditions[kind]()
	}
	if random.IntN(4) == 0 {
		text += fmt.Sprintf(" LIMIT %d", 1000+n()%2)
	}
	return text
}

// otherConditions are conditions with literals that PostgreSQL has to plan a statement for. n returns a random number.
var otherConditions = []func(n func() int) string{
	func(n func() int) string { return fmt.Sprintf("n.id < %d", n()) },
	func(n func() int) string { return fmt.Sprintf("%d >= person", n()%40) },
	func(n func() int) string { return fmt.Sprintf("price BETWEEN %d AND %d", n()/8, n()/4) },
	func(n func() int) string { return fmt.Sprintf("rate <> %d AND rate < %d", n()/3, n()) },
	func(n func() int) string { return fmt.Sprintf("slug > 'note %d'", n()) },
	func(n func() int) string { return fmt.Sprintf("mood = 'good' AND slug <= 'note %d'", n()) },
	func(n func() int) string { return fmt.Sprintf("made >= '2024-01-%02d %02d:30:00'", 1+n()%28, n()%24) },
	func(n func() int) string { return fmt.Sprintf("made < '2024-01-%02d'", 1+n()%28) },
	func(n func() int) string {
		return fmt.Sprintf("day NOT BETWEEN '2024-%02d-%02d' AND '2025-02-20'", 1+n()%12, 1+n()%28)
	},
	func(n func() int) string { return fmt.Sprintf("person = %d AND %d > 300", n()%40, n()) },
	func(n func() int) string {
		return fmt.Sprintf("id < %d AND 1500000000 <= %d", n(), 1_400_000_000+n()*1_000_000)
	},
	func(n func() int) string { return fmt.Sprintf("code > '00000000-0000-4000-8000-%012d'", n()) },
}

// Texts that come again and again with other literals, none of which identifies a row, are sent with parameters too.
// PostgreSQL plans each of them with its literals: no plan is kept.
func TestQueriesWithLiteralsThatNeedAPlan(t *testing.T) {
	for _, mode := range harness.Modes(harness.Auto, harness.RLS) {
		t.Run(mode.Name, func(t *testing.T) {
			db := literalsDatabase(t)
			super := db.Connect(t, "postgres")
			proxy := harness.Start(t, mode, harness.Database{Name: "literals", DB: db, SearchPath: []string{"public"}, Policy: literalsPolicy}, nil)
			c := proxy.Agent(t, "agent", "literals")
			random := rand.New(rand.NewPCG(tier.Seed(), 2))
			for _, condition := range otherConditions {
				boundQueries, text := 0, ""
				for range 60 {
					text = "SELECT id, mood FROM notes n WHERE " + condition(func() int { return random.IntN(700) })
					got := harness.Ask(c, text)
					if last := lastQueryOfAgents(t, super); strings.Contains(last, "$1") {
						boundQueries++
						if strings.Contains(last, verdict.PreparedMark) && boundQueries > 40 {
							t.Errorf("its plan is kept: %s", last)
						}
					}
					if want := harness.Ask(c, text+withoutShape); got.SortedString() != want.SortedString() {
						t.Fatalf("%s\nwith parameters:\n%s\nas it is:\n%s", text, got, want)
					}
				}
				if boundQueries < 20 {
					t.Errorf("%s: %d of 60 were sent with parameters", text, boundQueries)
				}
			}

			// A literal of another form is sent as it is, with PostgreSQL's error.
			for _, text := range []string{"SELECT id FROM notes WHERE made < '2024-01-99'", "SELECT id FROM notes WHERE made < 'nothing'"} {
				got, want := harness.Ask(c, text), harness.Ask(c, text+withoutShape)
				if got.Err == "" || got.String() != want.String() {
					t.Errorf("%s\n%s\nnot\n%s", text, got, want)
				}
			}
		})
	}
}

// A Query that finds a row by a unique key is kept prepared, whatever other literals it has: one plan serves for all.
func TestQueriesByAUniqueKeyAreKeptPrepared(t *testing.T) {
	db := literalsDatabase(t)
	super := db.Connect(t, "postgres")
	c := harness.Start(t, harness.Auto, harness.Database{Name: "literals", DB: db, SearchPath: []string{"public"}, Policy: literalsPolicy},
		nil).Agent(t, "agent", "literals")
	for i := range 12 {
		text := fmt.Sprintf("SELECT id, mood FROM notes WHERE id = %d AND price < %d AND slug <> 'note %d' AND %d > 5", 20+i, 5+i/2, i, i)
		got := harness.Ask(c, text)
		if want := harness.Ask(c, text+withoutShape); got.String() != want.String() {
			t.Fatalf("%s\nwith parameters:\n%s\nas it is:\n%s", text, got, want)
		}
		harness.Ask(c, text)
		if last := lastQueryOfAgents(t, super); i > 0 && (!strings.Contains(last, "$4") || !strings.Contains(last, verdict.PreparedMark)) {
			t.Errorf("not kept prepared: %s", last)
		}
	}
}

// lastQueryOfAgents returns the text that ran last on a connection of agents.
func lastQueryOfAgents(t *testing.T, super *pgx.Conn) string {
	t.Helper()
	var text string
	if err := super.QueryRow(t.Context(), `SELECT query FROM pg_stat_activity
		WHERE usename = 'pgconsent_agent' AND datname = current_database() ORDER BY query_start DESC LIMIT 1`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}
