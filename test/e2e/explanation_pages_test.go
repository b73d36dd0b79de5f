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

// explanations are the pages of docs/explanation and docs/decisions, by path from the root.
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

// anchors are the fragments by which a forge links to the headings of a page.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#{1,6} (.*)$`).FindAllStringSubmatch(page, -1) {
		heading := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		heading = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`).ReplaceAllString(strings.ToLower(heading), "")
		out[strings.ReplaceAll(heading, " ", "-")] = true
	}
	return out
}

// Each link from the explanations leads to a file, and to a heading of it; no line of prose is longer than 160 columns.
func TestExplanationsLinkToWhatExists(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	code := regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
	for page, text := range explanations(t) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			found, err := os.ReadFile("../../" + target)
			if info, statErr := os.Stat("../../" + target); statErr != nil || err != nil && !info.IsDir() {
				t.Errorf("%s links to %s, which is not there", page, m[1])
				continue
			}
			if m[2] != "" && !anchors(string(found))[m[2]] {
				t.Errorf("%s links to %s#%s, which has no such heading", page, m[1], m[2])
			}
		}
		for i, line := range strings.Split(code.ReplaceAllString(text, ""), "\n") {
			if len([]rune(line)) > 160 && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d has %d columns", page, i+1, len([]rune(line)))
			}
		}
	}
}

// The index of decisions has each page with its number, its title and the decisions that changed it; each page is at most a page.
func TestDecisionsAreListed(t *testing.T) {
	title := regexp.MustCompile(`^# (\d+)\. (.+)\n`)
	changed := regexp.MustCompile(`\n\*(?:Superseded|Changed|Extended) by (?s:.*?)\*\n`)
	cited := regexp.MustCompile(`\[\d+\]\(\d{4}[^)]*\.md\)`)
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
		at := strings.Index(index, row)
		if at < 0 {
			t.Errorf("docs/decisions/README.md does not have %q", row)
			continue
		}
		status, _, _ := strings.Cut(index[at+len(row):], "\n")
		for _, by := range cited.FindAllString(changed.FindString(text), -1) {
			if !strings.Contains(status, by) {
				t.Errorf("docs/decisions/README.md does not say that %s is changed by %s", name, by)
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

// What the program says of these pages is there: the file, and the heading that it quotes.
func TestProgramNamesExplanations(t *testing.T) {
	pages := explanations(t)
	cited := regexp.MustCompile(`(docs/(?:explanation|decisions)/[\w/-]+\.md)(?:, \\"([^"\\]+)\\")?`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range cited.FindAllStringSubmatch(string(text), -1) {
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
