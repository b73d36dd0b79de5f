package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// explanations returns the pages of docs/explanation and docs/decisions, by path from the root.
func explanations(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, folder := range []string{"docs/explanation", "docs/decisions"} {
		err := filepath.WalkDir("../../"+folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".md") {
				return err
			}
			text, err := os.ReadFile(path)
			pages[strings.TrimPrefix(path, "../../")] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

// No line of prose in an explanation is longer than 160 columns.
func TestExplanationsLinesAreShort(t *testing.T) {
	code := regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
	for page, text := range explanations(t) {
		for i, line := range strings.Split(code.ReplaceAllString(text, ""), "\n") {
			if len([]rune(line)) > 160 && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d has %d columns", page, i+1, len([]rune(line)))
			}
		}
	}
}

// The index of decisions lists each page with its number, its title and the decisions that changed it. No page has more
// than 470 words.
func TestDecisionsAreListed(t *testing.T) {
	title := regexp.MustCompile(`^# (\d+)\. (.+)\n`)
	changeNote := regexp.MustCompile(`\n\*(?:Superseded|Changed|Extended) by (?s:.*?)\*\n`)
	citation := regexp.MustCompile(`\[\d+\]\(\d{4}[^)]*\.md\)`)
	pages := explanations(t)
	index := pages["docs/decisions/README.md"]
	for page, text := range pages {
		name := filepath.Base(page)
		if filepath.Dir(page) != "docs/decisions" || name == "README.md" {
			continue
		}
		m := title.FindStringSubmatch(text)
		if m == nil || !strings.HasPrefix(name, fmt.Sprintf("%04s", m[1])) {
			t.Errorf("%s does not begin with its number and title", page)
			continue
		}
		row := fmt.Sprintf("| %s | [%s](%s) | ", m[1], m[2], name)
		rowIndex := strings.Index(index, row)
		if rowIndex < 0 {
			t.Errorf("docs/decisions/README.md does not have %q", row)
			continue
		}
		status, _, _ := strings.Cut(index[rowIndex+len(row):], "\n")
		for _, changingDecision := range citation.FindAllString(changeNote.FindString(text), -1) {
			if !strings.Contains(status, changingDecision) {
				t.Errorf("docs/decisions/README.md does not say that %s is changed by %s", name, changingDecision)
			}
		}
		if n := len(strings.Fields(text)); n > 470 {
			t.Errorf("%s has %d words", page, n)
		}
	}
	if rows := strings.Count(index, "\n| ") - 1; rows != strings.Count(strings.Join(pageNames(pages), "\n"), "docs/decisions/0") {
		t.Errorf("docs/decisions/README.md lists %d decisions", rows)
	}
}

func pageNames(pages map[string]string) (out []string) {
	for name := range pages {
		out = append(out, name)
	}
	return out
}

// The pages that the program names exist, with the headings that it quotes.
func TestProgramNamesExplanations(t *testing.T) {
	pages := explanations(t)
	citation := regexp.MustCompile(`(docs/(?:explanation|decisions)/[\w/-]+\.md)(?:, \\"([^"\\]+)\\")?`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range citation.FindAllStringSubmatch(string(text), -1) {
			switch page, ok := pages[m[1]]; {
			case !ok:
				t.Errorf("%s names %s, which is not there", path, m[1])
			case m[2] != "" && !regexp.MustCompile(`(?m)^#+ `+regexp.QuoteMeta(m[2])+`$`).MatchString(page):
				t.Errorf("%s names the heading %q of %s, which is not there", path, m[2], m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
