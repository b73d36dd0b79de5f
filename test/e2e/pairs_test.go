package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Two databases that differ in invisible rows only give an agent the same transcripts, whatever it sends.
func TestTwinsAnswerAlike(t *testing.T) {
	disturb, err := os.ReadFile("testdata/disturb.sql")
	if err != nil {
		t.Fatal(err)
	}
	firstTwin := start(t, options{})
	twinDB := pgtest.Template(t, "arcive", loadArcive)
	runAsSuperuser(t, twinDB, string(disturb))
	secondTwin := serveOn(t, twinDB, options{})

	statements := hostileStatements(t)
	for _, q := range corpusQueries(t) {
		statements = append(statements, q.sql)
	}
	for i, sql := range statements {
		if !tier.IsPicked(i, 8) {
			continue
		}
		// A connection each: a statement may end the session, and what one leaves behind must not hide the next.
		a, b := askOnce(t, firstTwin, sql), askOnce(t, secondTwin, sql)
		if a.SortedString() != b.SortedString() {
			t.Errorf("%s\none:\n%s\ntwin:\n%s", harness.OneLine(sql), harness.Truncate(a.SortedString()), harness.Truncate(b.SortedString()))
		}
	}
	firstTwin.noMarker(t)
	secondTwin.noMarker(t)
}

// askOnce asks on a connection of its own.
func askOnce(t testing.TB, in *instance, sql string) harness.Answer {
	t.Helper()
	c := in.agent(t)
	defer c.Close(context.Background())
	return harness.Ask(c, sql)
}

// The control: on a connection without them the twins do differ, and markers are seen; else the test above proves
// nothing.
func TestTwinsDifferForTheOwner(t *testing.T) {
	tier.All(t)
	disturb, err := os.ReadFile("testdata/disturb.sql")
	if err != nil {
		t.Fatal(err)
	}
	firstDB := pgtest.Template(t, "arcive", loadArcive)
	secondDB := pgtest.Template(t, "arcive", loadArcive)
	runAsSuperuser(t, secondDB, string(disturb))
	a, b := harness.Connect(t, firstDB.DSN("postgres", "")), harness.Connect(t, secondDB.DSN("postgres", ""))
	differ := 0
	for _, q := range corpusQueries(t) {
		if harness.Ask(a, q.sql).SortedString() != harness.Ask(b, q.sql).SortedString() {
			differ++
		}
	}
	if differ < 50 {
		t.Errorf("only %d statements tell the twins apart without protection", differ)
	}
}

// A third database has no hidden rows at all: what counts, measures or remembers rows does not tell it apart either.
func TestTwinWithoutHiddenRows(t *testing.T) {
	tier.All(t)
	firstTwin := start(t, options{})
	emptied := pgtest.Template(t, "arcive", loadArcive)
	runAsSuperuser(t, emptied, filterSQL(t))
	runAsSuperuser(t, emptied, "VACUUM FULL")
	runAsSuperuser(t, emptied, "ANALYZE")
	secondTwin := serveOn(t, emptied, options{})
	for i, sql := range hostileStatements(t) {
		if !tier.IsPicked(i, 4) {
			continue
		}
		a, b := askOnce(t, firstTwin, sql), askOnce(t, secondTwin, sql)
		if a.SortedString() != b.SortedString() {
			t.Errorf("%s\none:\n%s\nwithout hidden rows:\n%s", harness.OneLine(sql), harness.Truncate(a.SortedString()), harness.Truncate(b.SortedString()))
		}
	}
	firstTwin.noMarker(t)
	secondTwin.noMarker(t)
}
