package verdict

import (
	"regexp"
	"slices"
	"strings"
)

// HardenedPlan says whether a statement gets a hardened plan, and which message makes the server plan it in the
// extended protocol.
type HardenedPlan int

// The values of HardenedPlan.
const (
	NotHardened       HardenedPlan = iota
	HardenedAtBind                 // Bind makes the hardened plan
	HardenedAtExecute              // Execute makes the hardened plan: for DECLARE, COPY and EXPLAIN
)

// HardenedPlanStatements are SET LOCAL statements for a hardened plan; they apply until the transaction ends or is
// rolled back (docs/decisions/0073). With these settings PostgreSQL evaluates row policies before the agent's
// conditions, does not combine indexes by bitmaps, and computes expressions of parameters while it plans.
var HardenedPlanStatements = []string{"SET LOCAL cpu_operator_cost = 0", "SET LOCAL enable_bitmapscan = off",
	"SET LOCAL plan_cache_mode = force_custom_plan"}

// HardenedPlanSettings are the names of these settings. Agents cannot read their values, which would tell whether an
// earlier statement had a hardened plan. Only statements of the row security path have one, and the path depends on how
// large tables are.
var HardenedPlanSettings = []string{"cpu_operator_cost", "enable_bitmapscan", "plan_cache_mode"}

// HardenedPlanPrefix is the text of HardenedPlanStatements, for use in front of a statement.
var HardenedPlanPrefix = strings.Join(HardenedPlanStatements, ";") + ";"

// HardenedPlanCall is a query that changes the settings as soon as PostgreSQL plans it.
const HardenedPlanCall = "SELECT pgconsent_signed.harden_plan()"

// HasHardenedPlan reports whether some statement of v gets a hardened plan.
func (v *Verdict) HasHardenedPlan() bool {
	return slices.ContainsFunc(v.Effects, func(e Effect) bool { return e.HardenedPlan != NotHardened })
}

// HintLength returns how many bytes of comments by pgconsent a text begins with. These are the signature, and hints
// that row policies and triggers read; all must stay in front. The pattern matches only whole comments without another
// comment inside, since a client's text may begin with a similar comment.
func HintLength(text string) int { return len(hintPrefix.FindString(text)) }

var hintPrefix = regexp.MustCompile(`^(?:/\*pgconsent:(?:v1:[0-9a-f]{64}|use_hash|use_index|left [0-9a-f]{16})\*/)*`)

// WithHardenedPlan returns the text of one statement with HardenedPlanPrefix in front of it, but behind pgconsent's
// comments.
func WithHardenedPlan(text string) string {
	hintEnd := HintLength(text)
	return text[:hintEnd] + HardenedPlanPrefix + text[hintEnd:]
}
