package faults

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	soakTime = flag.Duration("for", 0, "run rounds for so long, with a line for each, instead of the short test")
	seed     = flag.Uint64("seed", 0, "where to begin; 0: what the run says")
)

var bothModes = []string{"session", "transaction"}

// Agents work while connections, server processes or the server fail. No session may get an answer of another, and no
// acknowledged commit may be lost. Nothing of a session may be left after its end.
func TestFaults(t *testing.T) {
	st := newStage(t, bothModes...)
	sessions := tier.Count(15, 50, 1000)
	for i, k := range faultKinds {
		if tier.Quick() && !k.quick {
			continue // The last kind includes all faults.
		}
		t.Run(k.name, func(t *testing.T) {
			r := &round{stage: st, faultKind: k, number: i, seed: tier.Seed(), sessions: sessions}
			st.t = t
			r.run(t)
			t.Log(r)
			if n := r.doneSessions.Load(); n != int64(len(bothModes)*sessions) || r.counts["transactions acknowledged"] == 0 {
				t.Errorf("%d sessions: the test proves little", n)
			}
		})
	}
}

// TestSoak runs rounds for as long as -for says.
func TestSoak(t *testing.T) {
	if *soakTime == 0 {
		t.Skip("a soak: make soak")
	}
	firstSeed := *seed
	if firstSeed == 0 {
		firstSeed = tier.Seed()
	}
	st := newStage(t, bothModes...)
	fmt.Printf("soak: for %v from seed %d, in the modes %v\n", *soakTime, firstSeed, bothModes)
	counts, start := map[string]int{}, time.Now()
	sessions, steps, rounds := int64(0), int64(0), 0
	for ; time.Since(start) < *soakTime && !t.Failed(); rounds++ {
		r := &round{stage: st, faultKind: faultKinds[rounds%len(faultKinds)], number: rounds, seed: firstSeed, sessions: tier.Count(150, 150, 150)}
		r.run(t)
		fmt.Printf("%8s  round %d, %s: %s\n", time.Since(start).Round(time.Second), rounds, r.name, r)
		for kind, n := range r.counts {
			counts[kind] += n
		}
		sessions += r.doneSessions.Load()
		steps += r.steps.Load()
	}
	fmt.Printf("soak: %d rounds in %s: %d sessions, %d steps\n", rounds, time.Since(start).Round(time.Second), sessions, steps)
	for _, line := range sortedCounts(counts) {
		fmt.Println("  " + line)
	}
}
