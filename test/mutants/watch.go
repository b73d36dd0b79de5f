package mutants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// faultRun tries planted faults: it runs the tests of packages with each fault.
type faultRun struct {
	root           string
	packages       []packageImports
	limit          time.Duration // limits the time of the tests of one package
	ownPackageOnly bool          // run only the tests of the fault's own package
	shortOnly      bool          // run only the tests of "make test"
	dir            string        // folder for test binaries

	mu            sync.Mutex
	soundBinaries map[string]*soundBinary
}

// soundBinary is the test binary of a package without a fault. It is built when it is first needed.
type soundBinary struct {
	once   sync.Once
	binary string
	err    error
}

// unnamedTest is the name of a failing test if the output names none. Then TestMain has failed, or a goroutine has
// panicked whose stack trace has no test.
const unnamedTest = "TestMain"

// findTest finds a test that catches a fault. It first runs the tests of "make test": those of the fault's own package,
// and then those of the packages that import it, nearest first. If none of them fails, and shortOnly is not set, it
// runs the own package's tests and the end-to-end tests without -short, as "make test-all" does. unrelated are tests
// that fail without the fault, too, and so prove nothing. The sighting has no target if packages were left out that
// might catch the fault.
func (w *faultRun) findTest(ctx context.Context, m Mutant) (s Sighting, unrelated []TestName, err error) {
	dir, err := os.MkdirTemp(w.dir, "fault")
	if err != nil {
		return s, nil, err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(w.root, dir)
	if err != nil {
		return s, nil, err
	}
	// The tests of all packages for this fault share one server. Its roles are not affected by other faults.
	folder, err := pgtest.NewFolder(pgtest.QuickRunMemory)
	if err != nil {
		return s, nil, err
	}
	defer os.RemoveAll(folder)
	server, err := pgtest.StartShared(ctx, folder)
	if err != nil {
		return s, nil, err
	}
	defer server.Stop()
	f := triedFault{overlay: overlay, binary: filepath.Join(dir, "suite"), folder: folder}
	ownPackage := "./" + path.Dir(m.File)
	testPackages := testingPackages(w.packages, ownPackage)
	if w.ownPackageOnly {
		testPackages = slices.DeleteFunc(testPackages, func(pkg string) bool { return pkg != ownPackage })
	}
	for _, target := range []string{targetTest, targetTestAll} {
		for _, pkg := range testPackages {
			if target == targetTestAll && pkg != ownPackage && pkg != "./test/e2e" {
				continue
			}
			test, alsoFailing, err := w.runWithFault(ctx, pkg, f, target == targetTest)
			for _, o := range alsoFailing {
				unrelated = append(unrelated, TestName{pkg, o})
			}
			if err != nil {
				return s, unrelated, err
			}
			if test != "" {
				return Sighting{target, TestName{pkg, test}}, unrelated, nil
			}
		}
		if w.ownPackageOnly || w.shortOnly {
			return s, unrelated, nil
		}
	}
	return Sighting{Target: targetNone}, unrelated, nil
}

// triedFault has the paths of files for the fault that is being tried.
type triedFault struct {
	overlay string // overlay file for the compiler
	binary  string // test binary, which is built for one package after the other
	folder  string // folder of the test server
}

// runWithFault runs the tests of a package with a fault. It returns the first test that fails with the fault and passes
// without it, and the tests that fail in both cases.
func (w *faultRun) runWithFault(ctx context.Context, pkg string, f triedFault, short bool) (test string, unrelated []string, err error) {
	if err := w.build(ctx, pkg, f.binary, "-overlay", f.overlay); err != nil {
		return "", nil, err
	}
	// A test that builds pgconsent has to build it with the fault, too.
	env := append(os.Environ(), strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+f.overlay),
		pgtest.ClusterVariable+"="+f.folder)
	for {
		failing, err := w.run(ctx, pkg, f.binary, env, short, ".", unrelated)
		if failing == "" || err != nil {
			return "", unrelated, err
		}
		passes, err := w.passesWithoutFault(ctx, pkg, failing, short)
		if err != nil {
			return "", unrelated, err
		}
		if passes {
			return failing, unrelated, nil
		}
		if failing == unnamedTest || slices.Contains(unrelated, failing) { // the next run cannot leave out this test
			return "", unrelated, fmt.Errorf("the tests of %s fail without the fault, too: %s", pkg, failing)
		}
		unrelated = append(unrelated, failing)
	}
}

func (w *faultRun) build(ctx context.Context, pkg, binary string, flags ...string) error {
	args := append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}, flags...)
	build := exec.CommandContext(ctx, "go", append(args, pkg)...)
	build.Dir = w.root
	if out, err := build.CombinedOutput(); err != nil {
		return cmp.Or(ctx.Err(), fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, out))
	}
	return nil
}

// passesWithoutFault reports whether a test passes without the fault.
func (w *faultRun) passesWithoutFault(ctx context.Context, pkg, test string, short bool) (bool, error) {
	w.mu.Lock()
	sound := w.soundBinaries[pkg]
	if sound == nil {
		sound = &soundBinary{binary: filepath.Join(w.dir, strings.ReplaceAll(strings.TrimPrefix(pkg, "./"), "/", "_")+".test")}
		w.soundBinaries[pkg] = sound
	}
	w.mu.Unlock()
	if sound.once.Do(func() { sound.err = w.build(ctx, pkg, sound.binary) }); sound.err != nil {
		return false, sound.err
	}
	pattern := "^" + test + "$"
	if test == unnamedTest {
		pattern = "."
	}
	failing, err := w.run(ctx, pkg, sound.binary, os.Environ(), short, pattern, nil)
	return failing == "", err
}

// run runs a test binary. It returns the first test that fails, and "" if all pass.
func (w *faultRun) run(ctx context.Context, pkg, binary string, env []string, short bool, pattern string,
	skip []string) (string, error) {
	run := exec.CommandContext(ctx, binary, "-test.run", pattern, "-test.failfast", "-test.timeout", w.limit.String())
	if short {
		run.Args = append(run.Args, "-test.short")
	}
	if len(skip) > 0 {
		run.Args = append(run.Args, "-test.skip", "^("+strings.Join(skip, "|")+")$")
	}
	if slices.Contains(rapidPackages, pkg) {
		run.Args = append(run.Args, "-rapid.nofailfile")
	}
	run.Dir, run.Env = filepath.Join(w.root, pkg), env
	out, err := run.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &exit):
		return failingTest(string(out)), nil
	default:
		return "", err
	}
}

// These expressions find the name of a test in the output of a test binary: a test that was running when the time was
// over, or a test in the stack trace of a panic.
var (
	runningTestPattern = regexp.MustCompile(`(?m)^\s*running tests:\n\s+(Test\w+)`)
	tracedTestPattern  = regexp.MustCompile(`\.(Test[A-Z]\w*)(?:\.func[\d.]+)*\(`)
)

// failingTest returns the test that has failed, according to the output of a test binary.
func failingTest(out string) string {
	if name := failedTest(out); name != "" {
		name, _, _ = strings.Cut(name, "/")
		return name
	}
	for _, pattern := range []*regexp.Regexp{runningTestPattern, tracedTestPattern} {
		if found := pattern.FindStringSubmatch(out); found != nil {
			return found[1]
		}
	}
	return unnamedTest
}
