package rewrite

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
)

// operatorPlaces are where PostgreSQL's grammar takes an operator, by its name, or means one: A and B are its operands.
var operatorPlaces = map[string][]string{
	"=": {
		"A = B", "A IN (B)", "A IN (SELECT B)", "A = ANY (ARRAY[B])", "A = ALL (SELECT B)", "NULLIF(A, B)",
		"CASE A WHEN B THEN 1 END", "A IS DISTINCT FROM B", "A IS NOT DISTINCT FROM B",
		"(A, 1) = (B, 1)", "(A, 1) IN (SELECT B, 1)", "ROW(A) = ANY (SELECT B)", "A OPERATOR(public.=) B",
		"(SELECT 1 FROM (SELECT A AS v) x JOIN (SELECT B AS v) y USING (v))", "(SELECT 1 FROM (SELECT A AS v) x NATURAL JOIN (SELECT B AS v) y)",
	},
	"<": {"A < B", "A BETWEEN B AND B", "A NOT BETWEEN SYMMETRIC B AND B", "(A, 1) < (B, 1)", "A < SOME (SELECT B)",
		"(SELECT 1 FROM (SELECT B AS b) x ORDER BY b USING <)", "array_agg(A ORDER BY B USING <)", "rank() OVER (ORDER BY B USING <)"},
	"<>":  {"A <> B", "A NOT IN (B)", "A <> ALL (SELECT B)"},
	">=":  {"A >= B", "A BETWEEN B AND B"},
	"<=":  {"A <= B", "A NOT BETWEEN B AND B"},
	"~~":  {"A LIKE B", "A LIKE ANY (ARRAY[B])", "A LIKE B ESCAPE 'x'"},
	"!~~": {"A NOT LIKE B"},
	"~~*": {"A ILIKE B"},
	"~":   {"A ~ B", "A SIMILAR TO B"},
}

var operand = regexp.MustCompile(`\b[AB]\b`)

// If another role has made an operator with the name of a PostgreSQL operator, statements are refused wherever they use
// that operator, written out or implied.
func TestOperatorsOfOtherRolesAreRefused(t *testing.T) {
	rewriterBefore := rewriter(t, InjectedMode)
	createOperators := ""
	for name := range operatorPlaces {
		createOperators += "CREATE OPERATOR public." + name + " (LEFTARG = uuid, RIGHTARG = text, FUNCTION = leak);"
	}
	conn := database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(context.Background(), createOperators).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	r := New(snap, rewriterBefore.pol, InjectedMode) // the policy was compiled before, since its views use operators too
	for name, templates := range operatorPlaces {
		for _, template := range templates {
			sql := "SELECT " + operand.ReplaceAllString(template, "'$0'::text")
			if _, refusal := rewriterBefore.Rewrite(sql, false); refusal != nil && !strings.Contains(sql, "public.") {
				t.Errorf("%s: refused where PostgreSQL's operators are all there are: %v", sql, refusal)
			}
			if result, refusal := r.Rewrite(sql, false); refusal == nil {
				t.Errorf("%s: allowed beside another %s: %s", sql, name, result.Text)
			} else if !strings.Contains(refusal.Message, "is not available to agents") || !strings.Contains(refusal.Message, "operator") {
				t.Errorf("%s: refused for another reason: %v", sql, refusal)
			}
		}
	}
}

// A function or operator that no data file lists is refused. The test removes each name that a statement uses from its
// file.
func TestNamesWithoutDataFileAreRefused(t *testing.T) {
	r := rewriter(t, InjectedMode)
	for name, sql := range map[string]string{"||": "SELECT 'a' || 'b'",
		"<->": "SELECT point '(0,0)' <-> point '(1,1)'", "=": "SELECT 1 FROM people a JOIN people b USING (id)"} {
		listedEntry := operatorList[catalogKey][name]
		delete(operatorList[catalogKey], name)
		_, refusal := r.Rewrite(sql, false)
		operatorList[catalogKey][name] = listedEntry
		if refusal == nil {
			t.Errorf("%s: operator %s is in no data file", sql, name)
		}
	}
	for name, sql := range map[string]string{"lower": "SELECT lower('a')", "count": "SELECT count(*) FROM people",
		"like_escape": "SELECT 'a' LIKE 'b' ESCAPE 'c'"} {
		listedEntry := catalogFunctions[name]
		delete(catalogFunctions, name)
		_, refusal := r.Rewrite(sql, false)
		catalogFunctions[name] = listedEntry
		if refusal == nil {
			t.Errorf("%s: function %s is in no data file", sql, name)
		}
	}
	for name, sql := range map[string]string{"int4": "SELECT '1'::integer", "text": "SELECT CAST(1 AS text)", "jsonb": "SELECT jsonb '{}'"} {
		listedEntry := typeList[catalogKey][name]
		delete(typeList[catalogKey], name)
		_, refusal := r.Rewrite(sql, false)
		typeList[catalogKey][name] = listedEntry
		if refusal == nil {
			t.Errorf("%s: type %s is in no data file", sql, name)
		}
	}
}
