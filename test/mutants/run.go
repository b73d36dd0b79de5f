package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
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

// suites are run one after the other until one fails.
var suites = []struct{ pkg, run string }{
	{"./test/mutants/suite", "."},
	{"./predicate", "TestFormsAgree"}, // the reference model
}

// patience bounds a suite: a mutant that makes a statement run for ever is caught too.
const patience = 4 * time.Minute

// Try builds the suites with the mutant and runs them.
func Try(ctx context.Context, root string, m Mutant) (Outcome, string, error) {
	text, err := m.Apply(root)
	if err != nil {
		return Broken, "", err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return Broken, "", err
	}
	defer os.RemoveAll(dir)
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(text), 0o644); err != nil {
		return Broken, "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.File): changed}})
	if err != nil {
		return Broken, "", err
	}
	if err := os.WriteFile(overlay, replace, 0o644); err != nil {
		return Broken, "", err
	}
	for i, s := range suites {
		if i > 0 && !strings.HasPrefix(m.File, "predicate/") {
			continue
		}
		binary := filepath.Join(dir, fmt.Sprintf("suite%d", i))
		build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, s.pkg)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return Broken, string(out), ctx.Err()
		}
		run := exec.CommandContext(ctx, binary, "-test.run", s.run, "-test.failfast", "-test.timeout", patience.String())
		run.Dir = filepath.Join(root, s.pkg)
		out, err := run.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return Caught, first(string(out)), ctx.Err()
		}
		if err != nil {
			return Broken, "", err
		}
	}
	return Survived, "", nil
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
