package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The rewriter counts each distinct key that a statement names, however it is written, because rate limits are per key.
func TestKeysAreCounted(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for n := 1; n <= 3; n++ {
		var quotedKeys, unquotedKeys []string
		for i := range n {
			quotedKeys, unquotedKeys = append(quotedKeys, fmt.Sprintf("'c%d'", i)), append(unquotedKeys, fmt.Sprintf("c%d", i))
		}
		for _, condition := range []string{"code IN (" + strings.Join(quotedKeys, ", ") + ")",
			"code = ANY (ARRAY[" + strings.Join(quotedKeys, ", ") + "])", "code = ANY ('{" + strings.Join(unquotedKeys, ",") + "}')"} {
			query := "SELECT body FROM letters WHERE " + condition
			for sql, want := range map[string]string{
				query: fmt.Sprint([]int{n}), query + "; SELECT 1; " +
					query: fmt.Sprint([]int{n, 0, n}), "SELECT a.body, b.body FROM letters a, (" + query + ") b WHERE a.code = 'c1'": fmt.Sprint([]int{n + 1}),
				"PREPARE p AS " + query: fmt.Sprint([]int{n}), "SELECT topic FROM letters WHERE " + condition: "[0]",
			} {
				result, refusal := r.Rewrite(sql, false)
				if refusal != nil {
					t.Errorf("%s: %v", sql, refusal)
				} else if got := fmt.Sprint(result.Keys); got != want {
					t.Errorf("%s: %s keys, want %s", sql, got, want)
				}
			}
		}
	}
}

// A column that may only be fetched by key is missing from the copies of a view, even if the view's query names a key.
// The view's reader has named none.
func TestViewsReadNothingByKey(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for _, query := range []string{"SELECT body FROM letters WHERE code = 'c1'",
		"SELECT l.body AS topic FROM letters l JOIN notes n ON l.code IN ('c1', 'c2')", "SELECT body FROM pages WHERE site = 's1' AND slug = 'p1'"} {
		for _, copyKind := range []policy.ViewCopy{policy.RowCopy, policy.FilteredCopy, policy.SignedCopy} {
			view := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: "v"}, Kind: catalog.View, ViewFacts: catalog.ViewFacts{Definition: query}}
			if text, _, err := RewriteViewQuery(r.pol, r.snap, view, copyKind); err == nil && text != "" {
				t.Errorf("%s: %s", query, text)
			}
		}
	}
}

