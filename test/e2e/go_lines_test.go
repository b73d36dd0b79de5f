package e2e

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// widestCode is the largest number of columns in a line of code. widestTest applies to tests and to everything under
// test/.
const (
	widestCode = 140
	widestTest = 160
)

// taggedLine matches the end of a line with a struct tag, which cannot be broken.
var taggedLine = regexp.MustCompile("`\\w+:\"[^`]*\"`$")

// Code can be read, and compared, without scrolling sideways. A tab counts as one column.
func TestGoLinesAreShort(t *testing.T) {
	files := goFiles(t)
	for _, name := range files {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		widest := widestCode
		if strings.HasPrefix(name, "test/") || strings.HasSuffix(name, "_test.go") {
			widest = widestTest
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			line = strings.TrimRight(line, "\r\n")
			if utf8.RuneCountInString(line) > widest && !taggedLine.MatchString(line) {
				t.Errorf("%s:%d is longer than %d columns", name, n, widest)
			}
		}
	}
	if len(files) < 900 {
		t.Errorf("%d files, there were more", len(files))
	}
}

// goFiles are the names of all files of Go, from the root of the repository.
func goFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != "." && (strings.HasPrefix(e.Name(), ".") || name == "bin"):
			return fs.SkipDir
		case !e.IsDir() && strings.HasSuffix(name, ".go"):
			out = append(out, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
