// Package tier is how a test says which run it belongs to. There are three:
//
//	make test          go test -short        what everybody runs before every commit: minutes
//	make test-all      go test               everything once: before a change to what enforces lands
//	make test-nightly  PGCONSENT_NIGHTLY=1   long random runs, and each case of lists of which the others take a part
//
// The runs depend on nothing but the commit and these variables: no date, no clock, no speed of the machine.
//
//	PGCONSENT_NIGHTLY  anything: the nightly run
//	PGCONSENT_SEED     where random tests begin, in place of 1; each logs the seed that it took
//	PGCONSENT_CASES    how many cases a random test makes, in place of its own count for the run; the unit is the test's
//
// The variables are read while tests run, so that go keeps results of other values apart in its cache. The package
// imports the standard library only, so that the tests of every package may use it.
package tier

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// The reasons for which tests are skipped. They are fixed texts, which the end of a run counts.
const (
	ReasonAll     = "runs in make test-all"
	ReasonNightly = "runs in make test-nightly"
)

// Patience is how long a test waits for something that must happen. On a busy machine it takes longer, with the same
// result.
const Patience = 3 * time.Minute

// quickDivisor is by how much the quick run shortens a list of cases.
const quickDivisor = 2

// All skips the test in the quick run.
func All(t testing.TB) {
	t.Helper()
	if Quick() {
		t.Skip(ReasonAll)
	}
}

// Nightly skips the test in all runs but the nightly one.
func Nightly(t testing.TB) {
	t.Helper()
	if !IsNightly() {
		t.Skip(ReasonNightly)
	}
}

// Quick tells whether this is the quick run.
func Quick() bool { return testing.Short() }

// IsNightly tells whether this is the nightly run. With -short it is the quick run.
func IsNightly() bool { return !Quick() && os.Getenv("PGCONSENT_NIGHTLY") != "" }

// Count returns how many random cases a test makes in this run.
func Count(quick, all, nightly int) int {
	switch n := Cases(); {
	case n > 0:
		return n
	case Quick():
		return quick
	case IsNightly():
		return nightly
	}
	return all
}

// Cases returns the number of cases that PGCONSENT_CASES asks for; 0: it is not set.
func Cases() int { return int(numberFromEnv("PGCONSENT_CASES", 0, 31)) }

// Seed returns the seed of random tests.
func Seed() uint64 { return numberFromEnv("PGCONSENT_SEED", 1, 64) }

// Rand returns random numbers from the seed. Tests and goroutines that run at the same time take different streams.
func Rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(Seed(), stream)) }

// IsPicked tells whether the i-th case of a list runs. make test-all runs one of n cases. The quick run takes half
// of these, and the nightly run all. The first case always runs.
func IsPicked(i, n int) bool {
	switch {
	case IsNightly():
		return true
	case Quick():
		return i%(n*quickDivisor) == 0
	}
	return i%n == 0
}

func numberFromEnv(variable string, otherwise uint64, bits int) uint64 {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", variable, err))
	}
	return n
}
