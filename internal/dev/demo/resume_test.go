package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/world"
)

// A policy follows the world's until somebody changes it in the demo's folder.
func TestResume(t *testing.T) {
	files, dir := t.TempDir(), t.TempDir()
	if err := os.CopyFS(files, os.DirFS("testdata/My-App")); err != nil {
		t.Fatal(err)
	}
	write := func(path, more string) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, append(text, more...), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	open := func() demoFolder {
		t.Helper()
		w, err := world.Open(files)
		if err != nil {
			t.Fatal(err)
		}
		return demoFolder{dir: dir, world: w}
	}
	theirs, here := filepath.Join(files, "policy.yaml"), filepath.Join(dir, "policy.yaml")
	if err := open().resetState(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func()
		told   []string // parts of what is told
		has    string   // the policy of the folder, at its end
	}{
		{"nothing", func() {}, nil, ""},
		{"the world's", func() { write(theirs, "# one\n") }, []string{"the world's policy has changed: taking it"}, "# one\n"},
		{"nothing more", func() {}, nil, "# one\n"},
		{"the copy", func() { write(here, "# mine\n") }, nil, "# mine\n"},
		{"both", func() { write(theirs, "# two\n") }, []string{"which is kept"}, "# mine\n"},
		{"the data", func() { write(filepath.Join(files, "data.sql"), "-- more\n") }, []string{"delete " + dir + " loads", "which is kept"}, "# mine\n"},
		{"the copy is gone", func() { os.Remove(here) }, nil, "# two\n"},
	} {
		c.change()
		var told []string
		if err := open().resume("delete "+dir, func(text string) { told = append(told, text) }); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if len(told) != len(c.told) {
			t.Errorf("%s: told %q", c.name, told)
			continue
		}
		for i, part := range c.told {
			if !strings.Contains(told[i], part) {
				t.Errorf("%s: told %q, not %q", c.name, told[i], part)
			}
		}
		if text, err := os.ReadFile(here); err != nil || !strings.HasSuffix(string(text), c.has) {
			t.Errorf("%s: the policy is\n%s %v", c.name, text, err)
		}
	}
}
