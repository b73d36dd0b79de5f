// Package property runs property-based tests with rapid. The seed and the number of cases are those of package tier.
// rapid writes no files for failures; the message of a failure has the flag that repeats it.
package property

import (
	"flag"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgconsent/pgconsent/test/tier"
)

// Check calls rapid.Check with the seed and the number of cases of package tier. Flags for rapid on the command line
// (-rapid.seed, -rapid.checks, -rapid.nofailfile) take precedence. Tests that call Check must not run in parallel,
// since these flags are global.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	CheckMore(t, 1, property)
}

// CheckMore is [Check] with times as many cases, for properties that only long sequences violate.
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

// givenFlags returns the names of the flags that are set on the command line.
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
