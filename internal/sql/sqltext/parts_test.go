package sqltext

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParts(t *testing.T) {
	for text, want := range map[string][]string{
		"SELECT 1":                          {"SELECT 1"},
		"":                                  nil,
		"SELECT 'ä;'; SELECT $$;$$ -- ;":    {"SELECT 'ä;'", " SELECT $$;$$ -- ;"},
		"/* ; */ BEGIN;; ;SELECT \"é;\" ; ": {"/* ; */ BEGIN", "SELECT \"é;\" "},
		"SELECT 'a'\n'b'; SELECT 2;":        {"SELECT 'a'\n'b'", " SELECT 2"},
		"SELECT U&'d!0061' UESCAPE '!'; COMMIT; INSERT INTO t VALUES (1)": {"SELECT U&'d!0061' UESCAPE '!'", " COMMIT", " INSERT INTO t VALUES (1)"},
		"SELECT 1; SELEC": nil,
	} {
		var got []string
		for _, p := range SplitStatements(text) {
			got = append(got, text[p[0]:p[1]])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}
