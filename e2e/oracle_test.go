package e2e

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/pgtest"
)

// filteredCopy is a database like the world's, from which the rows hidden from agents of user 1 were deleted.
func filteredCopy(t testing.TB) *pgtest.DB {
	t.Helper()
	return pgtest.Template(t, "arcive filtered", func(ctx context.Context, conn *pgx.Conn) error {
		if err := loadArcive(ctx, conn); err != nil {
			return err
		}
		text, err := os.ReadFile("testdata/filter.sql")
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, string(text))
		return err
	})
}

// The oracle: what an agent receives for a statement is what PostgreSQL answers to the original statement on a copy from
// which the invisible rows were physically deleted.
func TestAnswersEqualThoseOfAFilteredCopy(t *testing.T) {
	in := start(t, options{})
	filtered := connect(t, filteredCopy(t).DSN("postgres", ""))
	unfiltered := in.direct(t)
	agent := in.agent(t)

	statements := corpus(t)
	answered, sensitive := 0, 0
	for _, q := range statements {
		if strings.Contains(q.note, "needs: vector") {
			continue
		}
		want := ask(t, filtered, q.sql)
		if want.err != "" {
			t.Errorf("%s: the corpus statement itself fails: %s", q.name, want.err)
			continue
		}
		got := ask(t, agent, q.sql)
		if got.err != "" {
			t.Logf("%s: refused: %s", q.name, got.err)
			continue
		}
		answered++
		if got.Multiset() != want.Multiset() {
			t.Errorf("%s: %s\nagent:\n%s\nfiltered copy:\n%s", q.name, oneLine(q.sql), shorten(got.Multiset()), shorten(want.Multiset()))
		}
		if all := ask(t, unfiltered, q.sql); all.Multiset() != want.Multiset() {
			sensitive++
		}
	}
	t.Logf("%d statements, %d answered, %d of them sensitive to hidden rows", len(statements), answered, sensitive)
	if len(statements) < 150 {
		t.Errorf("the corpus has %d statements, want at least 150", len(statements))
	}
	if answered < 120 {
		t.Errorf("%d statements were answered, want at least 120", answered)
	}
	if sensitive*3 < answered*2 {
		t.Errorf("%d of %d answered statements are sensitive to hidden rows, want two thirds", sensitive, answered)
	}
	in.noMarker(t)
}
