package instance

import (
	"os"
	"path/filepath"
	"testing"
)

// Path is a file of the repository, wherever the test runs.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return filepath.Join(dir, filepath.FromSlash(name))
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("%s: not inside the repository (%v)", name, err)
	return ""
}

// Read returns a file of the repository.
func Read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
