package sweep

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/test/tier"
)

// silentReceiver starts a receiver that accepts messages and never answers.
func silentReceiver(t *testing.T) *receiver {
	r, release := receive(t, []byte("secret")), make(chan struct{})
	r.answerRequest = func(_ http.ResponseWriter, q *http.Request) {
		select {
		case <-release:
		case <-q.Context().Done():
		}
	}
	t.Cleanup(func() { close(release) })
	return r
}

func (s *site) revoke(subjectID string) {
	s.t.Helper()
	s.do(consent.Command{Action: consent.ActionRevoke, Subject: subjectID, Caller: consent.Party{Role: consent.RoleController, ID: "us"}})
}

// After a few attempts, a sweeper sends nothing more to a receiver that does not answer. Its waiting messages are not
// postponed for that.
func TestSilentReceiverIsSkipped(t *testing.T) {
	s := build(t, consent.Settings{})
	r := silentReceiver(t)
	o := s.outbox(r.URL)
	o.Timeout = 50 * time.Millisecond
	for _, subjectID := range []string{"a", "b", "c", "d", "e", "f"} {
		s.temporary(subjectID)
		s.revoke(subjectID)
	}
	if d := s.deliver(o); d.Sent != 0 || d.Failed != maxUnanswered {
		t.Errorf("%+v, want %d that failed", d, maxUnanswered)
	}
	if got := s.query("SELECT count(*)::text FROM pgconsent.outbox WHERE attempts = 0 AND next_at <= clock_timestamp()"); got != "3" {
		t.Errorf("%s messages are as they were, want 3", got)
	}
	r.mu.Lock()
	r.answerRequest = nil
	r.mu.Unlock()
	o.Timeout = tier.Patience
	if d := s.deliver(o); d.Sent != 3 || d.Failed != 0 {
		t.Errorf("%+v, want the 3 others", d)
	}
}

// A sweep deletes withdrawn data even while a receiver of messages does not answer.
func TestSweepsDoNotWaitForReceivers(t *testing.T) {
	tier.All(t)
	s := build(t, consent.Settings{})
	r := silentReceiver(t)
	o := s.outbox(r.URL)
	o.Timeout = time.Hour
	for _, subjectID := range []string{"ada", "bob"} {
		s.temporary(subjectID)
		s.row(subjectID, 0)
	}
	s.revoke("bob")
	ctx, cancel := context.WithCancel(t.Context())
	isFinished := make(chan struct{})
	go func() {
		defer close(isFinished)
		s.RunEvery(ctx, time.Hour, o, nil)
	}()
	defer func() {
		cancel()
		select {
		case <-isFinished:
		case <-time.After(tier.Patience):
			t.Error("it does not end")
		}
	}()
	hasMessage := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.got) > 0
	}
	waitUntil(t, "the receiver is asked", hasMessage)
	waitUntil(t, "bob's rows are gone", func() bool { return s.query("SELECT count(*)::text FROM interactions") == "1" })
	s.revoke("ada")
	waitUntil(t, "ada's rows are gone", func() bool { return s.query("SELECT count(*)::text FROM interactions") == "0" })
}

func waitUntil(t *testing.T, description string, isTrue func() bool) {
	t.Helper()
	for end := time.Now().Add(tier.Patience); !isTrue(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", description)
		}
	}
}
