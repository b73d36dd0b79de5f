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

// imports of a package, as go list tells them.
type imports struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
	Module                             struct{ Path string }
}

func (p imports) tested() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// listPackages lists the packages of the module.
func listPackages(ctx context.Context, root string) ([]imports, error) {
	const fields = "ImportPath,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles,Module"
	list := exec.CommandContext(ctx, "go", "list", "-json="+fields, "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []imports
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p imports
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// Those that use nearly everything and take longest come last, the longest at the very end.
var late = []string{"./test/", "./test/attacks", "./test/e2e", "./cmd/pgconsent"}

func lateness(pkg string) int {
	n := 0
	for i, l := range late {
		if pkg == l || l == "./test/" && strings.HasPrefix(pkg, l) {
			n = i + 1
		}
	}
	return n
}

// watchers are the packages whose tests run code of pkg, nearest first: its own, and those that import it.
func watchers(all []imports, pkg string) []string {
	const far = 1 << 20
	distance := map[string]int{}
	at := func(p imports) string { return "." + strings.TrimPrefix(p.ImportPath, p.Module.Path) }
	byPath := map[string]string{}
	for _, p := range all {
		byPath[p.ImportPath], distance[at(p)] = at(p), far
	}
	distance[pkg] = 0
	nearest := func(of ...[]string) int {
		least := far
		for _, path := range slices.Concat(of...) {
			if to, ours := byPath[path]; ours {
				least = min(least, distance[to]+1)
			}
		}
		return least
	}
	for changed := true; changed; {
		changed = false
		for _, p := range all {
			if d := nearest(p.Imports); d < distance[at(p)] {
				distance[at(p)], changed = d, true
			}
		}
	}
	type watcher struct {
		pkg      string
		distance int
	}
	var found []watcher
	for _, p := range all {
		// This package's own tests try mutants, and would try others here.
		if !p.tested() || at(p) == "./test/mutants" {
			continue
		}
		if d := min(distance[at(p)], nearest(p.TestImports, p.XTestImports)); d < far {
			found = append(found, watcher{at(p), d})
		}
	}
	slices.SortStableFunc(found, func(a, b watcher) int {
		own := func(w watcher) int {
			if w.pkg == pkg {
				return -1
			}
			return lateness(w.pkg)
		}
		if own(a) != own(b) {
			return own(a) - own(b)
		}
		return a.distance - b.distance
	})
	out := make([]string, len(found))
	for i, w := range found {
		out[i] = w.pkg
	}
	return out
}
