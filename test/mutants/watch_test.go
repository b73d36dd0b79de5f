package mutants

import (
	"slices"
	"testing"
)

// A fault is tried on the package that has it, then on its importers, nearest first, and on the largest packages last.
// Packages without tests, and this one, are left out.
func TestTestingPackagesNearestFirst(t *testing.T) {
	const module = "example.org/m"
	pkg := func(path string, tested bool, imported, byTests []string) packageImports {
		p := packageImports{ImportPath: module + path, Imports: imported, XTestImports: byTests}
		p.Module.Path = module
		if tested {
			p.TestGoFiles = []string{"a_test.go"}
		}
		return p
	}
	inModule := func(paths ...string) []string {
		for i := range paths {
			paths[i] = module + paths[i]
		}
		return paths
	}
	all := []packageImports{
		pkg("/apart", true, nil, nil),
		pkg("/cmd/pgconsent", true, inModule("/base"), nil),
		pkg("/test/e2e", true, inModule("/far"), nil),
		pkg("/far", true, inModule("/near"), nil),
		pkg("/base", true, nil, inModule("/far")),
		pkg("/near", false, inModule("/base"), nil),
		pkg("/tester", true, nil, inModule("/near")),
		pkg("/test/mutants", true, inModule("/base"), nil),
		pkg("/test/oracle", true, inModule("/base"), nil),
		pkg("/test/attacks", true, inModule("/base"), nil),
	}
	want := []string{"./base", "./far", "./tester", "./test/oracle", "./test/attacks", "./test/e2e", "./cmd/pgconsent"}
	if got := testingPackages(all, "./base"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	want = []string{"./cmd/pgconsent"}
	if got := testingPackages(all, "./cmd/pgconsent"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The name of the failed test is read from the output of a test binary, after a failure, a timeout or a panic.
func TestFailedTestIsFoundInOutput(t *testing.T) {
	for out, want := range map[string]string{
		"--- FAIL: TestA (0.00s)\n    a_test.go:7: no\nFAIL\n":                                             "TestA",
		"--- FAIL: TestA/one_more (0.00s)\npanic: no\n":                                                    "TestA",
		"panic: test timed out after 1s\nrunning tests:\n\tTestB (1s)\n\ngoroutine 1 [running]:\n":         "TestB",
		"panic: no\n\ngoroutine 9 [running]:\nexample.org/m/far.TestC.func1()\n\t/tmp/c_test.go:9 +0x1d\n": "TestC",
		"panic: no\n\ngoroutine 9 [running]:\nexample.org/m/far.TestC(0xc000)\n\t/tmp/c_test.go:9 +0x1d\n": "TestC",
		"pgtest: cannot start PostgreSQL\n":                                                                unnamedTest,
	} {
		if got := failingTest(out); got != want {
			t.Errorf("%s, want %s, of\n%s", got, want, out)
		}
	}
}
