package verdict

import "strings"

// PreparedMark at the end of a text tells row policies that the server may cache the statement's plan. When the server
// plans the statement, the policies put the verified seal into the plan (see docs/decisions/0107). The mark affects
// only speed.
const PreparedMark = "/*pgconsent:prepared*/"

// PreparedText returns Text for a prepared statement. If the server may cache a plan of it, [PreparedMark] is added at
// the end. Nothing is added to a signed text, and to a text that needs a new plan for each execution. No error position
// can point behind the mark. If the text ends in a -- comment, the mark becomes part of that comment.
func (v *Verdict) PreparedText() string {
	if v.Path != PathRowSecurity || len(v.Effects) != 1 || v.Effects[0].Kind != EffectNone || v.HasHardenedPlan() ||
		strings.HasPrefix(v.Text, "/*pgconsent:v1:") {
		return v.Text
	}
	return v.Text + PreparedMark
}
