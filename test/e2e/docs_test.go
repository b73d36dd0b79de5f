package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// readPages returns the Markdown files of the repository, by their paths in it.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != "." && (strings.HasPrefix(e.Name(), ".") || name == "bin" || e.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"):
			text, err := fs.ReadFile(root, name)
			pages[name] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 60 {
		t.Fatalf("%d pages, there were more", len(pages))
	}
	return pages
}

var (
	fencedBlock  = regexp.MustCompile("(?ms)^```.*?^```[ \t]*$")
	inlineCode   = regexp.MustCompile("`[^`\n]*`")
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	headingLine  = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	linkText     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// headingAnchors are those that a forge makes of a page's headings.
func headingAnchors(text string) map[string]bool {
	anchors, anchorCounts := map[string]bool{}, map[string]int{}
	for _, m := range headingLine.FindAllStringSubmatch(fencedBlock.ReplaceAllString(text, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(linkText.ReplaceAllString(m[1], "$1")) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				b.WriteRune(r)
			}
		}
		name := b.String()
		if n := anchorCounts[name]; n > 0 {
			anchors[fmt.Sprintf("%s-%d", name, n)] = true
		}
		anchorCounts[name]++
		anchors[name] = true
	}
	return anchors
}

// Every link of a page leads to a file or a heading that is there.
func TestDocsLinksResolve(t *testing.T) {
	pages, links := readPages(t), 0
	for name, text := range pages {
		text = inlineCode.ReplaceAllStringFunc(fencedBlock.ReplaceAllString(text, ""), func(s string) string { return strings.Repeat("x", len(s)) })
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") { // a link to another host
				continue
			}
			links++
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(path.Join("../..", file)); err != nil {
				t.Errorf("%s: there is no %s", name, m[1])
				continue
			}
			if anchor == "" {
				continue
			}
			page, ok := pages[file]
			if !ok || !headingAnchors(page)[anchor] {
				t.Errorf("%s: %s has no heading #%s", name, file, anchor)
			}
		}
	}
	if links < 400 {
		t.Errorf("%d links, there were more", links)
	}
}

// widestLine is the longest line of a page, tables aside.
const widestLine = 200

// wideLineFiles are pages with longer lines. None comes to this list.
var wideLineFiles = map[string]bool{
	"docs/explanation/performance.md": true,
}

// Pages can be read, and compared, without scrolling sideways.
func TestDocsLinesAreShort(t *testing.T) {
	for name, text := range readPages(t) {
		n, wideLines := 0, 0
		for line := range strings.Lines(text) {
			n++
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) <= widestLine || strings.HasPrefix(strings.TrimSpace(line), "|") {
				continue
			}
			if wideLines++; !wideLineFiles[name] {
				t.Errorf("%s:%d is longer than %d columns", name, n, widestLine)
			}
		}
		if wideLines == 0 && wideLineFiles[name] {
			t.Logf("%s has no line longer than %d columns any more: take it out of wideLineFiles", name, widestLine)
		}
	}
	for name := range wideLineFiles {
		if _, err := os.Stat(path.Join("../..", name)); err != nil {
			t.Errorf("%s is in wideLineFiles and is no page", name)
		}
	}
}

// The files, folders and tests that the pages for developers name are there.
func TestDevelopmentPagesNameWhatExists(t *testing.T) {
	pages := readPages(t)
	tests := declaredTests(t)
	quotedName := regexp.MustCompile("`([^`\n]+)`")
	filePattern := regexp.MustCompile(`^(?:cmd|deploy|docs|examples|internal|migrations|policy|proxy|rewrite|rls|scripts|test)(?:/[\w.*-]+)+$`)
	functionPattern := regexp.MustCompile(`^Test[A-Z]\w+$`)
	files := 0
	for name, text := range pages {
		if path.Dir(name) != "docs/development" && name != "CONTRIBUTING.md" && name != "SECURITY.md" ||
			name == "docs/development/requirements.md" {
			continue
		}
		for _, m := range quotedName.FindAllStringSubmatch(text, -1) {
			switch {
			case filePattern.MatchString(m[1]):
				files++
				if matches, err := fs.Glob(os.DirFS("../.."), m[1]); err != nil || len(matches) == 0 {
					t.Errorf("%s names %s, which is not there", name, m[1])
				}
			case functionPattern.MatchString(m[1]) && !tests[m[1]]:
				t.Errorf("%s names %s, which is no test", name, m[1])
			}
		}
	}
	if files < 80 {
		t.Errorf("%d files are named, there were more", files)
	}
}

// declaredTests returns the names of all tests.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	testNames := map[string]bool{}
	testDeclaration := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(root, name)
		for _, m := range testDeclaration.FindAllSubmatch(text, -1) {
			testNames[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return testNames
}
