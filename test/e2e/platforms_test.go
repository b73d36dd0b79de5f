package e2e

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// platforms are systems and processors that differ in which files are compiled for them.
var platforms = []struct{ system, processor string }{
	{"linux", "amd64"}, {"linux", "ppc64le"}, {"darwin", "arm64"}, {"freebsd", "amd64"},
}

// A function that files for some platforms declare, and files for all use, is declared for each platform. The compiler
// and the tools that rename see only the files of the platform on which they run.
func TestPlatformFilesDeclareTheSameNames(t *testing.T) {
	byFolder := map[string][]string{}
	for _, name := range goFiles(t) {
		if strings.HasSuffix(name, "_test.go") {
			continue // tests for one system have functions of their own
		}
		byFolder[filepath.Dir(name)] = append(byFolder[filepath.Dir(name)], name)
	}
	checkedFolders, missing := 0, map[string]bool{}
	for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
		used, declared := map[string]bool{}, make([]map[string]bool, len(platforms)) // by name
		for _, name := range byFolder[folder] {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			isCommon, isFor := true, make([]bool, len(platforms))
			for i, platform := range platforms {
				context := build.Default
				context.GOOS, context.GOARCH = platform.system, platform.processor
				if isFor[i], err = context.MatchFile(filepath.Join("..", "..", folder), filepath.Base(name)); err != nil {
					t.Fatal(err)
				}
				isCommon = isCommon && isFor[i]
			}
			if isCommon {
				ast.Inspect(file, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						used[id.Name] = true
					}
					return true
				})
				continue
			}
			for i := range platforms {
				if declared[i] == nil {
					declared[i] = map[string]bool{}
				}
				for _, d := range file.Decls {
					if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && isFor[i] {
						declared[i][f.Name.Name] = true
					}
				}
			}
		}
		if declared[0] == nil || len(used) == 0 {
			continue
		}
		checkedFolders++
		for i, platform := range platforms {
			for _, elsewhere := range declared {
				for name := range elsewhere {
					if used[name] && !declared[i][name] {
						missing[fmt.Sprintf("%s: %s is not declared on %s/%s", folder, name, platform.system, platform.processor)] = true
					}
				}
			}
		}
	}
	for _, m := range slices.Sorted(maps.Keys(missing)) {
		t.Error(m)
	}
	if checkedFolders < 5 {
		t.Errorf("%d folders have files for some platforms, there were more", checkedFolders)
	}
}
