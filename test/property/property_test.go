package property

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const failVariable = "PROPERTY_TEST_FAILS"

// TestFails fails only when TestAFailureIsRepeatableAndLeavesNoFile runs it.
func TestFails(t *testing.T) {
	if os.Getenv(failVariable) == "" {
		return
	}
	Check(t, func(t *rapid.T) {
		if n := rapid.IntRange(0, 1<<40).Draw(t, "n"); n%3 == 1 && n > 1000 {
			t.Fatalf("%d", n)
		}
	})
}

// A property that does not hold must fail its test with the same case each time, and leave no file.
func TestAFailureIsRepeatableAndLeavesNoFile(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var outputs [2]string
	for i := range outputs {
		cmd := exec.Command(binary, "-test.run", "^TestFails$")
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), failVariable+"=1")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "[rapid] failed after") {
			t.Fatalf("%v: %s", err, out)
		}
		files, err := os.ReadDir(cmd.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			t.Errorf("%s is left", file.Name())
		}
		outputs[i] = regexp.MustCompile(`\(?[0-9.]+[mµn]?s\)?`).ReplaceAllString(string(out), "")
	}
	if outputs[0] != outputs[1] {
		t.Errorf("two runs of one seed:\n%s\n%s", outputs[0], outputs[1])
	}
}
