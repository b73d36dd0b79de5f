package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/policy"
)

// writeFiles writes files into a new folder and returns its path.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const bare = "version: 1\n"

func TestInclude(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"main.yaml":               head + "include: [tables/*.yaml, deep, one.yaml]\n",
		"one.yaml":                bare + "include: [tables/people.yaml]\ntables: { parts: { rows: open } }\n",
		"tables/people.yaml":      bare + "tables: { people: { rows: open } }\n",
		"tables/people_test.yaml": "not: a policy",
		"deep/a.yml":              bare + "include: [../deep/below/b.yaml]\n",
		"deep/below/b.yaml":       bare + "tables: { memories: { rows: [ own: { column: user_id, is: user } ] } }\n",
		"other.yaml":              bare + "tables: { nothing: { rows: open } }\n",
	})
	doc, err := policy.Load(filepath.Join(dir, "main.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc, snapshot())
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Tables()) != 3 {
		t.Errorf("%d tables", len(p.Tables()))
	}
}

// An error in an included file has a position in that file. Files outside the policy's folder are not read.
func TestIncludeRefuses(t *testing.T) {
	outsideDir := writeFiles(t, map[string]string{"secret.yaml": bare + "tables: { people: { rows: open } }\n"})
	for name, c := range map[string]struct {
		files map[string]string
		link  string // a symbolic link to a file outside the folder
		want  string
	}{
		"wrong within": {map[string]string{"main.yaml": bare + "include: [a.yaml]\n",
			"a.yaml": bare + "tabels: {}\n"}, "", `a.yaml:2:1: unknown key "tabels" in the policy`},
		"no such file": {map[string]string{"main.yaml": bare + "include: [a.yaml]\n"}, "", `main.yaml:2:11: "a.yaml" names no file of a policy`},
		"no match":     {map[string]string{"main.yaml": bare + "include: ['t/*.yaml']\n"}, "", `main.yaml:2:11: "t/*.yaml" names no file of a policy`},
		"absolute":     {map[string]string{"main.yaml": bare + "include: [" + outsideDir + "/secret.yaml]\n"}, "", "leads out of the policy's folder"},
		"above":        {map[string]string{"main.yaml": bare + "include: ['../*/secret.yaml']\n"}, "", "leads out of the policy's folder"},
		"link": {map[string]string{"main.yaml": bare + "include: [a.yaml]\n"}, "a.yaml",
			`"a.yaml" leads out of the policy's folder by a symbolic link`},
		"itself": {map[string]string{"main.yaml": bare + "include: [main.yaml]\n"},
			"", "main.yaml:2:11: include goes round in a circle: main.yaml → main.yaml"},
		"circle": {map[string]string{"main.yaml": bare + "include: [a.yaml]\n",
			"a.yaml": bare + "include: [b.yaml]\n", "b.yaml": bare + "include: [a.yaml]\n"}, "",
			"b.yaml:2:11: include goes round in a circle: a.yaml → b.yaml → a.yaml"},
		"table twice": {map[string]string{"main.yaml": bare +
			"include: [a.yaml]\ntables: { people: { rows: open } }\n", "a.yaml": bare +
			"tables: { people: { rows: open } }\n"}, "", "a.yaml:2:11: tables has \"people\" already"},
		"not a list": {map[string]string{"main.yaml": bare + "include: a.yaml\n"},
			"", "main.yaml:2:10: include must be a list, not a single value (write [a.yaml])"},
		"bad pattern": {map[string]string{"main.yaml": bare + "include: ['[']\n"}, "", "is not a pattern"},
		"no version": {map[string]string{"main.yaml": bare + "include: [a.yaml]\n", "a.yaml": "tables: {}\n"},
			"", `a.yaml:1:1: the policy needs "version"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeFiles(t, c.files)
			if c.link != "" {
				if err := os.Symlink(filepath.Join(outsideDir, "secret.yaml"), filepath.Join(dir, c.link)); err != nil {
					t.Fatal(err)
				}
			}
			doc, err := policy.Load(filepath.Join(dir, "main.yaml"))
			if err == nil || doc != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	if _, err := policy.Parse("p.yaml", []byte(bare+"include: [a.yaml]\n")); err == nil ||
		!strings.Contains(err.Error(), "only a file can include others") {
		t.Errorf("from memory: %v", err)
	}
}

// Files that are too large or too deeply nested are refused with an error, before the parser uses much memory.
func TestHostileFiles(t *testing.T) {
	for name, text := range map[string]string{
		"brackets": strings.Repeat("[", 1<<17), "braces": strings.Repeat("{a: ",
			1<<15), "dashes": strings.Repeat("- ", 1<<16), "questions": strings.Repeat("? ", 1<<16),
		"indents": strings.Repeat(" ", 1<<19) +
			"a: 1", "laughs": "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n", "quotes": `"` +
			strings.Repeat("x", 1<<20-2), "tags": strings.Repeat("!!map ", 1<<17),
		"colons": strings.Repeat("a:\n ", 1000), "too long": strings.Repeat("#", 1<<20+1),
	} {
		if _, err := policy.Parse("p.yaml", []byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestWatch(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.yaml": bare + "include: [sub]\n", "sub/b.yaml": bare})
	_, w, err := policy.LoadWatched(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if w.HasChanged() {
			t.Error("nothing has changed")
		}
	}
	for _, change := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "sub", "b.yaml"), []byte(bare+"# more\n"), 0o600) },
		func() error { return os.WriteFile(filepath.Join(dir, "sub", "c.yaml"), []byte(bare), 0o600) },
		func() error { return os.WriteFile(filepath.Join(dir, "d.yaml"), []byte("nonsense"), 0o600) },
		func() error { return os.Remove(filepath.Join(dir, "d.yaml")) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if w.HasChanged() {
			t.Error("a change counts when nothing more has changed since")
		}
		if !w.HasChanged() {
			t.Error("a change was not seen")
		}
		if _, w, _ = policy.LoadWatched(dir); w == nil {
			t.Fatal("no watch")
		}
	}
}
