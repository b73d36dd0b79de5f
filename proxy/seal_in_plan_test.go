package proxy

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// renewingSeals is a fakeDecider whose seal is due for renewal when the test says so, and whose statements run under
// row security.
type renewingSeals struct {
	*fakeDecider
	isDue *atomic.Bool
}

func (r *renewingSeals) Seal(ctx context.Context, b verdict.Backend) (verdict.Seal, error) {
	seal, err := r.fakeDecider.Seal(ctx, b)
	r.isDue.Store(false)
	seal.IsStale = r.isDue.Load
	return seal, err
}

func (r *renewingSeals) Decide(ctx context.Context, text string, p verdict.Protocol) *verdict.Verdict {
	v := r.fakeDecider.Decide(ctx, text, p)
	v.Path = verdict.PathRowSecurity
	return v
}

// The proxy marks the text of a statement that it prepares, so that row policies see that the statement is prepared. A
// cached plan contains the seal. After a renewal, the server plans cached statements again if the session has run many
// statements.
func TestPlansAreRemadeWithANewSeal(t *testing.T) {
	p := startProxy(t)
	var isDue atomic.Bool
	p.editRoute = func(r *Route) {
		openDecider := r.Open
		r.Upstream.StatementCache = 0 // cached statements would have names of the proxy
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &renewingSeals{d.(*fakeDecider), &isDue}, err
		}
	}
	// The planner evaluates this function early, as it does the functions in row policies.
	if _, err := p.db.Connect(t, "postgres").Exec(t.Context(), `CREATE FUNCTION planned_under() RETURNS text
		LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN current_setting('pgconsent.seal'); END $$`); err != nil {
		t.Fatal(err)
	}
	conn := p.connect(t).PgConn()
	firstValue := func(r *pgconn.ResultReader) string {
		t.Helper()
		result := r.Read()
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		return string(result.Rows[0][0])
	}
	const text = "SELECT current_query()"
	if _, err := conn.Prepare(t.Context(), "text", text, nil); err != nil {
		t.Fatal(err)
	}
	if got := firstValue(conn.ExecPrepared(t.Context(), "text", nil, nil, nil)); got != text+verdict.PreparedMark {
		t.Errorf("a prepared text is %q", got)
	}
	if got := firstValue(conn.ExecParams(t.Context(), text, nil, nil, nil, nil)); got != text {
		t.Errorf("a text without a name is %q", got)
	}
	// Where the text ends in a comment, the mark may become part of it.
	if _, err := conn.Prepare(t.Context(), "comment", text+" -- of the client", nil); err != nil {
		t.Fatal(err)
	}
	got := firstValue(conn.ExecPrepared(t.Context(), "comment", nil, nil, nil))
	if !strings.HasSuffix(got, "-- of the client"+verdict.PreparedMark) {
		t.Errorf("a prepared text with a comment is %q", got)
	}
	const plannedUnderSQL = "SELECT planned_under(), current_setting('pgconsent.seal')"
	if _, err := conn.Prepare(t.Context(), "under", plannedUnderSQL, nil); err != nil {
		t.Fatal(err)
	}
	run := func(times int) (plannedSeal, current string) {
		t.Helper()
		for range times {
			result := conn.ExecPrepared(t.Context(), "under", nil, nil, nil).Read()
			if result.Err != nil {
				t.Fatal(result.Err)
			}
			plannedSeal, current = string(result.Rows[0][0]), string(result.Rows[0][1])
		}
		return plannedSeal, current
	}
	for i, c := range []struct {
		runs                 int
		plannedSeal, current string
	}{
		{3, "seal 1", "seal 1"},
		{maxRuns, "seal 1", "seal 2"}, // before the renewal, the statement ran few times
		{3, "seal 3", "seal 3"},
		{3, "seal 3", "seal 4"},
	} {
		plannedSeal, current := run(c.runs)
		if plannedSeal != c.plannedSeal || current != c.current {
			t.Errorf("%d: planned under %q and run under %q, want %q and %q", i, plannedSeal, current, c.plannedSeal, c.current)
		}
		isDue.Store(true)
	}
	// Statements that are not prepared count as well: the functions that they call have cached plans, too.
	for range maxRuns {
		if _, err := conn.Exec(t.Context(), text).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	isDue.Store(true)
	if plannedSeal, current := run(1); plannedSeal != "seal 6" || current != "seal 6" {
		t.Errorf("after %d Querys, planned under %q and run under %q, want seal 6", maxRuns, plannedSeal, current)
	}
}
