package mutants

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

var (
	tryHand        = flag.Bool("hand", false, "try every mutant made by hand")
	machineCount   = flag.Int("machine", 0, "try so many made by machine")
	skipCount      = flag.Int("skip", 0, "leave out so many of those made by machine")
	namePrefixes   = flag.String("only", "", "try those whose names begin with one of these, divided by commas")
	ownTestsOnly   = flag.Bool("quick", false, "try those made by machine with their own packages' tests only")
	tryPlanted     = flag.Bool("planted", false, "try the planted faults that were not tried yet; -only chooses among them, too")
	retryPlanted   = flag.Bool("again", false, "try those as well that were tried before")
	ownPackageOnly = flag.Bool("own", false, "try planted faults with the quick tests of their own packages only; -short: of any package")
	packageLimit   = flag.Duration("limit", 20*time.Minute, "how long one package's tests may take with a planted fault")
	workerCount    = flag.Int("workers", 2, "how many at once")
)

func root(t testing.TB) string { return instance.RepoPath(t, ".") }

// Every mutant made by hand, and every planted fault, must still apply to the code.
func TestMutantsApply(t *testing.T) {
	list, err := HandMutants(root(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 30 {
		t.Errorf("%d mutants made by hand, want at least 30", len(list))
	}
	faults, err := PlantedFaults(root(t))
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]bool{}
	for _, m := range faults {
		packages[path.Dir(m.File)] = true
		if strings.HasSuffix(m.File, "_test.go") || strings.HasPrefix(m.File, "test/") || strings.HasPrefix(m.File, "internal/dev/pgtest/") {
			t.Errorf("%s is planted in what only tests use", m.Name)
		}
	}
	if len(faults) < 60 || len(packages) < 20 {
		t.Errorf("%d faults planted in %d packages, want at least 60 in 20", len(faults), len(packages))
	}
	for _, m := range slices.Concat(list, faults) {
		if _, err := m.Apply(root(t)); err != nil {
			t.Error(err)
		}
	}
}

// Every test that harness.txt names must exist. Every test that seen.txt names must belong to the harness for its
// mutant's file.
func TestHarnessTestsExist(t *testing.T) {
	groups, err := readHarness(root(t))
	if err != nil {
		t.Fatal(err)
	}
	testSources := map[string]string{}
	for _, g := range groups {
		for _, p := range g.tests {
			if testSources[p.pkg] == "" {
				files, err := filepath.Glob(filepath.Join(root(t), p.pkg, "*_test.go"))
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range files {
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					testSources[p.pkg] += string(text)
				}
			}
			for _, name := range p.names {
				if !strings.Contains(testSources[p.pkg], "\nfunc "+name+"(t *testing.T)") {
					t.Errorf("%s has no test %s", p.pkg, name)
				}
			}
		}
	}
	list, err := HandMutants(root(t))
	if err != nil {
		t.Fatal(err)
	}
	lastSeen, err := readLastSeen(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		catcher, ok := lastSeen[m.Name]
		if ok && !catcher.isInHarness(m, groups) {
			t.Errorf("%s was seen by %s of %s, which is not of the harness about %s", m.Name, catcher.Test, catcher.Pkg, m.File)
		}
		delete(lastSeen, m.Name)
	}
	for name := range lastSeen {
		t.Errorf("seen.txt: there is no mutant %s", name)
	}
}

// Every planted fault must have a line in planted.txt, and every test that is named there must exist.
func TestPlantedFaultsAreListed(t *testing.T) {
	faults, err := PlantedFaults(root(t))
	if err != nil {
		t.Fatal(err)
	}
	sightings, err := readSightings(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range faults {
		s, ok := sightings[m.Name]
		if !ok {
			t.Errorf("planted.txt has no line for %s", m.Name)
		}
		delete(sightings, m.Name)
		if s.By.Test == "" || s.By.Test == unnamedTest {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root(t), s.By.Pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(text), "\nfunc "+s.By.Test+"(t *testing.T)")
		}) {
			t.Errorf("%s was seen by %s of %s, which is not there any more", m.Name, s.By.Test, s.By.Pkg)
		}
	}
	for name := range sightings {
		t.Errorf("planted.txt: there is no fault %s", name)
	}
}

// The harness must catch five mutants, always the same ones. make mutants tries all of them.
func TestFiveMutants(t *testing.T) {
	tier.Nightly(t)
	if *tryHand || *machineCount > 0 || *namePrefixes != "" {
		return // TestMutants runs
	}
	list, err := HandMutants(root(t))
	if err != nil {
		t.Fatal(err)
	}
	var five []Mutant
	for i := range 5 {
		five = append(five, list[i*len(list)/5])
	}
	for _, m := range tryMutants(t, five) {
		t.Errorf("%s survived: %s", m.Name, m.Why)
	}
}

