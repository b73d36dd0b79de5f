package e2e

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// query is one statement of the corpus.
type query struct {
	name string
	sql  string
	note string // the comment line after the name, such as "needs: vector"
}

// corpusQueries reads rewrite/testdata/corpus.sql: blocks that start with a line "-- name" and end with a semicolon at
// the end of a line.
func corpusQueries(t testing.TB) []query {
	t.Helper()
	f, err := os.Open("../../rewrite/testdata/corpus.sql")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var (
		list []query
		q    query
	)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "-- ") && q.sql == "":
			if q.name == "" {
				q.name = strings.TrimPrefix(line, "-- ")
			} else {
				q.note += strings.TrimPrefix(line, "-- ") + "\n"
			}
		case strings.TrimSpace(line) == "" && q.sql == "":
			q = query{}
		default:
			q.sql += line + "\n"
			if strings.HasSuffix(strings.TrimSpace(line), ";") {
				q.sql = strings.TrimSuffix(strings.TrimSpace(q.sql), ";")
				list = append(list, q)
				q = query{}
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// hostileStatements reads testdata/hostile.sql: one statement a line.
func hostileStatements(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/hostile.sql")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && !strings.HasPrefix(line, "--") {
			list = append(list, line)
		}
	}
	return list
}