// Such a column is available only where the statement's conditions hold for rows of the named key alone. Elsewhere it
// is refused, so that a fetch returns what reading the table itself would.
func TestByKeyColumnsNeedTheirKey(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for sql, want := range map[string]string{
		"SELECT body FROM letters WHERE code = 'c1'":                                         "'c1'",
		"SELECT body FROM letters WHERE 'c1' = code AND topic > 'a'":                         "'c1'",
		"SELECT body FROM letters WHERE code = 'c1'::text":                                   "'c1'",
		"SELECT body FROM letters WHERE code = 'c1'::pg_catalog.varchar":                     "'c1'",
		"SELECT body FROM letters WHERE code = $1":                                           "$1",
		"SELECT body FROM letters WHERE letters.code = 'c1' AND public.letters.topic <> 'x'": "'c1'",
		"SELECT body FROM letters WHERE public.letters.code = 'c1'":                          "'c1'",
		"SELECT body FROM letters WHERE code = 'c1' AND code = 'c2'":                         "'c1'",
		"SELECT body FROM letters WHERE code IN ('c1', $1, 'c3'::varchar)":                   "'c1', $1, 'c3'",
		"SELECT body FROM letters WHERE code = ANY (ARRAY['c1', 'c2']::text[])":              "'c1', 'c2'",
		"SELECT body FROM letters WHERE code = ANY ('{a-z_9,0Z,zA}'::text[])":                "'a-z_9', '0Z', 'zA'",
		"SELECT body FROM letters WHERE code = ANY ('{a-z_9,0,AZ}')":                         "'a-z_9', '0', 'AZ'",
		"SELECT l.body FROM letters l JOIN notes n ON l.code = 'c1' AND n.id = 1":            "'c1'",
		"SELECT l.body FROM notes n LEFT JOIN letters l ON l.code = 'c1'":                    "'c1'",
		"SELECT l.body FROM letters l RIGHT JOIN notes n ON l.code = 'c1'":                   "'c1'",
		"SELECT l.body FROM letters l LEFT JOIN notes n ON true WHERE l.code = 'c1'":         "'c1'",
		"SELECT body FROM letters, generate_series(1, 2) AS g WHERE letters.code = 'c1'":     "'c1'",
		"SELECT body FROM letters, (SELECT 1 AS n) AS s WHERE letters.code = 'c1'":           "'c1'",
		"SELECT b.body FROM letters a, letters b WHERE b.code = 'c1'":                        "'c1'",
		"SELECT body FROM pages WHERE slug = 'p1' AND site = 's1'":                           "'s1', 'p1'",
		"SELECT (SELECT body FROM letters WHERE code = 'c1') FROM notes":                     "'c1'",

		"SELECT body FROM letters":                                                                     "",
		"SELECT body FROM letters WHERE code <> 'c1'":                                                  "",
		"SELECT body FROM letters WHERE code >= 'c1'":                                                  "",
		"SELECT body FROM letters WHERE code = 'c1' OR topic = 'a'":                                    "",
		"SELECT body FROM letters WHERE NOT code = 'c1'":                                               "",
		"SELECT body FROM letters WHERE code IS NOT DISTINCT FROM 'c1'":                                "",
		"SELECT body FROM letters WHERE code IN ('c1', 'c2', 'c3', 'c4')":                              "",
		"SELECT body FROM letters WHERE code NOT IN ('c1')":                                            "",
		"SELECT body FROM letters WHERE code IN ('c1', topic)":                                         "",
		"SELECT body FROM letters WHERE code IN (SELECT 'c1')":                                         "",
		"SELECT body FROM letters WHERE code = lower('C1')":                                            "",
		"SELECT body FROM letters WHERE code = topic":                                                  "",
		"SELECT body FROM letters WHERE code = NULL":                                                   "",
		"SELECT body FROM letters WHERE code = 'c1x'::varchar(2)":                                      "",
		"SELECT body FROM letters WHERE code = 'c1'::char":                                             "",
		"SELECT body FROM letters WHERE code = 'c1'::name":                                             "",
		"SELECT body FROM letters WHERE code = ANY ('c1')":                                             "",
		"SELECT body FROM letters WHERE code = ANY ('{c1')":                                            "",
		"SELECT body FROM letters WHERE code = ANY ('c1}')":                                            "",
		"SELECT body FROM letters WHERE code = ANY ('{}')":                                             "",
		"SELECT body FROM letters WHERE code = ANY ('{c1,}')":                                          "",
		"SELECT body FROM letters WHERE code = ANY ('{c1,Null}')":                                      "",
		"SELECT body FROM letters WHERE code = ANY ('{{c1}}')":                                         "",
		"SELECT body FROM letters WHERE code = ANY ('{\"c1\"}')":                                       "",
		"SELECT body FROM letters WHERE code = ANY ('{c1x}'::varchar(2)[])":                            "",
		"SELECT body FROM letters WHERE code = ANY ('{c1}'::name[])":                                   "",
		"SELECT body FROM letters WHERE code = ANY ($1)":                                               "",
		"SELECT body FROM letters WHERE code <> ANY (ARRAY['c1'])":                                     "",
		"SELECT body FROM letters WHERE code = ALL (ARRAY['c1'])":                                      "",
		"SELECT body FROM letters WHERE id = 1":                                                        "",
		"SELECT body FROM pages WHERE site = 's1'":                                                     "",
		"SELECT body FROM pages WHERE site = 's1' AND slug IN ('p1', 'p2')":                            "",
		"SELECT body FROM pages WHERE site = 's1' AND n = 1":                                           "",
		"SELECT body FROM letters WHERE code = 'c1' FOR UPDATE":                                        "",
		"SELECT body FROM ONLY letters WHERE code = 'c1'":                                              "",
		"SELECT l.body FROM letters AS l (code, id) WHERE l.code = 'c1'":                               "",
		"SELECT l.body FROM letters l LEFT JOIN notes n ON l.code = 'c1'":                              "",
		"SELECT l.body FROM notes n RIGHT JOIN letters l ON l.code = 'c1'":                             "",
		"SELECT l.body FROM letters l FULL JOIN notes n ON l.code = 'c1'":                              "",
		"SELECT a.body FROM letters a JOIN letters b USING (code) WHERE code = 'c1'":                   "",
		"SELECT a.body FROM letters a NATURAL LEFT JOIN notes b WHERE b.id = 1":                        "",
		"SELECT a.body FROM letters a, letters b WHERE b.code = 'c1'":                                  "",
		"SELECT letters.body FROM letters, (SELECT 'x' AS code) AS s WHERE s.code = 'c1'":              "",
		"SELECT l.body FROM letters l, pages p WHERE p.site = 's1' AND p.slug = 'p1'":                  "",
		"SELECT (SELECT l.body FROM letters l WHERE n.id = 1) FROM notes n WHERE n.body = 'c1'":        "",
		"SELECT l.body FROM letters l JOIN pages p ON pages.site = l.code WHERE public.pages.n = 'c1'": "",
	} {
		result, refusal := r.Rewrite(sql, true)
		var fetchedValue string
		if refusal == nil {
			_, fetchedValue, _ = strings.Cut(result.Text, "pgconsent_signed.current_catalog()")
			fetchedValue, _, _ = strings.Cut(fetchedValue, ")")
			fetchedValue = strings.NewReplacer("::pg_catalog.text", "", "::pg_catalog.varchar", "", "ARRAY[", "",
				"]", "").Replace(strings.TrimPrefix(fetchedValue, ", "))
		}
		if fetchedValue != want {
			t.Errorf("%s: fetched by %q, want %q: %v", sql, fetchedValue, want, refusal)
		}
	}
}
