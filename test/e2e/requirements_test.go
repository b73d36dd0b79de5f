package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// seedLines is the number of lines of each text that docs/development/requirements.md covers.
var seedLines = map[string]int{"seeds/000": 53, "seeds/001": 428, "seeds/002": 451, "seeds/003": 214, "seeds/004": 157}

var (
	seedHeading  = regexp.MustCompile(`^## (seeds/\d+): \w+$`)
	seedRow      = regexp.MustCompile(`^\| (\d+)(?:-(\d+))? \| (.+?) \| (.*)\|$`)
	seedTestName = regexp.MustCompile("`([a-z0-9/]+)\\.(Test\\w+)`")
	seedCitation = regexp.MustCompile(`(seeds/00\d):((?:\d+(?:-\d+)?(?:, :?)?)+)`)
	seedRange    = regexp.MustCompile(`(\d+)(?:-(\d+))?`)
)

type seedSpan struct{ from, to int }

func spanOf(t testing.TB, from, to string) seedSpan {
	t.Helper()
	if to == "" {
		to = from
	}
	a, err := strconv.Atoi(from)
	if err != nil {
		t.Fatal(err)
	}
	b, err := strconv.Atoi(to)
	if err != nil {
		t.Fatal(err)
	}
	return seedSpan{a, b}
}

// docs/development/requirements.md covers every line of these texts. Each line with a rule names tests that exist and
// cite that line.
func TestRequirementsNameTests(t *testing.T) {
	citedLines := citations(t)
	page, err := os.ReadFile("../../docs/development/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	seed, nextLine, seenSeeds := "", 0, map[string]bool{}
	endSection := func() {
		if seed != "" && nextLine != seedLines[seed]+1 {
			t.Errorf("%s: ends before line %d of %d", seed, nextLine, seedLines[seed])
		}
	}
	for i, line := range strings.Split(string(page), "\n") {
		for _, m := range seedTestName.FindAllStringSubmatch(line, -1) {
			if _, ok := citedLines[m[1]+"."+m[2]]; !ok {
				t.Errorf("line %d: there is no test %s of package %s", i+1, m[2], m[1])
			}
		}
		if m := seedHeading.FindStringSubmatch(line); m != nil {
			endSection()
			seed, nextLine, seenSeeds[m[1]] = m[1], 1, true
		}
		m := seedRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		row, tests := spanOf(t, m[1], m[2]), seedTestName.FindAllStringSubmatch(m[4], -1)
		if row.from != nextLine || row.to < row.from {
			t.Errorf("line %d: %s begins at %d, want %d", i+1, seed, row.from, nextLine)
		}
		nextLine = row.to + 1
		if (m[3] == "-") != (len(tests) == 0) {
			t.Errorf("line %d: %s:%d has a rule without a test, or a test without a rule", i+1, seed, row.from)
		}
		for _, test := range tests {
			name, ok := test[1]+"."+test[2], false
			for _, c := range citedLines[name][seed] {
				ok = ok || c.from <= row.to && row.from <= c.to
			}
			if !ok {
				t.Errorf("line %d: %s does not cite %s:%d-%d", i+1, name, seed, row.from, row.to)
			}
		}
	}
	endSection()
	if len(seenSeeds) != len(seedLines) {
		t.Errorf("texts %v", seenSeeds)
	}
}

// citations returns the lines that the comment of each test cites, by package and test. The cited lines must exist.
func citations(t *testing.T) map[string]map[string][]seedSpan {
	out := map[string]map[string][]seedSpan{}
	readCitations := func(text, location string) map[string][]seedSpan {
		text = strings.ReplaceAll(text, "\n", " ") // a citation may continue in the next line
		spans := map[string][]seedSpan{}
		for _, m := range seedCitation.FindAllStringSubmatch(text, -1) {
			for _, r := range seedRange.FindAllStringSubmatch(m[2], -1) {
				s := spanOf(t, r[1], r[2])
				if s.from < 1 || s.to < s.from || s.to > seedLines[m[1]] {
					t.Errorf("%s cites %s:%d-%d, of %d lines", location, m[1], s.from, s.to, seedLines[m[1]])
				}
				spans[m[1]] = append(spans[m[1]], s)
			}
		}
		return spans
	}
	err := filepath.WalkDir("../..", func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, c := range f.Comments {
			readCitations(c.Text(), file)
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				out[filepath.Base(filepath.Dir(file))+"."+fn.Name.Name] = readCitations(fn.Doc.Text(), file)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
