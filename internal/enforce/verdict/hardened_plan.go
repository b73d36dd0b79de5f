package verdict

import (
	"regexp"
	"slices"
	"strings"
)

// HardenedPlan says whether a statement gets a hardened plan, and when the server makes its plan in the extended
// protocol.
type HardenedPlan int

// When a statement is planned.
const (
	NotHardened       HardenedPlan = iota
	HardenedAtBind                 // Bind makes the hardened plan
	HardenedAtExecute              // Execute makes the hardened plan: for DECLARE, COPY and EXPLAIN
)

// HardenedPlanStatements are the settings of a hardened plan, as statements that apply until the transaction ends or is
// rolled back (docs/decisions/0073). With them row policies run before the agent's conditions, indexes are not combined
// by bitmaps, and expressions of parameters are computed while the plan is made.
var HardenedPlanStatements = []string{"SET LOCAL cpu_operator_cost = 0", "SET LOCAL enable_bitmapscan = off",
	"SET LOCAL plan_cache_mode = force_custom_plan"}

// HardenedPlanSettings are the names of these settings. Agents do not see the values, which would tell whether an
// earlier statement had a hardened plan. Only statements of the row security path have one, and the path depends on how
// large tables are.
var HardenedPlanSettings = []string{"cpu_operator_cost", "enable_bitmapscan", "plan_cache_mode"}

// HardenedPlanPrefix is HardenedPlanStatements as one text, to put in front of a statement.
var HardenedPlanPrefix = strings.Join(HardenedPlanStatements, ";") + ";"

// HardenedPlanCall is a query that makes the settings apply as soon as it is planned.
const HardenedPlanCall = "SELECT pgconsent_signed.harden_plan()"

// HasHardenedPlan reports whether a statement of v gets a hardened plan.
func (v *Verdict) HasHardenedPlan() bool {
	return slices.ContainsFunc(v.Effects, func(e Effect) bool { return e.HardenedPlan != NotHardened })
}

// HintLength returns with how many bytes of pgconsent's own comments a text begins: the signature, and the hints that
// row policies and triggers read. These must stay in front. A client's text may begin with a comment that looks like
// one: the pattern matches whole comments only, with no other comment inside.
func HintLength(text string) int { return len(hintPrefix.FindString(text)) }

var hintPrefix = regexp.MustCompile(`^(?:/\*pgconsent:(?:v1:[0-9a-f]{64}|use_hash|use_index|left [0-9a-f]{16})\*/)*`)

// WithHardenedPlan returns a text of one statement with the settings of a hardened plan in front of it.
func WithHardenedPlan(text string) string {
	hintEnd := HintLength(text)
	return text[:hintEnd] + HardenedPlanPrefix + text[hintEnd:]
}
