package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/policy"
)

// An attribute that an agent's tokens contain need not be in the configuration. An attribute that both contain, or that
// the policy does not know, gets a warning.
func TestAttributesOfTokens(t *testing.T) {
	doc, err := policy.Parse("p.yaml",
		[]byte("version: 1\nattributes: { user: { type: text, source: credential }, id: { type: uuid, source: "+
			"credential } }\ntables: { notes: { rows: [ sql: \"attribute('user') = 'alice'\" ] } }\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		context policy.LintContext
		want    []string
	}{
		"by nobody": {policy.LintContext{Agents: map[string]map[string]string{"robot": nil}},
			[]string{"has no attribute user", "has no attribute id", `no agent of the configuration has user = "alice"`}},
		"by tokens": {policy.LintContext{Agents: map[string]map[string]string{"robot": nil}, TokenAttributes: map[string][]string{"robot": {"id", "user"}}}, nil},
		"by both": {policy.LintContext{Agents: map[string]map[string]string{"robot": {"user": "bob"}},
			TokenAttributes: map[string][]string{"robot": {"id", "user"}}}, []string{"that its tokens give as well"}},
		"by a token": {policy.LintContext{Agents: map[string]map[string]string{"robot": {"user": "alice"}},
			TokenAttributes: map[string][]string{"robot": {"id", "idd"}}}, []string{"the policy does not declare"}},
	} {
		warnings, err := policy.Lint(doc, recordsSnapshot(), c.context)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range warnings {
			if strings.Contains(w.Error(), "agent") && !strings.Contains(w.Error(), "agents see") {
				got = append(got, w.Error())
			}
		}
		for _, want := range c.want {
			if !slices.ContainsFunc(got, func(w string) bool { return strings.Contains(w, want) }) {
				t.Errorf("%s: nothing says %q", name, want)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
