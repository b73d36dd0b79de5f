package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/catalog"
)

// Each key that a statement names is one, however it is written: rates are of keys.
func TestKeysAreCounted(t *testing.T) {
	r := rewriter(t, Both)
	for n := 1; n <= 3; n++ {
		var quoted, plain []string
		for i := range n {
			quoted, plain = append(quoted, fmt.Sprintf("'c%d'", i)), append(plain, fmt.Sprintf("c%d", i))
		}
		for _, condition := range []string{"code IN (" + strings.Join(quoted, ", ") + ")", "code = ANY (ARRAY[" + strings.Join(quoted, ", ") + "])", "code = ANY ('{" + strings.Join(plain, ",") + "}')"} {
			one := "SELECT body FROM letters WHERE " + condition
			for sql, want := range map[string]string{
				one: fmt.Sprint([]int{n}), one + "; SELECT 1; " + one: fmt.Sprint([]int{n, 0, n}), "SELECT a.body, b.body FROM letters a, (" + one + ") b WHERE a.code = 'c1'": fmt.Sprint([]int{n + 1}),
				"PREPARE p AS " + one: fmt.Sprint([]int{n}), "SELECT topic FROM letters WHERE " + condition: "[0]",
			} {
				result, refused := r.Rewrite(sql, false)
				if refused != nil {
					t.Errorf("%s: %v", sql, refused)
				} else if got := fmt.Sprint(result.Keys); got != want {
					t.Errorf("%s: %s keys, want %s", sql, got, want)
				}
			}
		}
	}
}

// What exists by key only is in no view, whatever key its query names: whoever reads the view names none.
func TestViewsReadNothingByKey(t *testing.T) {
	r := rewriter(t, Both)
	for _, query := range []string{"SELECT body FROM letters WHERE code = 'c1'", "SELECT l.body AS topic FROM letters l JOIN notes n ON l.code IN ('c1', 'c2')", "SELECT body FROM pages WHERE site = 's1' AND slug = 'p1'"} {
		for _, walled := range []bool{false, true} {
			view := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: "v"}, Kind: catalog.View, Definition: query}
			if text, _, err := Definition(r.pol, r.snap, view, walled); err == nil {
				t.Errorf("%s: %s", query, text)
			}
		}
	}
}
