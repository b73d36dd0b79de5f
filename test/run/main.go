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

// options say what is run.
type options struct {
	all      bool     // everything: without it what takes long is skipped (-short)
	race     bool     // with the race detector, the packages in which goroutines meet
	check    bool     // format, vet and staticcheck as well
	times    bool     // print what each package took
	parallel int      // so many packages at once
	run      string   // only tests of this name
	packages []string // as `go test` takes them
}

func main() {
	if dir := os.Getenv(usageVariable); dir != "" { // for each test binary
		os.Exit(measured(dir, os.Args[1:]))
	}
	var o options
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
	ok, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (ok bool, err error) {
	began := time.Now()
	var room uint64 = pgtest.QuickRoom
	if o.all {
		room = pgtest.WholeRoom
	}
	dir, err := pgtest.Folder(room)
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o711); err != nil { // servers of tests may run as another user
		return false, err
	}
	type started struct {
		server *pgtest.Running
		err    error
	}
	server := make(chan started, 1)
	go func() { // beside the compiler
		s, err := pgtest.StartShared(ctx, dir)
		server <- started{s, err}
	}()
	if o.check {
		// What vet compiles the tests need as well, so that it goes first, by itself.
		if ok, err = check(ctx, o.packages); err != nil {
			return false, err
		}
	} else {
		ok = true
	}
	s := <-server
	if s.err != nil {
		return false, fmt.Errorf("cannot start PostgreSQL: %w", s.err)
	}
	defer s.server.Stop()
	if o.packages, err = list(ctx, o.packages); err != nil {
		return false, err
	}
	sum := newSummary(os.Stdout, filepath.Join(dir, "usage"))
	if err := test(ctx, parts(o), dir, sum); err != nil {
		sum.print(o.times) // as far as it came
		return false, err
	}
	sum.print(o.times)
	fmt.Printf("test: %s after %s\n", map[bool]string{true: "passed", false: "FAILED"}[ok && sum.passed()], time.Since(began).Round(time.Second))
	return ok && sum.passed(), nil
}

// concurrent are the packages in which goroutines share what they work on.
var concurrent = []string{
	"internal/registry/air", "internal/face/api", "internal/record/audit", "internal/record/audit/pgchain",
	"internal/run/config", "internal/registry", "internal/face/operations", "internal/enforce", "internal/face/identity",
	"internal/face/mcp", "internal/run/metrics",
	"internal/memory/privacy", "proxy", "internal/run/serve", "internal/registry/sweep",
}

// longest are the packages whose tests take longest. They begin first, or the end of the run would wait for one alone.
var longest = []string{
	"test/e2e", "test/attacks", "proxy", "rewrite", "rls", "internal/enforce", "internal/tool/doctor", "cmd/pgconsent",
	"test/noninterference", "test/oracle", "internal/record/audit", "internal/face/mcp", "internal/registry/sweep",
}

// list returns the packages that patterns mean.
func list(ctx context.Context, patterns []string) ([]string, error) {
	out, err := output(ctx, "go", append([]string{"list"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	return strings.Fields(out), nil
}

// rank is the place of a package in the order in which they begin.
func rank(pkg string) int {
	if i := slices.Index(longest, short(pkg)); i >= 0 {
		return i
	}
	return len(longest)
}

// parts are what a run consists of: what is built without the race detector, and with it.
func parts(o options) []options {
	if !o.race {
		return []options{o}
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
	var out []options
	for _, part := range []options{plain, race} {
		if len(part.packages) > 0 {
			out = append(out, part)
		}
	}
	return out
}

func isConcurrent(pkg string) bool { return slices.Contains(concurrent, short(pkg)) }
