package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// packageImports has the imports of a package, as go list prints them.
type packageImports struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
	Module                             struct{ Path string }
}

func (p packageImports) hasTests() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// listPackages lists the packages of the module.
func listPackages(ctx context.Context, root string) ([]packageImports, error) {
	const fields = "ImportPath,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles,Module"
	list := exec.CommandContext(ctx, "go", "list", "-json="+fields, "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []packageImports
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p packageImports
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// lastPackages are tried last, in this order, since they take longest. They import nearly all other packages.
var lastPackages = []string{"./test/", "./test/attacks", "./test/e2e", "./cmd/pgconsent"}

func orderOf(pkg string) int {
	n := 0
	for i, l := range lastPackages {
		if pkg == l || l == "./test/" && strings.HasPrefix(pkg, l) {
			n = i + 1
		}
	}
	return n
}

// testingPackages returns the packages whose tests run code of pkg: first pkg itself, and then the packages that import
// it, directly or indirectly, in the order of their distance.
func testingPackages(all []packageImports, pkg string) []string {
	const far = 1 << 20
	distance := map[string]int{}
	pathOf := func(p packageImports) string { return "." + strings.TrimPrefix(p.ImportPath, p.Module.Path) }
	byPath := map[string]string{}
	for _, p := range all {
		byPath[p.ImportPath], distance[pathOf(p)] = pathOf(p), far
	}
	distance[pkg] = 0
	nearest := func(imports ...[]string) int {
		least := far
		for _, path := range slices.Concat(imports...) {
			if to, inModule := byPath[path]; inModule {
				least = min(least, distance[to]+1)
			}
		}
		return least
	}
	for changed := true; changed; {
		changed = false
		for _, p := range all {
			if d := nearest(p.Imports); d < distance[pathOf(p)] {
				distance[pathOf(p)], changed = d, true
			}
		}
	}
	type watcher struct {
		pkg      string
		distance int
	}
	var found []watcher
	for _, p := range all {
		// The tests of this package would run mutants themselves.
		if !p.hasTests() || pathOf(p) == "./test/mutants" {
			continue
		}
		if d := min(distance[pathOf(p)], nearest(p.TestImports, p.XTestImports)); d < far {
			found = append(found, watcher{pathOf(p), d})
		}
	}
	slices.SortStableFunc(found, func(a, b watcher) int {
		rankOf := func(w watcher) int {
			if w.pkg == pkg {
				return -1
			}
			return orderOf(w.pkg)
		}
		if rankOf(a) != rankOf(b) {
			return rankOf(a) - rankOf(b)
		}
		return a.distance - b.distance
	})
	out := make([]string, len(found))
	for i, w := range found {
		out[i] = w.pkg
	}
	return out
}
