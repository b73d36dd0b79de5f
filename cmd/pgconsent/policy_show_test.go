package main

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/tier"
)

// The origin of a derived attribute is printed. migrate prints warnings about what the policy allows although it is
// unwise.
func TestOriginsAndWarnings(t *testing.T) {
	tier.All(t)
	config, _ := observedWorld(t)
	out, stderr, code := call(t, "", "policy", "show", "-c", config)
	if code != exitOK {
		t.Fatal(stderr)
	}
	for _, want := range []string{
		"session  text: the agent's own setting app.current_session_id, the claim, if it is among\n    SELECT id FROM public.\"Session\" WHERE ",
		"\"Session\".id = claim::text",
		"stage  integer: looked up in the database, if it is one value\n    SELECT stage FROM public.\"Session\" WHERE ",
		"members  integer: follows from others; may be missing\n    CASE WHEN attribute('session') IS NOT NULL",
		"actor  text: the agent's own setting app.actor_id, the claim, if it is among; may be missing\n    attribute('user')\n",
	} {
		if !strings.Contains(strings.ReplaceAll(out, "(SELECT attr('session'))", "session"), want) {
			t.Errorf("policy show lacks %q:\n%s", want, out[:min(len(out), 4000)])
		}
	}
	_, stderr, code = call(t, "", "migrate", "-c", config)
	if code != exitOK || !strings.Contains(stderr, "warning: ") || !strings.Contains(stderr, "policy.yaml:") {
		t.Errorf("migrate: exit %d, %q", code, stderr)
	}
	dryRunOutput, stderr, code := call(t, "", "migrate", "--dry-run", "-c", config)
	if code != exitOK || strings.Contains(dryRunOutput, "warning: ") || !strings.Contains(stderr, "warning: ") {
		t.Errorf("migrate --dry-run: exit %d, %q", code, stderr)
	}
}
