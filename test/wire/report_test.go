package wire_test

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// writeTables replaces the text between two marks in a file by the tables.
func writeTables(t *testing.T, file, version, tables string) {
	t.Helper()
	const begin, end = "<!-- tables: written by make bench-wire -->\n", "<!-- end of tables -->"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no marks %q and %q", file, begin, end)
	}
	load, _ := os.ReadFile("/proc/loadavg")
	head := fmt.Sprintf("PostgreSQL %s, %s, %d processors, load average %s.\n\n", version, runtime.GOARCH,
		runtime.NumCPU(), cmp.Or(strings.Split(string(load), " ")[0], "unknown"))
	if err := os.WriteFile(file, []byte(before+begin+head+tables+"\n"+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
