// Package tier is how a test says which run it belongs to. There are three:
//
//	make test          go test -short        what everybody runs before every commit: minutes
//	make test-all      go test               everything once: before a change to what enforces lands
//	make test-nightly  PGCONSENT_NIGHTLY=1   long random runs, and each case of lists of which the others take a part
//
// What runs depends on nothing but the commit and these variables: no date, no clock, no speed of the machine.
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

// Why a test is skipped. The reasons are fixed: the end of a run counts them.
const (
	ReasonAll     = "runs in make test-all"
	ReasonNightly = "runs in make test-nightly"
)

// Patience is how long a test waits for what must happen. A busy machine takes its time; what comes out is the same.
const Patience = 3 * time.Minute

// quickPart is by how much fewer cases of a list the quick run takes than the whole one.
const quickPart = 4

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

// Quick says that this is the quick run.
func Quick() bool { return testing.Short() }

// IsNightly says that this is the nightly run. A run that is told to be short is short.
func IsNightly() bool { return !Quick() && os.Getenv("PGCONSENT_NIGHTLY") != "" }

// Count is how many random cases a test makes.
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

// Cases is how many cases somebody asked for; 0: nobody did.
func Cases() int { return int(number("PGCONSENT_CASES", 0, 31)) }

// Seed is where a random test begins.
func Seed() uint64 { return number("PGCONSENT_SEED", 1, 64) }

// Rand draws from the seed; tests and goroutines that draw side by side take streams of their own.
func Rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(Seed(), stream)) }

// Turn says whether case i of a list runs, of which the whole run takes one in n, the quick one a quarter of these, and
// the nightly one all. The first case runs always.
func Turn(i, n int) bool {
	switch {
	case IsNightly():
		return true
	case Quick():
		return i%(n*quickPart) == 0
	}
	return i%n == 0
}

func number(variable string, otherwise uint64, bits int) uint64 {
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
