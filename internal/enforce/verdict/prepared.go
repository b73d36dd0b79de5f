package verdict

import "strings"

// PreparedMark at the end of a text tells row policies that the server may keep the statement's plan. As the server
// plans it, they put the verified seal into the plan (see docs/decisions/0107). Only speed depends on the mark.
const PreparedMark = "/*pgconsent:prepared*/"

// PreparedText is Text for a prepared statement: with [PreparedMark], where the server may keep a plan of it. A signed
// text is left as it is, and so is one that needs a plan of its own for each execution. The mark is behind everything
// that a position in an error can point at. Where the text ends in a comment that ends with its line, the mark becomes
// part of that.
func (v *Verdict) PreparedText() string {
	if v.Path != PathRowSecurity || len(v.Effects) != 1 || v.Effects[0].Kind != EffectNone || v.HasHardenedPlan() ||
		strings.HasPrefix(v.Text, "/*pgconsent:v1:") {
		return v.Text
	}
	return v.Text + PreparedMark
}
