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

// watch tries planted faults on the tests of packages.
type watch struct {
	root     string
	packages []imports
	limit    time.Duration // for the tests of one package
	own      bool          // try the fault's own package only, as "make test" does
	short    bool          // try what "make test" runs only
	dir      string        // for test binaries

	mu    sync.Mutex
	sound map[string]*sound
}

// sound is the test binary of a package without any fault, built when it is first needed.
type sound struct {
	once   sync.Once
	binary string
	err    error
}

// unnamed stands for the test where the output names none: TestMain failed, or a goroutine panicked whose trace has no
// test.
const unnamed = "TestMain"

// see runs first what "make test" runs: the tests of the fault's own package, then those of the packages that import it,
// nearest first. Where none of them sees the fault, its own package and the end-to-end tests run without -short, as in
// "make test-all", unless -short is given. noise are tests that fail without the fault as well, which see nothing. The sighting has no target
// where packages were left out that might have seen it.
func (w *watch) see(ctx context.Context, m Mutant) (s Sighting, noise []Seen, err error) {
	dir, err := os.MkdirTemp(w.dir, "fault")
	if err != nil {
		return s, nil, err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(w.root, dir)
	if err != nil {
		return s, nil, err
	}
	// One server for all packages that meet the fault: no other fault has changed its roles.
	folder, err := pgtest.Folder(pgtest.QuickRoom)
	if err != nil {
		return s, nil, err
	}
	defer os.RemoveAll(folder)
	server, err := pgtest.StartShared(ctx, folder)
	if err != nil {
		return s, nil, err
	}
	defer server.Stop()
	f := fault{overlay: overlay, binary: filepath.Join(dir, "suite"), folder: folder}
	own := "./" + path.Dir(m.File)
	all := watchers(w.packages, own)
	if w.own {
		all = slices.DeleteFunc(all, func(pkg string) bool { return pkg != own })
	}
	for _, target := range []string{targetTest, targetTestAll} {
		for _, pkg := range all {
			if target == targetTestAll && pkg != own && pkg != "./test/e2e" {
				continue
			}
			test, others, err := w.try(ctx, pkg, f, target == targetTest)
			for _, o := range others {
				noise = append(noise, Seen{pkg, o})
			}
			if err != nil {
				return s, noise, err
			}
			if test != "" {
				return Sighting{target, Seen{pkg, test}}, noise, nil
			}
		}
		if w.own || w.short {
			return s, noise, nil
		}
	}
	return Sighting{Target: targetNone}, noise, nil
}

// fault is a planted fault that is being tried.
type fault struct {
	overlay string // for the compiler
	binary  string // of the package whose tests run
	folder  string // of the server
}

// try runs a package's tests with a fault; test is the first that fails with it and passes without it.
func (w *watch) try(ctx context.Context, pkg string, f fault, short bool) (test string, noise []string, err error) {
	if err := w.build(ctx, pkg, f.binary, "-overlay", f.overlay); err != nil {
		return "", nil, err
	}
	// A test that builds the program itself builds it with the fault, too.
	env := append(os.Environ(), strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+f.overlay),
		pgtest.ClusterVariable+"="+f.folder)
	for {
		failing, err := w.run(ctx, pkg, f.binary, env, short, ".", noise)
		if failing == "" || err != nil {
			return "", noise, err
		}
		passes, err := w.passes(ctx, pkg, failing, short)
		if err != nil {
			return "", noise, err
		}
		if passes {
			return failing, noise, nil
		}
		if failing == unnamed || slices.Contains(noise, failing) { // it cannot be left out
			return "", noise, fmt.Errorf("the tests of %s fail without the fault, too: %s", pkg, failing)
		}
		noise = append(noise, failing)
	}
}

func (w *watch) build(ctx context.Context, pkg, binary string, flags ...string) error {
	args := append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}, flags...)
	build := exec.CommandContext(ctx, "go", append(args, pkg)...)
	build.Dir = w.root
	if out, err := build.CombinedOutput(); err != nil {
		return cmp.Or(ctx.Err(), fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, out))
	}
	return nil
}

// passes tells whether a test passes without any fault.
func (w *watch) passes(ctx context.Context, pkg, test string, short bool) (bool, error) {
	w.mu.Lock()
	one := w.sound[pkg]
	if one == nil {
		one = &sound{binary: filepath.Join(w.dir, strings.ReplaceAll(strings.TrimPrefix(pkg, "./"), "/", "_")+".test")}
		w.sound[pkg] = one
	}
	w.mu.Unlock()
	if one.once.Do(func() { one.err = w.build(ctx, pkg, one.binary) }); one.err != nil {
		return false, one.err
	}
	only := "^" + test + "$"
	if test == unnamed {
		only = "."
	}
	failing, err := w.run(ctx, pkg, one.binary, os.Environ(), short, only, nil)
	return failing == "", err
}

// run returns the first test that fails, empty if all pass.
func (w *watch) run(ctx context.Context, pkg, binary string, env []string, short bool, only string,
	skip []string) (string, error) {
	run := exec.CommandContext(ctx, binary, "-test.run", only, "-test.failfast", "-test.timeout", w.limit.String())
	if short {
		run.Args = append(run.Args, "-test.short")
	}
	if len(skip) > 0 {
		run.Args = append(run.Args, "-test.skip", "^("+strings.Join(skip, "|")+")$")
	}
	if slices.Contains(drawn, pkg) {
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
		return failing(string(out)), nil
	default:
		return "", err
	}
}

// Where the output of a test binary names a test: one that was running when time was up, or that a panic's trace has.
var (
	running = regexp.MustCompile(`(?m)^\s*running tests:\n\s+(Test\w+)`)
	traced  = regexp.MustCompile(`\.(Test[A-Z]\w*)(?:\.func[\d.]+)*\(`)
)

// failing is the test that a binary which did not pass says has failed.
func failing(out string) string {
	if name := failed(out); name != "" {
		name, _, _ = strings.Cut(name, "/")
		return name
	}
	for _, form := range []*regexp.Regexp{running, traced} {
		if found := form.FindStringSubmatch(out); found != nil {
			return found[1]
		}
	}
	return unnamed
}
