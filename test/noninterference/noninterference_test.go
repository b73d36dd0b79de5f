package noninterference

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	cases = flag.Int("cases", 0, "run that many cases with a progress bar, instead of the short test")
	seed  = flag.Uint64("seed", 0, "of the long run; 0: the time")
	save  = flag.Bool("save", true, "save what the long run finds under testdata/found")
)

// Databases that differ in hidden rows only give a caller one transcript, whatever it sends: with a fixed seed, and one of the
// day.
func TestNoninterference(t *testing.T) {
	modes := []instance.Mode{instance.Both, instance.Gate}
	if *cases > 0 {
		t.Log(Run(t, Config{Cases: *cases, Seed: longSeed(t), Modes: modes, Save: *save, Progress: os.Stderr}))
		return
	}
	today := uint64(instance.Today())
	for _, s := range []uint64{1, today} {
		r := Run(t, Config{Cases: 480, Seed: s, Modes: modes, For: 15 * time.Second})
		t.Logf("seed %d: %s", s, r)
		if r.Answered*5 < r.Cases {
			t.Errorf("seed %d: only %d of %d cases are answered: the grammar or the rewriter refuses too much", s, r.Answered, r.Cases)
		}
	}
}

// Nor do values that no row rule hides tell a pair apart: columns that a contract leaves out, and those that exist by key.
func TestValues(t *testing.T) {
	cfg := Config{Cases: 480, Seed: uint64(instance.Today()), Modes: []instance.Mode{instance.Both, instance.Gate}, For: 10 * time.Second}
	if *cases > 0 {
		cfg = Config{Cases: *cases, Seed: longSeed(t), Modes: cfg.Modes, Save: *save, Progress: os.Stderr}
	}
	r := Values(t, cfg)
	t.Logf("seed %d: %s", cfg.Seed, r)
	if r.Cases > 100 && r.Answered*20 < r.Cases {
		t.Errorf("only %d of %d cases are answered: the grammar or the rewriter refuses too much", r.Answered, r.Cases)
	}
}

// longSeed is the seed of a long run.
func longSeed(t *testing.T) uint64 {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano()) & 0xffffffff
	}
	t.Logf("seed %d", s)
	return s
}

// Among the schemas there are all that more can add.
func TestEveryBlockIsMade(t *testing.T) {
	missing := []string{"shared: {", "\" numbered", "\" marked", "\" coded", "materialize: true", "expires: until", "derived: { from: {", "derived: { from: [", "sources:", "unless:", "where:", "inherit: everything", "    consent: {", "until: {", "mask: hash", "source: query", "contracts:", "aggregate:", "by_key", "sql:", "generalise:", "limits:", "registry:",
		"views:", "functions:", "GENERATED ALWAYS", " CHECK (", "PARTITION OF", "INHERITS", "FOREIGN KEY", "CREATE STATISTICS", "BEFORE INSERT OR UPDATE", "REFERENCING NEW TABLE", "MATERIALIZED VIEW", "EXCEPTION WHEN others", "stamp:", "check:", "immutable:"}
	for seed := range uint64(150) {
		s := newSchema(seed, false)
		text := s.ddl() + s.policy()
		missing = slices.DeleteFunc(missing, func(block string) bool { return strings.Contains(text, block) })
	}
	if len(missing) > 0 {
		t.Errorf("150 schemas have no %q", missing)
	}
}

// What was found once stays closed.
func TestFound(t *testing.T) { Replay(t, instance.Both, instance.Gate) }
