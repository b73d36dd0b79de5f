package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that the page of known attacks names exists.
func TestSecurityPageNamesTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/explanation/security.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(page, -1)
	if len(named) < 50 {
		t.Errorf("the page names %d tests", len(named))
	}
	for _, m := range named {
		if !tests[string(m[1])] {
			t.Errorf("docs/explanation/security.md names %s, which does not exist", m[1])
		}
	}
}
