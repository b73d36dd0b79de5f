package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// Outcome is the result of trying a mutant.
type Outcome int

// The possible outcomes.
const (
	Survived Outcome = iota
	Caught
	Broken // the mutant does not compile
)

func (o Outcome) String() string { return [...]string{"survived", "caught", "does not compile"}[o] }

// suiteTimeout limits the time of a suite, since a mutant may cause an endless loop. Without a mutant, no suite takes
// that long, even on a busy machine.
const suiteTimeout = 45 * time.Minute

// rapidPackages are the packages whose tests use rapid. For mutants, rapid tries ten times as many cases as usual, so
// that luck does not decide whether a mutant is caught. It writes no files for failures.
var rapidPackages = []string{"./internal/enforce/predicate", "./internal/registry/consent"}

// TryMutant builds the suites with the mutant, and runs them until a test fails. failed is that test, and detail is the
// first line of its message.
func TryMutant(ctx context.Context, root string, m Mutant, list []suite) (o Outcome, failed TestName, detail string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return Broken, failed, "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return Broken, failed, "", err
	}
	for i, s := range list {
		binary := filepath.Join(dir, fmt.Sprintf("suite%d", i))
		build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, s.pkg)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return Broken, failed, string(out), ctx.Err()
		}
		run := exec.CommandContext(ctx, binary, "-test.run", s.run, "-test.skip", s.skip, "-test.failfast", "-test.timeout", suiteTimeout.String())
		if slices.Contains(rapidPackages, s.pkg) {
			run.Args = append(run.Args, "-rapid.nofailfile", "-rapid.checks=1000")
		}
		run.Dir = filepath.Join(root, s.pkg)
		run.Env = append(os.Environ(), pgtest.AlteredVariable+"=1")
		out, err := run.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return Caught, TestName{s.pkg, failedTest(string(out))}, s.pkg + ": " + firstFailureLine(string(out)), ctx.Err()
		}
		if err != nil {
			return Broken, failed, "", err
		}
	}
	return Survived, failed, "", nil
}

// overlay writes the changed file to dir, and a JSON file for the compiler's flag -overlay, whose path it returns.
func (m Mutant) overlay(root, dir string) (string, error) {
	text, err := m.Apply(root)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(text), 0o644); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.File): changed}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, replace, 0o644)
}

// failedTest returns the name of the test that failed, and "" if the output names none.
func failedTest(out string) string {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ := strings.Cut(rest, " ")
			return name
		}
	}
	return ""
}

// firstFailureLine returns the first line of the output that describes the failure. It ignores statistics.
func firstFailureLine(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, ".go:") && !strings.Contains(line, " answered, ") || strings.HasPrefix(line, "panic:") {
			line = strings.TrimSpace(line)
			return line[:min(len(line), 200)]
		}
	}
	return strings.TrimSpace(out[:min(len(out), 200)])
}
