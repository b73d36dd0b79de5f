package policytest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/tier"
)

// The example of the documentation runs, passes, and covers its policy.
func TestDocument(t *testing.T) {
	tier.All(t)
	text, err := os.ReadFile("../../../docs/howto/policy-test.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "\n## An example\n")
	example, _, _ = strings.Cut(example, "\n## The file\n")
	dir := t.TempDir()
	for i, name := range []string{"schema.sql", "policy.yaml", FileName} {
		codeBlocks := strings.Split(example, "```")
		if len(codeBlocks) != 7 {
			t.Fatalf("the example has %d parts", len(codeBlocks))
		}
		_, content, _ := strings.Cut(codeBlocks[2*i+1], "\n")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := NewServerOn(t.Context(), dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	r, err := Run(t.Context(), s, filepath.Join(dir, FileName), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.HasPassed() || len(r.Results) != 3 {
		t.Errorf("%+v", r)
	}
	for _, c := range r.Coverage {
		if !c.IsComplete() {
			t.Errorf("%s: %s of %s is not covered", c.Place, c.Block, c.Table)
		}
	}
}
