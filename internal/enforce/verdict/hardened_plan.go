package verdict

import (
	"regexp"
	"slices"
	"strings"
)

// HardenedPlan tells whether a statement gets a hardened plan, and when the server makes its plan in the extended
// protocol.
type HardenedPlan int

// When a statement is planned.
const (
	NotHardened       HardenedPlan = iota
	HardenedAtBind                 // by Bind
	HardenedAtExecute              // by Execute: DECLARE, COPY, EXPLAIN
)

// HardenedPlanStatements are the settings of a careful plan, as statements that hold until the transaction ends or goes
// back (docs/decisions/0073): policies come before all that an agent asks; no index waits for what another has found;
// and what parameters make is worked out as the plan is made, whatever plan that is.
var HardenedPlanStatements = []string{"SET LOCAL cpu_operator_cost = 0", "SET LOCAL enable_bitmapscan = off",
	"SET LOCAL plan_cache_mode = force_custom_plan"}

// HardenedPlanSettings are their names. Agents do not see what these are: it would tell whether a statement before took
// care, which it may only behind row security, and the choice of the door goes by how large tables are.
var HardenedPlanSettings = []string{"cpu_operator_cost", "enable_bitmapscan", "plan_cache_mode"}

// HardenedPlanPrefix is the same in front of a statement.
var HardenedPlanPrefix = strings.Join(HardenedPlanStatements, ";") + ";"

// HardenedPlanCall is a query that makes them hold as soon as it is planned.
const HardenedPlanCall = "SELECT pgconsent_gate.care()"

// HasHardenedPlan tells whether a statement of v gets a hardened plan.
func (v *Verdict) HasHardenedPlan() bool {
	return slices.ContainsFunc(v.Effects, func(e Effect) bool { return e.HardenedPlan != NotHardened })
}

// HintLength is how many bytes of comments of ours a text begins with: the signature and what row policies and triggers
// look at. They stay in front. A client may begin with a comment that looks like one: what is taken for ours is whole,
// and has no other comment inside.
func HintLength(text string) int { return len(hintPrefix.FindString(text)) }

var hintPrefix = regexp.MustCompile(`^(?:/\*pgconsent:(?:v1:[0-9a-f]{64}|scan|seek|left [0-9a-f]{16})\*/)*`)

// WithHardenedPlan is a text of one statement with the settings of care in front of it.
func WithHardenedPlan(text string) string {
	at := HintLength(text)
	return text[:at] + HardenedPlanPrefix + text[at:]
}
