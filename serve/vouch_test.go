package serve

import (
	"testing"

	"github.com/pgconsent/pgconsent/doctor"
)

// The gate opens only once its probe passed.
func TestGateIsShutUntilItsProbePassed(t *testing.T) {
	pooler := doctor.Finding{ID: "pooler", Severity: doctor.OK}
	for _, c := range []struct {
		name  string
		found []doctor.Finding
		shut  bool
	}{
		{"nothing was tried", nil, true},
		{"it passed", []doctor.Finding{pooler, {ID: "gate_door", Severity: doctor.OK}}, false},
		{"it ran out of time", []doctor.Finding{pooler, {ID: "probe_timeout", Severity: doctor.Warning}}, true},
		{"it failed", []doctor.Finding{{ID: "gate_door", Severity: doctor.NoGate, What: "it answers"}, pooler}, true},
	} {
		if why := shut(c.found); (why != "") != c.shut {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}
