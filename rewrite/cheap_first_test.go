package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// The rewriter moves cheap conditions in front of a division, for each table separately, in a form that PostgreSQL does
// not reorder.
func TestCheapConditionsComeFirst(t *testing.T) {
	const change = `ALTER TABLE memories ADD product int, ADD price int, ADD amount int, ADD tags jsonb, ADD kind text, ADD found tsvector;
		CREATE INDEX ON memories USING gin (found)`
	r, _ := altered(t, InjectedMode, change)
	for sql, want := range map[string]string{
		"SELECT 1 FROM memories WHERE product = 5 AND price / amount > 29": " WHERE COALESCE(product = 5, false) AND product = 5 AND price / amount > 29",
		"SELECT 1 FROM memories m WHERE m.price % m.amount > 29 AND m.product = $1 AND m.amount <> 0": " WHERE COALESCE(m.product = $1 AND m.amount <> 0, false) " +
			"AND m.price % m.amount > 29 AND m.product = $1 AND m.amount <> 0",
		"SELECT 1 FROM memories WHERE (product IN (5, 6) AND amount IS NOT NULL) AND (kind::int > 3)": " WHERE (COALESCE(product IN (5, 6) " +
			"AND amount IS NOT NULL, false) AND product IN (5, 6) AND amount IS NOT NULL) AND (kind::int > 3)",
		"SELECT 1 FROM memories m JOIN memories n ON true WHERE m.product = 5 AND m.price / m.amount > 29 AND n.kind = 'a'": " WHERE " +
			"COALESCE(m.product = 5, false) AND COALESCE(n.kind = 'a', false) AND m.product = 5",
		"UPDATE drafts SET title = 'x' WHERE title = 'a' AND substring(title FROM 2)::int > 1": " WHERE COALESCE(title = 'a', false) AND title = 'a'",
		"SELECT (SELECT count(*) FROM memories n WHERE n.kind = 'a' AND n.kind::int > 1)":      " WHERE COALESCE(n.kind = 'a', false) AND n.kind = 'a'",

		"SELECT 1 FROM memories WHERE product = 5 AND price > 29":                    "",
		"SELECT 1 FROM memories WHERE product = 5 OR price / amount > 29":            "",
		"SELECT 1 FROM memories WHERE price / amount > 29":                           "",
		"SELECT 1 FROM memories WHERE product = amount AND price / amount > 29":      "", // it compares no column with a constant
		"SELECT 1 FROM memories WHERE tags = '{}' AND price / amount > 29 AND 1 = 1": "", // comparing arrays is not cheap
		"SELECT 1 FROM memories WHERE product = 5 AND lower(kind) = 'a'":             "", // lower() cannot fail
		"SELECT 1 FROM memories WHERE product = 5 AND 10 / 2 > 29":                   "", // PostgreSQL computes constants once
		"SELECT product = 5 AND price / amount > 29 FROM memories":                   "",
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		text := strings.ReplaceAll(result.Text, "pg_catalog.", "")
		if want != "" && !strings.Contains(text, want) || want == "" && strings.Contains(text, "COALESCE(") {
			t.Errorf("%s becomes\n%s", sql, text)
		}
	}
	signedRewriter := draftsRewriter(t, pgtest.Database(t).Connect(t, "postgres"), AlwaysSignedMode,
		"ALTER TABLE memories ADD product int, ADD price int, ADD amount int")
	for _, sql := range []string{"SELECT id FROM memories WHERE found @@ 'a'::tsquery AND product = 5 AND price / amount > 29"} {
		if result, refusal := signedRewriter.Rewrite(sql, false); refusal != nil || strings.Contains(result.Text, "COALESCE(") {
			t.Errorf("a search that is read again: %v, %s", refusal, result.Text)
		}
	}
}
