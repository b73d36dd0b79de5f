package serve

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/tool/doctor"
)

// The gate opens only once its probe passed.
func TestGateIsShutUntilItsProbePassed(t *testing.T) {
	pooler := doctor.Finding{ID: "pooler", Severity: doctor.OK}
	for _, c := range []struct {
		name   string
		passed map[string]bool
		found  []doctor.Finding
		shut   bool
	}{
		{"nothing was tried", nil, nil, true},
		{"it passed", map[string]bool{"gate_door": true}, []doctor.Finding{pooler}, false},
		{"another one passed", map[string]bool{"pooler": true}, []doctor.Finding{pooler}, true},
		{"it ran out of time", nil, []doctor.Finding{pooler, {ID: "probe_timeout", Severity: doctor.Warning}}, true},
		{"it failed", map[string]bool{"gate_door": true}, []doctor.Finding{{ID: "gate_door", Severity: doctor.NoSignedPath, What: "it answers"}, pooler}, true},
	} {
		if why := shut(c.passed, c.found); (why != "") != c.shut {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// What the probe found last of a plan holds while it is not finished for newer catalogs, until it finds something else.
func TestTheLastVerdictHolds(t *testing.T) {
	v := &voucher{}
	for i, c := range []struct {
		hash  string
		done  bool
		found []doctor.Finding
		shut  bool
	}{
		{"a", false, nil, true},
		{"a", true, nil, false},
		{"a", false, nil, false},
		{"b", false, nil, true},
		{"a", false, nil, false},
		{"a", false, []doctor.Finding{{ID: "gate_door", Severity: doctor.NoSignedPath, What: "it answers"}}, true},
		{"a", false, nil, true},
		{"a", true, nil, false},
	} {
		v.done = map[string]bool{"gate_door": c.done}
		if v.decide(c.hash, c.found); (v.shut != "") != c.shut {
			t.Errorf("%d: %q", i, v.shut)
		}
	}
}
