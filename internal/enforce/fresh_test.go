package enforce

import (
	"context"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/rls"
)

// Rows of an old snapshot may be returned only if everything is known that could have hidden them since. No consent has
// changed, rules and server are the same, the snapshot is not older than the record of changes, and no time has passed
// that hides rows by itself.
func TestSnapshotsEndWithRevokedConsent(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval = time.Hour })
	d := w.databases["memories"]
	d.stopListening(t)
	s := w.client("caregiver").Decider.(*session)
	with := func(change func(*state)) func() {
		return func() {
			v := *d.servingState.Load()
			other := *v.state
			change(&other)
			v.state = &other
			d.servingState.Store(&v)
		}
	}
	now := *d.servingState.Load()
	for name, c := range map[string]struct {
		change func()
		since  func(*verdict.Snapshot)
		portal bool
		moment bool // no new snapshot can be taken
		fresh  bool
	}{
		"nothing":               {fresh: true},
		"nothing, for a portal": {portal: true, fresh: true},
		"somebody's consent": {change: func() {
			w.exec("UPDATE people SET consent_status = CASE consent_status WHEN 'granted' THEN 'revoked' ELSE 'granted' END")
		}},
		"somebody's consent, for a portal": {change: func() { w.exec("DELETE FROM memory_participants WHERE memory_id = 2") }, portal: true},
		"the rules":                        {change: with(func(s *state) { s.plan = &rls.Plan{} })},
		"the rules, as they were":          {since: func(v *verdict.Snapshot) { v.RulesVersion += "x" }},
		"the server":                       {change: func() { s.info.Server += "1" }, moment: true},
		"an hour went by":                  {since: func(v *verdict.Snapshot) { v.TakenAt = v.TakenAt.Add(-maxSnapshotAge - time.Second) }},
		"half an hour went by":             {since: func(v *verdict.Snapshot) { v.TakenAt = v.TakenAt.Add(-maxSnapshotAge / 2) }, fresh: true},
		"time, which hides": {
			change: with(func(s *state) { s.timeHidesRows = true }), since: func(v *verdict.Snapshot) {
				v.TakenAt = v.TakenAt.Add(-maxTimeDependentAge - time.Second)
			}, portal: true},
		"time, which hides what nobody holds": {
			change: with(func(s *state) { s.timeHidesRows = true }), since: func(v *verdict.Snapshot) {
				v.TakenAt = v.TakenAt.Add(-maxTimeDependentAge - time.Second)
			}, fresh: true},
		"time, which hides nothing": {
			since: func(v *verdict.Snapshot) { v.TakenAt = v.TakenAt.Add(-maxTimeDependentAge - time.Second) }, portal: true, fresh: true},
		"that a table's changes are not told":  {change: with(func(s *state) { s.untrackedTable = "public.memories" }), moment: true, fresh: true},
		"that the database is not looked at":   {change: func() { v := *d.servingState.Load(); v.verified = time.Time{}; d.servingState.Store(&v) }, moment: true},
		"that the database is not vouched for": {change: func() { d.servingState.Store(&servingState{refusal: notServedRefusal(nil)}) }, moment: true},
		"that the session is over":             {change: func() { s.revocation.Store(consentChangedRefusal()) }, moment: true},
	} {
		v, server := now, s.info.Server
		d.servingState.Store(&v)
		since, refused := s.Snapshot(t.Context())
		if refused != nil {
			t.Fatalf("%s: %v", name, refused)
		}
		if c.change != nil {
			c.change()
		}
		if c.since != nil {
			c.since(&since)
		}
		if err := s.CheckSnapshot(context.Background(), since, c.portal); (err == nil) != c.fresh {
			t.Errorf("%s has changed: %v", name, err)
		} else if err != nil && err.Hint == "" && err.Code != sqlstate.SerializationFailure {
			t.Errorf("%s has changed: %v has no hint", name, err)
		}
		if _, err := s.Snapshot(t.Context()); (err != nil) != c.moment {
			t.Errorf("%s has changed, and a moment is taken: %v", name, err)
		}
		s.info.Server = server
		s.revocation.Store(nil)
	}
}
