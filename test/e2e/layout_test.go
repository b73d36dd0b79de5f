package e2e

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/pgconsent/pgconsent/"

// rank is the table of docs/development/layout.md: a package may import those of its list only; "*" is any package.
func layoutTable(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/development/layout.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{}
	var above []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.Contains(cells[0], "`") {
			continue
		}
		var allowed []string
		switch imports := strings.TrimSpace(cells[2]); imports {
		case "none":
		case "any", "any of the above", "what it checks":
			allowed = []string{"*"}
		case "the above":
			allowed = slices.Clone(above)
		default:
			for _, name := range strings.Split(imports, ",") {
				allowed = append(allowed, strings.TrimSpace(name))
			}
		}
		for _, name := range strings.Split(cells[0], ",") {
			name = strings.Trim(strings.TrimSpace(name), "`")
			table[name] = allowed
			above = append(above, name)
		}
	}
	return table
}

// The import graph is the one of docs/development/layout.md, so that a newcomer can trust it.
func TestImportsFollowTheLayout(t *testing.T) {
	table := layoutTable(t)
	seen := map[string]bool{}
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		pkg := filepath.ToSlash(strings.TrimPrefix(path.Dir(file), "../../"))
		allowed, ok := table[pkg]
		if !ok {
			t.Errorf("package %s is not in docs/development/layout.md", pkg)
			return nil
		}
		seen[pkg] = true
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if strings.HasPrefix(name, "github.com/pganalyze/") && pkg != "internal/sql/sqltext" && pkg != "rewrite" {
				t.Errorf("%s imports the SQL parser", file)
			}
			ownText, ok := strings.CutPrefix(name, modulePath)
			if !ok {
				continue
			}
			if ownText == "internal/dev/pgtest" && !strings.HasPrefix(pkg, "test/") {
				t.Errorf("%s imports pgtest outside a test", file)
			}
			if strings.HasPrefix(ownText, "test/") && !strings.HasPrefix(pkg, "test/") {
				t.Errorf("%s imports %s, which is for tests", file, ownText)
			}
			if slices.Contains(allowed, "*") || slices.Contains(allowed, ownText) {
				continue
			}
			t.Errorf("%s imports %s, which docs/development/layout.md does not allow", file, ownText)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range table {
		if !seen[name] {
			t.Errorf("docs/development/layout.md lists %s, which has no code", name)
		}
	}
}

// The folders at the top are few, and docs/development/layout.md says what is in each.
func TestFoldersAtTheTop(t *testing.T) {
	page, err := os.ReadFile("../../docs/development/layout.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	folders := 0
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || e.Name() == "bin" {
			continue
		}
		folders++
		if !strings.Contains(string(page), "`"+e.Name()+"`") && !strings.Contains(string(page), "`"+e.Name()+"/") {
			t.Errorf("docs/development/layout.md does not say what is in %s", e.Name())
		}
	}
	if folders > 12 { // and .ci
		t.Errorf("%d folders at the top", folders)
	}
}
