package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// withoutShape is a comment that keeps the proxy from replacing the literals of a text by parameters.
const withoutShape = " -- it's"

// Queries that differ only in their literals run as one prepared statement. Their answers are those of the unchanged
// text: the same rows, columns, tags and errors. Hidden rows stay hidden.
func TestQueriesWithOtherLiterals(t *testing.T) {
	policy := `version: 1
tables:
  people: { rows: [ sql: "agrees" ] }
  notes: { rows: [ visible: { people: { id: person } } ] }
`
	for _, mode := range harness.Modes(harness.Auto, harness.Both, harness.SignedViews, harness.RLS) {
		t.Run(mode.Name, func(t *testing.T) {
			db := pgtest.Template(t, "other literals", func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, `CREATE TABLE people (id int PRIMARY KEY, agrees boolean NOT NULL);
				CREATE TABLE notes (id bigint PRIMARY KEY, person int NOT NULL, code uuid NOT NULL, slug text NOT NULL UNIQUE, mood text,
					size smallint, price numeric);
				CREATE INDEX ON notes (person);
				INSERT INTO people SELECT n, n % 3 > 0 FROM generate_series(1, 30) AS n;
				INSERT INTO notes SELECT n, n % 30 + 1, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'note ' || n,
					CASE WHEN n % 50 > 0 THEN 'good' ELSE 'bad' END, n % 10, n / 4.0 FROM generate_series(1, 600) AS n;
				ANALYZE`)
				return err
			})
			super := db.Connect(t, "postgres")
			proxy := harness.Start(t, mode, harness.Database{Name: "literals", DB: db, SearchPath: []string{"public"}, Policy: policy}, nil)
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
