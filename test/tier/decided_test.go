package tier

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forbiddenCalls are the functions that would make a test depend on time or chance, by package, with what to call
// instead.
var forbiddenCalls = map[string]map[string]string{
	"math/rand/v2":       unseededCalls,
	"pgregory.net/rapid": {"Check": "property.Check", "MakeCheck": "property.Check"},
	"testing":            {"Short": "tier.Quick"},
}

var unseededCalls = func() map[string]string {
	instead := map[string]string{}
	for name := range strings.FieldsSeq(
		"N Int IntN Int32 Int32N Int64 Int64N Uint UintN Uint32 Uint32N Uint64 Uint64N Float32 Float64 NormFloat64 ExpFloat64 Perm Shuffle") {
		instead[name] = "a rand.New of tier.Seed"
	}
	return instead
}()

// No test may draw from a source without a seed, call rapid directly, or find out by itself which kind of run it is in.
func TestTestsAreDeterministic(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && file != "../..") {
			return fs.SkipDir
		}
		slash := filepath.ToSlash(strings.TrimPrefix(file, "../../"))
		isOwn := strings.HasPrefix(slash, "test/tier/") || strings.HasPrefix(slash, "test/property/")
		if d.IsDir() || isOwn || !strings.HasSuffix(slash, "_test.go") && !(strings.HasPrefix(slash, "test/") && strings.HasSuffix(slash, ".go")) {
			return nil
		}
		files++
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		forbidden := map[string]map[string]string{}
		for _, spec := range parsed.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if path == "math/rand" {
				t.Errorf("%s imports math/rand, not math/rand/v2", slash)
			}
			name := path[strings.LastIndexByte(path, '/')+1:]
			if path == "math/rand/v2" {
				name = "rand"
			}
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if calls := forbiddenCalls[path]; calls != nil {
				forbidden[name] = calls
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if pkg, name, ok := selectedName(call); ok {
				if instead := forbidden[pkg][name]; instead != "" {
					t.Errorf("%s: %s.%s: call %s", set.Position(n.Pos()), pkg, name, instead)
				}
				if pkg == "rand" && (name == "NewPCG" || name == "NewChaCha8") && readsClock(call) {
					t.Errorf("%s: the clock is the seed", set.Position(n.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 300 {
		t.Errorf("%d files were read", files)
	}
}

func selectedName(call *ast.CallExpr) (pkg, name string, ok bool) {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return "", "", false
	}
	return x.Name, s.Sel.Name, true
}

func readsClock(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Now", "UnixNano", "Unix", "UnixMilli"}, s.Sel.Name) {
			found = true
		}
		return true
	})
	return found
}
