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

// suite is a package's tests, or some of them: regular expressions as go test takes them.
type suite struct{ pkg, run, skip string }

// group is what of the harness is about some files.
type group struct {
	files []string // globs, from the root of the repository
	pkgs  []tests
}

// tests are those of one package; all of them where none is named.
type tests struct {
	pkg   string
	names []string
}

func (g group) about(file string) bool {
	return slices.ContainsFunc(g.files, func(glob string) bool {
		ok, _ := path.Match(glob, file)
		return ok
	})
}

func (t tests) has(name string) bool { return len(t.names) == 0 || slices.Contains(t.names, name) }

func (t tests) suite() suite {
	if len(t.names) == 0 {
		return suite{pkg: t.pkg, run: "."}
	}
	return suite{pkg: t.pkg, run: "^(" + strings.Join(t.names, "|") + ")$"}
}

// harness reads harness.txt, whose head says how it is written.
func harness(root string) (groups []group, err error) {
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
			groups = append(groups, group{files: strings.Fields(line)})
		case depth == 1 && last >= 0:
			groups[last].pkgs = append(groups[last].pkgs, tests{pkg: line})
		case depth == 2 && last >= 0 && len(groups[last].pkgs) > 0:
			p := &groups[last].pkgs[len(groups[last].pkgs)-1]
			p.names = append(p.names, line)
		default:
			return nil, fmt.Errorf("harness.txt: %q stands under nothing", line)
		}
	}
	return groups, lines.Err()
}

// suites of a mutant, to be run one after the other until one fails: first the test that saw it last, which is what
// makes trying them all a matter of an hour. What is made by machine meets its own package's tests before the harness:
// they take seconds where the harness takes minutes; quick leaves the harness out for these.
func suites(m Mutant, groups []group, seen map[string]Seen, quick bool) (list []suite) {
	if m.Machine {
		list = append(list, suite{pkg: "./" + path.Dir(m.File), run: "^Test",
			skip: "TestLongStatements|TestHostileSizes|ConcurrentWriters|TestTriples|FromEachOther"})
		if quick {
			return list
		}
	}
	if by, ok := seen[m.Name]; ok && by.belongs(m, groups) {
		list = append(list, tests{by.Pkg, []string{by.Test}}.suite())
	}
	for _, g := range groups {
		if g.about(m.File) {
			for _, p := range g.pkgs {
				list = append(list, p.suite())
			}
		}
	}
	return list
}

// Seen is the test that saw a mutant.
type Seen struct{ Pkg, Test string }

// belongs says whether the test is one of the harness's about the mutant's file.
func (s Seen) belongs(m Mutant, groups []group) bool {
	return s.Test != "" && slices.ContainsFunc(groups, func(g group) bool {
		return g.about(m.File) && slices.ContainsFunc(g.pkgs, func(p tests) bool { return p.pkg == s.Pkg && p.has(s.Test) })
	})
}

// readSeen reads seen.txt: a mutant made by hand, the package and the test that saw it last, a line each.
func readSeen(root string) (map[string]Seen, error) {
	text, err := os.ReadFile(filepath.Join(root, "test/mutants/seen.txt"))
	if err != nil {
		return nil, err
	}
	seen := map[string]Seen{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) != 3 {
			return nil, fmt.Errorf("seen.txt: %q is not a mutant, a package and a test", strings.TrimSpace(line))
		}
		seen[fields[0]] = Seen{fields[1], fields[2]}
	}
	return seen, nil
}

// writeSeen writes what readSeen reads, in order.
func writeSeen(root string, seen map[string]Seen) error {
	var b strings.Builder
	b.WriteString("# Which test saw a mutant last; make mutants writes it, and runs that test first.\n")
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		fmt.Fprintf(&b, "%s %s %s\n", name, seen[name].Pkg, seen[name].Test)
	}
	return os.WriteFile(filepath.Join(root, "test/mutants/seen.txt"), []byte(b.String()), 0o644)
}
