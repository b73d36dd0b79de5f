package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// securityPages returns docs/explanation/security.md and the pages about families of attacks, by file name.
func securityPages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/explanation/attacks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, f := range append(files, "../../docs/explanation/security.md") {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(f)] = string(text)
	}
	return pages
}

// Each test that the pages about known attacks name exists, and security.md links to every page.
func TestSecurityPageNamesTests(t *testing.T) {
	existingTests := map[string]bool{}
	testDeclaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testDeclaration.FindAllSubmatch(text, -1) {
			existingTests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := securityPages(t)
	namedTests := map[string]bool{}
	for page, text := range pages {
		for _, m := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(text, -1) {
			namedTests[m[1]] = true
			if !existingTests[m[1]] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
		if page != "security.md" && !strings.Contains(pages["security.md"], "(attacks/"+page) {
			t.Errorf("security.md does not link to attacks/%s", page)
		}
	}
	if len(namedTests) < 330 {
		t.Errorf("the pages name %d tests", len(namedTests))
	}
}

// No known attack is removed: each page lists at least as many as before, each with its test.
func TestSecurityPagesListAttacks(t *testing.T) {
	minimums := map[string]int{
		"catalogs-and-messages.md": 15, "columns-and-views.md": 17, "database.md": 13, "hidden-row-errors.md": 29,
		"known-elsewhere.md": 34, "protocol-and-process.md": 20, "signed-path.md": 28, "superuser.md": 10,
		"testing.md": 12, "text-and-names.md": 22, "time-and-snapshots.md": 12, "writes.md": 23,
	}
	testMention := regexp.MustCompile("`(?:Test|Fuzz)\\w+`|Twins")
	pages := securityPages(t)
	for page := range pages {
		if _, hasMinimum := minimums[page]; !hasMinimum && page != "security.md" {
			t.Errorf("attacks/%s: how many attacks it lists at least is not said here", page)
		}
	}
	for page, n := range minimums {
		attackCount := 0
		lines := strings.Split(pages[page], "\n")
		for i, line := range lines {
			header := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|---")
			if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || header {
				continue
			}
			attackCount++
			if !testMention.MatchString(line) {
				t.Errorf("attacks/%s names no test for: %s", page, line)
			}
		}
		if attackCount < n {
			t.Errorf("attacks/%s lists %d attacks, and has listed %d", page, attackCount, n)
		}
	}
}
