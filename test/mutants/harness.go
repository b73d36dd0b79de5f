package mutants

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// suite selects tests of a package. The fields run and skip are regular expressions, as in the flags of go test.
type suite struct{ pkg, run, skip string }

// fileTests has the tests that must catch the mutants of some files.
type fileTests struct {
	files []string // globs of paths, relative to the root of the repository
	tests []packageTests
}

// packageTests selects tests of one package by their names, or all of its tests if names is nil.
type packageTests struct {
	pkg   string
	names []string
}

func (g fileTests) covers(file string) bool {
	return slices.ContainsFunc(g.files, func(glob string) bool {
		ok, _ := path.Match(glob, file)
		return ok
	})
}

func (t packageTests) hasTest(name string) bool {
	return len(t.names) == 0 || slices.Contains(t.names, name)
}

func (t packageTests) testSuite() suite {
	if len(t.names) == 0 {
		return suite{pkg: t.pkg, run: "."}
	}
	return suite{pkg: t.pkg, run: "^(" + strings.Join(t.names, "|") + ")$"}
}

// readHarness reads harness.txt, which describes its format in its first lines.
func readHarness(root string) (groups []fileTests, err error) {
	file, err := os.Open(filepath.Join(root, "test/mutants/harness.txt"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		depth := len(line) - len(strings.TrimLeft(line, "\t"))
		line = strings.TrimSpace(line)
		switch last := len(groups) - 1; {
		case line == "" || line[0] == '#':
		case depth == 0:
			groups = append(groups, fileTests{files: strings.Fields(line)})
		case depth == 1 && last >= 0:
			groups[last].tests = append(groups[last].tests, packageTests{pkg: line})
		case depth == 2 && last >= 0 && len(groups[last].tests) > 0:
			p := &groups[last].tests[len(groups[last].tests)-1]
			p.names = append(p.names, line)
		default:
			return nil, fmt.Errorf("harness.txt: %q stands under nothing", line)
		}
	}
	return groups, lines.Err()
}

// suitesFor returns the suites for a mutant, which are run one after the other until one fails. The test that caught
// the mutant last time comes first, so that all mutants together take about an hour. For a machine-made mutant, the
// tests of the mutated package come first, because they take only seconds. If quick is set, machine-made mutants get
// these tests only.
func suitesFor(m Mutant, groups []fileTests, lastSeen map[string]TestName, quick bool) (list []suite) {
	if m.Machine {
		list = append(list, suite{pkg: "./" + path.Dir(m.File), run: "^Test",
			skip: "TestLongStatements|TestHostileSizes|ConcurrentWriters|TestTriples|FromEachOther"})
		if quick {
			return list
		}
	}
	if catcher, ok := lastSeen[m.Name]; ok && catcher.isInHarness(m, groups) {
		list = append(list, packageTests{catcher.Pkg, []string{catcher.Test}}.testSuite())
	}
	for _, g := range groups {
		if g.covers(m.File) {
			for _, p := range g.tests {
				list = append(list, p.testSuite())
			}
		}
	}
	return list
}

// TestName is the name of a test and its package.
type TestName struct{ Pkg, Test string }

// isInHarness reports whether harness.txt lists this test for the mutant's file.
func (s TestName) isInHarness(m Mutant, groups []fileTests) bool {
	return s.Test != "" && slices.ContainsFunc(groups, func(g fileTests) bool {
		return g.covers(m.File) && slices.ContainsFunc(g.tests, func(p packageTests) bool { return p.pkg == s.Pkg && p.hasTest(s.Test) })
	})
}

// readLastSeen reads seen.txt, which has one line for each mutant of hand/: the mutant, and the package and name of the
// test that caught it last.
func readLastSeen(root string) (map[string]TestName, error) {
	text, err := os.ReadFile(filepath.Join(root, "test/mutants/seen.txt"))
	if err != nil {
		return nil, err
	}
	lastSeen := map[string]TestName{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) != 3 {
			return nil, fmt.Errorf("seen.txt: %q is not a mutant, a package and a test", strings.TrimSpace(line))
		}
		lastSeen[fields[0]] = TestName{fields[1], fields[2]}
	}
	return lastSeen, nil
}

// writeLastSeen writes seen.txt, sorted by mutant.
func writeLastSeen(root string, lastSeen map[string]TestName) error {
	var b strings.Builder
	b.WriteString("# Which test saw a mutant last; make mutants writes it, and runs that test first.\n")
	for _, name := range slices.Sorted(maps.Keys(lastSeen)) {
		fmt.Fprintf(&b, "%s %s %s\n", name, lastSeen[name].Pkg, lastSeen[name].Test)
	}
	return os.WriteFile(filepath.Join(root, "test/mutants/seen.txt"), []byte(b.String()), 0o644)
}
