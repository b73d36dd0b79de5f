// Package tier tells a test in which run of the tests it takes part. There are three runs:
//
//	make test          go test -short        run before every commit; takes minutes
//	make test-all      go test               every test once; run before a change of enforcement is merged
//	make test-nightly  PGCONSENT_NIGHTLY=1   long random tests, and all cases of lists of which other runs take a part
//
// What a run tests depends only on the commit and on these variables, not on the time or on the speed of the machine:
//
//	PGCONSENT_NIGHTLY  if set: this is the nightly run
//	PGCONSENT_SEED     the seed of random tests, in place of 1; each test logs its seed
//	PGCONSENT_CASES    how many cases a random test tries, in place of its own number for the run
//
// Tests read the variables while they run, so that Go's test cache distinguishes their values. The package imports the
// standard library only, so that the tests of every package may use it.
package tier

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Reasons for skipping a test. They are fixed texts, so that the summary of a run can count them.
const (
	ReasonAll     = "runs in make test-all"
	ReasonNightly = "runs in make test-nightly"
)

// Patience is how long a test waits for something that must happen. It is long, so that tests also pass on a busy
// machine.
const Patience = 3 * time.Minute

// quickDivisor is the factor by which the quick run shortens a list of cases.
const quickDivisor = 2

// All skips the test in the quick run (make test).
func All(t testing.TB) {
	t.Helper()
	if Quick() {
		t.Skip(ReasonAll)
	}
}

// Nightly skips the test in all runs except the nightly one.
func Nightly(t testing.TB) {
	t.Helper()
	if !IsNightly() {
		t.Skip(ReasonNightly)
	}
}

// Quick reports whether this is the quick run (make test).
func Quick() bool { return testing.Short() }

// IsNightly reports whether this is the nightly run. With -short, it is the quick run even if PGCONSENT_NIGHTLY is set.
func IsNightly() bool { return !Quick() && os.Getenv("PGCONSENT_NIGHTLY") != "" }

// Count returns how many random cases a test tries in this run: PGCONSENT_CASES if it is set, and otherwise one of the
// arguments.
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

// Cases returns the value of PGCONSENT_CASES, and 0 if it is not set.
func Cases() int { return int(numberFromEnv("PGCONSENT_CASES", 0, 31)) }

// Seed returns the seed of random tests: PGCONSENT_SEED, or 1.
func Seed() uint64 { return numberFromEnv("PGCONSENT_SEED", 1, 64) }

// Rand returns a source of random numbers with the seed. Tests and goroutines that run at the same time must use
// different streams.
func Rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(Seed(), stream)) }

// IsPicked reports whether the i-th case of a list runs in this run. make test-all runs one of n cases, the quick run
// half as many, and the nightly run all. The first case always runs.
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
