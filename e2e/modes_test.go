package e2e

import (
	"strconv"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

const (
	modeRLS       = rewrite.RLS
	modeInjected  = rewrite.Injected
	wallsSealOnly = rls.SealOnly
)

func itoa(n int) string { return strconv.Itoa(n) }

func number(t testing.TB, s string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// Each wall alone gives the rows that both give, for every statement of the corpus.
func TestModesAgree(t *testing.T) {
	both := start(t, options{})
	rowSecurity := start(t, options{mode: modeRLS})
	injected := start(t, options{mode: modeInjected, walls: wallsSealOnly})
	a, b, c := both.agent(t), rowSecurity.agent(t), injected.agent(t)
	compared := 0
	for _, q := range corpus(t) {
		if strings.Contains(q.note, "needs: vector") {
			continue
		}
		want := ask(t, a, q.sql)
		if got := ask(t, b, q.sql); got.Multiset() != want.Multiset() {
			t.Errorf("%s: row security alone: %s\nboth:\n%s", q.name, shorten(got.Multiset()), shorten(want.Multiset()))
		}
		got := ask(t, c, q.sql)
		if strings.HasPrefix(got.code, "0A") || got.code == "42501" {
			continue // a reference that cannot carry its predicate is refused in this mode
		}
		compared++
		if got.Multiset() != want.Multiset() {
			t.Errorf("%s: injected predicates alone: %s\nboth:\n%s", q.name, shorten(got.Multiset()), shorten(want.Multiset()))
		}
	}
	if compared < 80 {
		t.Errorf("only %d statements carry their predicates in the text", compared)
	}
	both.noMarker(t)
	rowSecurity.noMarker(t)
	injected.noMarker(t)
}

// The controls: with both walls down, and with one line of either broken, the suite's means must see it.
func TestControlsSeeMissingWalls(t *testing.T) {
	for name, o := range map[string]options{
		"both walls down":         {mode: modeRLS, walls: wallsSealOnly},
		"consent forgotten":       {policy: strings.ReplaceAll(arcivePolicy, "- consent:", "- open: true #")},
		"ownership forgotten":     {policy: strings.ReplaceAll(arcivePolicy, "- own: { column: user_id, is: user }", "- open: true")},
		"pending counts as given": {policy: strings.ReplaceAll(arcivePolicy, "is: granted", "is: pending")},
	} {
		t.Run(name, func(t *testing.T) {
			in := start(t, o)
			agent := in.agent(t)
			for _, q := range corpus(t) {
				ask(t, agent, q.sql)
			}
			if found, _ := in.tap.hits(); len(found) == 0 {
				t.Error("the broken variant was not found: no marker came through")
			}
		})
	}
}

// arcivePolicy is the world's policy in block form, so that a control can break one line of it.
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
