package instance

import (
	"os"
	"path/filepath"
	"testing"
)

// RepoPath returns the path of a file of the repository, regardless of the current folder.
func RepoPath(t testing.TB, name string) string {
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

// ReadRepoFile returns the text of a file of the repository.
func ReadRepoFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(RepoPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
