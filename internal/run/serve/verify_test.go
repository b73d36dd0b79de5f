package serve

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/tool/doctor"
)

// Statements take the signed path only after its probe has passed.
func TestSignedPathIsClosedUntilItsProbePassed(t *testing.T) {
	pooler := doctor.Finding{ID: "pooler", Severity: doctor.SeverityOK}
	for _, c := range []struct {
		name         string
		passedProbes map[string]bool
		found        []doctor.Finding
		closed       bool
	}{
		{"nothing was tried", nil, nil, true},
		{"it passed", map[string]bool{doctor.SignedPathProbe: true}, []doctor.Finding{pooler}, false},
		{"another one passed", map[string]bool{"pooler": true}, []doctor.Finding{pooler}, true},
		{"it ran out of time", nil, []doctor.Finding{pooler, {ID: "probe_timeout", Severity: doctor.SeverityWarning}}, true},
		{"it failed", map[string]bool{doctor.SignedPathProbe: true},
			[]doctor.Finding{{ID: doctor.SignedPathProbe, Severity: doctor.SeverityNoSignedPath, Problem: "it answers"}, pooler}, true},
	} {
		if reason := closedReason(c.passedProbes, c.found); (reason != "") != c.closed {
			t.Errorf("%s: %q", c.name, reason)
		}
	}
}

// If the probe for a newer catalog is not finished, the last result for the same plan stays valid.
func TestLastProbeResultCounts(t *testing.T) {
	s := &signedPath{}
	for i, c := range []struct {
		hash       string
		isFinished bool
		found      []doctor.Finding
		closed     bool
	}{
		{"a", false, nil, true},
		{"a", true, nil, false},
		{"a", false, nil, false},
		{"b", false, nil, true},
		{"a", false, nil, false},
		{"a", false, []doctor.Finding{{ID: doctor.SignedPathProbe, Severity: doctor.SeverityNoSignedPath, Problem: "it answers"}}, true},
		{"a", false, nil, true},
		{"a", true, nil, false},
	} {
		finishedProbes := map[string]bool{doctor.SignedPathProbe: c.isFinished}
		if s.update(c.hash, finishedProbes, c.found); (s.closedReason != "") != c.closed {
			t.Errorf("%d: %q", i, s.closedReason)
		}
	}
}
