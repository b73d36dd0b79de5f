package noninterference

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	caseCount = flag.Int("cases", 0, "run that many cases with a progress bar, instead of the short test")
	seed      = flag.Uint64("seed", 0, "where to begin; 0: what the run says")
	save      = flag.Bool("save", true, "save what the long run finds under testdata/found")
)

// A random caller sends random statements to two databases that differ in hidden rows only. It must get the same
// answers from both.
func TestNoninterference(t *testing.T) {
	modes := instance.Modes(instance.Both, instance.SignedViews)
	if *caseCount > 0 {
		t.Log(Run(t, Config{Cases: *caseCount, Seed: firstSeed(t), Modes: modes, Save: *save, Progress: os.Stderr}))
		return
	}
	cfg := Config{Cases: tier.Count(40, 240, 10_000), Seed: firstSeed(t), Modes: modes}
	if tier.Quick() {
		cfg.PerTable = 1 // so that each mode has its turn
	}
	r := Run(t, cfg)
	t.Log(r)
	if r.Answered*5 < r.Cases {
		t.Errorf("only %d of %d cases are answered: the grammar or the rewriter refuses too much", r.Answered, r.Cases)
	}
}

// The same for two databases that differ in values that no row rule hides: those of columns that a contract does not
// allow, and of columns that show by key only.
func TestValues(t *testing.T) {
	tier.All(t)
	cfg := Config{Cases: tier.Count(60, 120, 10_000), Seed: firstSeed(t), Modes: instance.Modes(instance.Both, instance.SignedViews)}
	if *caseCount > 0 {
		cfg.Cases, cfg.Save, cfg.Progress = *caseCount, *save, os.Stderr
	}
	r := Values(t, cfg)
	t.Log(r)
	if r.Cases > 100 && r.Answered*20 < r.Cases {
		t.Errorf("only %d of %d cases are answered: the grammar or the rewriter refuses too much", r.Answered, r.Cases)
	}
}

// firstSeed returns the seed of the first case.
func firstSeed(t *testing.T) uint64 {
	s := *seed
	if s == 0 {
		s = tier.Seed()
	}
	t.Logf("seed %d", s)
	return s
}

// The generator must be able to make every block of a policy, and every kind of object: 150 schemas together must
// contain each.
func TestEveryBlockIsMade(t *testing.T) {
	missingBlocks := []string{"shared: {", "\" numbered", "\" marked", "\" coded", "materialize: true", "expires: until",
		"derived: { from: {", "derived: { from: [", "sources:", "unless:", "where:", "inherit: everything",
		"    consent: {", "until: {", "mask: hash", "source: query", "contracts:", "aggregate:", "by_key", "sql:", "generalise:", "limits:", "registry:",
		"views:", "functions:", "GENERATED ALWAYS", " CHECK (", "PARTITION OF", "INHERITS", "FOREIGN KEY",
		"CREATE STATISTICS", "BEFORE INSERT OR UPDATE", "REFERENCING NEW TABLE", "MATERIALIZED VIEW",
		"EXCEPTION WHEN others", "stamp:", "check:", "immutable:"}
	for seed := range uint64(150) {
		s := newSchema(seed, false)
		text := s.ddl() + s.policy()
		missingBlocks = slices.DeleteFunc(missingBlocks, func(block string) bool { return strings.Contains(text, block) })
	}
	if len(missingBlocks) > 0 {
		t.Errorf("150 schemas have no %q", missingBlocks)
	}
}

// Cases that once revealed hidden rows must not do so any more.
func TestFound(t *testing.T) { Replay(t, instance.Both, instance.SignedViews) }
