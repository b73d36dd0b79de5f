package mutants

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/instance"
)

var (
	hand    = flag.Bool("hand", false, "try every mutant made by hand")
	machine = flag.Int("machine", 0, "try so many made by machine")
	skip    = flag.Int("skip", 0, "leave out so many of those made by machine")
	only    = flag.String("only", "", "try those whose names begin with one of these, divided by commas")
	quick   = flag.Bool("quick", false, "try those made by machine with their own packages' tests only")
	workers = flag.Int("workers", 2, "how many at once")
)

func root(t testing.TB) string { return instance.Path(t, ".") }

// Every mutant made by hand still fits the code.
func TestMutantsApply(t *testing.T) {
	list, err := Hand(root(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 30 {
		t.Errorf("%d mutants made by hand, want at least 30", len(list))
	}
	for _, m := range list {
		if _, err := m.Apply(root(t)); err != nil {
			t.Error(err)
		}
	}
}

// Every test that the harness is made of is there, and every one that saw a mutant belongs to it.
func TestHarnessIsThere(t *testing.T) {
	groups, err := harness(root(t))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]string{}
	for _, g := range groups {
		for _, p := range g.pkgs {
			if there[p.pkg] == "" {
				files, err := filepath.Glob(filepath.Join(root(t), p.pkg, "*_test.go"))
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range files {
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					there[p.pkg] += string(text)
				}
			}
			for _, name := range p.names {
				if !strings.Contains(there[p.pkg], "\nfunc "+name+"(t *testing.T)") {
					t.Errorf("%s has no test %s", p.pkg, name)
				}
			}
		}
	}
	list, err := Hand(root(t))
	if err != nil {
		t.Fatal(err)
	}
	seen, err := readSeen(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		by, ok := seen[m.Name]
		if ok && !by.belongs(m, groups) {
			t.Errorf("%s was seen by %s of %s, which is not of the harness about %s", m.Name, by.Test, by.Pkg, m.File)
		}
		delete(seen, m.Name)
	}
	for name := range seen {
		t.Errorf("seen.txt: there is no mutant %s", name)
	}
}

// The harness sees five holes, other ones each day.
func TestMutantsOfTheDay(t *testing.T) {
	if *hand || *machine > 0 || *only != "" {
		t.Skip("TestMutants runs")
	}
	if testing.Short() {
		t.Skip("builds and runs the suite five times")
	}
	list, err := Hand(root(t))
	if err != nil {
		t.Fatal(err)
	}
	day := instance.Today()
	var five []Mutant
	for i := range 5 {
		five = append(five, list[(day*5+i*len(list)/5)%len(list)])
	}
	for _, m := range try(t, five) {
		t.Errorf("%s survived: %s", m.Name, m.Why)
	}
}

// All of them, by command.
func TestMutants(t *testing.T) {
	if *hand || *only != "" {
		list, err := Hand(root(t))
		if err != nil {
			t.Fatal(err)
		}
		var chosen []Mutant
		for _, m := range list {
			for _, prefix := range strings.Split(*only, ",") {
				if strings.HasPrefix(m.Name, prefix) {
					chosen = append(chosen, m)
					break
				}
			}
		}
		for _, m := range try(t, chosen) {
			t.Errorf("%s survived: %s", m.Name, m.Why)
		}
	}
	if *machine > 0 {
		list, err := Machine(root(t), *machine+*skip, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range try(t, list[min(*skip, len(list)):]) {
			t.Logf("survivor: %s: %s", m.Name, m.Why)
		}
	}
}

// try runs mutants side by side and returns those that survived.
func try(t *testing.T, list []Mutant) (survivors []Mutant) {
	t.Helper()
	var (
		wait   sync.WaitGroup
		mu     sync.Mutex
		counts [3]int
		queue  = make(chan Mutant)
	)
	groups, err := harness(root(t))
	if err != nil {
		t.Fatal(err)
	}
	seen, err := readSeen(root(t))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for range *workers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for m := range queue {
				mu.Lock()
				list := suites(m, groups, seen, *quick)
				mu.Unlock()
				outcome, by, how, err := Try(context.Background(), root(t), m, list)
				mu.Lock()
				counts[outcome]++
				if *hand || *only != "" { // not by the way, in make test: it writes nothing into the tree
					if by.belongs(m, groups) && !m.Machine && seen[m.Name] != by {
						seen[m.Name] = by
						if err := writeSeen(root(t), seen); err != nil {
							t.Error(err)
						}
					}
				}
				if err != nil {
					t.Errorf("%s: %v", m.Name, err)
				}
				if outcome == Survived {
					survivors = append(survivors, m)
				}
				fmt.Fprintf(os.Stderr, "%s: %s  %s  (%d caught, %d survived, %d do not compile of %d; %s)\n", m.Name, outcome, how,
					counts[Caught], counts[Survived], counts[Broken], len(list), time.Since(start).Round(time.Second))
				mu.Unlock()
			}
		}()
	}
	for _, m := range list {
		queue <- m
	}
	close(queue)
	wait.Wait()
	t.Logf("%d mutants: %d caught, %d survived, %d do not compile", len(list), counts[Caught], counts[Survived], counts[Broken])
	return survivors
}
