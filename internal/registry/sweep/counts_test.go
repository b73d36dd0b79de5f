package sweep

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/test/tier"
)

// TestCirisK_Numbers checks the five metrics of the service over data with known results.
// seeds/001:178-184.
func TestCirisK_Numbers(t *testing.T) {
	s := build(t, consent.Settings{})
	agent := consent.Party{Role: consent.RoleAgent, ID: "chat"}
	s.ago(30)
	s.temporary("gone") // expired 16 days ago
	s.ago(20)
	for _, subjectID := range []string{"p1", "p2", "p3"} { // three partnerships are approved
		s.partner(subjectID)
	}
	s.do(consent.Command{Action: consent.ActionUpgrade, Subject: "no"})
	s.do(consent.Command{Action: consent.ActionDecide, Subject: "no", Decision: consent.DecisionReject, Caller: agent})
	s.do(consent.Command{Action: consent.ActionUpgrade, Subject: "late"}) // it lapses, since nobody decides
	s.ago(15)
	s.temporary("dies") // after 14 days it has expired for 24 hours, just too long to count
	s.exec("CREATE OR REPLACE FUNCTION pgconsent.consent_now() RETURNS pg_catalog.timestamptz LANGUAGE sql " +
		"VOLATILE PARALLEL SAFE RETURN pg_catalog.clock_timestamp() - interval '14 days 12 hours'")
	s.temporary("died") // expired 12 hours ago
	s.ago(10)
	s.temporary("t1")
	s.degrade("p3", consent.StreamAnonymous)
	s.ago(0)
	check := func(description string, expiredCount int) {
		t.Helper()
		got, err := s.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Streams["TEMPORARY"] != 1 || got.Streams["PARTNERED"] != 2 || got.Streams["ANONYMOUS"] != 1 ||
			got.Approved != 3 || got.Rejected != 1 || got.Expired != expiredCount || math.Abs(got.AgeDays-(3*20+10)) > 0.1 {
			t.Errorf("%s: %+v", description, got)
		}
		reg := prometheus.NewRegistry()
		metrics.New(reg).SetConsentCounts([]metrics.ConsentCounts{got})
		for name, want := range map[string]float64{
			"consent_active_users": 4, "consent_stream_distribution TEMPORARY": 25,
			"consent_stream_distribution PARTNERED": 50, "consent_stream_distribution ANONYMOUS": 25,
			"consent_partnership_success_rate": 0.75, "consent_average_age_days": 17.5, "consent_expiry_rate": float64(expiredCount),
		} {
			if value := gathered(t, reg)[name]; math.Abs(value-want) > 0.05 {
				t.Errorf("%s: %s is %v, want %v", description, name, value, want)
			}
		}
	}
	check("before anything is recorded", 1)
	s.sweep()
	check("after a sweep", 1)
}

func gathered(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if m.GetGauge() != nil {
				out[name] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

// Lag reports what waits to be swept, and which messages wait to be sent.
func TestLag(t *testing.T) {
	tier.All(t)
	s := build(t, consent.Settings{})
	s.temporary("ada")
	s.temporary("eve")
	s.sweep()
	if n, err := s.Counts(t.Context()); err != nil || n.LagSeconds != 0 || n.WaitingMessages != 0 || math.Abs(n.SweptAt-float64(time.Now().Unix())) > 60 {
		t.Errorf("%+v %v", n, err)
	}
	s.do(consent.Command{Action: consent.ActionRevoke, Subject: "ada", Caller: consent.Party{Role: consent.RoleController, ID: "us"}})
	if n, err := s.Counts(t.Context()); err != nil || n.LagSeconds <= 0 || n.WaitingMessages != 1 {
		t.Errorf("%+v %v", n, err)
	}
	if isDue, err := s.isDue(t.Context(), time.Hour); err != nil || !isDue {
		t.Errorf("a withdrawal waits for an hour: %v", err)
	}
	s.sweep()
	if n, err := s.Counts(t.Context()); err != nil || n.LagSeconds != 0 {
		t.Errorf("%+v %v", n, err)
	}
	if isDue, err := s.isDue(t.Context(), time.Hour); err != nil || isDue {
		t.Errorf("%v %v", isDue, err)
	}
}
