package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The example policy of docs/reference/policy-aggregate.md installs, and each statement of that page is answered or
// refused as the page says.
func TestAggregatePage(t *testing.T) {
	tier.All(t)
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/policy-aggregate.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(yaml|sql)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 6 || blocks[1][1] != "yaml" {
		t.Fatalf("the page has %d blocks", len(blocks))
	}
	db := pgtest.Database(t)
	harness.Exec(t, db, blocks[0][2]+`
		INSERT INTO people SELECT n, CASE WHEN n <= 7 THEN 'PARTNERED' ELSE 'ANONYMOUS' END FROM generate_series(1, 20) n;
		INSERT INTO visits SELECT n, 1 + n % 20, 'north', 'x', '2026-03-01 12:00+00', 10, 'x' FROM generate_series(1, 100) n;`)
	for _, mode := range harness.Modes(enforcedModes...) {
		proxy := harness.Start(t, mode, harness.Database{Name: "visits", DB: db, Policy: blocks[1][2], SearchPath: []string{"public"}}, nil)
		agent := proxy.Agent(t, "agent", "visits")
		for i, want := range map[int]string{2: "", 3: "42501", 4: ""} {
			for sql := range strings.SplitSeq(strings.TrimSpace(blocks[i][2]), "\n") {
				if a := harness.Ask(agent, sql); a.Code != want || a.Code == "" && len(a.Results[0].Rows) == 0 {
					t.Errorf("%s: %s: %q %s", mode.Name, sql, a.Code, a.Err)
				}
			}
		}
		if got, want := oneText(agent, "SELECT count(*), sum(minutes) FROM visits"), "100\t1000"; got != want {
			t.Errorf("all visits are %s, not %s", got, want)
		}
	}
	noAggregates := "version: 1\nattributes: {}\n" + blocks[5][2]
	for _, mode := range harness.Modes(enforcedModes...) {
		proxy := harness.Start(t, mode, harness.Database{Name: "none", DB: db, Policy: noAggregates, SearchPath: []string{"public"}}, nil)
		agent := proxy.Agent(t, "agent", "none")
		if got, want := oneText(agent, "SELECT clinic, count(*) FROM visits GROUP BY clinic"), "north\t65"; got != want {
			t.Errorf("%s: visits in groups are %s, not %s", mode.Name, got, want)
		}
		for _, sql := range []string{"SELECT clinic FROM visits", "SELECT count(*) FROM (SELECT * FROM visits) AS x",
			"WITH x AS (SELECT * FROM visits) SELECT count(*) FROM x", "SELECT count(*) FROM visits AS visible_visits",
			"SELECT id FROM people WHERE EXISTS (SELECT FROM visits WHERE person = people.id)", "COPY visits TO STDOUT"} {
			if a := harness.Ask(agent, sql); a.Code != "42501" {
				t.Errorf("%s: %s: %q %s", mode.Name, sql, a.Code, a.Err)
			}
		}
	}
}
