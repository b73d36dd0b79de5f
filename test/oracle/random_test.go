package oracle

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

var (
	caseCount = flag.Int("cases", 0, "make up that many statements, with a line of progress, instead of the short test")
	seed      = flag.Uint64("seed", 0, "where to begin; 0: what the run says")
)

// randomSchemas are the schemas for which random statements are made: those whose tables have most columns that can be
// searched. In the others little is answered, because a contract demands a phase, or their policy allows no more
// indexes.
var randomSchemas = []string{"surety", "cortex", "tryst", "campus", "orbit", "lodge", "payroll", "bazaar", "crm",
	"recall", "grid", "scribe", "clinic", "hospital", "ward", "kin", "estate", "alms", "aloft", "docket", "fleet"}

// A random statement, sent in a random form of the protocol, must be answered as on a copy without the hidden rows. It
// may take the signed path, find rows by the keys of a search, or run under row security.
func TestRandomAnswersEqualThoseOfAFilteredCopy(t *testing.T) {
	tier.All(t)
	total := &RandomReport{}
	names := randomSchemas
	if *schemas != "" {
		names = strings.Split(*schemas, ",")
	}
	s := *seed
	if s == 0 {
		s = tier.Seed()
	}
	t.Logf("seed %d", s)
	if *caseCount > 0 {
		const casesPerRound = 1000
		modes := []instance.Mode{instance.Auto, instance.Both, instance.SignedViews, instance.Auto, instance.InjectedOnly}
		for roundNumber, done := 0, 0; done < *caseCount; roundNumber++ {
			mode, schema := modes[roundNumber%len(modes)], schemaNamed(t, names[roundNumber%len(names)])
			n := min(casesPerRound, *caseCount-done)
			if mode == instance.InjectedOnly {
				n = min(n, 200)
			}
			r := Random(t, RandomConfig{Schema: schema, Mode: mode, AsLargeTables: roundNumber%len(modes) != 3, Cases: n, Seed: s, Progress: os.Stderr})
			t.Logf("%s, %s, seed %d: %s", schema.Name, mode.Name, s, r)
			total.Add(r)
			done, s = done+n, s+1
		}
		t.Log(total)
		return
	}
	for i, c := range []struct {
		schema string
		mode   instance.Mode
	}{{names[0], instance.Auto}, {names[0], instance.Both}, {names[1%len(names)], instance.Auto}} {
		r := Random(t, RandomConfig{Schema: schemaNamed(t, c.schema), Mode: c.mode, AsLargeTables: true, Cases: tier.Count(40, 120, 10_000), Seed: s + uint64(i)})
		t.Logf("%s, %s, seed %d: %s", c.schema, c.mode.Name, s+uint64(i), r)
		total.Add(r)
	}
	if total.Answered*2 < total.Cases {
		t.Errorf("only %d of %d statements are answered: %s", total.Answered, total.Cases, total)
	}
	for _, form := range []string{"signed path", "found by key", "row security", "hint estimate_rows"} {
		if total.ByRewriteForm[form] == 0 && total.Answered >= 300 {
			t.Errorf("no statement was answered in the form %q", form)
		}
	}
}
