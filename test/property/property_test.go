package property

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const fails = "PROPERTY_TEST_FAILS"

// TestFails fails only when TestAFailureLeavesNothing runs it.
func TestFails(t *testing.T) {
	if os.Getenv(fails) == "" {
		return
	}
	Check(t, func(t *rapid.T) {
		if n := rapid.IntRange(0, 1<<40).Draw(t, "n"); n%3 == 1 && n > 1000 {
			t.Fatalf("%d", n)
		}
	})
}

// A property that does not hold must fail its test with the same case each time, and leave no file.
func TestAFailureLeavesNothing(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said [2]string
	for i := range said {
		cmd := exec.Command(binary, "-test.run", "^TestFails$")
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), fails+"=1")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "[rapid] failed after") {
			t.Fatalf("%v: %s", err, out)
		}
		left, err := os.ReadDir(cmd.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range left {
			t.Errorf("%s is left", file.Name())
		}
		said[i] = regexp.MustCompile(`\(?[0-9.]+[mµn]?s\)?`).ReplaceAllString(string(out), "")
	}
	if said[0] != said[1] {
		t.Errorf("two runs of one seed:\n%s\n%s", said[0], said[1])
	}
}
