package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oldWords are the words of a former vocabulary, with their replacements: see docs/glossary.md.
var oldWords = map[string]string{
	"wall": "row security, or rewriting", "walls": "row security, or rewriting", "door": "path", "doors": "path",
	"vetted": "leak-safe", "vetter": "leak check", "vet": "leak check", "careful": "hardened", "careless": "hardened",
	"cautious": "hardened", "loud": "runs user code", "horizon": "materialized", "keeper": "the thing's name",
	"keepers": "the thing's name", "mooring": "anchor", "adrift": "failed", "scribe": "line writer",
	"askers": "control pool", "desk": "service", "hourglass": "progress", "knock": "probe", "vouch": "verify",
	"spoken": "audit attributes",
}

// otherMeanings are names that use such a word in its ordinary meaning, such as the former value of a setting.
var otherMeanings = []string{"doors", "desk", "atDesk", "TestDesk", "deskPolicy", "vet", "toVet", "spoken"}

// TestNamesArePlain checks that no declared name contains a word of the former vocabulary.
func TestNamesArePlain(t *testing.T) {
	namePart := regexp.MustCompile(`[A-Z]+(?:[a-z]+|$)|[a-z]+|[A-Z]+`)
	for _, file := range goFiles(t) {
		fileSet := token.NewFileSet()
		syntaxTree, err := parser.ParseFile(fileSet, "../../"+file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		checkNames := func(names ...*ast.Ident) {
			for _, id := range names {
				for _, word := range namePart.FindAllString(id.Name, -1) {
					if plainWord := oldWords[strings.ToLower(word)]; plainWord != "" && !slices.Contains(otherMeanings, id.Name) {
						t.Errorf("%s:%d: %s: say %q instead of %q", file, fileSet.Position(id.Pos()).Line, id.Name, plainWord, word)
					}
				}
			}
		}
		ast.Inspect(syntaxTree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				checkNames(n.Name)
			case *ast.TypeSpec:
				checkNames(n.Name)
			case *ast.Field:
				checkNames(n.Names...)
			case *ast.ValueSpec:
				checkNames(n.Names...)
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
						checkNames(id)
					}
				}
			}
			return true
		})
	}
}

// oldSQLWords are words of the former vocabulary in names of database objects and in hints.
var oldSQLWords = map[string]string{
	"gate": "signed", "door": "visible", "vetted": "signed", "kept": "materialized", "care": "hardened", "unmoved": "current",
	"scan": "use_hash", "seek": "use_index", "few": "estimate_rows", "w": "filtered", "wkey": "filtered_key",
}

// TestSQLNamesArePlain checks the names that pgconsent creates in the database. The name of an object for a policy ends
// with a name of the owner's, so only its beginning is checked.
func TestSQLNamesArePlain(t *testing.T) {
	ownObject := regexp.MustCompile(`\bpgconsent\w*\."?(\w+)|/\*pgconsent:(\w+)`)
	schema := regexp.MustCompile(`pgconsent_([a-z]+)`)
	names := 0
	for pattern, isWholeName := range map[string]bool{
		"migrations/sql/*.sql": true, "rls/*.go": true, "rewrite/*.go": true, "internal/*/*.go": true, "internal/*/*/*.go": true,
		"test/written/testdata/*.txt": false, "rewrite/testdata/*/*.txt": false,
	} {
		files, err := filepath.Glob("../../" + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			checkWords := func(name string, words []string) {
				names++
				for _, word := range words {
					if plainWord := oldSQLWords[strings.ToLower(word)]; plainWord != "" {
						t.Errorf("%s: %s: say %q instead of %q", file, name, plainWord, word)
					}
				}
			}
			for _, m := range ownObject.FindAllStringSubmatch(string(text), -1) {
				words := strings.Split(m[1]+m[2], "_")
				if !isWholeName {
					words = words[:1]
				}
				checkWords(m[0], words)
			}
			for _, m := range schema.FindAllStringSubmatch(string(text), -1) {
				checkWords(m[0], m[1:])
			}
		}
	}
	if names < 10_000 {
		t.Errorf("%d names, there were more", names)
	}
}
