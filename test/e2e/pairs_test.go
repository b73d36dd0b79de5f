package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Two databases that differ only in hidden rows give an agent the same answers, whatever it sends.
func TestTwinsAnswerAlike(t *testing.T) {
	disturbSQL, err := os.ReadFile("testdata/disturb.sql")
	if err != nil {
		t.Fatal(err)
	}
	firstTwin := start(t, options{})
	twinDB := pgtest.Template(t, "arcive", loadArcive)
	runAsSuperuser(t, twinDB, string(disturbSQL))
	secondTwin := serveOn(t, twinDB, options{})

	statements := hostileStatements(t)
	for _, q := range corpusQueries(t) {
		statements = append(statements, q.sql)
	}
	for i, sql := range statements {
		if !tier.IsPicked(i, 8) {
			continue
		}
		// Each statement has its own connections: it may end the session, and must not influence the next statement.
		a, b := askOnce(t, firstTwin, sql), askOnce(t, secondTwin, sql)
		if a.SortedString() != b.SortedString() {
			t.Errorf("%s\none:\n%s\ntwin:\n%s", harness.OneLine(sql), harness.Truncate(a.SortedString()), harness.Truncate(b.SortedString()))
		}
	}
	firstTwin.requireNoMarker(t)
	secondTwin.requireNoMarker(t)
}

// askOnce sends a statement on a new connection.
func askOnce(t testing.TB, in *instance, sql string) harness.Answer {
	t.Helper()
	c := in.agent(t)
	defer c.Close(context.Background())
	return harness.Ask(c, sql)
}

// A control test: without protection the twins give different answers, and markers are found. Otherwise the test above
// would prove nothing.
func TestTwinsDifferForTheOwner(t *testing.T) {
	tier.All(t)
	disturbSQL, err := os.ReadFile("testdata/disturb.sql")
	if err != nil {
		t.Fatal(err)
	}
	firstDB := pgtest.Template(t, "arcive", loadArcive)
	secondDB := pgtest.Template(t, "arcive", loadArcive)
	runAsSuperuser(t, secondDB, string(disturbSQL))
	a, b := harness.Connect(t, firstDB.DSN("postgres", "")), harness.Connect(t, secondDB.DSN("postgres", ""))
	differences := 0
	for _, q := range corpusQueries(t) {
		if harness.Ask(a, q.sql).SortedString() != harness.Ask(b, q.sql).SortedString() {
			differences++
		}
	}
	if differences < 50 {
		t.Errorf("only %d statements tell the twins apart without protection", differences)
	}
}

// A third database has no hidden rows. Counts, sizes and statistics do not distinguish it from the others.
func TestTwinWithoutHiddenRows(t *testing.T) {
	tier.All(t)
	firstTwin := start(t, options{})
	emptiedDB := pgtest.Template(t, "arcive", loadArcive)
	runAsSuperuser(t, emptiedDB, filterSQL(t))
	runAsSuperuser(t, emptiedDB, "VACUUM FULL")
	runAsSuperuser(t, emptiedDB, "ANALYZE")
	secondTwin := serveOn(t, emptiedDB, options{})
	for i, sql := range hostileStatements(t) {
		if !tier.IsPicked(i, 4) {
			continue
		}
		a, b := askOnce(t, firstTwin, sql), askOnce(t, secondTwin, sql)
		if a.SortedString() != b.SortedString() {
			t.Errorf("%s\none:\n%s\nwithout hidden rows:\n%s", harness.OneLine(sql), harness.Truncate(a.SortedString()), harness.Truncate(b.SortedString()))
		}
	}
	firstTwin.requireNoMarker(t)
	secondTwin.requireNoMarker(t)
}
