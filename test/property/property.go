// Package property checks properties with rapid as package tier wants it: from a fixed seed, with a count for each run,
// and without a file in the tree where one fails. The failure itself prints the flag that plays it again.
package property

import (
	"flag"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgconsent/pgconsent/test/tier"
)

// Check is rapid.Check. What is given by rapid's own flags (-rapid.seed, -rapid.checks, -rapid.nofailfile) counts.
// Tests that call it do not run side by side: the flags are the whole program's.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	CheckMore(t, 1, property)
}

// CheckMore is Check with so many times as many cases: of properties that only long sequences break.
func CheckMore(t *testing.T, times int, property func(*rapid.T)) {
	t.Helper()
	set(t, "rapid.seed", strconv.FormatUint(tier.Seed(), 10))
	set(t, "rapid.nofailfile", "true")
	checks := tier.Cases()
	if checks == 0 {
		checks = times * tier.Count(20, 200, 5000)
	}
	if testing.Short() {
		checks *= 5 // rapid divides by it
	}
	set(t, "rapid.checks", strconv.Itoa(checks))
	rapid.Check(t, property)
}

// given are the flags of the command line.
var given = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
})

func set(t *testing.T, name, value string) {
	t.Helper()
	if given()[name] {
		return
	}
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
}
