package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/world"
)

// The demo's copy of a policy follows the world's policy until somebody changes the copy.
func TestResume(t *testing.T) {
	files, dir := t.TempDir(), t.TempDir()
	if err := os.CopyFS(files, os.DirFS("testdata/My-App")); err != nil {
		t.Fatal(err)
	}
	write := func(path, appended string) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, append(text, appended...), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	openFolder := func() demoFolder {
		t.Helper()
		w, err := world.Open(files)
		if err != nil {
			t.Fatal(err)
		}
		return demoFolder{dir: dir, world: w}
	}
	worldPolicy, copiedPolicy := filepath.Join(files, "policy.yaml"), filepath.Join(dir, "policy.yaml")
	if err := openFolder().resetState(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name         string
		change       func()
		messages     []string // texts that the messages contain
		policySuffix string   // how the folder's policy ends
	}{
		{"nothing", func() {}, nil, ""},
		{"the world's", func() { write(worldPolicy, "# one\n") }, []string{"the world's policy has changed: taking it"}, "# one\n"},
		{"nothing more", func() {}, nil, "# one\n"},
		{"the copy", func() { write(copiedPolicy, "# mine\n") }, nil, "# mine\n"},
		{"both", func() { write(worldPolicy, "# two\n") }, []string{"which is kept"}, "# mine\n"},
		{"the data", func() { write(filepath.Join(files, "data.sql"), "-- more\n") }, []string{"delete " + dir + " loads", "which is kept"}, "# mine\n"},
		{"the copy is gone", func() { os.Remove(copiedPolicy) }, nil, "# two\n"},
	} {
		c.change()
		var messages []string
		if err := openFolder().resume("delete "+dir, func(text string) { messages = append(messages, text) }); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if len(messages) != len(c.messages) {
			t.Errorf("%s: told %q", c.name, messages)
			continue
		}
		for i, messagePart := range c.messages {
			if !strings.Contains(messages[i], messagePart) {
				t.Errorf("%s: told %q, not %q", c.name, messages[i], messagePart)
			}
		}
		if text, err := os.ReadFile(copiedPolicy); err != nil || !strings.HasSuffix(string(text), c.policySuffix) {
			t.Errorf("%s: the policy is\n%s %v", c.name, text, err)
		}
	}
}
