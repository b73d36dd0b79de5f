package main

import (
	"strings"
	"testing"
)

const told = `{"Action":"start","Package":"github.com/pgconsent/pgconsent/internal/enforce/seal"}
{"Action":"run","Package":"github.com/pgconsent/pgconsent/internal/enforce/seal","Test":"TestGood"}
{"Action":"output","Package":"github.com/pgconsent/pgconsent/internal/enforce/seal","Test":"TestGood","Output":"--- PASS: TestGood\n"}
{"Action":"pass","Package":"github.com/pgconsent/pgconsent/internal/enforce/seal","Test":"TestGood","Elapsed":0.1}
{"Action":"output","Package":"github.com/pgconsent/pgconsent/internal/enforce/seal","Test":"TestLater","Output":"    a_test.go:3: first\n"}
{"Action":"output","Package":"github.com/pgconsent/pgconsent/internal/enforce/seal","Test":"TestLater","Output":"    a_test.go:4: no such program\n"}
{"Action":"output","Package":"github.com/pgconsent/pgconsent/internal/enforce/seal","Test":"TestLater","Output":"--- SKIP: TestLater\n"}
{"Action":"skip","Package":"github.com/pgconsent/pgconsent/internal/enforce/seal","Test":"TestLater","Elapsed":0}
{"Action":"skip","Package":"github.com/pgconsent/pgconsent/internal/enforce/seal","Test":"TestSilent","Elapsed":0}
`

func read(text string) (*summary, string) {
	var out strings.Builder
	s := newSummary(&out, "")
	s.read(strings.NewReader(text))
	s.print(false)
	return s, out.String()
}

func TestSummary(t *testing.T) {
	s, out := read(told + `{"Action":"pass","Package":"github.com/pgconsent/pgconsent/internal/enforce/seal","Elapsed":0.2}` + "\n")
	if !s.passed() {
		t.Error("it has not passed")
	}
	for _, want := range []string{"ok    internal/enforce/seal", "skipped    1  no such program\n",
		"skipped    1  (no reason given)\n", "\n1 passed, 0 failed, 2 skipped\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestSummaryOfFailures(t *testing.T) {
	for what, rest := range map[string]string{
		"a test": `{"Action":"output","Package":"p","Test":"TestBad","Output":"    b_test.go:1: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestBad","Elapsed":1}
{"Action":"fail","Package":"p","Elapsed":1}
`,
		"a panic, which ends the package while a test runs": `{"Action":"output","Package":"p","Test":"TestBad","Output":"panic: wrong\n"}
{"Action":"fail","Package":"p","Elapsed":1}
`,
		"a build": `{"ImportPath":"p","Action":"build-output","Output":"b.go:1: wrong\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p"}
`,
		"what is no event": "go: wrong\n" + `{"Action":"fail","Package":"p","Elapsed":0}` + "\n",
	} {
		if s, out := read(told + rest); s.passed() || !strings.Contains(out, "wrong") {
			t.Errorf("%s: passed %v, printed\n%s", what, s.passed(), out)
		}
	}
}

func TestNothingRunIsNoPass(t *testing.T) {
	if s, _ := read(`{"Action":"pass","Package":"p","Elapsed":0}`); s.passed() {
		t.Error("a run of no test has passed")
	}
}

func TestParts(t *testing.T) {
	got := withoutAndWithRace(runOptions{race: true, packages: []string{modulePath + "/proxy", modulePath + "/internal/enforce", modulePath + "/policy"}})
	if len(got) != 2 || got[0].race || !got[1].race || strings.Join(got[0].packages, " ") != modulePath+"/policy" ||
		strings.Join(got[1].packages, " ") != modulePath+"/proxy "+modulePath+"/internal/enforce" {
		t.Errorf("%+v", got)
	}
	if got := withoutAndWithRace(runOptions{packages: []string{modulePath + "/proxy"}}); len(got) != 1 || got[0].race {
		t.Errorf("%+v", got)
	}
}
