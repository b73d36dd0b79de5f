package enforce

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A verdict from the cache is the same as a new one, whoever caused it to be cached: a statement in the other protocol,
// a seal of another key or profile, or a session that hides key-only columns.
func TestCachedVerdictsEqualNewOnes(t *testing.T) {
	tier.All(t)
	const keyed = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories:
    rows: [ { own: { column: user_id, is: user } } ]
    columns: { id: allow, title: by_key }
  people: { rows: [ { own: { column: user_id, is: user } } ] }
`
	w := start(t, func(w *world) {
		w.cfg.RewriteMode = rewrite.InjectedMode
		w.write(keyed)
		if err := installWith(context.Background(), w.dba, keyed, rls.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	s := w.client("caregiver").Decider.(*session)
	v, refused := s.currentServingState()
	if refused != nil {
		t.Fatal(refused)
	}
	type asked struct {
		text    string
		p       verdict.Protocol
		signing bool
		lists   bool
	}
	var all []asked
	for _, text := range []string{
		"SELECT name FROM people", "SELECT name FROM people WHERE id = 1", "SELECT title FROM memories WHERE id = 1",
		"SELECT id FROM memories", "SELECT title FROM memories",
		"SELECT name FROM people WHERE id = $1", "SELECT 1; SELECT 2", "BEGIN",
		"PREPARE p AS SELECT title FROM memories WHERE id = $1", "PREPARE q AS SELECT id FROM people",
		"COPY people TO STDOUT", "SELECT count(*) FROM people", "SELECT nothing", "DROP TABLE people", "UPDATE people SET name = 'x' WHERE id = 1", "",
	} {
		for i := range 8 {
			all = append(all, asked{text, verdict.Protocol(i & 1), i&2 != 0, i&4 != 0})
		}
	}
	told := func(v *verdict.Verdict) string {
		j := v.EnforcerDetail.(*judgement)
		return fmt.Sprintf("%q %v %s %s %v %d parts, plain %v, %v", v.Text, v.Refusal, v.Path, j.record.Protocol,
			v.Versions, len(v.Effects), j.withoutSigning, j.record.Signed)
	}
	differ := map[string]bool{}
	for seed := range uint64(6) {
		w.verdictCache.verdicts.InvalidateAll()
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, a := range all {
			s.info.HidesKeyOnlyColumns = a.lists
			notReloaded := told(s.decide(v.state, a.text, a.p, a.signing))
			anew := told(s.rewriteText(v.state, a.text, a.p, a.signing))
			if notReloaded != anew {
				t.Fatalf("%+v\nkept: %s\nanew: %s", a, notReloaded, anew)
			}
			differ[a.text+anew] = true
		}
	}
	if len(differ) < len(all)/4 {
		t.Errorf("only %d verdicts of %d differ", len(differ), len(all))
	}
}
