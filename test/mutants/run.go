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

// Outcome of a mutant.
type Outcome int

// The outcomes.
const (
	Survived Outcome = iota
	Caught
	Broken // it does not compile: no mutant at all
)

func (o Outcome) String() string { return [...]string{"survived", "caught", "does not compile"}[o] }

// patience bounds a suite: a mutant that makes a statement run for ever is caught too, and a busy machine catches none.
const patience = 45 * time.Minute

// drawn are the packages whose properties rapid draws: ten times as often as it does by itself, so that what is seen
// does not go by luck, and without a file of what failed.
var drawn = []string{"./internal/enforce/predicate", "./internal/registry/consent"}

// Try builds the suites with the mutant and runs them until one fails; by is the test that did.
func Try(ctx context.Context, root string, m Mutant, list []suite) (o Outcome, by Seen, how string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return Broken, by, "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(root, dir)
	if err != nil {
		return Broken, by, "", err
	}
	for i, s := range list {
		binary := filepath.Join(dir, fmt.Sprintf("suite%d", i))
		build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, s.pkg)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return Broken, by, string(out), ctx.Err()
		}
		run := exec.CommandContext(ctx, binary, "-test.run", s.run, "-test.skip", s.skip, "-test.failfast", "-test.timeout", patience.String())
		if slices.Contains(drawn, s.pkg) {
			run.Args = append(run.Args, "-rapid.nofailfile", "-rapid.checks=1000")
		}
		run.Dir = filepath.Join(root, s.pkg)
		run.Env = append(os.Environ(), pgtest.AlteredVariable+"=1")
		out, err := run.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return Caught, Seen{s.pkg, failed(string(out))}, s.pkg + ": " + first(string(out)), ctx.Err()
		}
		if err != nil {
			return Broken, by, "", err
		}
	}
	return Survived, by, "", nil
}

// overlay writes the changed file into dir, and what the compiler is told of it; the path is that of the latter.
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

// failed is the test that failed, empty if none got so far.
func failed(out string) string {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ := strings.Cut(rest, " ")
			return name
		}
	}
	return ""
}

// first is the first line that says what was wrong; reports of what was counted do not.
func first(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, ".go:") && !strings.Contains(line, " answered, ") || strings.HasPrefix(line, "panic:") {
			line = strings.TrimSpace(line)
			return line[:min(len(line), 200)]
		}
	}
	return strings.TrimSpace(out[:min(len(out), 200)])
}
