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

// module is the path that packages' names begin with.
const module = "github.com/pgconsent/pgconsent"

// event is a line of test2json (go doc test2json).
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64 // seconds
}

// name tells a test from others; that of a package has no Test.
type name struct{ pkg, test string }

// summary gathers what test binaries tell. It prints what fails as it comes. Several may be read at once.
type summary struct {
	mu     sync.Mutex // guards all that follows
	out    io.Writer
	usage  string // the folder with what the packages took
	output map[name]*strings.Builder

	passes, fails, skips int
	elapsed              map[name]float64 // seconds, of tests that are in no other
	reasons              map[string]int
	failed               []string
	unsuccessful         bool // a build or a package failed, for whatever reason
}

func newSummary(out io.Writer, usage string) *summary {
	return &summary{out: out, usage: usage, output: map[name]*strings.Builder{}, elapsed: map[name]float64{}, reasons: map[string]int{}}
}

func (s *summary) passed() bool { return !s.unsuccessful && s.fails == 0 && s.passes > 0 }

func (s *summary) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
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

func (s *summary) add(e event) {
	n := name{e.Package, e.Test}
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
			s.testEnded(e, s.text(n))
		}
		delete(s.output, n)
	}
}

// broken notes a package whose tests could not be run to their end.
func (s *summary) broken(pkg string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsuccessful = true
	fmt.Fprintf(s.out, "FAIL  %s: %v\n", short(pkg), err)
}

func (s *summary) text(n name) string {
	if b := s.output[n]; b != nil {
		return b.String()
	}
	return ""
}

func (s *summary) testEnded(e event, output string) {
	if !strings.Contains(e.Test, "/") {
		s.elapsed[name{e.Package, e.Test}] = e.Elapsed
	}
	switch e.Action {
	case "pass":
		s.passes++
	case "fail":
		s.fails++
		s.failed = append(s.failed, short(e.Package)+" "+e.Test)
		fmt.Fprintf(s.out, "\n%s %s failed:\n%s", short(e.Package), e.Test, output)
	case "skip":
		s.skips++
		s.reasons[reason(output)]++
	}
}

func (s *summary) packageEnded(e event) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(s.out, "ok    %-36s %6.1f s\n", short(e.Package), e.Elapsed)
	case "fail":
		s.unsuccessful = true
		fmt.Fprintf(s.out, "FAIL  %-36s %6.1f s\n", short(e.Package), e.Elapsed)
		for n, b := range s.output { // a panic or the end of time belongs to what was running
			if n.pkg == e.Package {
				fmt.Fprint(s.out, b.String())
				delete(s.output, n)
			}
		}
	}
}

func short(pkg string) string { return strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/") }

// said is how package testing prints what a test says: where, and what.
var said = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)$`)

// reason is the last thing that a skipped test said.
func reason(output string) string {
	all := said.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return "(no reason given)"
	}
	return all[len(all)-1][1]
}
