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

// layoutTable returns the table of docs/development/layout.md: for each package the packages that it may import; "*" is
// any.
func layoutTable(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/development/layout.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{}
	var packagesAbove []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.Contains(cells[0], "`") {
			continue
		}
		var allowedImports []string
		switch imports := strings.TrimSpace(cells[2]); imports {
		case "none":
		case "any", "any of the above", "what it checks":
			allowedImports = []string{"*"}
		case "the above":
			allowedImports = slices.Clone(packagesAbove)
		default:
			for _, name := range strings.Split(imports, ",") {
				allowedImports = append(allowedImports, strings.TrimSpace(name))
			}
		}
		for _, name := range strings.Split(cells[0], ",") {
			name = strings.Trim(strings.TrimSpace(name), "`")
			table[name] = allowedImports
			packagesAbove = append(packagesAbove, name)
		}
	}
	return table
}

// The import graph matches the table of docs/development/layout.md, so that newcomers can rely on it.
func TestImportsFollowTheLayout(t *testing.T) {
	table := layoutTable(t)
	seenPackages := map[string]bool{}
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
		allowedImports, ok := table[pkg]
		if !ok {
			t.Errorf("package %s is not in docs/development/layout.md", pkg)
			return nil
		}
		seenPackages[pkg] = true
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if strings.HasPrefix(name, "github.com/pganalyze/") && pkg != "internal/sql/sqltext" && pkg != "rewrite" {
				t.Errorf("%s imports the SQL parser", file)
			}
			importedPackage, ok := strings.CutPrefix(name, modulePath)
			if !ok {
				continue
			}
			if importedPackage == "internal/dev/pgtest" && !strings.HasPrefix(pkg, "test/") {
				t.Errorf("%s imports pgtest outside a test", file)
			}
			if strings.HasPrefix(importedPackage, "test/") && !strings.HasPrefix(pkg, "test/") {
				t.Errorf("%s imports %s, which is for tests", file, importedPackage)
			}
			if slices.Contains(allowedImports, "*") || slices.Contains(allowedImports, importedPackage) {
				continue
			}
			t.Errorf("%s imports %s, which docs/development/layout.md does not allow", file, importedPackage)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range table {
		if !seenPackages[name] {
			t.Errorf("docs/development/layout.md lists %s, which has no code", name)
		}
	}
}

// There are few folders at the top level, and docs/development/layout.md describes each of them.
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
