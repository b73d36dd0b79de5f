package noninterference

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/instance"
)

const foundDir = "test/noninterference/testdata/found"

// save writes a difference to a file that Replay runs.
func (d *difference) save(t testing.TB) {
	t.Helper()
	callers, err := json.Marshal(d.script.callers)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, in mode %s (seed %d).\n", d.reason, d.mode, d.seed)
	section := func(name, text string) {
		fmt.Fprintf(&b, "-- %s --\n%s\n", name, strings.TrimSuffix(text, "\n"))
	}
	section("schema", d.script.ddl)
	section("policy", d.script.policy)
	section("narrow", d.script.dropColumns)
	section("callers", string(callers))
	section("caller", fmt.Sprint(d.caller))
	section("one", d.loads[0])
	section("two", d.loads[1])
	section("visible", d.loads[2])
	if d.testCase.extended {
		section("extended", "true")
	}
	for _, m := range d.testCase.messages {
		section("message", m)
	}
	sum := sha256.Sum256([]byte(b.String()))
	dir := instance.RepoPath(t, foundDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, hex.EncodeToString(sum[:6])+".txt")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("saved as %s", file)
}

// Replay runs the saved differences again.
func Replay(t *testing.T, modes ...instance.Mode) {
	files, err := filepath.Glob(filepath.Join(instance.RepoPath(t, foundDir), "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d := readFound(t, string(text))
			for _, mode := range modes {
				st := newDatabaseTrio(t, mode, d.script)
				st.caller = d.caller
				st.load(d.loads[0], d.loads[1], d.loads[2])
				for _, setup := range []string{"", "ANALYZE"} {
					for _, w := range st.writers {
						instance.Ask(w, setup)
					}
					if found := st.compare(d.testCase, &Report{}); found != nil {
						t.Errorf("mode %s: %s\n%s\none:\n%s\ntwo:\n%s", mode.Name, found.reason, strings.Join(d.testCase.messages, "\n"), found.answers[0], found.answers[1])
					}
				}
			}
		})
	}
}

func readFound(t testing.TB, text string) *difference {
	t.Helper()
	d := &difference{}
	sections := strings.Split("\n"+text, "\n-- ")
	for _, s := range sections[1:] {
		name, body, ok := strings.Cut(s, " --\n")
		if !ok {
			t.Fatalf("a broken section: %.60q", s)
		}
		switch name {
		case "schema":
			d.script.ddl = body
		case "policy":
			d.script.policy = body
		case "narrow":
			d.script.dropColumns = body
		case "callers":
			if err := json.Unmarshal([]byte(body), &d.script.callers); err != nil {
				t.Fatal(err)
			}
		case "caller":
			if _, err := fmt.Sscan(body, &d.caller); err != nil {
				t.Fatal(err)
			}
		case "one":
			d.loads[0] = body
		case "two":
			d.loads[1] = body
		case "visible":
			d.loads[2] = body
		case "extended":
			d.testCase.extended = true
		case "message":
			d.testCase.messages = append(d.testCase.messages, strings.TrimSuffix(body, "\n"))
		default:
			t.Fatalf("an unknown section %q", name)
		}
	}
	return d
}