// TestMutants tries all mutants that the flags choose.
func TestMutants(t *testing.T) {
	if *tryHand || *namePrefixes != "" {
		list, err := HandMutants(root(t))
		if err != nil {
			t.Fatal(err)
		}
		var chosen []Mutant
		for _, m := range list {
			for _, prefix := range strings.Split(*namePrefixes, ",") {
				if strings.HasPrefix(m.Name, prefix) {
					chosen = append(chosen, m)
					break
				}
			}
		}
		for _, m := range tryMutants(t, chosen) {
			t.Errorf("%s survived: %s", m.Name, m.Why)
		}
	}
	if *machineCount > 0 {
		list, err := MachineMutants(root(t), *machineCount+*skipCount, tier.Seed())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range tryMutants(t, list[min(*skipCount, len(list)):]) {
			t.Logf("survivor: %s: %s", m.Name, m.Why)
		}
	}
}

// TestPlanted finds out which test catches each planted fault that the flags choose. It writes each result to
// planted.txt at once.
func TestPlanted(t *testing.T) {
	if !*tryPlanted {
		t.Skip("by command only: -args -planted")
	}
	faults, err := PlantedFaults(root(t))
	if err != nil {
		t.Fatal(err)
	}
	sightings, err := readSightings(root(t))
	if err != nil {
		t.Fatal(err)
	}
	packages, err := listPackages(t.Context(), root(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &faultRun{root: root(t), packages: packages, limit: *packageLimit, ownPackageOnly: *ownPackageOnly, shortOnly: tier.Quick(),
		dir: t.TempDir(), soundBinaries: map[string]*soundBinary{}}
	var (
		wait  sync.WaitGroup
		mu    sync.Mutex
		queue = make(chan Mutant)
	)
	for range *workerCount {
		wait.Go(func() {
			for m := range queue {
				start := time.Now()
				s, unrelated, err := w.findTest(t.Context(), m)
				mu.Lock()
				for _, n := range unrelated {
					fmt.Fprintf(os.Stderr, "%s: %s of %s fails without the fault, too\n", m.Name, n.Test, n.Pkg)
				}
				if err != nil {
					t.Errorf("%s: %v", m.Name, err)
					s.Target = "not tried to the end"
				} else if s.Target != "" {
					sightings[m.Name] = s
					if err := writeSightings(root(t), faults, sightings); err != nil {
						t.Error(err)
					}
				}
				fmt.Fprintf(os.Stderr, "%s: %s %s %s (%s)\n", m.Name, s.Target, s.By.Pkg, s.By.Test,
					time.Since(start).Round(time.Second))
				mu.Unlock()
			}
		})
	}
	for _, m := range faults {
		isChosen := slices.ContainsFunc(strings.Split(*namePrefixes, ","), func(prefix string) bool {
			return strings.HasPrefix(m.Name, prefix)
		})
		mu.Lock()
		isTried := sightings[m.Name].Target != ""
		mu.Unlock()
		if isChosen && (*retryPlanted || !isTried) {
			queue <- m
		}
	}
	close(queue)
	wait.Wait()
	counts := map[string]int{}
	for _, m := range faults {
		counts[sightings[m.Name].Target]++
	}
	t.Logf("%d planted faults: make test sees %d, make test-all %d more, neither %d; %d were not tried", len(faults),
		counts[targetTest], counts[targetTestAll], counts[targetNone], counts[""])
}

// tryMutants tries mutants in parallel and returns those that survived.
func tryMutants(t *testing.T, list []Mutant) (survivors []Mutant) {
	t.Helper()
	var (
		wait   sync.WaitGroup
		mu     sync.Mutex
		counts [3]int
		queue  = make(chan Mutant)
	)
	groups, err := readHarness(root(t))
	if err != nil {
		t.Fatal(err)
	}
	lastSeen, err := readLastSeen(root(t))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for range *workerCount {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for m := range queue {
				mu.Lock()
				list := suitesFor(m, groups, lastSeen, *ownTestsOnly)
				mu.Unlock()
				outcome, catcher, detail, err := TryMutant(context.Background(), root(t), m, list)
				mu.Lock()
				counts[outcome]++
				if *tryHand || *namePrefixes != "" { // make test writes nothing into the source tree
					if catcher.isInHarness(m, groups) && !m.Machine && lastSeen[m.Name] != catcher {
						lastSeen[m.Name] = catcher
						if err := writeLastSeen(root(t), lastSeen); err != nil {
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
				fmt.Fprintf(os.Stderr, "%s: %s  %s  (%d caught, %d survived, %d do not compile of %d; %s)\n", m.Name, outcome, detail,
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
