package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oldWords are those of a vocabulary that is given up, and what to say: docs/glossary.md.
var oldWords = map[string]string{
	"wall": "row security, or rewriting", "walls": "row security, or rewriting", "door": "path", "doors": "path",
	"vetted": "leak-safe", "vetter": "leak check", "vet": "leak check", "careful": "hardened", "careless": "hardened",
	"cautious": "hardened", "loud": "runs user code", "horizon": "materialized", "keeper": "the thing's name",
	"keepers": "the thing's name", "mooring": "anchor", "adrift": "failed", "scribe": "line writer",
	"askers": "control pool", "desk": "service", "hourglass": "progress", "knock": "probe", "vouch": "verify",
	"spoken": "audit attributes",
}

// otherMeanings are names that say what their words say: the old value of a setting, the desk of an employee, a vet.
var otherMeanings = []string{"doors", "desk", "atDesk", "TestDesk", "deskPolicy", "vet", "toVet", "spoken"}

// TestNamesArePlain: no name that the program or a test declares has a word of the old vocabulary.
func TestNamesArePlain(t *testing.T) {
	part := regexp.MustCompile(`[A-Z]+(?:[a-z]+|$)|[a-z]+|[A-Z]+`)
	for _, file := range goFiles(t) {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, "../../"+file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		declared := func(names ...*ast.Ident) {
			for _, id := range names {
				for _, word := range part.FindAllString(id.Name, -1) {
					if say := oldWords[strings.ToLower(word)]; say != "" && !slices.Contains(otherMeanings, id.Name) {
						t.Errorf("%s:%d: %s: say %q instead of %q", file, set.Position(id.Pos()).Line, id.Name, say, word)
					}
				}
			}
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				declared(n.Name)
			case *ast.TypeSpec:
				declared(n.Name)
			case *ast.Field:
				declared(n.Names...)
			case *ast.ValueSpec:
				declared(n.Names...)
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
						declared(id)
					}
				}
			}
			return true
		})
	}
}
