package e2e

import (
	"strconv"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const (
	modeRLS         = rewrite.RowSecurityMode
	modeInjected    = rewrite.AlwaysInjectedMode
	withoutPolicies = rls.SealOnly
)

func itoa(n int) string { return strconv.Itoa(n) }

func parseNumber(t testing.TB, s string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// These are control tests: they remove a layer of protection, or one line of the policy. The statements of the corpus
// must then find a marker.
func TestControlsSeeMissingLayers(t *testing.T) {
	tier.All(t)
	for name, o := range map[string]options{
		"neither":                 {mode: modeRLS, rowSecurity: withoutPolicies},
		"consent forgotten":       {policy: strings.ReplaceAll(arcivePolicy, "- consent:", "- open: true #")},
		"ownership forgotten":     {policy: strings.ReplaceAll(arcivePolicy, "- own: { column: user_id, is: user }", "- open: true")},
		"pending counts as given": {policy: strings.ReplaceAll(arcivePolicy, "is: granted", "is: pending")},
	} {
		t.Run(name, func(t *testing.T) {
			in := start(t, o)
			agent := in.agent(t)
			for _, q := range corpusQueries(t) {
				harness.Ask(agent, q.sql)
				if markerHits, _ := in.tap.MarkerHits(); len(markerHits) > 0 {
					return
				}
			}
			t.Error("the broken variant was not found: no marker came through")
		})
	}
}

// arcivePolicy is the world's policy in block form, so that a control test can break one line of it.
const arcivePolicy = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories:
    rows:
      - own: { column: user_id, is: user }
      - consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted }
  people:
    rows:
      - own: { column: user_id, is: user }
      - status: { column: consent_status, is: granted }
  memory_participants: { rows: [ { visible: { memories: { id: memory_id } } }, { visible: { people: { id: person_id } } } ] }
functions: { match_memories: { pin: { respect_consent: true } }, search_memories_semantic: { pin: { respect_consent: true } } }
`
