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

// binaryFolder is the folder for test binaries, relative to the root of the repository. The binaries stay there and
// are linked again only if they are outdated: linking takes a fifth of the CPU time of a run.
const binaryFolder = "bin/test"

// testedPackage is a package with tests.
type testedPackage struct{ path, dir string }

// packageJob is a package whose tests are to be run, and its test binary.
type packageJob struct {
	testedPackage
	binary string
}

// runTests builds the test binaries and runs several of them at a time, those that take longest first. It adds the
// results to the summary.
func runTests(ctx context.Context, parts []runOptions, dir string, sum *summary) error {
	root, err := rootFolder(ctx)
	if err != nil {
		return err
	}
	var jobs []packageJob
	for _, o := range parts {
		packages, err := withTests(ctx, o.packages)
		if err != nil {
			return err
		}
		if len(packages) == 0 {
			continue
		}
		into := filepath.Join(root, binaryFolder)
		if o.race {
			into += "-race"
		}
		if err := linkBinaries(ctx, o, packages, into); err != nil {
			sum.unsuccessful = true
			return err
		}
		for _, p := range packages {
			jobs = append(jobs, packageJob{p, filepath.Join(into, filepath.Base(p.path)+".test")})
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	slices.SortStableFunc(jobs, func(a, b packageJob) int { return startOrder(a.path) - startOrder(b.path) })
	converter, err := commandOutput(ctx, "go", "tool", "-n", "test2json")
	if err != nil {
		return err
	}
	o := parts[0]
	var group sync.WaitGroup
	queue := make(chan packageJob)
	for range o.parallel {
		group.Go(func() {
			for j := range queue {
				if err := runBinary(ctx, o, j, converter, dir, sum); err != nil && ctx.Err() == nil {
					sum.addBroken(j.path, err)
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

// withTests returns those of the packages that have tests, in the same order.
func withTests(ctx context.Context, packages []string) ([]testedPackage, error) {
	out, err := commandOutput(ctx, "go", append([]string{"list", "-f",
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
	var all []testedPackage
	for _, path := range packages {
		if dir, ok := dirs[path]; ok {
			all = append(all, testedPackage{path, dir})
		}
	}
	return all, nil
}

func rootFolder(ctx context.Context) (string, error) {
	return commandOutput(ctx, "go", "list", "-m", "-f", "{{.Dir}}")
}

// linkBinaries builds the test binaries that are missing or outdated.
func linkBinaries(ctx context.Context, o runOptions, packages []testedPackage, into string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	// Without debug information (-s -w), linking takes half the time.
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", into + string(filepath.Separator)}
	if o.race {
		// With -race, the compiler also adds checks of unsafe pointers (checkptr). They are left out of other modules'
		// packages, where they take an eighth of the CPU time, mostly in encoding/json.
		args = append(args, "-race", "-gcflags=all=-dwarf=false -d=checkptr=0", "-gcflags="+modulePath+"/...=-dwarf=false")
	}
	for _, p := range packages {
		args = append(args, p.path)
	}
	cmd := inProcessGroup(exec.CommandContext(ctx, "go", args...))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("the tests cannot be built: %w", err))
	}
	return nil
}

// runBinary runs the tests of a package in the folder of the package.
func runBinary(ctx context.Context, o runOptions, p packageJob, converter, dir string, sum *summary) error {
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
	cmd := inProcessGroup(exec.CommandContext(ctx, converter, args...))
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PWD="+p.dir, pgtest.ClusterVariable+"="+dir, usageVariable+"="+sum.usage,
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
		return nil // a test has failed; the summary reports it
	}
	return err
}

// inProcessGroup starts a command in its own process group, so that a signal can end all of its processes.
func inProcessGroup(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// commandOutput runs a command, and returns its output without white space at both ends.
func commandOutput(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
