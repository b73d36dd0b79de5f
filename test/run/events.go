package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
)

// modulePath is the path of this repository's Go module.
const modulePath = "github.com/pgconsent/pgconsent"

// testEvent is one event in the output of test2json (see go doc test2json).
type testEvent struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64 // in seconds
}

// testName identifies a test by its package and its name. For the package itself, the name is "".
type testName struct{ pkg, test string }

// summary collects the results of all test binaries, and prints failures at once. Several goroutines may use it.
type summary struct {
	mu     sync.Mutex // guards the fields below
	out    io.Writer
	usage  string // folder with the durations of packages
	output map[testName]*strings.Builder

	passes, fails, skips int
	elapsed              map[testName]float64 // in seconds, without subtests
	reasons              map[string]int
	failed               []string
	unsuccessful         bool // a build or a package has failed
}

func newSummary(out io.Writer, usage string) *summary {
	return &summary{out: out, usage: usage, output: map[testName]*strings.Builder{}, elapsed: map[testName]float64{}, reasons: map[string]int{}}
}

func (s *summary) passed() bool { return !s.unsuccessful && s.fails == 0 && s.passes > 0 }

func (s *summary) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e testEvent
		s.mu.Lock()
		if json.Unmarshal(line, &e) == nil {
			s.add(e)
		} else if len(line) > 0 {
			_, _ = s.out.Write(line)
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *summary) add(e testEvent) {
	n := testName{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "output":
		if s.output[n] == nil {
			s.output[n] = &strings.Builder{}
		}
		s.output[n].WriteString(e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.packageEnded(e)
		} else {
			s.testEnded(e, s.outputOf(n))
		}
		delete(s.output, n)
	}
}

// addBroken records a package whose test binary could not be run to its end.
func (s *summary) addBroken(pkg string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsuccessful = true
	fmt.Fprintf(s.out, "FAIL  %s: %v\n", shortPackage(pkg), err)
}

func (s *summary) outputOf(n testName) string {
	if b := s.output[n]; b != nil {
		return b.String()
	}
	return ""
}

func (s *summary) testEnded(e testEvent, output string) {
	if !strings.Contains(e.Test, "/") {
		s.elapsed[testName{e.Package, e.Test}] = e.Elapsed
	}
	switch e.Action {
	case "pass":
		s.passes++
	case "fail":
		s.fails++
		s.failed = append(s.failed, shortPackage(e.Package)+" "+e.Test)
		fmt.Fprintf(s.out, "\n%s %s failed:\n%s", shortPackage(e.Package), e.Test, output)
	case "skip":
		s.skips++
		s.reasons[skipReason(output)]++
	}
}

func (s *summary) packageEnded(e testEvent) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(s.out, "ok    %-36s %6.1f s\n", shortPackage(e.Package), e.Elapsed)
	case "fail":
		s.unsuccessful = true
		fmt.Fprintf(s.out, "FAIL  %-36s %6.1f s\n", shortPackage(e.Package), e.Elapsed)
		for n, b := range s.output { // print the output of the tests that were running at a panic or a timeout
			if n.pkg == e.Package {
				fmt.Fprint(s.out, b.String())
				delete(s.output, n)
			}
		}
	}
}

func shortPackage(pkg string) string {
	return strings.TrimPrefix(strings.TrimPrefix(pkg, modulePath), "/")
}

// logLinePattern matches a line that a test has logged, with file and line number before the text.
var logLinePattern = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)$`)

// skipReason returns the text of the last line that a skipped test has logged.
func skipReason(output string) string {
	all := logLinePattern.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return "(no reason given)"
	}
	return all[len(all)-1][1]
}
