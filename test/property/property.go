// Package property checks properties with rapid in the runs of package tier. It uses a fixed seed and a number of cases
// for each run, and writes no files for failures. A failure prints the flag that repeats it.
package property

import (
	"flag"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgconsent/pgconsent/test/tier"
)

// Check calls rapid.Check with the seed and the number of cases of this run. Flags of rapid (-rapid.seed,
// -rapid.checks, -rapid.nofailfile) take precedence. Tests that call it must not run in parallel, since these flags
// belong to the whole process.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	CheckMore(t, 1, property)
}

// CheckMore is [Check] with several times as many cases, for properties that only long sequences break.
func CheckMore(t *testing.T, times int, property func(*rapid.T)) {
	t.Helper()
	setFlag(t, "rapid.seed", strconv.FormatUint(tier.Seed(), 10))
	setFlag(t, "rapid.nofailfile", "true")
	checks := tier.Cases()
	if checks == 0 {
		checks = times * tier.Count(20, 200, 5000)
	}
	if testing.Short() {
		checks *= 5 // rapid divides this number by five in short runs
	}
	setFlag(t, "rapid.checks", strconv.Itoa(checks))
	rapid.Check(t, property)
}

// givenFlags returns the names of the flags that the command line sets.
var givenFlags = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
})

func setFlag(t *testing.T, name, value string) {
	t.Helper()
	if givenFlags()[name] {
		return
	}
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
}
