package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// runOptions has the values of the command's flags.
type runOptions struct {
	all      bool     // run all tests; without it, -short skips the slow ones
	race     bool     // use the race detector for racePackages
	check    bool     // run gofmt, vet and staticcheck
	times    bool     // print how long each package took
	parallel int      // how many packages run at a time
	run      string   // run only the tests whose names match
	packages []string // patterns of packages, as for `go test`
}

func main() {
	if dir := os.Getenv(usageVariable); dir != "" { // this process has to run one test binary
		os.Exit(runMeasured(dir, os.Args[1:]))
	}
	var o runOptions
	flag.BoolVar(&o.all, "all", false, "run what takes long as well")
	flag.BoolVar(&o.race, "race", false, "run the packages in which goroutines meet with the race detector")
	flag.BoolVar(&o.check, "check", true, "check format, and run vet and staticcheck")
	flag.BoolVar(&o.times, "times", false, "print what each package took")
	flag.IntVar(&o.parallel, "p", 3, "test so many packages at once")
	flag.StringVar(&o.run, "run", "", "run only the tests that match this regular expression")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/run [flags] [packages]\n\nChecks the code and runs the tests of the packages (./...).")
		flag.PrintDefaults()
	}
	flag.Parse()
	if o.packages = flag.Args(); len(o.packages) == 0 {
		o.packages = []string{"./..."}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := runAll(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func runAll(ctx context.Context, o runOptions) (ok bool, err error) {
	began := time.Now()
	var room uint64 = pgtest.QuickRunMemory
	if o.all {
		room = pgtest.WholeRunMemory
	}
	dir, err := pgtest.NewFolder(room)
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o711); err != nil { // test servers may run as another user
		return false, err
	}
	type started struct {
		server *pgtest.RunningServer
		err    error
	}
	server := make(chan started, 1)
	go func() { // at the same time, the test binaries are compiled
		s, err := pgtest.StartShared(ctx, dir)
		server <- started{s, err}
	}()
	ok = true
	checkCtx, stopCheck := context.WithCancel(ctx)
	waitForCheck := func() bool { return true }
	defer func() { stopCheck(); waitForCheck() }() // if the tests cannot run
	if o.check {
		// vet runs first and alone, since the tests need the packages that it compiles.
		if ok, err = checkSource(ctx, o.packages); err != nil {
			return false, err
		}
		waitForCheck = startStaticcheck(checkCtx, o.packages)
	}
	s := <-server
	if s.err != nil {
		return false, fmt.Errorf("cannot start PostgreSQL: %w", s.err)
	}
	defer s.server.Stop()
	if o.packages, err = listPackages(ctx, o.packages); err != nil {
		return false, err
	}
	sum := newSummary(os.Stdout, filepath.Join(dir, "usage"))
	if err := runTests(ctx, withoutAndWithRace(o), dir, sum); err != nil {
		sum.print(o.times) // print what has run so far
		return false, err
	}
	ok = waitForCheck() && ok
	sum.print(o.times)
	fmt.Printf("test: %s after %s\n", map[bool]string{true: "passed", false: "FAILED"}[ok && sum.passed()], time.Since(began).Round(time.Second))
	return ok && sum.passed(), nil
}

// racePackages are the packages whose goroutines share data.
var racePackages = []string{
	"internal/registry/air", "internal/services/api", "internal/record/audit", "internal/record/audit/pgchain",
	"internal/run/config", "internal/registry", "internal/services/operations", "internal/enforce", "internal/services/identity",
	"internal/services/mcp", "internal/run/metrics",
	"internal/memory/privacy", "proxy", "internal/run/serve", "internal/registry/sweep",
}

// longestPackages are the packages whose tests take longest. They start first, so that the run does not end with one of
// them running alone.
var longestPackages = []string{
	"test/e2e", "test/attacks", "proxy", "rewrite", "rls", "internal/enforce", "internal/tool/doctor", "cmd/pgconsent",
	"test/noninterference", "test/oracle", "internal/record/audit", "internal/services/mcp", "internal/registry/sweep",
}

// listPackages returns the import paths of the packages that the patterns match.
func listPackages(ctx context.Context, patterns []string) ([]string, error) {
	out, err := commandOutput(ctx, "go", append([]string{"list"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	return strings.Fields(out), nil
}

// startOrder returns the position at which the tests of a package start.
func startOrder(pkg string) int {
	if i := slices.Index(longestPackages, shortPackage(pkg)); i >= 0 {
		return i
	}
	return len(longestPackages)
}

// withoutAndWithRace splits a run into two parts: the packages without the race detector, and the packages with it.
func withoutAndWithRace(o runOptions) []runOptions {
	if !o.race {
		return []runOptions{o}
	}
	plain, race := o, o
	plain.race = false
	plain.packages, race.packages = nil, nil
	for _, p := range o.packages {
		if isConcurrent(p) {
			race.packages = append(race.packages, p)
		} else {
			plain.packages = append(plain.packages, p)
		}
	}
	var out []runOptions
	for _, part := range []runOptions{plain, race} {
		if len(part.packages) > 0 {
			out = append(out, part)
		}
	}
	return out
}

func isConcurrent(pkg string) bool { return slices.Contains(racePackages, shortPackage(pkg)) }
