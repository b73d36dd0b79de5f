package verdict

import "testing"

// The mark is added to texts of which PostgreSQL may cache a plan. A signed text is not changed.
func TestPreparedText(t *testing.T) {
	reads, writes, sets := []Effect{{ReadsRows: true}}, []Effect{{ReadsRows: true, WritesRows: true}}, []Effect{{Kind: EffectSet}}
	signed := "/*pgconsent:v1:00*/SELECT 1"
	for name, c := range map[string]struct {
		v      Verdict
		marked bool
	}{
		"a query":        {Verdict{Text: "SELECT 1", Rewritten: Rewritten{Path: PathRowSecurity, Effects: reads}}, true},
		"a write":        {Verdict{Text: "DELETE", Rewritten: Rewritten{Path: PathRowSecurity, Effects: writes}}, true},
		"signed":         {Verdict{Text: "SELECT 1", Rewritten: Rewritten{Path: PathSigned, Effects: reads}}, false},
		"signed as well": {Verdict{Text: signed, Rewritten: Rewritten{Path: PathRowSecurity, Effects: reads}}, false},
		"a setting":      {Verdict{Text: "SET x = 1", Rewritten: Rewritten{Path: PathRowSecurity, Effects: sets}}, false},
		"empty":          {Verdict{Rewritten: Rewritten{Path: PathRowSecurity}}, false},
		"hardened": {Verdict{Text: "SELECT 1", Rewritten: Rewritten{Path: PathRowSecurity,
			Effects: []Effect{{ReadsRows: true, HardenedPlan: HardenedAtBind}}}}, false},
	} {
		want := c.v.Text
		if c.marked {
			want += PreparedMark
		}
		if got := c.v.PreparedText(); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
