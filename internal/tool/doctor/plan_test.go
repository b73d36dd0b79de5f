package doctor

import (
	"encoding/json"
	"testing"
)

// A plan counts as that of an empty view only if it reads nothing at all.
func TestEmptyPlans(t *testing.T) {
	for text, want := range map[string]bool{
		`{"Node Type": "Result", "One-Time Filter": "false"}`:                                                                                                  true,
		`{"Node Type": "Limit", "Plans": [{"Node Type": "Result", "One-Time Filter": "false"}]}`:                                                               true,
		`{"Node Type": "Limit", "Plans": [{"Node Type": "Subquery Scan", "Plans": [{"Node Type": "Result", "One-Time Filter": "false"}]}]}`:                    true,
		`{"Node Type": "Limit", "Plans": [{"Node Type": "Seq Scan", "Parent Relationship": "InitPlan"}, {"Node Type": "Result", "One-Time Filter": "false"}]}`: true,
		`{"Node Type": "Limit", "Plans": [{"Node Type": "Result", "One-Time Filter": "false"}, {"Node Type": "Seq Scan"}]}`:                                    false,
		`{"Node Type": "Result"}`: false,
		`{"Node Type": "Result", "One-Time Filter": "public.allowed()"}`:                            false,
		`{"Node Type": "Result", "One-Time Filter": "false", "Plans": [{"Node Type": "Seq Scan"}]}`: false,
		`{"Node Type": "Seq Scan"}`: false,
		`{"Node Type": "Append", "Plans": [{"Node Type": "Result", "One-Time Filter": "false"}]}`: false,
		`{"Node Type": "Limit"}`: false,
	} {
		var p planNode
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		if p.isEmpty() != want {
			t.Errorf("%s is empty: %t", text, !want)
		}
	}
}
