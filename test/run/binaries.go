package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// binaries is the folder for test binaries, from the root of the repository. A binary is linked again only when it
// differs: linking all of them takes a fifth of the processor time of a run.
const binaries = "bin/test"

// tested is a package with tests.
type tested struct{ path, dir string }

// job is a package whose tests are to be run.
type job struct {
	tested
	binary string
}

// test builds the test binaries of all parts, runs them, so many at once and the longest first, and adds what they tell
// to the summary.
func test(ctx context.Context, parts []options, dir string, sum *summary) error {
	root, err := rootFolder(ctx)
	if err != nil {
		return err
	}
	var jobs []job
	for _, o := range parts {
		packages, err := withTests(ctx, o.packages)
		if err != nil {
			return err
		}
		if len(packages) == 0 {
			continue
		}
		into := filepath.Join(root, binaries)
		if o.race {
			into += "-race"
		}
		if err := link(ctx, o, packages, into); err != nil {
			sum.unsuccessful = true
			return err
		}
		for _, p := range packages {
			jobs = append(jobs, job{p, filepath.Join(into, filepath.Base(p.path)+".test")})
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return rank(a.path) - rank(b.path) })
	converter, err := output(ctx, "go", "tool", "-n", "test2json")
	if err != nil {
		return err
	}
	o := parts[0]
	var group sync.WaitGroup
	queue := make(chan job)
	for range o.parallel {
		group.Go(func() {
			for j := range queue {
				if err := runBinary(ctx, o, j, converter, dir, sum); err != nil && ctx.Err() == nil {
					sum.broken(j.path, err)
				}
			}
		})
	}
	for _, j := range jobs {
		queue <- j
	}
	close(queue)
	group.Wait()
	return ctx.Err()
}

// withTests returns those of the packages that have tests, in their order.
func withTests(ctx context.Context, packages []string) ([]tested, error) {
	out, err := output(ctx, "go", append([]string{"list", "-f",
		"{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}{{end}}"}, packages...)...)
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for line := range strings.Lines(out) {
		if path, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			dirs[path] = dir
		}
	}
	var all []tested
	for _, path := range packages {
		if dir, ok := dirs[path]; ok {
			all = append(all, tested{path, dir})
		}
	}
	return all, nil
}

func rootFolder(ctx context.Context) (string, error) {
	return output(ctx, "go", "list", "-m", "-f", "{{.Dir}}")
}

// link builds the test binaries that are not there, or not as they would be built now.
func link(ctx context.Context, o options, packages []tested, into string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	// Half of the time of linking goes into what debuggers read, hence -s -w.
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", into + string(filepath.Separator)}
	if o.race {
		args = append(args, "-race")
	}
	for _, p := range packages {
		args = append(args, p.path)
	}
	cmd := grouped(exec.CommandContext(ctx, "go", args...))
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("the tests cannot be built: %w", err))
	}
	return nil
}

// runBinary runs the tests of a package, in its folder.
func runBinary(ctx context.Context, o options, p job, converter, dir string, sum *summary) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"-t", "-p", p.path, self, p.binary, "-test.v=test2json", "-test.paniconexit0", "-test.timeout=90m"}
	if !o.all {
		args = append(args, "-test.short")
	}
	if o.run != "" {
		args = append(args, "-test.run="+o.run)
	}
	cmd := grouped(exec.CommandContext(ctx, converter, args...))
	cmd.Dir = p.dir
	cmd.Env = append(environment(), "PWD="+p.dir, pgtest.ClusterVariable+"="+dir, usageVariable+"="+sum.usage,
		temporaryVariable+"="+filepath.Join(dir, "tmp"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	sum.read(out)
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil // a test has failed, which the summary has
	}
	return err
}

// environment is that of the commands of a run. Garbage is collected seldom: compilers, linkers and tests are short, and
// to collect it takes longer than to keep it takes memory. Without the paths of folders what was compiled in one clone
// is found again in another.
func environment() []string {
	env := os.Environ()
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=400")
	}
	if flags := strings.Fields(os.Getenv("GOFLAGS")); !slices.Contains(flags, "-trimpath") {
		env = append(env, "GOFLAGS="+strings.Join(append(flags, "-trimpath"), " "))
	}
	return env
}

// grouped puts a command into a group of its own: it ends as a whole when we are told to.
func grouped(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// output runs a command and returns what it prints, without the blanks around it.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stderr = environment(), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
