package sweep

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Another session, perhaps an agent's, locks a row that must be deleted. The sweeper reports that the row is still
// there, deletes all other rows, and blocks no withdrawal meanwhile. When the lock is released, it deletes the row.
func TestLockedRows(t *testing.T) {
	tier.All(t)
	s := build(t, consent.Settings{})
	for _, subjectID := range []string{"ada", "bob", "eve"} {
		s.temporary(subjectID)
		s.row(subjectID, 0)
	}
	lockingConn := s.db.Connect(t, "postgres")
	lockRow := func(sql string) {
		t.Helper()
		if _, err := lockingConn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	lockRow("BEGIN")
	lockRow("SELECT FROM interactions WHERE user_id = 'ada' FOR UPDATE")
	for _, subjectID := range []string{"ada", "bob"} {
		s.do(consent.Command{Action: consent.ActionRevoke, Subject: subjectID})
	}
	type result struct {
		out Report
		err error
	}
	sweepResult := make(chan result, 1)
	go func() {
		out, err := s.Run(context.Background(), false)
		sweepResult <- result{out, err}
	}()
	var got *result
	for got == nil &&
		s.query("SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND "+
			"application_name = 'pgconsent sweep' AND wait_event_type = 'Lock'") == "0" {
		select {
		case r := <-sweepResult:
			got = &r
		case <-time.After(10 * time.Millisecond):
		}
	}
	s.do(consent.Command{Action: consent.ActionRevoke, Subject: "eve"})
	if got == nil {
		r := <-sweepResult
		got = &r
	}
	if got.err != nil || !slices.Equal(got.out.Failures, []string{"sweep public.interactions: SQLSTATE 55P03"}) {
		t.Errorf("%+v %v", got.out, got.err)
	}
	if rows := s.query("SELECT user_id FROM interactions WHERE user_id = 'bob'"); rows != "" {
		t.Error("what nobody holds is still there")
	}
	lockRow("COMMIT")
	s.sweep()
	s.want("")
	s.verify()
}
