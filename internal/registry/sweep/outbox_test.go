package sweep

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/test/tier"
)

// receiver is an HTTP server that stores the messages it gets.
type receiver struct {
	*httptest.Server
	mu            sync.Mutex
	got           []Message
	ids           []string
	badMessages   []string // messages with a wrong signature
	answerRequest func(w http.ResponseWriter, r *http.Request)
}

func receive(t *testing.T, secret []byte) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		var m Message
		if err := json.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.got, r.ids = append(r.got, m), append(r.ids, q.Header.Get(HeaderID))
		if q.Header.Get(HeaderSignature) != Sign(secret, q.Header.Get(HeaderTimestamp), body) || q.Header.Get(HeaderID) != m.ID {
			r.badMessages = append(r.badMessages, q.Header.Get(HeaderSignature))
		}
		answerRequest := r.answerRequest
		r.mu.Unlock()
		if answerRequest != nil {
			answerRequest(w, q)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (s *site) outbox(url string) *Outbox {
	return &Outbox{Registry: s.Registry, URL: url, Secret: []byte("secret"), Timeout: tier.Patience}
}

func (s *site) deliver(o *Outbox) DeliveryCounts {
	s.t.Helper()
	d, err := o.Deliver(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// again makes every message due for sending again.
func (s *site) again() {
	s.exec("UPDATE pgconsent.outbox SET next_at = now() - interval '1 second' WHERE sent_at IS NULL")
}

// A warning is sent once for each expiry, and decisions are sent to the user.
// seeds/001:79, 161, 225-228.
func TestWarningsAndDecisions(t *testing.T) {
	tier.All(t)
	s := build(t, consent.Settings{})
	r := receive(t, []byte("secret"))
	o := s.outbox(r.URL)
	s.ago(12)
	s.temporary("ada")
	s.ago(0)
	s.temporary("new")
	s.sweep()
	s.sweep()
	s.deliver(o)
	if len(r.got) != 1 || r.got[0].Subject != "ada" || r.got[0].Event != "warned" || *r.got[0].Stream != "TEMPORARY" || r.got[0].ExpiresAt == nil {
		t.Fatalf("%+v", r.got)
	}
	s.temporary("ada") // this renews the consent; the next expiry has a warning of its own
	s.sweep()
	s.deliver(o)
	if len(r.got) != 1 {
		t.Errorf("%+v", r.got)
	}
	agent := consent.Party{Role: consent.RoleAgent, ID: "chat"}
	for subjectID, decision := range map[string]consent.Decision{"yes": consent.DecisionApprove, "no": consent.DecisionReject, "later": consent.DecisionDefer} {
		s.do(consent.Command{Action: consent.ActionUpgrade, Subject: subjectID, Reason: "MARKER"})
		s.do(consent.Command{Action: consent.ActionDecide, Subject: subjectID, Decision: decision, Caller: agent, Reason: "MARKER"})
	}
	s.deliver(o)
	var events []string
	for _, m := range r.got[1:] {
		events = append(events, m.Subject+" "+m.Event)
	}
	slices.Sort(events)
	if got := strings.Join(events, ", "); got != "later deferred, no rejected, yes approved" {
		t.Error(got)
	}
	if text, _ := json.Marshal(r.got); strings.Contains(string(text), "MARKER") {
		t.Error("a message has a reason in it")
	}
	// After twelve days the renewed consent will soon end, and so will one that needed no warning before. The deferred
	// request has lapsed.
	receivedCount, firstExpiry := len(r.got), *r.got[0].ExpiresAt
	s.ago(-12)
	s.sweep()
	s.sweep()
	s.deliver(o)
	events = nil
	for _, m := range r.got[receivedCount:] {
		events = append(events, m.Subject+" "+m.Event)
		if m.Event == "warned" && (m.ExpiresAt == nil || !m.ExpiresAt.After(firstExpiry)) {
			t.Errorf("%s is warned of %v, after %v", m.Subject, m.ExpiresAt, firstExpiry)
		}
	}
	slices.Sort(events)
	if got := strings.Join(events, ", "); got != "ada warned, later lapsed, new warned" {
		t.Error(got)
	}
	if len(r.badMessages) > 0 {
		t.Errorf("signatures: %v", r.badMessages)
	}
}

// "PARTNERSHIP_REVIEW_TIMEOUT: Max time for agent decision (48h)": an undecided request lapses.
// seeds/001:225-228.
func TestLapse(t *testing.T) {
	tier.All(t)
	s := build(t, consent.Settings{})
	s.ago(2)
	s.do(consent.Command{Action: consent.ActionUpgrade, Subject: "late"})
	s.ago(1)
	s.do(consent.Command{Action: consent.ActionUpgrade, Subject: "waits"})
	s.ago(0)
	if out := s.sweep(); out.RecordedEvents["lapsed"] != 1 {
		t.Errorf("%+v", out)
	}
	if got := s.query("SELECT subject || ' ' || event FROM pgconsent.outbox"); got != "late lapsed" {
		t.Error(got)
	}
}

// A receiver fails, hangs or redirects. The message is sent again with the same id, at growing intervals, until the
// receiver accepts it.
func TestFailingWebhook(t *testing.T) {
	tier.All(t)
	s := build(t, consent.Settings{})
	r := receive(t, []byte("secret"))
	otherReceiver := receive(t, []byte("secret"))
	o := s.outbox(r.URL)
	s.temporary("ada")
	s.do(consent.Command{Action: consent.ActionRevoke, Subject: "ada", Caller: consent.Party{Role: consent.RoleController, ID: "us"}})
	release := make(chan struct{})
	defer close(release)
	for i, failure := range []struct {
		reason        string
		answerRequest func(w http.ResponseWriter, q *http.Request)
	}{
		{"status 500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }},
		{"no answer in time", func(_ http.ResponseWriter, q *http.Request) {
			select {
			case <-release:
			case <-q.Context().Done():
			}
		}},
		{"status 307", func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, otherReceiver.URL, http.StatusTemporaryRedirect)
		}},
		{"no connection", func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = c.Close()
			}
		}},
	} {
		r.mu.Lock()
		r.answerRequest = failure.answerRequest
		r.mu.Unlock()
		if o.Timeout = tier.Patience; failure.reason == "no answer in time" {
			o.Timeout = 300 * time.Millisecond
		}
		before := s.query("SELECT clock_timestamp()::text")
		if d := s.deliver(o); d.Failed != 1 || d.Sent != 0 {
			t.Fatalf("%s: %+v", failure.reason, d)
		}
		if got := s.query("SELECT error || ' ' || attempts FROM pgconsent.outbox"); !strings.HasPrefix(got, failure.reason) {
			t.Errorf("%q, want %q", got, failure.reason)
		}
		want := retryDelay(i + 1).Seconds()
		if got := s.query("SELECT (extract(epoch FROM next_at - timestamptz '" + before + "') > " +
			jsonNumber(want-5) + " AND extract(epoch FROM next_at - clock_timestamp()) < " + jsonNumber(want+5) +
			")::text FROM pgconsent.outbox"); got != "true" {
			t.Errorf("attempt %d is not %vs ahead: %s", i+2, want, s.query("SELECT (next_at - clock_timestamp())::text FROM pgconsent.outbox"))
		}
		if d := s.deliver(o); d != (DeliveryCounts{}) {
			t.Errorf("before its time: %+v", d)
		}
		s.again()
	}
	r.mu.Lock()
	r.answerRequest = nil
	r.mu.Unlock()
	o.Timeout = tier.Patience
	if d := s.deliver(o); d.Sent != 1 {
		t.Errorf("%+v", d)
	}
	s.again()
	if d := s.deliver(o); d != (DeliveryCounts{}) {
		t.Errorf("it was sent again: %+v", d)
	}
	slices.Sort(r.ids)
	if len(slices.Compact(r.ids)) != 1 {
		t.Errorf("ids: %v", r.ids)
	}
	if len(otherReceiver.got) != 0 {
		t.Error("a redirect was followed")
	}
}

func jsonNumber(f float64) string { b, _ := json.Marshal(f); return string(b) }

// After an erasure nothing more is sent about the subject, and the outbox no longer contains the name.
func TestErasureEmptiesTheOutbox(t *testing.T) {
	s := build(t, consent.Settings{})
	s.ago(12)
	s.temporary("ada")
	s.ago(0)
	s.sweep()
	s.do(consent.Command{Action: consent.ActionErase, Subject: "ada"})
	if got := s.query("SELECT subject FROM pgconsent.outbox"); got != "" {
		t.Error(got)
	}
}
